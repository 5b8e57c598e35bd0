//! Prometheus metrics, computed at each scrape.
//!
//! Breakers count their calls and know their state at any moment, so nothing is pushed: a scrape reads all breakers. This table lists
//! every metric. All series but those of the last five metrics have the label `service`.
#![doc = "\n| metric | type | further labels | meaning |\n|---|---|---|---|"]
#![doc = "| `circuit_breaker_state` | gauge | | 0 closed, 1 open, 2 half-open: what callers feel at the moment of the scrape |"]
#![doc = "| `circuit_breaker_mode` | gauge | `mode` | 1 for the mode in force, 0 for the others: enforce, observe, force_closed, force_open |"]
#![doc = "| `circuit_breaker_calls_total` | counter | `outcome` | calls by what became of them: success, failure, throttled, neutral, rejected |"]
#![doc = "| `circuit_breaker_rejections_total` | counter | `reason` | rejections: open, half_open_busy, bulkhead_full, rate_limited, budget_exhausted |"]
#![doc = "| `circuit_breaker_transitions_total` | counter | `to` | changes of state: closed, open, half_open |"]
#![doc = "| `circuit_breaker_late_results_total` | counter | | verdicts of an older generation |"]
#![doc = "| `circuit_breaker_timeouts_total` | counter | | calls given up after the policy's timeout; also counted as failures |"]
#![doc = "| `circuit_breaker_consecutive_failures` | gauge | | failures since the last success |"]
#![doc = "| `circuit_breaker_failure_rate` | gauge | | share of failed calls in the window, 0 to 1 |"]
#![doc = "| `circuit_breaker_slow_rate` | gauge | | share of slow calls in the window, 0 to 1 |"]
#![doc = "| `circuit_breaker_seconds_until_probe` | gauge | | seconds until the next probe is due; 0 unless open |"]
#![doc = "| `circuit_breaker_in_flight` | gauge | | calls admitted and not yet ended |"]
#![doc = "| `circuit_breaker_bulkhead_limit` | gauge | | calls at once, where limited |"]
#![doc = "| `circuit_breaker_retry_budget_balance` | gauge | | retries the budget can pay now, where there is one |"]
#![doc = "| `circuit_breaker_call_duration_seconds` | histogram | | how long calls took, where measured |"]
#![doc = "| `circuit_breaker_config_reloads_total` | counter | `result` | reloads of the configuration: applied, refused |"]
#![doc = "| `circuit_breaker_config_last_reload_success` | gauge | | 1 if the last reload was applied, 0 if it was refused; absent before the first reload |"]
#![doc = "| `circuit_breaker_config_last_reload_timestamp_seconds` | gauge | | Unix time of the last reload in seconds; absent before the first reload |"]
#![doc = "| `circuit_breaker_store_errors_total` | counter | `store`, `op` | failures of the store, by what it was asked to do: load, save, lease, limit, sync, publish, subscribe |"]
#![doc = "| `circuit_breaker_events_dropped_total` | counter | | events that observers were too slow for |"]

use std::{collections::HashMap, time::SystemTime};

use prometheus::{
    Registry,
    core::{Collector, Desc},
    proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType},
};

use crate::{CircuitRegistry, breaker::histogram, policy::Mode, view::BreakerView};

/// A row of the table: name, type, help, and what it reads of a breaker: label pairs with values.
struct Row {
    name: &'static str,
    kind: MetricType,
    help: &'static str,
    read: fn(&BreakerView) -> Vec<Value>,
}

/// A label besides the service, if there is one, and a number.
type Value = (Option<(&'static str, &'static str)>, f64);

const fn row(name: &'static str, kind: MetricType, help: &'static str, read: fn(&BreakerView) -> Vec<Value>) -> Row {
    Row { name, kind, help, read }
}

fn one(value: f64) -> Vec<Value> {
    vec![(None, value)]
}

fn by<const N: usize>(label: &'static str, values: [(&'static str, u64); N]) -> Vec<Value> {
    values.into_iter().map(|(value, count)| (Some((label, value)), count as f64)).collect()
}

const ROWS: &[Row] = &[
    row("circuit_breaker_state", MetricType::GAUGE, "State: 0 closed, 1 open, 2 half-open.", |v| {
        one(f64::from(v.state as u8))
    }),
    row("circuit_breaker_mode", MetricType::GAUGE, "1 for the mode in force, 0 for the others.", |v| {
        let modes = [Mode::Enforce, Mode::Observe, Mode::ForceClosed, Mode::ForceOpen];
        by("mode", modes.map(|mode| (mode.as_str(), u64::from(mode == v.mode))))
    }),
    row("circuit_breaker_calls_total", MetricType::COUNTER, "Calls by outcome.", |v| {
        let c = &v.calls;
        by(
            "outcome",
            [
                ("success", c.success),
                ("failure", c.failure),
                ("throttled", c.throttled),
                ("neutral", c.neutral),
                ("rejected", c.rejected()),
            ],
        )
    }),
    row("circuit_breaker_rejections_total", MetricType::COUNTER, "Rejected calls by reason.", |v| {
        let c = &v.calls;
        by(
            "reason",
            [
                ("open", c.rejected_open),
                ("half_open_busy", c.rejected_half_open_busy),
                ("bulkhead_full", c.rejected_bulkhead_full),
                ("rate_limited", c.rejected_rate_limited),
                ("budget_exhausted", c.rejected_budget_exhausted),
                ("no_time_left", c.rejected_no_time_left),
            ],
        )
    }),
    row("circuit_breaker_transitions_total", MetricType::COUNTER, "Changes of state.", |v| {
        let c = &v.calls;
        by("to", [("closed", c.to_closed), ("open", c.to_open), ("half_open", c.to_half_open)])
    }),
    row("circuit_breaker_late_results_total", MetricType::COUNTER, "Verdicts of an older generation.", |v| {
        one(v.calls.late as f64)
    }),
    row("circuit_breaker_timeouts_total", MetricType::COUNTER, "Calls given up after their timeout.", |v| {
        one(v.calls.timed_out as f64)
    }),
    row("circuit_breaker_cut_short_total", MetricType::COUNTER, "Calls cut short by their caller's deadline.", |v| {
        one(v.calls.cut_short as f64)
    }),
    row("circuit_breaker_consecutive_failures", MetricType::GAUGE, "Failures since the last success.", |v| {
        one(f64::from(v.consecutive_failures))
    }),
    row("circuit_breaker_failure_rate", MetricType::GAUGE, "Share of failed calls in the window.", |v| {
        v.window_calls.map_or_else(Vec::new, |_| one(v.failure_rate.unwrap_or(0.0)))
    }),
    row("circuit_breaker_slow_rate", MetricType::GAUGE, "Share of slow calls in the window.", |v| {
        v.window_calls.map_or_else(Vec::new, |_| one(v.slow_rate.unwrap_or(0.0)))
    }),
    row("circuit_breaker_seconds_until_probe", MetricType::GAUGE, "Seconds until the next probe is due.", |v| {
        // A breaker that an operator holds open sends no probe.
        one(v.retry_in.filter(|_| v.mode == Mode::Enforce).unwrap_or_default().as_secs_f64())
    }),
    row("circuit_breaker_in_flight", MetricType::GAUGE, "Calls admitted and not yet ended.", |v| {
        one(v.in_flight as f64)
    }),
    row("circuit_breaker_bulkhead_limit", MetricType::GAUGE, "Calls at once.", |v| {
        v.bulkhead_limit.map_or_else(Vec::new, |limit| one(f64::from(limit)))
    }),
    row("circuit_breaker_retry_budget_balance", MetricType::GAUGE, "Retries the budget can pay now.", |v| {
        v.budget_balance.map_or_else(Vec::new, |balance| one(balance as f64))
    }),
];

const DURATION: (&str, &str) = ("circuit_breaker_call_duration_seconds", "How long calls took.");
const RELOADS: (&str, &str) = ("circuit_breaker_config_reloads_total", "Reloads of the configuration by result.");
const LAST_RELOAD: (&str, &str) =
    ("circuit_breaker_config_last_reload_success", "1 if the last reload was applied, 0 if it was refused.");
const LAST_RELOAD_TIME: (&str, &str) =
    ("circuit_breaker_config_last_reload_timestamp_seconds", "Unix time of the last reload.");
const STORE_ERRORS: (&str, &str) = ("circuit_breaker_store_errors_total", "Failures of the store by operation.");
const DROPPED: (&str, &str) = ("circuit_breaker_events_dropped_total", "Events that observers were too slow for.");

/// Exposes `breakers` in `metrics`, from now on and for as long as both exist.
///
/// # Errors
/// If `metrics` already exposes series of these names.
pub fn register(breakers: &CircuitRegistry, metrics: &Registry) -> prometheus::Result<()> {
    let named = ROWS.iter().map(|row| (row.name, row.help)).chain([
        DURATION,
        RELOADS,
        LAST_RELOAD,
        LAST_RELOAD_TIME,
        STORE_ERRORS,
        DROPPED,
    ]);
    let descs = named
        .map(|(name, help)| Desc::new(name.into(), help.into(), Vec::new(), HashMap::new()))
        .collect::<prometheus::Result<_>>()?;
    metrics.register(Box::new(BreakerCollector { breakers: breakers.clone(), descs }))
}

struct BreakerCollector {
    breakers: CircuitRegistry,
    descs: Vec<Desc>,
}

impl Collector for BreakerCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let inners = self.breakers.breakers();
        let views: Vec<_> = inners.values().map(|inner| inner.view()).collect();
        let mut families: Vec<_> = ROWS
            .iter()
            .map(|row| {
                let metrics = views.iter().flat_map(|view| {
                    (row.read)(view)
                        .into_iter()
                        .map(|(label, value)| sample(row.kind, &labels(&view.service, label), value))
                });
                family(row.name, row.help, row.kind, metrics.collect())
            })
            .collect();
        let measured = inners.iter().filter_map(|(name, inner)| inner.histogram().map(|h| durations(name, h)));
        families.push(family(DURATION.0, DURATION.1, MetricType::HISTOGRAM, measured.collect()));
        let (applied, refused) = self.breakers.reloads();
        let reloads = [("applied", applied), ("refused", refused)]
            .map(|(result, count)| sample(MetricType::COUNTER, &[pair("result", result)], count as f64));
        families.push(family(RELOADS.0, RELOADS.1, MetricType::COUNTER, reloads.into()));
        if let Some((applied, at)) = self.breakers.last_reload() {
            let at = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            for ((name, help), value) in [(LAST_RELOAD, f64::from(u8::from(applied))), (LAST_RELOAD_TIME, at)] {
                families.push(family(name, help, MetricType::GAUGE, vec![sample(MetricType::GAUGE, &[], value)]));
            }
        }
        if let Some((store, errors)) = self.breakers.store_errors() {
            let errors = errors
                .into_iter()
                .map(|(op, count)| sample(MetricType::COUNTER, &[pair("op", op), pair("store", store)], count as f64));
            families.push(family(STORE_ERRORS.0, STORE_ERRORS.1, MetricType::COUNTER, errors.collect()));
        }
        let dropped = sample(MetricType::COUNTER, &[], self.breakers.events_dropped() as f64);
        families.push(family(DROPPED.0, DROPPED.1, MetricType::COUNTER, vec![dropped]));
        families.retain(|family| !family.get_metric().is_empty());
        families
    }
}

fn family(name: &str, help: &str, kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.into());
    family.set_help(help.into());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}

fn sample(kind: MetricType, labels: &[LabelPair], value: f64) -> Metric {
    let mut metric = Metric::from_label(labels.to_vec());
    if kind == MetricType::COUNTER {
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
    } else {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
    }
    metric
}

fn durations(service: &str, histogram: &histogram::Histogram) -> Metric {
    let (cumulative, count, sum) = histogram.read();
    let mut durations = Histogram::default();
    durations.set_sample_count(count);
    durations.set_sample_sum(sum);
    let buckets = histogram::BOUNDS.iter().zip(cumulative).map(|(bound, count)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket.set_cumulative_count(count);
        bucket
    });
    durations.set_bucket(buckets.collect());
    let mut metric = Metric::from_label(labels(service, None));
    metric.set_histogram(durations);
    metric
}

fn labels(service: &str, more: Option<(&str, &str)>) -> Vec<LabelPair> {
    let more = more.map(|(name, value)| pair(name, value));
    more.into_iter().chain([pair("service", service)]).collect()
}

fn pair(name: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.into());
    pair.set_value(value.into());
    pair
}

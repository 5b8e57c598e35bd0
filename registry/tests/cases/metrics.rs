//! What a scrape sees.

use std::collections::BTreeMap;

use circuit_registry::{CircuitRegistry, Override, Verdict, prometheus::register};
use prometheus::{Registry, proto::MetricFamily};

use crate::{Case, THREE, config};

/// Every series with its value, as `name{label=value,…}`; histograms by their count.
fn scrape(metrics: &Registry) -> BTreeMap<String, f64> {
    let mut series = BTreeMap::new();
    for family in metrics.gather() {
        for metric in family.get_metric() {
            let mut labels: Vec<_> = metric.get_label().iter().map(|l| format!("{}={}", l.name(), l.value())).collect();
            labels.sort();
            let name = format!("{}{{{}}}", family.name(), labels.join(","));
            assert!(series.insert(name.clone(), value(&family, metric)).is_none(), "{name} twice");
        }
    }
    series
}

fn value(family: &MetricFamily, metric: &prometheus::proto::Metric) -> f64 {
    use prometheus::proto::MetricType;
    match family.get_field_type() {
        MetricType::COUNTER => metric.get_counter().get_value(),
        MetricType::HISTOGRAM => metric.get_histogram().get_sample_count() as f64,
        _ => metric.get_gauge().get_value(),
    }
}

fn measured(registry: &CircuitRegistry) -> Registry {
    let metrics = Registry::new();
    register(registry, &metrics).expect("names of its own");
    metrics
}

#[tokio::test(start_paused = true)]
async fn the_state_is_half_open_by_time_alone() {
    let case = Case::three();
    let metrics = measured(&case.registry);
    case.trip();
    assert_eq!(scrape(&metrics)["circuit_breaker_state{service=s}"], 1.0);
    assert_eq!(scrape(&metrics)["circuit_breaker_seconds_until_probe{service=s}"], 60.0);
    case.at(61.0).await;
    assert_eq!(scrape(&metrics)["circuit_breaker_state{service=s}"], 2.0);
    assert_eq!(scrape(&metrics)["circuit_breaker_seconds_until_probe{service=s}"], 0.0);
}

#[tokio::test(start_paused = true)]
async fn configured_services_have_series_before_the_first_call() {
    let registry =
        CircuitRegistry::new(config("services: { a: {}, b: { window: { calls: 9, slow_call: 1s, slow_rate: 50% } } }"));
    let series = scrape(&measured(&registry));
    for service in ["a", "b"] {
        for name in ["state", "late_results_total", "timeouts_total", "consecutive_failures", "in_flight"] {
            assert_eq!(series[&format!("circuit_breaker_{name}{{service={service}}}")], 0.0);
        }
        for outcome in ["success", "failure", "throttled", "neutral", "rejected"] {
            assert_eq!(series[&format!("circuit_breaker_calls_total{{outcome={outcome},service={service}}}")], 0.0);
        }
        for reason in ["open", "half_open_busy", "bulkhead_full", "rate_limited", "budget_exhausted"] {
            assert_eq!(series[&format!("circuit_breaker_rejections_total{{reason={reason},service={service}}}")], 0.0);
        }
        for to in ["closed", "open", "half_open"] {
            assert_eq!(series[&format!("circuit_breaker_transitions_total{{service={service},to={to}}}")], 0.0);
        }
    }
    assert_eq!(series["circuit_breaker_failure_rate{service=b}"], 0.0);
    assert_eq!(series["circuit_breaker_slow_rate{service=b}"], 0.0);
}

#[tokio::test(start_paused = true)]
async fn one_rejection_moves_the_counter_by_one() {
    let case = Case::three();
    let metrics = measured(&case.registry);
    case.trip();
    for n in 1..=3 {
        assert!(!case.admits());
        let series = scrape(&metrics);
        assert_eq!(series["circuit_breaker_rejections_total{reason=open,service=s}"], f64::from(n));
        assert_eq!(series["circuit_breaker_calls_total{outcome=rejected,service=s}"], f64::from(n));
    }
    case.s.force_open(Override::new("alice", "why"));
    assert!(!case.admits());
    assert_eq!(scrape(&metrics)["circuit_breaker_rejections_total{reason=open,service=s}"], 4.0);
}

#[tokio::test(start_paused = true)]
async fn counters_go_on_after_a_reload_and_there_is_one_state_each() {
    let case = Case::three();
    let metrics = measured(&case.registry);
    case.trip();
    assert!(!case.admits());
    let before = scrape(&metrics);
    for yaml in ["services: { s: { fail_max: 9 } }", "{}", "services: { t: {} }", THREE] {
        case.registry.apply(config(yaml));
        let after = scrape(&metrics);
        for (name, value) in before.iter().filter(|(name, _)| name.contains("_total{")) {
            assert!(after[name] >= *value, "{name} went back under {yaml}");
        }
        assert_eq!(after["circuit_breaker_state{service=s}"], 1.0, "{yaml}");
    }
    assert_eq!(scrape(&metrics)["circuit_breaker_config_reloads_total{result=applied}"], 4.0);
    case.at(60.0).await;
    case.start().settle(Verdict::Success);
    assert_eq!(scrape(&metrics)["circuit_breaker_calls_total{outcome=success,service=s}"], 1.0);
}

#[tokio::test(start_paused = true)]
async fn durations_are_measured_where_asked_for_and_for_every_call() {
    let registry = CircuitRegistry::builder().config(config(THREE)).measure_calls(true).build();
    let metrics = measured(&registry);
    for millis in [0, 30, 7_000] {
        let work = async {
            tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
            std::io::Result::Ok(())
        };
        registry.call("s", work).await.unwrap();
    }
    drop(registry.breaker("s").try_acquire().unwrap());
    let families = metrics.gather();
    let family = families.iter().find(|f| f.name() == "circuit_breaker_call_duration_seconds").expect("there");
    let histogram = family.get_metric()[0].get_histogram();
    assert_eq!(histogram.get_sample_count(), 4);
    assert!((histogram.get_sample_sum() - 7.03).abs() < 0.01, "{}", histogram.get_sample_sum());
    let up_to: Vec<_> = histogram.get_bucket().iter().map(|b| (b.upper_bound(), b.cumulative_count())).collect();
    assert_eq!((up_to[0], up_to[3], up_to[10]), ((0.005, 2), (0.05, 3), (10.0, 4)));
}

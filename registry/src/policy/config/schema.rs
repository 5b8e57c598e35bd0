//! The schema: which keys there are, what they mean, and what makes no sense together.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc, time::Duration};

use super::{
    BreakersConfig, MAX_DYNAMIC,
    error::{ConfigError, Place},
    read::{At, Block, parse_duration},
    tree::{Node, Value},
};
use crate::policy::{
    BulkheadPolicy, FleetPolicy, HalfOpenPolicy, LimitScope, Mode, OnOpen, OpenTime, Policy, Rate, RateLimitPolicy,
    RetryPolicy, SharePolicy, SlowPolicy, Span, StatusOverrides, StatusVerdict, TripPolicy, WindowPolicy,
};

const DOCUMENT: &[&str] = &["defaults", "services", "names", "fleet"];

const POLICY: &[&str] = &[
    "fail_max",
    "reset_timeout",
    "window",
    "half_open",
    "reset_growth",
    "timeout",
    "bulkhead",
    "rate_limit",
    "retry",
    "on_open",
    "mode",
    "throttle_max",
    "status",
    "cache",
    "activities",
    "fleet",
];

const MODES: &[(&str, Mode)] = &[
    ("enforce", Mode::Enforce),
    ("observe", Mode::Observe),
    ("force_open", Mode::ForceOpen),
    ("force_closed", Mode::ForceClosed),
];

const VERDICTS: &[(&str, StatusVerdict)] = &[
    ("success", StatusVerdict::Success),
    ("failure", StatusVerdict::Failure),
    ("throttled", StatusVerdict::Throttled),
    ("neutral", StatusVerdict::Neutral),
];

/// Reads the whole document.
pub(super) fn config(document: &Node) -> Result<BreakersConfig, ConfigError> {
    let block = Block::of(At { node: document, key: "" }, DOCUMENT)?;
    let mut defaults = block.get("defaults", Entry::read)?.unwrap_or_default();
    defaults.fleet = defaults.fleet.or(block.get("fleet", fleet)?);
    let policy = defaults.clone().build(document.place, "defaults")?;
    let max_dynamic = block
        .get("names", |at| Block::of(at, &["max_dynamic"])?.get("max_dynamic", |at| at.count()))?
        .flatten()
        .map_or(MAX_DYNAMIC, |n| n.get() as usize);
    let mut services = BTreeMap::new();
    let mut guards: BTreeMap<String, String> = BTreeMap::new();
    block.get("services", |at| {
        for entry in Block::open(at)?.entries() {
            if let Some(message) = unfit_name(entry.name) {
                return Err(ConfigError::new(entry.place, &entry.path, message));
            }
            let at = At { node: entry.node, key: &entry.path };
            let policy = Entry::read(at)?.or(&defaults).build(entry.place, &entry.path)?;
            for activity in &policy.activities {
                if let Some(other) = guards.insert(activity.clone(), entry.name.to_owned()) {
                    return Err(at.error(format!("activity `{activity}` is already guarded by `{other}`")));
                }
            }
            services.insert(entry.name.to_owned(), Arc::new(policy));
        }
        Ok(())
    })?;
    Ok(BreakersConfig { defaults: Arc::new(policy), services, max_dynamic, guards })
}

fn unfit_name(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("a service needs a name")
    } else if name.len() > 200 {
        Some("a service's name must not be longer than 200 bytes")
    } else if name.chars().any(char::is_control) {
        Some("a service's name must not contain control characters")
    } else {
        None
    }
}

/// What one entry says, before the defaults fill it up. A place is kept where two keys can contradict each other.
#[derive(Debug, Clone, Default)]
struct Entry {
    trip: Option<TripPolicy>,
    reset_timeout: Option<(Duration, Place)>,
    growth: Option<Growth>,
    half_open: Option<HalfOpen>,
    timeout: Option<Duration>,
    bulkhead: Option<BulkheadPolicy>,
    rate_limit: Option<RateLimitPolicy>,
    retry: Option<RetryPolicy>,
    on_open: Option<OnOpen>,
    mode: Option<Mode>,
    throttle_max: Option<Duration>,
    status: Option<StatusOverrides>,
    cache_max_age: Option<Duration>,
    activities: Option<Vec<String>>,
    fleet: Option<FleetPolicy>,
}

#[derive(Debug, Clone, Copy)]
struct Growth {
    factor_milli: u32,
    max: Option<Duration>,
    jitter: Rate,
}

#[derive(Debug, Clone, Copy)]
struct HalfOpen {
    permits: NonZeroU32,
    failure_rate: Option<Rate>,
    slow_rate: Option<Rate>,
    max_wait: Option<Duration>,
}

impl Entry {
    fn read(at: At<'_>) -> Result<Self, ConfigError> {
        let block = Block::of(at, POLICY)?;
        let fail_max = block.get("fail_max", |at| at.count())?;
        let window = block.get("window", window)?;
        Ok(Self {
            trip: (fail_max.is_some() || window.is_some()).then_some(TripPolicy { fail_max, window }),
            reset_timeout: block.get("reset_timeout", |at| Ok((at.duration()?, at.node.place)))?,
            growth: block.get("reset_growth", growth)?,
            half_open: block.get("half_open", half_open)?,
            timeout: block.get("timeout", |at| at.duration())?,
            bulkhead: block.get("bulkhead", bulkhead)?,
            rate_limit: block.get("rate_limit", rate_limit)?,
            retry: block.get("retry", retry)?,
            on_open: block.get("on_open", on_open)?,
            mode: block.get("mode", |at| at.word(MODES))?,
            throttle_max: block.get("throttle_max", |at| at.duration())?,
            status: block.get("status", status)?,
            cache_max_age: block.get("cache", |at| {
                let max_age = Block::of(at, &["max_age"])?.get("max_age", |at| at.duration())?;
                required(at, "max_age", max_age)
            })?,
            activities: block.get("activities", |at| at.names())?,
            fleet: block.get("fleet", fleet)?,
        })
    }

    /// This entry, with what it does not say taken from `defaults`.
    fn or(self, defaults: &Self) -> Self {
        let d = defaults.clone();
        Self {
            trip: self.trip.or(d.trip),
            reset_timeout: self.reset_timeout.or(d.reset_timeout),
            growth: self.growth.or(d.growth),
            half_open: self.half_open.or(d.half_open),
            timeout: self.timeout.or(d.timeout),
            bulkhead: self.bulkhead.or(d.bulkhead),
            rate_limit: self.rate_limit.or(d.rate_limit),
            retry: self.retry.or(d.retry),
            on_open: self.on_open.or(d.on_open),
            mode: self.mode.or(d.mode),
            throttle_max: self.throttle_max.or(d.throttle_max),
            status: self.status.or(d.status),
            cache_max_age: self.cache_max_age.or(d.cache_max_age),
            fleet: self.fleet.or(d.fleet),
            activities: self.activities, // a guarded activity belongs to one breaker
        }
    }

    fn build(self, place: Place, path: &str) -> Result<Policy, ConfigError> {
        let base = Policy::default();
        let reset_timeout = self.reset_timeout.map_or(base.open.reset_timeout, |(time, _)| time);
        let growth =
            self.growth.unwrap_or(Growth { factor_milli: base.open.factor_milli, max: None, jitter: base.open.jitter });
        let roomy = base.open.max.max(reset_timeout.saturating_add(growth.jitter.of(reset_timeout)));
        let max = growth.max.unwrap_or(roomy);
        if max < reset_timeout {
            let place = self.reset_timeout.map_or(place, |(_, place)| place);
            let message = format!("{reset_timeout:?} is longer than reset_growth.max, {max:?}");
            return Err(ConfigError::new(place, &format!("{path}.reset_timeout"), message));
        }
        let half_open = self.half_open.unwrap_or(HalfOpen {
            permits: base.half_open.permits,
            failure_rate: base.half_open.failure_rate,
            slow_rate: None,
            max_wait: None,
        });
        // A probe that is merely slow must not be given up for lost.
        let patient =
            base.half_open.max_wait.max(reset_timeout).max(self.timeout.unwrap_or_default().saturating_mul(2));
        Ok(Policy {
            trip: self.trip.unwrap_or(base.trip),
            open: OpenTime { reset_timeout, factor_milli: growth.factor_milli, max, jitter: growth.jitter },
            half_open: HalfOpenPolicy {
                permits: half_open.permits,
                failure_rate: half_open.failure_rate,
                slow_rate: half_open.slow_rate,
                max_wait: half_open.max_wait.unwrap_or(patient),
            },
            timeout: self.timeout,
            bulkhead: self.bulkhead,
            rate_limit: self.rate_limit,
            retry: self.retry,
            on_open: self.on_open.unwrap_or_default(),
            mode: self.mode.unwrap_or_default(),
            throttle_max: self.throttle_max.unwrap_or(base.throttle_max),
            status: self.status.unwrap_or_default(),
            cache_max_age: self.cache_max_age,
            activities: self.activities.unwrap_or_default(),
            fleet: self.fleet.unwrap_or_default(),
        })
    }
}

fn required<T>(at: At<'_>, key: &str, value: Option<T>) -> Result<T, ConfigError> {
    value.ok_or_else(|| at.error(format!("needs `{key}`")))
}

fn window(at: At<'_>) -> Result<WindowPolicy, ConfigError> {
    const KEYS: &[&str] = &["calls", "time", "minimum_calls", "failure_rate", "slow_call", "slow_rate"];
    const USUAL_MINIMUM: u32 = 10;
    let block = Block::of(at, KEYS)?;
    let calls = block.get("calls", |at| {
        let calls = at.count()?;
        if calls.get() > WindowPolicy::MAX_CALLS {
            return Err(at.error(format!("must be at most {}, not {calls}", WindowPolicy::MAX_CALLS)));
        }
        Ok(calls)
    })?;
    let time = block.get("time", |at| at.duration())?;
    let span = match (calls, time) {
        (Some(calls), None) => Span::Calls(calls),
        (None, Some(time)) => Span::Time(time),
        (Some(_), Some(_)) => return Err(at.error("a window counts either `calls` or `time`, not both")),
        (None, None) => return Err(at.error("a window needs `calls: 100` or `time: 60s`")),
    };
    let most = calls.map_or(u32::MAX, NonZeroU32::get);
    let minimum_calls = block.get("minimum_calls", |at| {
        let minimum = at.count()?.get();
        if minimum > most {
            return Err(at.error(format!("must be at most `calls` ({most}), or the window never trips")));
        }
        Ok(minimum)
    })?;
    let failure_rate = block.get("failure_rate", |at| at.rate())?;
    let slow = match (block.get("slow_call", |at| at.duration())?, block.get("slow_rate", |at| at.rate())?) {
        (Some(call), Some(rate)) => Some(SlowPolicy { call, rate }),
        (None, None) => None,
        _ => return Err(at.error("`slow_call` and `slow_rate` belong together")),
    };
    if failure_rate.is_none() && slow.is_none() {
        return Err(at.error("an empty window never trips: give it a `failure_rate`, or `slow_call` and `slow_rate`"));
    }
    Ok(WindowPolicy { span, minimum_calls: minimum_calls.unwrap_or(USUAL_MINIMUM.min(most)), failure_rate, slow })
}

fn half_open(at: At<'_>) -> Result<HalfOpen, ConfigError> {
    let block = Block::of(at, &["permits", "failure_rate", "slow_rate", "max_wait"])?;
    Ok(HalfOpen {
        permits: block.get("permits", |at| at.count())?.unwrap_or(NonZeroU32::MIN),
        failure_rate: block.get("failure_rate", |at| at.rate())?,
        slow_rate: block.get("slow_rate", |at| at.rate())?,
        max_wait: block.get("max_wait", |at| at.duration())?,
    })
}

fn growth(at: At<'_>) -> Result<Growth, ConfigError> {
    let block = Block::of(at, &["factor", "max", "jitter"])?;
    let base = Policy::default().open;
    Ok(Growth {
        factor_milli: block.get("factor", |at| at.factor_milli())?.unwrap_or(base.factor_milli),
        max: block.get("max", |at| at.duration())?,
        jitter: block.get("jitter", |at| at.rate())?.unwrap_or(base.jitter),
    })
}

fn bulkhead(at: At<'_>) -> Result<BulkheadPolicy, ConfigError> {
    let block = Block::of(at, &["max_concurrent", "max_wait"])?;
    let max_concurrent = block.get("max_concurrent", |at| at.count())?;
    Ok(BulkheadPolicy {
        max_concurrent: required(at, "max_concurrent", max_concurrent)?,
        max_wait: block.get("max_wait", |at| at.duration_or_zero())?.unwrap_or_default(),
    })
}

/// `1/s`, `500/min`, `3/100ms`, or `{ limit: 1, per: 1s, scope: fleet }`.
fn rate_limit(at: At<'_>) -> Result<RateLimitPolicy, ConfigError> {
    const SCOPES: &[(&str, LimitScope)] = &[("process", LimitScope::Process), ("fleet", LimitScope::Fleet)];
    let policy = if matches!(at.node.value, Value::Map(_)) {
        let block = Block::of(at, &["limit", "per", "scope"])?;
        let per = block.get("per", |at| at.duration())?;
        RateLimitPolicy {
            limit: block.get("limit", |at| at.count())?.unwrap_or(NonZeroU32::MIN),
            per: required(at, "per", per)?,
            scope: block.get("scope", |at| at.word(SCOPES))?.unwrap_or_default(),
        }
    } else {
        let text = at.text()?;
        let bad = || at.error(format!("expected a rate such as 1/s, 500/min or 3/100ms, not `{text}`"));
        let (limit, per) = text.split_once('/').ok_or_else(bad)?;
        let limit = limit.trim().parse().map_err(|_| bad())?;
        let per = per.trim();
        let per = if per.starts_with(|c: char| c.is_ascii_digit()) { per.to_owned() } else { format!("1{per}") };
        let per = parse_duration(&per).ok().filter(|per| !per.is_zero()).ok_or_else(bad)?;
        RateLimitPolicy { limit, per, scope: LimitScope::default() }
    };
    if policy.per < Duration::from_nanos(u64::from(policy.limit.get())) {
        return Err(at.error("allows more than one call per nanosecond"));
    }
    Ok(policy)
}

fn retry(at: At<'_>) -> Result<RetryPolicy, ConfigError> {
    const THREE: NonZeroU32 = NonZeroU32::new(3).unwrap();
    let block = Block::of(at, &["max_attempts", "base", "cap", "budget"])?;
    let base = block.get("base", |at| at.duration())?.unwrap_or(Duration::from_millis(100));
    let cap = block.get("cap", |at| {
        let cap = at.duration()?;
        if cap < base { Err(at.error(format!("must not be shorter than base, {base:?}"))) } else { Ok(cap) }
    })?;
    Ok(RetryPolicy {
        max_attempts: block.get("max_attempts", |at| at.count())?.unwrap_or(THREE),
        base,
        cap: cap.unwrap_or(base.max(Duration::from_secs(2))),
        budget: block.get("budget", |at| at.rate())?,
    })
}

fn on_open(at: At<'_>) -> Result<OnOpen, ConfigError> {
    if matches!(at.node.value, Value::Map(_)) {
        let wait_max = Block::of(at, &["wait_max"])?.get("wait_max", |at| at.duration())?;
        return required(at, "wait_max", wait_max).map(OnOpen::WaitMax);
    }
    at.word(&[("degrade", OnOpen::Degrade), ("wait", OnOpen::Wait)])
}

/// `off`, `share`, or `{ share: { quorum: 2, lease: 10s } }`.
fn fleet(at: At<'_>) -> Result<FleetPolicy, ConfigError> {
    if !matches!(at.node.value, Value::Map(_)) {
        return at.word(&[("off", FleetPolicy::Off), ("share", FleetPolicy::Share(SharePolicy::default()))]);
    }
    const SHORTEST_LEASE: Duration = Duration::from_millis(100);
    let base = SharePolicy::default();
    let share = Block::of(at, &["share"])?.get("share", |at| {
        let block = Block::of(at, &["quorum", "lease"])?;
        Ok(SharePolicy {
            quorum: block.get("quorum", |at| at.count())?.unwrap_or(base.quorum),
            lease: block
                .get("lease", |at| match at.duration()? {
                    lease if lease < SHORTEST_LEASE => Err(at.error(format!("must be at least {SHORTEST_LEASE:?}"))),
                    lease => Ok(lease),
                })?
                .unwrap_or(base.lease),
        })
    })?;
    required(at, "share", share).map(FleetPolicy::Share)
}

fn status(at: At<'_>) -> Result<StatusOverrides, ConfigError> {
    let mut overrides = StatusOverrides::default();
    for entry in Block::open(at)?.entries() {
        let verdict = At { node: entry.node, key: &entry.path }.word(VERDICTS)?;
        // Three characters: so a status has one spelling, and a second entry for it is a duplicate.
        let name = Some(entry.name).filter(|name| name.len() == 3).unwrap_or_default();
        let class = name.strip_suffix("xx").and_then(|class| class.parse().ok());
        match (class, name.parse()) {
            (Some(class @ 1..=5), _) => drop(overrides.class.insert(class, verdict)),
            (None, Ok(status @ 100..=599)) => drop(overrides.exact.insert(status, verdict)),
            _ => {
                let message = "expected an HTTP status such as 404, or a class such as 4xx";
                return Err(ConfigError::new(entry.place, &entry.path, message));
            }
        }
    }
    Ok(overrides)
}

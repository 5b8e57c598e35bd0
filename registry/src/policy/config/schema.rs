//! The schema: which keys there are, what they mean, and what makes no sense together.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc, time::Duration};

use super::{
    BreakersConfig, MAX_DYNAMIC,
    error::{ConfigError, Place},
    read::{At, Block, join, parse_duration},
    tree::{Node, Value},
};
use crate::policy::{
    BulkheadPolicy, FleetPolicy, LimitScope, Mode, OnOpen, Policy, RateLimitPolicy, RetryPolicy, SharePolicy,
    SlowPolicy, Span, StatusOverrides, StatusVerdict, WindowPolicy,
    builder::{Growth, HalfOpen, PolicyBuilder},
    contradiction::contradiction,
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
    let mut defaults = block.get("defaults", entry)?.unwrap_or_default();
    defaults.fleet = defaults.fleet.or(block.get("fleet", fleet)?);
    let nothing = Node { value: Value::Null, place: document.place };
    let node = block.node("defaults").unwrap_or(&nothing);
    let policy = build(defaults.clone(), At { node, key: "defaults" }, node.place)?;
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
            let policy = build(self::entry(at)?.or(&defaults), at, entry.place)?;
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

/// What one entry says, before the defaults fill it up.
fn entry(at: At<'_>) -> Result<PolicyBuilder, ConfigError> {
    let block = Block::of(at, POLICY)?;
    Ok(PolicyBuilder {
        fail_max: block.get("fail_max", |at| at.unless_off(|at| at.count()))?,
        window: block.get("window", |at| at.unless_off(window))?,
        reset_timeout: block.get("reset_timeout", |at| at.duration())?,
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
        ..PolicyBuilder::default()
    })
}

/// The policy of an entry at `at`. A contradiction is reported where the entry says one of its two sides, or else at the name of
/// the entry, which stands at `place`.
fn build(builder: PolicyBuilder, at: At<'_>, place: Place) -> Result<Policy, ConfigError> {
    let policy = builder.fill();
    let Some((keys, message)) = contradiction(&policy) else { return Ok(policy) };
    let own = keys.iter().find_map(|key| at.place_of(key).map(|place| (*key, place)));
    let (key, place) = own.unwrap_or((keys[0], place));
    Err(ConfigError::new(place, &join(at.key, key), message))
}

fn required<T>(at: At<'_>, key: &str, value: Option<T>) -> Result<T, ConfigError> {
    value.ok_or_else(|| at.error(format!("needs `{key}`")))
}

fn window(at: At<'_>) -> Result<WindowPolicy, ConfigError> {
    const KEYS: &[&str] = &["calls", "time", "minimum_calls", "failure_rate", "slow_call", "slow_rate"];
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
    Ok(WindowPolicy {
        span,
        minimum_calls: minimum_calls.unwrap_or(WindowPolicy::usual_minimum(span)),
        failure_rate,
        slow,
    })
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
    let base = Growth::default();
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
    let block = Block::of(at, &["max_attempts", "base", "cap", "budget"])?;
    let base = block.get("base", |at| at.duration())?.unwrap_or(RetryPolicy::USUAL.base);
    let cap = block.get("cap", |at| {
        let cap = at.duration()?;
        if cap < base { Err(at.error(format!("must not be shorter than base, {base:?}"))) } else { Ok(cap) }
    })?;
    Ok(RetryPolicy {
        max_attempts: block.get("max_attempts", |at| at.count())?.unwrap_or(RetryPolicy::USUAL.max_attempts),
        base,
        cap: cap.unwrap_or(base.max(RetryPolicy::USUAL.cap)),
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

//! What makes no sense together: one table of rules, for policies of `breakers.yaml` and for those that are built in code.

use std::time::Duration;

use super::{Policy, Span};

/// The keys that contradict each other, the first one first, and why. `None` if the policy makes sense.
pub(super) fn contradiction(policy: &Policy) -> Option<(&'static [&'static str], String)> {
    RULES.iter().find_map(|rule| (rule.broken)(policy).map(|message| (rule.keys, message)))
}

struct Rule {
    keys: &'static [&'static str],
    /// What is wrong, if the rule is broken.
    broken: fn(&Policy) -> Option<String>,
}

const RULES: &[Rule] = &[
    Rule {
        keys: &["fail_max", "window"],
        broken: |p| {
            let none = p.trip.fail_max.is_none() && p.trip.window.is_none();
            none.then(|| "nothing opens this breaker: it needs `fail_max` or a `window`".into())
        },
    },
    Rule {
        keys: &["reset_timeout"],
        broken: |p| p.open.reset_timeout.is_zero().then(|| "must be longer than zero".into()),
    },
    Rule { keys: &["timeout"], broken: |p| p.timeout?.is_zero().then(|| "must be longer than zero".into()) },
    Rule {
        keys: &["reset_timeout", "reset_growth.max"],
        broken: |p| {
            let (time, max) = (p.open.reset_timeout, p.open.max);
            (time > max).then(|| format!("{time:?} is longer than reset_growth.max, {max:?}"))
        },
    },
    Rule {
        keys: &["reset_growth.factor"],
        broken: |p| (!(1000..=1_000_000).contains(&p.open.factor_milli)).then(|| "must be between 1 and 1000".into()),
    },
    Rule {
        keys: &["half_open.max_wait", "timeout"],
        broken: |p| {
            let (wait, timeout) = (p.half_open.max_wait, p.timeout?);
            let lost = "a probe would count as lost before its timeout";
            (wait < timeout).then(|| format!("{wait:?} is shorter than the timeout, {timeout:?}: {lost}"))
        },
    },
    Rule {
        keys: &["window.slow_call", "timeout"],
        broken: |p| {
            let (slow, timeout) = (p.trip.window.as_ref()?.slow?.call, p.timeout?);
            let never = "no call could be slow and succeed";
            (slow >= timeout).then(|| format!("{slow:?} is not shorter than the timeout, {timeout:?}: {never}"))
        },
    },
    Rule {
        keys: &["bulkhead.max_wait", "timeout"],
        broken: |p| {
            let (wait, timeout) = (p.bulkhead?.max_wait, p.timeout?);
            (wait > timeout).then(|| format!("{wait:?} is longer than the timeout, {timeout:?}"))
        },
    },
    Rule {
        keys: &["half_open.slow_rate", "window"],
        broken: |p| {
            let judged = p.trip.window.as_ref().is_some_and(|window| window.slow.is_some());
            let slow = "needs a window with `slow_call`, which says what a slow probe is";
            (p.half_open.slow_rate.is_some() && !judged).then(|| slow.into())
        },
    },
    Rule {
        keys: &["window.minimum_calls", "window.calls"],
        broken: |p| match p.trip.window.as_ref()? {
            window if window.minimum_calls == 0 => Some("must be at least 1".into()),
            window => match window.span {
                Span::Calls(calls) if window.minimum_calls > calls.get() => {
                    Some(format!("must be at most `calls` ({calls}), or the window never trips"))
                }
                Span::Time(Duration::ZERO) => Some("a window of no time holds no call".into()),
                Span::Calls(_) | Span::Time(_) => None,
            },
        },
    },
    Rule {
        keys: &["window"],
        broken: |p| {
            let window = p.trip.window.as_ref()?;
            let empty = "an empty window never trips: give it a `failure_rate`, or `slow_call` and `slow_rate`";
            (window.failure_rate.is_none() && window.slow.is_none()).then(|| empty.into())
        },
    },
    Rule {
        keys: &["rate_limit"],
        broken: |p| {
            let limit = p.rate_limit?;
            let dense = limit.per < Duration::from_nanos(limit.limit.get().into());
            dense.then(|| "allows more than one call per nanosecond".into())
        },
    },
    Rule {
        keys: &["retry.cap", "retry.base"],
        broken: |p| {
            let retry = p.retry?;
            (retry.cap < retry.base).then(|| format!("must not be shorter than base, {:?}", retry.base))
        },
    },
];

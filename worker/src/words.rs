//! Words for people: thresholds, and the names that are closest to a misspelt one.

use circuit_registry::policy::{Policy, Span, WindowPolicy};

/// How many names to propose.
const PROPOSALS: usize = 3;

/// The known names that are closest to `name`, the closest first; none if all are too far.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let close = |candidate: &'a str| {
        let distance = strsim::damerau_levenshtein(name, candidate);
        (distance <= limit || (name.len() >= 3 && candidate.contains(name))).then_some((distance, candidate))
    };
    let mut near: Vec<_> = known.into_iter().filter_map(close).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(PROPOSALS).map(|(_, candidate)| candidate).collect()
}

/// What a window of calls opens a breaker for: `50 % failed of 100 calls`.
pub(crate) fn window(window: &WindowPolicy) -> Vec<String> {
    let span = match window.span {
        Span::Calls(calls) => format!("{calls} calls"),
        Span::Time(time) => format!("{time:?}"),
    };
    let failed = window.failure_rate.map(|rate| format!("{} failed of {span}", percent(rate.ppm())));
    let slow = window.slow.map(|slow| format!("{} of {span} slower than {:?}", percent(slow.rate.ppm()), slow.call));
    failed.into_iter().chain(slow).collect()
}

fn percent(ppm: u32) -> String {
    format!("{} %", f64::from(ppm) / 10_000.0)
}

/// How to read a threshold in words.
pub(crate) type Read = fn(&Policy) -> Option<String>;

/// The thresholds that pages show, by their names in `breakers.yaml`.
pub(crate) const THRESHOLDS: [(&str, Read); 10] = [
    ("mode", |policy| Some(policy.mode.as_str().to_owned())),
    ("fail_max", |policy| policy.trip.fail_max.map(|max| max.to_string())),
    ("window", |policy| policy.trip.window.as_ref().map(|window| self::window(window).join(" or "))),
    ("reset_timeout", |policy| Some(format!("{:?}", policy.open.reset_timeout))),
    ("reset_growth", |policy| {
        let factor = f64::from(policy.open.factor_milli) / 1000.0;
        (policy.open.factor_milli != 1000).then(|| format!("×{factor} up to {:?}", policy.open.max))
    }),
    ("half_open.permits", |policy| Some(policy.half_open.permits.to_string())),
    ("timeout", |policy| policy.timeout.map(|timeout| format!("{timeout:?}"))),
    ("bulkhead", |policy| policy.bulkhead.map(|bulkhead| format!("{} at once", bulkhead.max_concurrent))),
    ("rate_limit", |policy| policy.rate_limit.map(|rate| format!("{} per {:?}", rate.limit, rate.per))),
    ("fleet", |policy| Some(format!("{:?}", policy.fleet).to_lowercase())),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_names_come_first_and_far_ones_not_at_all() {
        let known = ["gleif", "tavily", "vies", "vies_soap", "northdata"];
        assert_eq!(nearest("tavilly", known), ["tavily"]);
        assert_eq!(nearest("vise", known), ["vies"]);
        assert_eq!(nearest("soap", known), ["vies_soap"]);
        assert!(nearest("opencorporates", known).is_empty() && nearest("", known).is_empty());
    }
}

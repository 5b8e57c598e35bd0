//! Words for people: thresholds, and the names that are closest to a misspelt one.

use circuit_registry::policy::{Span, WindowPolicy};

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

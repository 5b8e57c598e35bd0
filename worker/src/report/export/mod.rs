//! The report for other programs: `FollowTheMoney` entities and BODS statements.
//!
//! Both vocabularies describe who somebody is, not how well that is known. So every export says in words whether watch lists
//! were asked, and neither ever says that there is nobody where a source did not answer.

pub mod bods;
pub mod ftm;

use super::insight::{Fact, Insight};

/// The values of a fact, as the sources write them.
fn values<'a>(insight: &'a Insight, label: &str) -> impl Iterator<Item = &'a str> {
    let facts = insight.facts.iter().filter(move |fact: &&'a Fact| fact.label == label);
    facts.flat_map(|fact| &fact.values).map(|stated| stated.value.as_str()).collect::<Vec<_>>().into_iter()
}

/// A date as both vocabularies write it: a year, a month or a day. `None` for anything else.
fn date(text: &str) -> Option<String> {
    let text = text.split('T').next().unwrap_or_default();
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').collect();
    let whole = match parts.as_slice() {
        [year] => digits(year, 4),
        [year, month] => digits(year, 4) && digits(month, 2) && (1..=12).contains(&month.parse::<u8>().unwrap_or(0)),
        [_, _, _] => text.parse::<jiff::civil::Date>().is_ok(),
        _ => false,
    };
    whole.then(|| text.to_owned())
}

/// A share in percent, from `25 %` or `1/4`. `None` for anything else.
fn percent(share: &str) -> Option<f64> {
    let share = share.trim();
    let percent = match share.split_once('/') {
        Some((part, whole)) => 100.0 * part.trim().parse::<f64>().ok()? / whole.trim().parse::<f64>().ok()?,
        None => share.strip_suffix('%')?.trim().replace(',', ".").parse().ok()?,
    };
    (0.0..=100.0).contains(&percent).then_some(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_shares_are_read_or_left_out() {
        for text in ["1972", "1972-09", "1972-09-18"] {
            assert_eq!(date(text).as_deref(), Some(text));
        }
        assert_eq!(date("2020-01-02T03:04:05Z").as_deref(), Some("2020-01-02"));
        assert!(["18.09.1972", "1972-13", "Nov 2020", "1972-02-30", ""].iter().all(|text| date(text).is_none()));
        assert_eq!((percent("25 %"), percent("1/4"), percent("12,5%")), (Some(25.0), Some(25.0), Some(12.5)));
        assert!(["all", "1/0", "25", "120 %", "-1 %"].iter().all(|text| percent(text).is_none()));
    }
}

//! How long an upstream wants to be left alone.

use std::time::Duration;

use jiff::{Span, Timestamp, tz::TimeZone};
use serde::Serialize;

/// How long a throttle lasts, where the answer itself does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stay {
    /// As its `Retry-After` says; without one, as the breaker's policy says.
    #[default]
    Asked,
    /// This many seconds, unless it names a time of its own.
    Seconds(u64),
    /// As a number of seconds in the body under this name says, else as [`Stay::Asked`].
    Named(&'static str),
    /// Until midnight in that time zone: a daily quota.
    Midnight(&'static str),
    /// Until the first day of the next month, UTC: a monthly plan.
    NextMonth,
}

impl Stay {
    /// The time to stay away, given what the answer asked for and the time it came.
    #[must_use]
    pub fn length(self, asked: Option<Duration>, body: &[u8], now: Timestamp) -> Option<Duration> {
        match self {
            Self::Named(name) => named(body, name).or(asked),
            Self::Asked => asked,
            Self::Seconds(seconds) => asked.or(Some(Duration::from_secs(seconds))),
            Self::Midnight(zone) => until(now, zone, |date| date.tomorrow()),
            Self::NextMonth => until(now, "UTC", |date| date.first_of_month().checked_add(Span::new().months(1))),
        }
    }
}

/// The seconds behind `"name":` in a body of any shape.
fn named(body: &[u8], name: &str) -> Option<Duration> {
    let text = String::from_utf8_lossy(body);
    let (_, rest) = text.split_once(&format!("\"{name}\""))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    digits.parse().ok().map(Duration::from_secs)
}

/// From now to the start of another day. A day of 23 or 25 hours is as long as it is.
fn until(
    now: Timestamp,
    zone: &str,
    day: impl FnOnce(jiff::civil::Date) -> Result<jiff::civil::Date, jiff::Error>,
) -> Option<Duration> {
    let zone = TimeZone::get(zone).unwrap_or(TimeZone::UTC); // a machine without a time zone database is an hour or two off
    let end = day(now.to_zoned(zone.clone()).date()).ok()?.to_zoned(zone).ok()?.timestamp();
    Duration::try_from(end.duration_since(now)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect(text)
    }

    #[test]
    fn quotas_end_when_the_day_or_month_does() {
        let hours = |stay: Stay, now: &str| stay.length(None, b"", at(now)).map(|d| d.as_secs() / 3600);
        assert_eq!(hours(Stay::Midnight("UTC"), "2026-11-30T20:00:00Z"), Some(4));
        assert_eq!(hours(Stay::NextMonth, "2026-12-31T12:00:00Z"), Some(12));
        assert_eq!(hours(Stay::NextMonth, "2026-11-01T00:00:00Z"), Some(24 * 30));
        if TimeZone::get("Europe/Copenhagen").is_ok() {
            // The night in which the clocks go back has one hour more.
            assert_eq!(hours(Stay::Midnight("Europe/Copenhagen"), "2026-10-24T22:00:00Z"), Some(25));
        }
    }

    #[test]
    fn an_answers_own_time_comes_first_where_the_rule_lets_it() {
        let (asked, now) = (Some(Duration::from_secs(9)), at("2026-11-30T02:00:00Z"));
        assert_eq!(Stay::Asked.length(asked, b"", now), asked);
        assert_eq!(Stay::Asked.length(None, b"", now), None);
        assert_eq!(Stay::Seconds(60).length(asked, b"", now), asked);
        assert_eq!(Stay::Seconds(60).length(None, b"", now), Some(Duration::from_secs(60)));
        let named = |body: &[u8]| Stay::Named("retry_after_seconds").length(asked, body, now);
        assert_eq!(named(br#"{"error":{"retry_after_seconds": 30}}"#), Some(Duration::from_secs(30)));
        assert_eq!(named(br#"{"error":{"retry_after_seconds": null}}"#), asked);
        assert_eq!(named(b"retry_after_seconds"), asked);
    }
}

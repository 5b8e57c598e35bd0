//! What HTTP statuses say about a service, and `Retry-After` as a duration.
//!
//! | status | verdict |
//! |---|---|
//! | 2xx, 3xx, and 4xx not named below | success: it answered |
//! | 401, 403, 407, 408, 425, 451 | neutral: says nothing about its health |
//! | 429 | throttled |
//! | 5xx | failure |
//!
//! A policy's `status:` entries outrank this table.

use std::time::{Duration, SystemTime};

use crate::{
    outcome::Verdict,
    policy::{Policy, StatusVerdict},
};

/// The verdict of a bare status. `retry_after` is what the answer asked for, if it did.
#[must_use]
pub const fn status_verdict(status: u16, retry_after: Option<Duration>) -> Verdict {
    match status {
        401 | 403 | 407 | 408 | 425 | 451 => Verdict::Neutral,
        429 => Verdict::Throttled { retry_after },
        0..=499 => Verdict::Success,
        _ => Verdict::Failure,
    }
}

impl Policy {
    /// The verdict of a status under this policy: its own entry if it has one, else [`status_verdict`].
    #[must_use]
    pub fn status_verdict(&self, status: u16, retry_after: Option<Duration>) -> Verdict {
        match self.status.get(status) {
            Some(StatusVerdict::Success) => Verdict::Success,
            Some(StatusVerdict::Failure) => Verdict::Failure,
            Some(StatusVerdict::Throttled) => Verdict::Throttled { retry_after },
            Some(StatusVerdict::Neutral) => Verdict::Neutral,
            None => status_verdict(status, retry_after),
        }
    }
}

/// The value of a `Retry-After` header: seconds, or an HTTP date against `now`. A date that has passed is zero.
#[must_use]
pub fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?;
    Some(SystemTime::from(date.timestamp()).duration_since(now).unwrap_or_default())
}

#[cfg(feature = "reqwest")]
impl crate::Classify for reqwest::Error {
    /// A status error by its status; an error in building the request or following redirects is our own affair; everything else
    /// (connection, TLS, timeout, a body cut short or undecodable) is the service's.
    fn verdict(&self) -> Verdict {
        match self.status() {
            Some(status) => status_verdict(status.as_u16(), None),
            None if self.is_builder() => Verdict::Neutral,
            None => Verdict::Failure,
        }
    }

    fn failure(&self) -> crate::Failure {
        use crate::{Failure, FailureKind};
        // Words of ours: the error's own name the URL.
        match self.status() {
            Some(status) => Failure::new(FailureKind::Status).saying(&format!("HTTP {}", status.as_u16())),
            None if self.is_timeout() => Failure::new(FailureKind::Timeout),
            None if self.is_connect() => Failure::new(FailureKind::Connection),
            None if self.is_body() || self.is_decode() => Failure::new(FailureKind::Answer),
            None => Failure::new(FailureKind::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_statuses_give_the_verdicts_of_the_table() {
        for status in [200, 204, 301, 304, 400, 404, 409, 410, 422] {
            assert_eq!(status_verdict(status, None), Verdict::Success, "{status}");
        }
        for status in [401, 403, 407, 408, 425, 451] {
            assert_eq!(status_verdict(status, None), Verdict::Neutral, "{status}");
        }
        for status in [500, 502, 503, 504, 599] {
            assert_eq!(status_verdict(status, None), Verdict::Failure, "{status}");
        }
        let retry_after = Some(Duration::from_secs(7));
        assert_eq!(status_verdict(429, retry_after), Verdict::Throttled { retry_after });
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 90);
        assert_eq!(parse_retry_after("120", now), Some(Duration::from_secs(120)));
        assert_eq!(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Duration::from_secs(90)));
        let later = now + Duration::from_secs(1_000_000);
        assert_eq!(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", later), Some(Duration::ZERO));
        assert_eq!(parse_retry_after("soon", now), None);
        assert_eq!(parse_retry_after("-5", now), None);
    }
}

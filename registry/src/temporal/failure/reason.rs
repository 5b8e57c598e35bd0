//! Why a call has no answer, and the failure that each reason becomes.

use std::{error::Error, fmt, time::Duration};

use serde::{Deserialize, Serialize};
use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure, FailurePayloads};

use crate::{RejectReason, Rejection};

/// How long an activity stays away from a full bulkhead. The bulkhead cannot know when a place becomes free.
pub const BULKHEAD_RETRY: Duration = Duration::from_secs(1);

/// How long a waiting activity stays away from a breaker whose probes run.
pub const BUSY_RETRY: Duration = Duration::from_secs(2);

/// Why a call has no answer, as one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The breaker is open.
    Open,
    /// The breaker is half-open and its probes are under way.
    HalfOpenBusy,
    /// As many calls as the bulkhead allows are running.
    BulkheadFull,
    /// The rate limit is used up.
    RateLimited,
    /// The retry budget is used up.
    BudgetExhausted,
    /// The upstream did not answer in time.
    TimedOut,
    /// The upstream asked us to stay away.
    Throttled,
    /// The upstream failed.
    Failed,
    /// The upstream answered, but with a refusal.
    Declined,
    /// The caller's deadline had passed before the call could start.
    NoTimeLeft,
}

/// Whether another attempt can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    Never,
    /// At the time the refusal names, or after this long if it names no time.
    WhenDue(Duration),
    /// As the activity's own retry policy says.
    Policy,
}

struct Row {
    reason: Reason,
    word: &'static str,
    type_name: &'static str,
    ours: bool,
    retry: Retry,
}

const fn row(reason: Reason, word: &'static str, type_name: &'static str, ours: bool, retry: Retry) -> Row {
    Row { reason, word, type_name, ours, retry }
}

const TABLE: [Row; 10] = [
    row(Reason::Open, "open", "CircuitOpen", true, Retry::Never),
    row(Reason::HalfOpenBusy, "half_open_busy", "CircuitHalfOpenBusy", true, Retry::Never),
    row(Reason::BulkheadFull, "bulkhead_full", "CircuitBulkheadFull", true, Retry::WhenDue(BULKHEAD_RETRY)),
    row(Reason::RateLimited, "rate_limited", "CircuitRateLimited", true, Retry::WhenDue(Duration::ZERO)),
    row(Reason::BudgetExhausted, "budget_exhausted", "CircuitBudgetExhausted", true, Retry::Never),
    row(Reason::TimedOut, "timed_out", "CircuitTimeout", false, Retry::Policy),
    row(Reason::Throttled, "throttled", "UpstreamThrottled", false, Retry::Never),
    row(Reason::Failed, "failed", "UpstreamFailed", false, Retry::Policy),
    row(Reason::Declined, "declined", "UpstreamDeclined", false, Retry::Never),
    row(Reason::NoTimeLeft, "no_time_left", "CircuitNoTimeLeft", true, Retry::Policy),
];

impl Reason {
    fn row(self) -> &'static Row {
        // The enum and the table have the same ten reasons in the same order; a test checks that.
        &TABLE[self as usize]
    }

    /// The `type` of the failure, as Temporal's UI and `non_retryable_error_types` name it.
    #[must_use]
    pub fn type_name(self) -> &'static str {
        self.row().type_name
    }

    /// The word of logs, metrics and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().word
    }

    /// The failure of this reason by the table, with the caller's own details.
    ///
    /// `retry_in` is the time after which the refusal allows another attempt. It reaches the server only where the table retries.
    /// Pass the source error with its own type: downcasting cannot find it inside an `anyhow` error.
    pub fn failure(
        self,
        source: impl Into<Box<dyn Error + Send + Sync>>,
        retry_in: Option<Duration>,
        details: impl Into<FailurePayloads>,
    ) -> ApplicationFailure {
        self.retried(self.row().retry, source, retry_in, details)
    }

    /// The same failure, but never retried, whatever the table or a policy says. For callers that count attempts themselves.
    pub fn last_failure(
        self,
        source: impl Into<Box<dyn Error + Send + Sync>>,
        details: impl Into<FailurePayloads>,
    ) -> ApplicationFailure {
        self.retried(Retry::Never, Last(source.into()), None, details)
    }

    fn retried(
        self,
        retry: Retry,
        source: impl Into<Box<dyn Error + Send + Sync>>,
        retry_in: Option<Duration>,
        details: impl Into<FailurePayloads>,
    ) -> ApplicationFailure {
        let row = self.row();
        let delay = match retry {
            Retry::WhenDue(otherwise) => Some(retry_in.unwrap_or(otherwise)),
            Retry::Never | Retry::Policy => None,
        };
        ApplicationFailure::builder(source)
            .type_name(row.type_name.to_owned())
            .non_retryable(retry == Retry::Never)
            .maybe_next_retry_delay(delay)
            .category(if row.ours { ApplicationErrorCategory::Benign } else { ApplicationErrorCategory::Unspecified })
            .details(details)
            .build()
    }

    /// True if the call never reached the upstream.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        self.row().ours
    }

    /// The reason of a failure with this `type`.
    #[must_use]
    pub fn from_type_name(type_name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.type_name == type_name).map(|row| row.reason)
    }
}

impl From<&Rejection> for Reason {
    fn from(rejection: &Rejection) -> Self {
        match rejection.reason {
            RejectReason::Open | RejectReason::ForcedOpen => Self::Open,
            RejectReason::HalfOpenBusy => Self::HalfOpenBusy,
            RejectReason::BulkheadFull => Self::BulkheadFull,
            RejectReason::RateLimited => Self::RateLimited,
            RejectReason::BudgetExhausted => Self::BudgetExhausted,
            RejectReason::NoTimeLeft => Self::NoTimeLeft,
        }
    }
}

/// Marks a source error whose failure is never retried, whatever a policy says.
#[derive(Debug)]
pub(crate) struct Last(Box<dyn Error + Send + Sync>);

impl fmt::Display for Last {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for Last {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_order_of_the_enum() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.reason as usize, index);
            assert_eq!(Reason::from_type_name(row.type_name), Some(row.reason));
            assert_eq!(row.reason.as_str(), row.word);
        }
        assert_eq!(Reason::from_type_name("CircuitMelted"), None);
    }

    #[test]
    fn a_last_failure_is_never_retried() {
        for row in &TABLE {
            let failure = row.reason.last_failure("enough", "details".to_owned());
            assert_eq!(failure.type_name(), Some(row.type_name));
            assert!(failure.is_non_retryable() && failure.next_retry_delay().is_none());
        }
    }
}

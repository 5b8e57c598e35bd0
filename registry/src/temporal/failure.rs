//! How a call without an answer becomes a Temporal failure. One table, so that nobody has to search for the rule.
//!
//! | type name | reason | category | retried, unless the interceptor's policy says otherwise |
//! |---|---|---|---|
//! | `CircuitOpen` | `open` | benign | no: the next attempt would be refused as well |
//! | `CircuitHalfOpenBusy` | `half_open_busy` | benign | no: somebody else's probe decides |
//! | `CircuitBulkheadFull` | `bulkhead_full` | benign | after [`BULKHEAD_RETRY`] |
//! | `CircuitRateLimited` | `rate_limited` | benign | when the limit has room again |
//! | `CircuitBudgetExhausted` | `budget_exhausted` | benign | no: retries are what the budget has run out of |
//! | `CircuitTimeout` | `timed_out` | – | by the activity's retry policy |
//! | `UpstreamThrottled` | `throttled` | – | no: the breaker has opened for as long as the upstream asked |
//! | `UpstreamFailed` | `failed` | – | by the activity's retry policy; its Retry-After is in the details |
//! | `UpstreamDeclined` | `declined` | – | no: it answered, and asking again gets the same answer |
//!
//! *Benign* failures are ours, not the upstream's: the server leaves them out of its error metrics. The details of every
//! row are one [`FailureDetails`].
//!
//! That is what the library makes of a call by itself. When the attempt is over, the
//! [`CircuitInterceptor`](super::CircuitInterceptor) goes by the policy of the service and changes the marks, and nothing else:
//!
//! | reason | `on_open: degrade` | `on_open: wait`, `wait_max` |
//! |---|---|---|
//! | `open` | never | when the breaker is due |
//! | `half_open_busy` | never | after [`BUSY_RETRY`], or sooner if a probe counts as lost by then |
//! | `bulkhead_full` | after [`BULKHEAD_RETRY`] | the same |
//! | `rate_limited` | when the limit has room | the same |
//! | `budget_exhausted` | never | after `reset_timeout` |
//! | `throttled` | never | when the upstream said, at most after `throttle_max`; without a word, after `reset_timeout` |
//! | `failed`, `timed_out` | `uniform(0, min(cap, base·2ⁿ))` where the policy has `retry`, and not before its Retry-After (at most `throttle_max`) | the same |
//! | `declined` | never | never |
//!
//! To each wait comes a jitter of up to a fifth, so that those who wait for one breaker do not come back at once. A wait
//! that does not fit the activity's time, or that would use up its `maximum_attempts`, is not begun: the activity degrades now.
//! Upstream failures end for good at the policy's `max_attempts`, in which waits do not count.

use std::{error::Error, time::Duration};

use serde::{Deserialize, Serialize};
use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure, FailurePayloads};

use super::retry_directive::Last;
use crate::{CallError, Classify, RejectReason, Rejection, Verdict};

/// How long an activity stays away from a full bulkhead, which cannot know when a place becomes free.
pub const BULKHEAD_RETRY: Duration = Duration::from_secs(1);

/// How long a waiting activity stays away from a breaker whose probes are out.
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
}

/// What another attempt can achieve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    Never,
    /// At the time the refusal names, or after this long if it names none.
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

const TABLE: [Row; 9] = [
    row(Reason::Open, "open", "CircuitOpen", true, Retry::Never),
    row(Reason::HalfOpenBusy, "half_open_busy", "CircuitHalfOpenBusy", true, Retry::Never),
    row(Reason::BulkheadFull, "bulkhead_full", "CircuitBulkheadFull", true, Retry::WhenDue(BULKHEAD_RETRY)),
    row(Reason::RateLimited, "rate_limited", "CircuitRateLimited", true, Retry::WhenDue(Duration::ZERO)),
    row(Reason::BudgetExhausted, "budget_exhausted", "CircuitBudgetExhausted", true, Retry::Never),
    row(Reason::TimedOut, "timed_out", "CircuitTimeout", false, Retry::Policy),
    row(Reason::Throttled, "throttled", "UpstreamThrottled", false, Retry::Never),
    row(Reason::Failed, "failed", "UpstreamFailed", false, Retry::Policy),
    row(Reason::Declined, "declined", "UpstreamDeclined", false, Retry::Never),
];

impl Reason {
    fn row(self) -> &'static Row {
        // The enum and the table list the same nine words in the same order; a test holds them together.
        &TABLE[self as usize]
    }

    /// The failure's `type`, as Temporal's UI shows it and as `non_retryable_error_types` names it.
    #[must_use]
    pub fn type_name(self) -> &'static str {
        self.row().type_name
    }

    /// The word of logs, metrics and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().word
    }

    /// The failure that the table gives this reason, with details of the caller's own.
    ///
    /// `retry_in` is when the refusal says it may come back; it reaches the server only where the table retries at all.
    /// Keep the source error typed: through `anyhow` it could not be found again by downcasting.
    pub fn failure(
        self,
        source: impl Into<Box<dyn Error + Send + Sync>>,
        retry_in: Option<Duration>,
        details: impl Into<FailurePayloads>,
    ) -> ApplicationFailure {
        self.retried(self.row().retry, source, retry_in, details)
    }

    /// The same failure with no attempt after it, whatever the table or a policy says: for callers who count attempts
    /// themselves.
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

    /// True when the call never reached the upstream.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        self.row().ours
    }

    /// The reason that a failure of this `type` stands for.
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
            // The attempt's time is over; another attempt has a time of its own.
            RejectReason::NoTimeLeft => Self::TimedOut,
        }
    }
}

/// What the failure carries besides its message; the `details` of every row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureDetails {
    /// The service that has no answer; absent when the failure was built without knowing it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Milliseconds until it makes sense to come back, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
    /// Why there is no answer.
    pub reason: Reason,
}

/// The failure of an activity whose call to `service` has no answer.
///
/// Use this rather than [`ApplicationFailure::from`] where the service is at hand: an upstream's own error does not know
/// which service it came from.
pub fn application_failure<E>(service: &str, error: CallError<E>) -> ApplicationFailure
where
    E: Classify + Error + Send + Sync + 'static,
{
    build(Some(service), error)
}

impl<E> From<CallError<E>> for ApplicationFailure
where
    E: Classify + Error + Send + Sync + 'static,
{
    fn from(error: CallError<E>) -> Self {
        build(None, error)
    }
}

impl From<Rejection> for ApplicationFailure {
    fn from(rejection: Rejection) -> Self {
        let (reason, retry_in) = (Reason::from(&rejection), rejection.retry_in);
        let service = rejection.service.as_str().to_owned();
        assemble(rejection.into(), reason, Some(service), retry_in)
    }
}

fn build<E>(service: Option<&str>, error: CallError<E>) -> ApplicationFailure
where
    E: Classify + Error + Send + Sync + 'static,
{
    match error {
        CallError::Rejected(rejection) => rejection.into(),
        CallError::TimedOut { ref service, .. } => {
            let service = service.as_str().to_owned();
            assemble(error.to_string().into(), Reason::TimedOut, Some(service), None)
        }
        CallError::Upstream(error) => {
            let (reason, retry_in) = match error.verdict() {
                Verdict::Failure => (Reason::Failed, error.retry_after()),
                Verdict::Throttled { retry_after } => (Reason::Throttled, retry_after),
                Verdict::Success | Verdict::Neutral => (Reason::Declined, None),
            };
            assemble(error.into(), reason, service.map(str::to_owned), retry_in)
        }
    }
}

fn assemble(
    source: Box<dyn Error + Send + Sync>,
    reason: Reason,
    service: Option<String>,
    retry_in: Option<Duration>,
) -> ApplicationFailure {
    let retry_in_ms = retry_in.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    reason.failure(source, retry_in, FailureDetails { service, retry_in_ms, reason })
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use temporalio_common::{
        data_converters::{ActivityExecutionDecodeHint, DataConverter, SerializationContextData},
        error::{ActivityExecutionError, OutgoingActivityError, OutgoingError},
        protos::temporal::api::failure::v1::{ActivityFailureInfo, Failure, failure::FailureInfo},
    };

    use super::*;
    use crate::{ServiceName, temporal::Degradation};

    #[derive(Debug)]
    struct Answer(Verdict);

    impl fmt::Display for Answer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("upstream's own words")
        }
    }

    impl Error for Answer {}

    impl Classify for Answer {
        fn verdict(&self) -> Verdict {
            self.0
        }
    }

    fn name() -> ServiceName {
        "vies:DE".into()
    }

    fn full() -> Rejection {
        let mut full = Rejection::new(name(), RejectReason::BulkheadFull, None);
        full.max_concurrent = Some(4);
        full
    }

    /// Every way a call can end without an answer, and the reason it must be given.
    fn endings() -> Vec<(CallError<Answer>, Reason)> {
        let due = Duration::from_millis(2_500);
        vec![
            (Rejection::new(name(), RejectReason::Open, Some(due)).into(), Reason::Open),
            (Rejection::new(name(), RejectReason::HalfOpenBusy, Some(due)).into(), Reason::HalfOpenBusy),
            (full().into(), Reason::BulkheadFull),
            (Rejection::new(name(), RejectReason::RateLimited, Some(due)).into(), Reason::RateLimited),
            (Rejection::new(name(), RejectReason::BudgetExhausted, None).into(), Reason::BudgetExhausted),
            (CallError::TimedOut { service: name(), after: due }, Reason::TimedOut),
            (CallError::Upstream(Answer(Verdict::Throttled { retry_after: Some(due) })), Reason::Throttled),
            (CallError::Upstream(Answer(Verdict::Failure)), Reason::Failed),
            (CallError::Upstream(Answer(Verdict::Success)), Reason::Declined),
            (CallError::Upstream(Answer(Verdict::Neutral)), Reason::Declined),
        ]
    }

    /// As the server hands it to the workflow: a remote activity's failure is wrapped, a local one's is not.
    fn received(failure: ApplicationFailure, local: bool) -> ActivityExecutionError {
        let converter = DataConverter::default();
        let context = SerializationContextData::None;
        let outgoing = OutgoingError::Activity(OutgoingActivityError::Application(Box::new(failure)));
        let inner = converter.to_failure(&context, outgoing);
        let failure = if local {
            inner
        } else {
            Failure {
                message: "Activity task failed".to_owned(),
                cause: Some(Box::new(inner)),
                failure_info: Some(FailureInfo::ActivityFailureInfo(ActivityFailureInfo::default())),
                ..Default::default()
            }
        };
        converter.to_error(&context, failure, ActivityExecutionDecodeHint::new(false)).expect("decodable")
    }

    #[test]
    fn the_table_is_in_the_order_of_the_enum_and_no_name_occurs_twice() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.reason as usize, index);
            assert_eq!(Reason::from_type_name(row.type_name), Some(row.reason));
            assert_eq!(row.reason.as_str(), row.word);
        }
        assert_eq!(Reason::from_type_name("CircuitMelted"), None);
    }

    #[test]
    fn every_ending_survives_both_shapes() {
        for local in [false, true] {
            for (ending, reason) in endings() {
                let text = ending.to_string();
                let retry_in = ending.rejection().and_then(|rejection| rejection.retry_in);
                let throttled = reason == Reason::Throttled;
                let error = received(application_failure("vies:DE", ending), local);
                let read = Degradation::from_activity_error(&error).expect("one of ours");
                assert_eq!(read.reason, reason);
                assert_eq!(read.service.as_deref(), Some("vies:DE"));
                assert_eq!(read.message, text);
                assert_eq!(read.retry_in, if throttled { Some(Duration::from_millis(2_500)) } else { retry_in });
            }
        }
    }

    #[test]
    fn only_our_refusals_are_benign_and_an_open_breaker_ends_the_retries() {
        for (ending, reason) in endings() {
            let failure = ApplicationFailure::from(ending);
            assert_eq!(failure.type_name(), Some(reason.type_name()));
            assert_eq!(failure.category() == ApplicationErrorCategory::Benign, reason.is_refusal());
            let ends = matches!(
                reason,
                Reason::Open | Reason::HalfOpenBusy | Reason::BudgetExhausted | Reason::Throttled | Reason::Declined
            );
            assert_eq!(failure.is_non_retryable(), ends, "{reason:?}");
            let delay = match reason {
                Reason::BulkheadFull => Some(BULKHEAD_RETRY),
                Reason::RateLimited => Some(Duration::from_millis(2_500)),
                _ => None,
            };
            assert_eq!(failure.next_retry_delay(), delay, "{reason:?}");
        }
    }

    #[test]
    fn a_last_failure_has_no_successor() {
        for row in &TABLE {
            let failure = row.reason.last_failure("enough", "details".to_owned());
            assert_eq!(failure.type_name(), Some(row.type_name));
            assert!(failure.is_non_retryable() && failure.next_retry_delay().is_none());
        }
    }

    #[test]
    fn the_upstreams_error_keeps_its_type() {
        let failure = ApplicationFailure::from(CallError::Upstream(Answer(Verdict::Failure)));
        assert!(failure.source_error().downcast_ref::<Answer>().is_some());
    }

    #[test]
    fn foreign_failures_are_not_ours_and_foreign_details_still_degrade() {
        let foreign = ApplicationFailure::builder("boom").type_name("Other".to_owned()).build();
        assert_eq!(Degradation::from_activity_error(&received(foreign, false)), None);
        let untyped = ApplicationFailure::new("boom");
        assert_eq!(Degradation::from_activity_error(&received(untyped, true)), None);

        for local in [false, true] {
            let failure = Reason::Open.failure("no", None, vec!["details of another kind".to_owned()]);
            let read = Degradation::from_activity_error(&received(failure, local)).expect("the type name is enough");
            assert_eq!((read.reason, read.service), (Reason::Open, None));
        }
    }
}

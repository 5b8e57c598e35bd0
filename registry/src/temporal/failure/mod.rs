//! How a call without an answer becomes a Temporal failure. This table is the whole rule.
//!
//! | type name | reason | category | retried, unless the interceptor's policy says otherwise |
//! |---|---|---|---|
//! | `CircuitOpen` | `open` | benign | no: the next attempt would be refused as well |
//! | `CircuitHalfOpenBusy` | `half_open_busy` | benign | no: a probe that runs elsewhere decides |
//! | `CircuitBulkheadFull` | `bulkhead_full` | benign | after [`BULKHEAD_RETRY`] |
//! | `CircuitRateLimited` | `rate_limited` | benign | when the limit has room again |
//! | `CircuitBudgetExhausted` | `budget_exhausted` | benign | no: the budget has no retries left |
//! | `CircuitTimeout` | `timed_out` | – | by the activity's retry policy |
//! | `UpstreamThrottled` | `throttled` | – | no: the breaker has opened for as long as the upstream asked |
//! | `UpstreamFailed` | `failed` | – | by the activity's retry policy; its Retry-After is in the details |
//! | `UpstreamDeclined` | `declined` | – | no: the upstream answered, and would answer the same again |
//! | `CircuitNoTimeLeft` | `no_time_left` | benign | by the activity's retry policy; nothing was sent |
//!
//! *Benign* failures come from the breaker, not from the upstream: the server leaves them out of its error metrics. Every row has the same
//! details, a [`FailureDetails`].
//!
//! The library builds these failures by itself. When the attempt is over, the [`CircuitInterceptor`](super::CircuitInterceptor)
//! follows the policy of the service and may change the *retry directive*: whether and when the server retries. It changes nothing
//! else:
//!
//! | reason | `on_open: degrade` | `on_open: wait`, `wait_max` |
//! |---|---|---|
//! | `open` | never | when the breaker is due |
//! | `half_open_busy` | never | after [`BUSY_RETRY`], or sooner if a probe counts as lost by then |
//! | `bulkhead_full` | after [`BULKHEAD_RETRY`] | the same |
//! | `rate_limited` | when the limit has room | the same |
//! | `budget_exhausted` | never | after `reset_timeout` |
//! | `throttled` | never | when the upstream asked to come back, at most after `throttle_max`; if it named no time, after `reset_timeout` |
//! | `failed`, `timed_out` | `uniform(0, min(cap, base·2ⁿ))` where the policy has `retry`, and not before its Retry-After (at most `throttle_max`) | the same |
//! | `declined` | never | never |
//!
//! Each wait gets a jitter of up to a fifth, so that activities that wait for the same breaker do not return at the same time. If a
//! wait does not fit the activity's time, or would use up its `maximum_attempts`, the activity degrades now. Upstream failures
//! end for good at the policy's `max_attempts`, which does not count waits.

mod reason;
#[cfg(test)]
mod tests;

use std::{convert::Infallible, error::Error, time::Duration};

use serde::{Deserialize, Serialize};
use temporalio_common::error::ApplicationFailure;

pub(super) use self::reason::Last;
pub use self::reason::{BULKHEAD_RETRY, BUSY_RETRY, Reason};
use crate::{CallError, Classify, Rejection, ServiceName, Verdict};

/// What a failure carries besides its message: the `details` of every row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailureDetails {
    /// The service that gave no answer; absent if the failure was built without its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Milliseconds until another attempt makes sense, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
    /// Why there is no answer.
    pub reason: Reason,
}

impl FailureDetails {
    /// Details of a failure of `reason`. `retry_in` is rounded down to milliseconds.
    #[must_use]
    pub fn new(reason: Reason, service: Option<String>, retry_in: Option<Duration>) -> Self {
        let retry_in_ms = retry_in.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        Self { service, retry_in_ms, reason }
    }
}

/// The failure of an activity whose call to `service` has no answer.
///
/// Prefer this to [`ApplicationFailure::from`] where the service is known: an upstream's error does not name its service.
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
        CallError::TimedOut { service, after } => timed_out(service, after),
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

/// The failure of a call that `service` did not answer within `after`.
pub(super) fn timed_out(service: ServiceName, after: Duration) -> ApplicationFailure {
    let name = service.as_str().to_owned();
    let text = CallError::<Infallible>::TimedOut { service, after }.to_string();
    assemble(text.into(), Reason::TimedOut, Some(name), None)
}

fn assemble(
    source: Box<dyn Error + Send + Sync>,
    reason: Reason,
    service: Option<String>,
    retry_in: Option<Duration>,
) -> ApplicationFailure {
    reason.failure(source, retry_in, FailureDetails::new(reason, service, retry_in))
}

//! Turns the error of an activity into a finding with a reason.

use std::time::SystemTime;

use circuit_registry::temporal::{Degradation, Reason, details};
use jiff::Timestamp;
use osint_activities::model::{FailureDetails, Finding, Status};
use temporalio_common::error::{ActivityExecutionError, TimeoutType};

use crate::report::Question;

/// Why a question has no answer when its investigation was cancelled.
pub(super) const CANCELLED: &str = "cancelled";

/// When an activity started and when it ended, in workflow time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) from: Option<SystemTime>,
    pub(super) to: Option<SystemTime>,
}

/// The finding for an activity that ended in `error`. It affects this one question only.
pub(super) fn degraded(question: &Question, error: &ActivityExecutionError, span: Span) -> Finding {
    if let Some(lack) = details::<FailureDetails>(error) {
        return Finding::unanswered(&lack);
    }
    let mut finding = Finding::new(&question.source, &question.operation, Status::Degraded);
    finding.started_at = span.from.and_then(|time| Timestamp::try_from(time).ok());
    finding.duration_ms = duration_ms(span);
    let (reason, retry_at) = match Degradation::from_activity_error(error) {
        Some(degradation) => {
            finding.attempts = u32::from(!degradation.reason.is_refusal());
            (
                sentence(degradation.reason, degradation.service.as_deref()),
                span.to.and_then(|at| degradation.retry_at(at)),
            )
        }
        None => (other(error), None),
    };
    finding.retry_at = retry_at.and_then(|time| Timestamp::try_from(time).ok());
    finding.because(reason)
}

fn duration_ms(span: Span) -> u64 {
    let (Some(from), Some(to)) = (span.from, span.to) else { return 0 };
    to.duration_since(from).map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn sentence(reason: Reason, service: Option<&str>) -> String {
    let who = service.unwrap_or("the source");
    match reason {
        Reason::Open => format!("circuit breaker open for {who}"),
        Reason::HalfOpenBusy => format!("{who} is being probed after an outage"),
        Reason::BulkheadFull => format!("too many calls to {who} at the same time"),
        Reason::RateLimited => format!("the rate limit of {who} is used up"),
        Reason::BudgetExhausted => format!("the retry budget of {who} is used up"),
        Reason::TimedOut => format!("{who} did not answer in time"),
        Reason::Throttled => format!("{who} asked us to come back later"),
        Reason::Failed => format!("{who} failed"),
        Reason::Declined => format!("{who} declined the question"),
        Reason::NoTimeLeft => format!("{who} was not asked, because no time was left"),
        _ => format!("no answer from {who}"),
    }
}

/// Errors of the platform, not of the source. The text of an unknown error is left out: it may contain personal data.
fn other(error: &ActivityExecutionError) -> String {
    if let Some(timeout) = error.as_timeout() {
        return match timeout.timeout_type() {
            TimeoutType::ScheduleToStart => "no worker took up the question in time",
            _ => "no answer within the time allowed",
        }
        .to_owned();
    }
    match error {
        ActivityExecutionError::Cancelled(_) => CANCELLED,
        ActivityExecutionError::Serialization(_) => "the answer cannot be read: it was written by another version",
        _ => "failed for a reason of our own; the worker's log has the details",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use temporalio_common::{
        data_converters::{ActivityExecutionDecodeHint, DataConverter, SerializationContextData},
        error::{ApplicationFailure, OutgoingActivityError, OutgoingError},
        protos::temporal::api::failure::v1::{ActivityFailureInfo, Failure, TimeoutFailureInfo, failure::FailureInfo},
    };

    use super::*;

    fn question() -> Question {
        Question {
            source: "tavily".into(),
            operation: "tavily.adverse_media".into(),
            breaker: "tavily".into(),
            answers: "articles".into(),
        }
    }

    fn span() -> Span {
        Span { from: Some(UNIX_EPOCH), to: Some(UNIX_EPOCH + Duration::from_millis(1_500)) }
    }

    fn remote(cause: Failure) -> ActivityExecutionError {
        let failure = Failure {
            cause: Some(Box::new(cause)),
            failure_info: Some(FailureInfo::ActivityFailureInfo(ActivityFailureInfo::default())),
            ..Default::default()
        };
        let hint = ActivityExecutionDecodeHint::new(false);
        DataConverter::default().to_error(&SerializationContextData::None, failure, hint).expect("decodable")
    }

    fn application(failure: ApplicationFailure) -> ActivityExecutionError {
        let outgoing = OutgoingError::Activity(OutgoingActivityError::Application(Box::new(failure)));
        remote(DataConverter::default().to_failure(&SerializationContextData::None, outgoing))
    }

    #[test]
    fn failure_details_become_the_finding() {
        let lack = FailureDetails {
            source: "tavily".into(),
            operation: "tavily.adverse_media".into(),
            class: None,
            service: "tavily".into(),
            reason: Reason::Open,
            text: "the breaker is open".into(),
            attempts: 2,
            started_at: None,
            duration_ms: 7,
            retry_in_ms: Some(30_000),
        };
        let error = application(Reason::Open.failure("refused", None, lack.clone()));
        assert_eq!(degraded(&question(), &error, span()), Finding::unanswered(&lack));
    }

    #[test]
    fn a_refusal_without_details_is_described_by_its_type() {
        let error = application(ApplicationFailure::builder("x").type_name("CircuitOpen".to_owned()).build());
        let finding = degraded(&question(), &error, span());
        assert_eq!((finding.status, finding.attempts, finding.duration_ms), (Status::Degraded, 0, 1_500));
        assert_eq!(finding.reason.as_deref(), Some("circuit breaker open for the source"));
    }

    #[test]
    fn an_unknown_error_is_described_without_its_text() {
        let finding = degraded(&question(), &application(ApplicationFailure::new("Jane Doe not found")), span());
        assert_eq!(finding.status, Status::Degraded);
        assert!(!finding.reason.expect("a reason").contains("Jane"));
    }

    #[test]
    fn a_timeout_is_described_as_one() {
        let info = FailureInfo::TimeoutFailureInfo(TimeoutFailureInfo::default());
        let error = remote(Failure { failure_info: Some(info), ..Default::default() });
        assert_eq!(degraded(&question(), &error, span()).reason.as_deref(), Some("no answer within the time allowed"));
    }
}

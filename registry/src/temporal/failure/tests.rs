//! Failures as a workflow reads them back.

use std::fmt;

use temporalio_common::{
    data_converters::{ActivityExecutionDecodeHint, DataConverter, SerializationContextData},
    error::{ActivityExecutionError, ApplicationErrorCategory, OutgoingActivityError, OutgoingError},
    protos::temporal::api::failure::v1::{ActivityFailureInfo, Failure, failure::FailureInfo},
};

use super::*;
use crate::{RejectReason, ServiceName, temporal::Degradation};

#[derive(Debug)]
struct Answer(Verdict);

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the upstream's message")
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
fn both_shapes_keep_every_reason() {
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
fn category_and_retry_follow_the_table() {
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
fn the_upstreams_error_keeps_its_type() {
    let failure = ApplicationFailure::from(CallError::Upstream(Answer(Verdict::Failure)));
    assert!(failure.source_error().downcast_ref::<Answer>().is_some());
}

#[test]
fn foreign_failures_and_foreign_details_are_recognised() {
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

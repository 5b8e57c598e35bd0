//! Reads a refusal back in the workflow, which decides to go on without the answer.
//!
//! The SDK shows the same failure in two shapes. A remote activity's error wraps it: the breaker's own failure is the
//! *cause*. A local activity's error has no cause: the failure it holds *is* the breaker's. Its text is no help in
//! either, because both print the wrapper's message. This module knows both shapes, so that a workflow needs neither.

use std::time::{Duration, SystemTime};

use temporalio_common::{
    data_converters::{
        GenericPayloadConverter, PayloadConverter, SerializationContext, SerializationContextData,
        TemporalDeserializable,
    },
    error::{ActivityExecutionError, IncomingError},
    protos::temporal::api::failure::v1::{ApplicationFailureInfo, failure::FailureInfo},
};

use super::failure::{FailureDetails, Reason};

/// An activity that has no answer because of its upstream or its breaker, not because of a bug.
///
/// ```no_run
/// # use circuit_registry::temporal::Degradation;
/// # use temporalio_common::error::ActivityExecutionError;
/// # fn finding(result: Result<String, ActivityExecutionError>) -> String {
/// match result {
///     Ok(answer) => answer,
///     Err(error) => match Degradation::from_activity_error(&error) {
///         Some(degraded) => format!("no answer: {}", degraded.reason.as_str()),
///         None => format!("failed: {error}"),
///     },
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Degradation {
    /// Why there is no answer.
    pub reason: Reason,
    /// The service that gave no answer; absent if the failure does not name it.
    pub service: Option<String>,
    /// The time after which another attempt makes sense, if known.
    pub retry_in: Option<Duration>,
    /// The failure's own message.
    pub message: String,
}

impl Degradation {
    /// Decodes an activity's error, remote or local. `None` if it is not one of [`failure`](super::failure)'s types.
    #[must_use]
    pub fn from_activity_error(error: &ActivityExecutionError) -> Option<Self> {
        let (type_name, message) = match error.cause() {
            Some(IncomingError::Application(failure)) => (failure.type_name()?, failure.to_string()),
            Some(_) => return None,
            None => (application_info(error)?.r#type.as_str(), error.failure()?.message.clone()),
        };
        let reason = Reason::from_type_name(type_name)?;
        // The type name alone is enough to degrade: a worker of another version may have written other details.
        let (service, retry_in_ms) = match details::<FailureDetails>(error) {
            Some(details) => (details.service, details.retry_in_ms),
            None => (None, None),
        };
        Some(Self { reason, service, retry_in: retry_in_ms.map(Duration::from_millis), message })
    }

    /// When to ask again, given the time of the failure: in a workflow, `ctx.workflow_time()`.
    #[must_use]
    pub fn retry_at(&self, failed_at: SystemTime) -> Option<SystemTime> {
        failed_at.checked_add(self.retry_in?)
    }
}

/// The details of an activity's failure as `T`, in either of the two shapes; `None` if there are none of that type.
#[must_use]
pub fn details<T: TemporalDeserializable + 'static>(error: &ActivityExecutionError) -> Option<T> {
    match error.cause() {
        Some(IncomingError::Application(failure)) => failure.details().ok().flatten(),
        Some(_) => None,
        // The SDK decodes details only for failures that it wraps itself. The codec has run in either case.
        None => {
            let payloads = application_info(error)?.details.as_ref()?.payloads.clone();
            let (converter, data) = (PayloadConverter::default(), SerializationContextData::None);
            converter.from_payloads(&SerializationContext::new(&data, &converter), payloads).ok()
        }
    }
}

fn application_info(error: &ActivityExecutionError) -> Option<&ApplicationFailureInfo> {
    match &error.failure()?.failure_info {
        Some(FailureInfo::ApplicationFailureInfo(info)) => Some(info),
        _ => None,
    }
}

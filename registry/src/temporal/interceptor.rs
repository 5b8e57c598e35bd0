//! The worker's side of an activity: who is calling, which attempt this is, how long there is, and whether to run it at all.

use std::{
    convert::Infallible,
    time::{Duration, SystemTime},
};

use temporalio_common::error::ApplicationFailure;
use temporalio_sdk::{
    activities::{ActivityError, ActivityInfo},
    interceptors::{
        ActivityInboundInterceptor, ExecuteActivityInput, ExecuteActivityOutput, ExecuteActivityResult, Next,
    },
};
use tokio::time::Instant;

use super::failure::{FailureDetails, Reason};
use crate::{CallError, CircuitRegistry, Verdict, context::CallContext};

/// Gives every guarded call inside an activity its [`CallContext`]: activity type, attempt, deadline, workflow and run. And
/// guards whole activities: those that `breakers.yaml` lists under a service's `activities` pass its breaker or end.
///
/// Installed once per worker with `WorkerOptions::activity_inbound_interceptor`; remote and local activities both pass
/// through it. Installed twice, the inner one finds the context of the outer one and does nothing.
#[derive(Debug, Clone)]
pub struct CircuitInterceptor {
    registry: CircuitRegistry,
}

impl CircuitInterceptor {
    /// An interceptor that guards with the breakers of `registry`.
    #[must_use]
    pub const fn new(registry: CircuitRegistry) -> Self {
        Self { registry }
    }
}

impl ActivityInboundInterceptor for CircuitInterceptor {
    fn execute_activity<'a>(
        &'a self,
        input: ExecuteActivityInput,
        next: Next<'a, ExecuteActivityInput, ExecuteActivityOutput<'a>>,
    ) -> ExecuteActivityOutput<'a> {
        let info = input.activity_info();
        if CallContext::with_current(|outer| outer.activity.as_deref() == Some(&info.activity_type)) == Some(true) {
            return next.run(input);
        }
        let context = call_context(info, wall_now(), Instant::now());
        let Some(breaker) = self.registry.breaker_for_activity(&info.activity_type) else {
            return Box::pin(context.scope(next.run(input)));
        };
        Box::pin(context.scope(async move {
            match breaker.call_with(next.run(input), verdict).await {
                Ok(value) => Ok(value),
                Err(CallError::Upstream(error)) => Err(error),
                Err(CallError::Rejected(rejection)) => Err(ActivityError::application(rejection.into())),
                Err(CallError::TimedOut { service, after }) => {
                    let text = CallError::<Infallible>::TimedOut { service: service.clone(), after }.to_string();
                    Err(ActivityError::application(timed_out(service.as_str(), text)))
                }
            }
        }))
    }
}

fn timed_out(service: &str, text: String) -> ApplicationFailure {
    let reason = Reason::TimedOut;
    reason.failure(text, None, FailureDetails { service: Some(service.to_owned()), retry_in_ms: None, reason })
}

/// What the end of a whole activity says about the service behind it. The error's own type is often lost by now, so the
/// failure's marks must do: a failure that forbids a retry is an answer, any other is none.
fn verdict(result: &ExecuteActivityResult) -> Verdict {
    let Err(error) = result else { return Verdict::Success };
    let ActivityError::Application(failure) = error else { return Verdict::Neutral };
    match failure.type_name().and_then(Reason::from_type_name) {
        Some(Reason::Throttled) => Verdict::Throttled { retry_after: failure.next_retry_delay() },
        Some(Reason::TimedOut | Reason::Failed) => Verdict::Failure,
        Some(Reason::Declined) => Verdict::Success,
        Some(_) => Verdict::Neutral, // another breaker inside refused; nobody was asked
        None if failure.is_non_retryable() => Verdict::Success,
        None => Verdict::Failure,
    }
}

#[expect(clippy::disallowed_methods, reason = "the server states deadlines in wall time; see `call_context`")]
fn wall_now() -> SystemTime {
    SystemTime::now()
}

/// The server speaks of deadlines in wall time. Only the distance from now is taken over, so that a clock that is set
/// while the activity runs moves nothing; a deadline that has passed already is one at `now`.
fn call_context(info: &ActivityInfo, wall: SystemTime, now: Instant) -> CallContext {
    CallContext {
        attempt: info.attempt,
        deadline: info.deadline.map(|at| now + at.duration_since(wall).unwrap_or(Duration::ZERO)),
        activity: Some(info.activity_type.clone()),
        workflow_id: info.workflow_id.clone(),
        run_id: info.workflow_run_id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(failure: ApplicationFailure) -> ExecuteActivityResult {
        Err(ActivityError::application(failure))
    }

    #[test]
    fn the_marks_of_a_failure_are_its_verdict() {
        let after = Duration::from_secs(9);
        let named =
            |reason: Reason| failed(ApplicationFailure::builder("x").type_name(reason.type_name().into()).build());
        let throttled = ApplicationFailure::builder("x")
            .type_name(Reason::Throttled.type_name().into())
            .next_retry_delay(after)
            .build();
        for (result, expected) in [
            (Ok(Box::new(1_u8) as _), Verdict::Success),
            (failed(ApplicationFailure::new("boom")), Verdict::Failure),
            (failed(ApplicationFailure::non_retryable("no such company")), Verdict::Success),
            (Err(ActivityError::cancelled()), Verdict::Neutral),
            (Err(ActivityError::WillCompleteAsync), Verdict::Neutral),
            (named(Reason::Open), Verdict::Neutral),
            (named(Reason::Failed), Verdict::Failure),
            (named(Reason::Declined), Verdict::Success),
            (failed(throttled), Verdict::Throttled { retry_after: Some(after) }),
        ] {
            assert_eq!(verdict(&result), expected);
        }
    }
}

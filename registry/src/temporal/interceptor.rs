//! The worker's side of an activity: who is calling, which attempt this is, how long there is, whether to run it at all, and
//! when to come back if there was no answer.

use std::{
    convert::Infallible,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use temporalio_common::error::ApplicationFailure;
use temporalio_sdk::{
    activities::{ActivityError, ActivityInfo},
    interceptors::{
        ActivityInboundInterceptor, ExecuteActivityInput, ExecuteActivityOutput, ExecuteActivityResult, Next as Inner,
    },
};
use tokio::time::Instant;
use tracing::{Instrument, Span, field};

use super::{
    failure::{FailureDetails, Reason},
    header::{ActivityPolicy, HEADER},
    next::{self, Ended, Next},
    once::Once,
    retry_directive,
    waiting::Waits,
};
use crate::{
    Breaker, CallError, CircuitRegistry, ServiceName, Verdict,
    breaker::context::CallContext,
    clock::{SystemWallClock, WallClock},
    hash::{BASIS, fnv},
    state::rng::Rng,
};

/// Gives every guarded call inside an activity its [`CallContext`]: activity type, attempt, deadline, workflow and run. Guards
/// whole activities: those that a header of the workflow, the type of their argument or `activities:` in `breakers.yaml`
/// puts behind a service's breaker pass it or end. And decides by the policy of the service when an activity without an answer
/// [comes back](super::failure), if it does. All of it happens within a span `circuit_breaker` of level debug that says which
/// activity it is, which attempt, and, of one without an answer, which service did not give it and why.
///
/// Installed once per worker with `WorkerOptions::activity_inbound_interceptor`; remote and local activities both pass
/// through it. Installed twice, the inner one finds the context of the outer one and does nothing.
#[derive(Clone)]
pub struct CircuitInterceptor {
    registry: CircuitRegistry,
    routes: Vec<Arc<Route>>,
    state: Arc<State>,
}

type Route = dyn Fn(&ExecuteActivityInput) -> Option<ServiceName> + Send + Sync;

struct State {
    rng: Mutex<Rng>,
    waits: Waits,
    said: Once,
}

impl CircuitInterceptor {
    /// An interceptor that guards with the breakers of `registry`.
    #[must_use]
    pub fn new(registry: CircuitRegistry) -> Self {
        let rng = Mutex::new(Rng::new(registry.seed().rotate_left(32)));
        let state = State { rng, waits: Waits::default(), said: Once::default() };
        Self { registry, routes: Vec::new(), state: Arc::new(state) }
    }

    /// Guards activities whose argument is a `T`, as a whole, by the service that `service` names for it. Ranks below a
    /// header of the workflow and above `activities:` in `breakers.yaml`; of several, the first that names one counts.
    ///
    /// ```
    /// # use circuit_registry::{BreakersConfig, CircuitRegistry, temporal::CircuitInterceptor};
    /// struct VatQuery { country: String }
    ///
    /// # let registry = CircuitRegistry::new(BreakersConfig::default());
    /// let interceptor = CircuitInterceptor::new(registry).route(|query: &VatQuery| Some(format!("vies:{}", query.country)));
    /// ```
    #[must_use]
    pub fn route<T, S>(mut self, service: impl Fn(&T) -> Option<S> + Send + Sync + 'static) -> Self
    where
        T: 'static,
        S: Into<ServiceName>,
    {
        self.routes.push(Arc::new(move |input| service(input.args_ref::<T>()?).map(Into::into)));
        self
    }

    /// What the workflow says about the activity, if it is understood.
    fn said(&self, input: &ExecuteActivityInput) -> ActivityPolicy {
        let Some(header) = input.headers().get(HEADER) else { return ActivityPolicy::new() };
        let activity = input.activity_info().activity_type.as_str();
        match ActivityPolicy::from_payload(header) {
            Ok(policy) => match &policy.service {
                Some(service) if !self.registry.covers(service) => {
                    self.unconfigured("header", activity, service);
                    ActivityPolicy { service: None, ..policy }
                }
                _ => policy,
            },
            Err(error) => {
                self.state.said.once(&("header", activity), || {
                    tracing::warn!(activity, error, "the `{HEADER}` header is ignored; breakers.yaml decides");
                });
                ActivityPolicy::new()
            }
        }
    }

    /// The breaker that guards the activity as a whole, if one does.
    fn guard(&self, said: &ActivityPolicy, input: &ExecuteActivityInput) -> Option<Breaker> {
        if let Some(service) = &said.service {
            return Some(self.registry.breaker(service));
        }
        let activity = input.activity_info().activity_type.as_str();
        for route in &self.routes {
            match route(input) {
                Some(service) if self.registry.covers(&service) => return Some(self.registry.breaker(&service)),
                Some(service) => self.unconfigured("argument", activity, &service),
                None => {}
            }
        }
        self.registry.breaker_for_activity(activity)
    }

    fn unconfigured(&self, by: &'static str, activity: &str, service: &str) {
        self.state.said.once(&(by, activity, service), || {
            tracing::warn!(activity, service, by, "no such service is configured; breakers.yaml decides");
        });
    }

    /// An attempt's outcome, with the marks that the policy of its service gives it.
    fn ended(
        &self,
        result: ExecuteActivityResult,
        attempt: &Attempt,
        said: &ActivityPolicy,
        guard: Option<&Breaker>,
    ) -> ExecuteActivityResult {
        let Err(ActivityError::Application(failure)) = result else {
            self.state.waits.forget(attempt.activity, attempt.number);
            return result;
        };
        let failure = self.failed(failure, attempt, said, guard);
        if failure.is_non_retryable() {
            self.state.waits.forget(attempt.activity, attempt.number);
        }
        Err(ActivityError::application(failure))
    }

    fn failed(
        &self,
        failure: Box<ApplicationFailure>,
        attempt: &Attempt,
        said: &ActivityPolicy,
        guard: Option<&Breaker>,
    ) -> ApplicationFailure {
        let (reason, marks) = (retry_directive::reason(&failure), retry_directive::next(&failure));
        let (failure, reason, service, retry_in) = match (reason, guard) {
            // An answer is an answer, and a last word the last.
            (Some(Reason::Declined), _) => return *failure,
            (Some(_), _) if retry_directive::is_last(&failure) => return *failure,
            (Some(reason), guard) => {
                let failure = retry_directive::readable(*failure);
                let (service, retry_in) = retry_directive::details(&failure);
                let service = service.or_else(|| guard.map(|breaker| breaker.name().to_string()));
                (failure, reason, service.unwrap_or_default(), retry_in)
            }
            // Somebody else's error out of an activity that we guard: it counted as the upstream's failure.
            (None, Some(breaker)) if marks != Next::Never => {
                (*failure, Reason::Failed, breaker.name().to_string(), None)
            }
            (None, _) => return *failure,
        };
        Span::current().record("service", &*service).record("reason", reason.as_str());
        let policy = self.registry.policy_of(&service);
        let (on_open, now) = (said.on_open.unwrap_or(policy.on_open), SystemWallClock.now());
        let next = next::next(
            &Ended {
                reason,
                retry_in,
                marks,
                on_open,
                attempt: attempt.counted,
                last: attempt.last,
                left: said.left(on_open, attempt.scheduled.unwrap_or(now), now),
                salt: mixed(attempt.activity, u64::from(attempt.number)),
                draw: self.state.rng.lock().unwrap_or_else(PoisonError::into_inner).next(),
            },
            &policy,
        );
        if let Next::After(delay) = next
            && reason.is_refusal()
        {
            tracing::debug!(service, reason = reason.as_str(), attempt = attempt.number, ?delay, "the activity waits");
            self.state.waits.refuse(attempt.activity, attempt.number, delay, Instant::now());
        }
        if next == marks { failure } else { retry_directive::marked(failure, next) }
    }
}

impl ActivityInboundInterceptor for CircuitInterceptor {
    fn execute_activity<'a>(
        &'a self,
        input: ExecuteActivityInput,
        next: Inner<'a, ExecuteActivityInput, ExecuteActivityOutput<'a>>,
    ) -> ExecuteActivityOutput<'a> {
        let info = input.activity_info();
        if CallContext::with_current(|outer| outer.activity() == Some(&info.activity_type)) == Some(true) {
            self.state.said.once(&"twice", || {
                tracing::warn!("the circuit breakers' interceptor is installed twice; the inner one does nothing");
            });
            return next.run(input);
        }
        let said = self.said(&input);
        let guard = self.guard(&said, &input);
        let mut attempt = Attempt::of(info);
        attempt.counted -= self.state.waits.refused(attempt.activity, attempt.number);
        let context = call_context(info, attempt.counted, SystemWallClock.now(), Instant::now());
        let (service, reason) = (field::Empty, field::Empty);
        let activity = info.activity_type.as_str();
        let span = tracing::debug_span!("circuit_breaker", activity, attempt = attempt.counted, service, reason);
        Box::pin(async move {
            // Within the scope already when the next interceptor is asked, so that it can see this one.
            let work = context.scope(async {
                match &guard {
                    None => next.run(input).await,
                    Some(breaker) => guarded(breaker, next.run(input)).await,
                }
            });
            let result = work.instrument(span.clone()).await;
            span.in_scope(|| self.ended(result, &attempt, &said, guard.as_ref()))
        })
    }
}

impl fmt::Debug for CircuitInterceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitInterceptor").field("routes", &self.routes.len()).finish_non_exhaustive()
    }
}

/// What is left to know of an attempt when its input has been handed on.
struct Attempt {
    /// A hash of the activity, the same for each of its attempts and on every worker.
    activity: u64,
    /// As the server counts, from 1.
    number: u32,
    /// Without those before it that were refused; from 1.
    counted: u32,
    last: bool,
    scheduled: Option<SystemTime>,
}

impl Attempt {
    fn of(info: &ActivityInfo) -> Self {
        // The run is unique, and an activity's id within it.
        let run = info.workflow_run_id.as_deref().or(info.activity_run_id.as_deref()).unwrap_or_default();
        let number = info.attempt.max(1);
        let most = info.retry_policy.as_ref().map_or(0, |policy| policy.maximum_attempts());
        Self {
            activity: fnv(fnv(BASIS, run.as_bytes()), info.activity_id.as_bytes()),
            number,
            counted: number,
            last: most != 0 && number >= most,
            scheduled: info.scheduled_time,
        }
    }
}

/// Another uniform number for each of the activity's attempts.
fn mixed(activity: u64, attempt: u64) -> u64 {
    Rng::new(activity.wrapping_add(attempt << 32)).next()
}

/// The activity behind its breaker.
async fn guarded(breaker: &Breaker, work: ExecuteActivityOutput<'_>) -> ExecuteActivityResult {
    let work = async {
        match work.await {
            // The verdict needs the details of failures that are ours.
            Err(ActivityError::Application(failure))
                if retry_directive::reason(&failure) == Some(Reason::Throttled)
                    && !retry_directive::is_last(&failure) =>
            {
                Err(ActivityError::application(retry_directive::readable(*failure)))
            }
            result => result,
        }
    };
    let deadline = CallContext::with_current(|context| context.deadline).flatten();
    match breaker.call_with(work, |result| verdict(result, deadline)).await {
        Ok(value) => Ok(value),
        Err(CallError::Upstream(error)) => Err(error),
        Err(CallError::Rejected(rejection)) => Err(ActivityError::application(rejection.into())),
        Err(CallError::TimedOut { service, after }) => {
            let text = CallError::<Infallible>::TimedOut { service: service.clone(), after }.to_string();
            Err(ActivityError::application(timed_out(service.as_str(), text)))
        }
    }
}

fn timed_out(service: &str, text: String) -> ApplicationFailure {
    let reason = Reason::TimedOut;
    reason.failure(text, None, FailureDetails { service: Some(service.to_owned()), retry_in_ms: None, reason })
}

/// What the end of a whole activity says about the service behind it. The error's own type is often lost by now, so the
/// failure's marks must do: a failure that forbids a retry is an answer, any other is none.
///
/// A cancelled activity says nothing, whether its workflow gave it up or the worker is shutting down; unless its time was
/// over: then the server cancels it because there was no answer.
fn verdict(result: &ExecuteActivityResult, deadline: Option<Instant>) -> Verdict {
    let Err(error) = result else { return Verdict::Success };
    let ActivityError::Application(failure) = error else {
        let cancelled = matches!(error, ActivityError::Cancelled { .. });
        let too_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        return if cancelled && too_late { Verdict::Failure } else { Verdict::Neutral };
    };
    match retry_directive::reason(failure) {
        Some(Reason::Throttled) => Verdict::Throttled { retry_after: retry_directive::details(failure).1 },
        Some(Reason::TimedOut | Reason::Failed) => Verdict::Failure,
        Some(Reason::Declined) => Verdict::Success,
        Some(_) => Verdict::Neutral, // another breaker inside refused; nobody was asked
        None if failure.is_non_retryable() => Verdict::Success,
        None => Verdict::Failure,
    }
}

/// The server speaks of deadlines in wall time. Only the distance from now is taken over, so that a clock that is set
/// while the activity runs moves nothing; a deadline that has passed already is one at `now`.
fn call_context(info: &ActivityInfo, attempt: u32, wall: SystemTime, now: Instant) -> CallContext {
    let mut context = CallContext::attempt(attempt).named(
        &info.activity_type,
        info.workflow_id.as_deref().unwrap_or_default(),
        info.workflow_run_id.as_deref().unwrap_or_default(),
    );
    context.deadline = info.deadline.map(|at| now + at.duration_since(wall).unwrap_or(Duration::ZERO));
    context
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(failure: ApplicationFailure) -> ExecuteActivityResult {
        Err(ActivityError::application(failure))
    }

    #[tokio::test(start_paused = true)]
    async fn the_marks_of_a_failure_are_its_verdict() {
        let after = Duration::from_secs(9);
        let named =
            |reason: Reason| failed(ApplicationFailure::builder("x").type_name(reason.type_name().into()).build());
        let details = FailureDetails { service: None, retry_in_ms: Some(9000), reason: Reason::Throttled };
        let throttled = retry_directive::readable(Reason::Throttled.failure("x", None, details));
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
            assert_eq!(verdict(&result, None), expected);
            assert_eq!(verdict(&result, Some(Instant::now() + after)), expected);
        }
        let cancelled = Err(ActivityError::cancelled());
        assert_eq!(verdict(&cancelled, Some(Instant::now())), Verdict::Failure, "its time was over");
    }

    #[test]
    fn one_activity_has_one_hash_and_each_attempt_its_own_jitter() {
        let activity = |run: &str, id: &str| fnv(fnv(BASIS, run.as_bytes()), id.as_bytes());
        assert_eq!(activity("run", "1"), activity("run", "1"));
        assert_ne!(activity("run", "1"), activity("run", "2"));
        assert_ne!(activity("run", "1"), activity("nur", "1"));
        // A thousand waiting activities of one run: a tenth of them in each tenth of the time, more or less.
        let mut tenths = [0; 10];
        for id in 0..1000 {
            let tenth = u128::from(mixed(activity("run", &id.to_string()), 1)) * 10 / (1 << 64);
            tenths[tenth as usize] += 1;
        }
        assert!(tenths.iter().all(|&n| (60..=140).contains(&n)), "{tenths:?}");
        assert_ne!(mixed(7, 1), mixed(7, 2));
    }
}

//! The worker's side of an activity: tells the calls inside which attempt they belong to and how much time is left, guards whole
//! activities with a breaker, and decides when an activity without an answer is retried.

use std::{
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
    failure::{self, Reason},
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

/// Does three things for each activity:
///
/// * gives every guarded call inside it a [`CallContext`]: activity type, attempt, deadline, workflow and run;
/// * guards the whole activity, if a header of the workflow, the type of its argument or `activities:` in `breakers.yaml` puts it
///   behind a service's breaker;
/// * decides by the policy of the service whether and when an activity without an answer [is retried](super::failure).
///
/// Each activity runs in a span `circuit_breaker` of level debug. The span names the activity and its attempt, and for an activity without an
/// answer the service and the reason.
///
/// Install it once per worker with `WorkerOptions::activity_inbound_interceptor`; remote and local activities both pass
/// through it. If it is installed twice, the inner one finds the context of the outer one and does nothing.
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
    logged: Once,
}

impl CircuitInterceptor {
    /// An interceptor that guards with the breakers of `registry`.
    #[must_use]
    pub fn new(registry: CircuitRegistry) -> Self {
        let rng = Mutex::new(Rng::new(registry.seed().rotate_left(32)));
        let state = State { rng, waits: Waits::default(), logged: Once::default() };
        Self { registry, routes: Vec::new(), state: Arc::new(state) }
    }

    /// Guards activities whose argument is a `T`, as a whole, with the breaker of the service that `service` returns. A header of the
    /// workflow outranks this, and this outranks `activities:` in `breakers.yaml`. Of several routes, the first that returns a
    /// service counts.
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

    /// The policy in the workflow's header, if this worker understands it.
    fn header_policy(&self, input: &ExecuteActivityInput) -> ActivityPolicy {
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
                self.state.logged.once(&("header", activity), || {
                    tracing::warn!(activity, error, "the `{HEADER}` header is ignored; breakers.yaml decides");
                });
                ActivityPolicy::new()
            }
        }
    }

    /// The breaker that guards the activity as a whole, if one does.
    fn guard(&self, header: &ActivityPolicy, input: &ExecuteActivityInput) -> Option<Breaker> {
        if let Some(service) = &header.service {
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
        self.state.logged.once(&(by, activity, service), || {
            tracing::warn!(activity, service, by, "no such service is configured; breakers.yaml decides");
        });
    }

    /// The result of an attempt, with the retry directive that the policy of its service gives it.
    fn ended(
        &self,
        result: ExecuteActivityResult,
        attempt: &Attempt,
        header: &ActivityPolicy,
        guard: Option<&Breaker>,
    ) -> ExecuteActivityResult {
        let Err(ActivityError::Application(failure)) = result else {
            self.state.waits.forget(attempt.activity, attempt.number);
            return result;
        };
        let failure = self.failed(failure, attempt, header, guard);
        if failure.is_non_retryable() {
            self.state.waits.forget(attempt.activity, attempt.number);
        }
        Err(ActivityError::application(failure))
    }

    fn failed(
        &self,
        failure: Box<ApplicationFailure>,
        attempt: &Attempt,
        header: &ActivityPolicy,
        guard: Option<&Breaker>,
    ) -> ApplicationFailure {
        let (reason, directive) = (retry_directive::reason(&failure), retry_directive::next(&failure));
        let (failure, reason, service, retry_in) = match (reason, guard) {
            // The upstream answered, or the activity forbids a retry: nothing changes.
            (Some(Reason::Declined), _) => return *failure,
            (Some(_), _) if retry_directive::is_last(&failure) => return *failure,
            (Some(reason), guard) => {
                let failure = retry_directive::readable(*failure);
                let (service, retry_in) = retry_directive::details(&failure);
                let service = service.or_else(|| guard.map(|breaker| breaker.name().to_string()));
                (failure, reason, service.unwrap_or_default(), retry_in)
            }
            // A foreign error from an activity that we guard counted as a failure of the upstream.
            (None, Some(breaker)) if directive != Next::Never => {
                (*failure, Reason::Failed, breaker.name().to_string(), None)
            }
            (None, _) => return *failure,
        };
        Span::current().record("service", &*service).record("reason", reason.as_str());
        let policy = self.registry.policy_of(&service);
        let (on_open, now) = (header.on_open.unwrap_or(policy.on_open), SystemWallClock.now());
        let next = next::next(
            &Ended {
                reason,
                retry_in,
                directive,
                on_open,
                attempt: attempt.counted,
                last: attempt.last,
                left: header.left(on_open, attempt.scheduled.unwrap_or(now), now),
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
        if next == directive { failure } else { retry_directive::with_directive(failure, next) }
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
            self.state.logged.once(&"twice", || {
                tracing::warn!("the circuit breakers' interceptor is installed twice; the inner one does nothing");
            });
            return next.run(input);
        }
        let policy = self.header_policy(&input);
        let guard = self.guard(&policy, &input);
        let mut attempt = Attempt::of(info);
        attempt.counted -= self.state.waits.refused(attempt.activity, attempt.number);
        let context = call_context(info, attempt.counted, SystemWallClock.now(), Instant::now());
        let (service, reason) = (field::Empty, field::Empty);
        let activity = info.activity_type.as_str();
        let span = tracing::debug_span!("circuit_breaker", activity, attempt = attempt.counted, service, reason);
        Box::pin(async move {
            // The next interceptor runs inside the scope, so that a second one of ours finds this one.
            let work = context.scope(async {
                match &guard {
                    None => next.run(input).await,
                    Some(breaker) => guarded(breaker, next.run(input)).await,
                }
            });
            let result = work.instrument(span.clone()).await;
            span.in_scope(|| self.ended(result, &attempt, &policy, guard.as_ref()))
        })
    }
}

impl fmt::Debug for CircuitInterceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitInterceptor").field("routes", &self.routes.len()).finish_non_exhaustive()
    }
}

/// What the interceptor keeps of an attempt after it handed on the input.
struct Attempt {
    /// A hash of the activity, the same for each of its attempts and on every worker.
    activity: u64,
    /// The server's number, from 1.
    number: u32,
    /// The number without the refused attempts before it, from 1.
    counted: u32,
    last: bool,
    scheduled: Option<SystemTime>,
}

impl Attempt {
    fn of(info: &ActivityInfo) -> Self {
        // The run is unique, and so is the activity's id within it.
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

/// A uniform number, another for each attempt of the activity.
fn mixed(activity: u64, attempt: u64) -> u64 {
    Rng::new(activity.wrapping_add(attempt << 32)).next()
}

/// The activity behind its breaker.
async fn guarded(breaker: &Breaker, work: ExecuteActivityOutput<'_>) -> ExecuteActivityResult {
    let work = async {
        match work.await {
            // The verdict needs the details of our failures.
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
            Err(ActivityError::application(failure::timed_out(service, after)))
        }
    }
}

/// The verdict that the end of a whole activity gives the service behind it. The type of the error is often lost by now, so the
/// retry directive decides: a failure that forbids a retry is an answer, and any other is a failure of the service.
///
/// A cancelled activity is neutral: its workflow gave it up, or the worker shuts down. But if its time was over, the server cancels
/// it because there was no answer, and it counts as a failure.
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
        Some(_) => Verdict::Neutral, // another breaker inside refused, so no call reached the upstream
        None if failure.is_non_retryable() => Verdict::Success,
        None => Verdict::Failure,
    }
}

/// The context of the calls inside. The server gives deadlines in wall time; only the time left from `now` counts, so that a change
/// of the wall clock while the activity runs changes nothing. A deadline that has passed is at `now`.
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
    async fn the_verdict_follows_the_retry_directive() {
        let after = Duration::from_secs(9);
        let named =
            |reason: Reason| failed(ApplicationFailure::builder("x").type_name(reason.type_name().into()).build());
        let details = failure::FailureDetails::new(Reason::Throttled, None, Some(after));
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
    fn each_attempt_of_an_activity_has_its_own_jitter() {
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

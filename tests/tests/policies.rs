//! How an activity ends whose breaker refuses it, on a real server: each policy with each kind of refusal, and the stories
//! that combine them with retries, deadlines, headers and shutdown.
//!
//! The argument of an activity says which service it calls, how the service behaves, and with which options it runs.

#![allow(missing_docs, unreachable_pub, reason = "the SDK's macros make public items of their own")]

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use circuit_registry::{
    BreakerView, BreakersConfig, CircuitRegistry, Classify, Override, Permit, State, Verdict,
    temporal::{
        ActivityPolicy, CircuitInterceptor, CircuitWorkflowInterceptor, Degradation, HEADER, PolicyKey,
        failure::application_failure,
    },
};
use futures::TryStreamExt;
use osint_tests::{wait, worker::while_running};
use osint_worker::dev::server::{DevServer, DevServerOptions};
use serde::{Deserialize, Serialize};
use temporalio_client::{Client, WorkflowGetResultOptions, WorkflowStartOptions};
use temporalio_common::{
    RetryPolicy,
    error::ActivityExecutionError,
    protos::temporal::api::{common::v1::Payload, history::v1::HistoryEvent},
};
use temporalio_sdk::{
    ActivityCloseTimeouts, ActivityOptions, LocalActivityOptions, Runtime, Worker, WorkerOptions, WorkflowContext,
    WorkflowResult,
    activities::{ActivityContext, ActivityError, activities},
    workflow_interceptors::{
        CancellableWorkflowOutboundFuture, ScheduleActivityInput, ScheduleActivityResult, WorkflowInterceptor,
        WorkflowInterceptorConstructor, WorkflowInterceptorContext, WorkflowNext,
    },
    workflows::join_all,
};
use temporalio_workflow::{workflow, workflow_methods};

const QUEUE: &str = "policies";

/// How one activity behaves and how it is started.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Ask {
    /// The service it asks; the breaker around its call.
    service: String,
    /// The breaker around the whole activity, by the type of its argument.
    #[serde(default)]
    guard: Option<String>,
    /// How many calls fail at first.
    #[serde(default)]
    fails: u32,
    /// They fail as throttled, with this time to wait.
    #[serde(default)]
    throttled_ms: Option<u64>,
    /// The call never ends.
    #[serde(default)]
    hangs: bool,
    #[serde(default)]
    local: bool,
    #[serde(default)]
    maximum_attempts: u32,
    #[serde(default)]
    schedule_to_close_ms: Option<u64>,
    #[serde(default)]
    start_to_close_ms: Option<u64>,
    /// The policy in the call's scope: `wait` or `degrade`.
    #[serde(default)]
    scope: Option<String>,
    /// Which of the activities: `ask`, `unguarded` or `bad_header`.
    #[serde(default)]
    activity: String,
}

fn ask(service: &str) -> Ask {
    Ask { service: service.to_owned(), ..Ask::default() }
}

#[derive(Debug, Clone, Copy)]
struct Outage(Verdict);

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no answer")
    }
}

impl std::error::Error for Outage {}

impl Classify for Outage {
    fn verdict(&self) -> Verdict {
        self.0
    }
}

/// How often each service was called.
type Asked = Arc<Mutex<BTreeMap<String, u32>>>;

pub struct Activities {
    registry: CircuitRegistry,
    asked: Asked,
}

impl Activities {
    async fn upstream(&self, ask: &Ask) -> Result<u32, Outage> {
        let times = {
            let mut asked = self.asked.lock().expect("no panic while locked");
            let times = asked.entry(ask.service.clone()).or_default();
            *times += 1;
            *times
        };
        if ask.hangs {
            std::future::pending::<()>().await;
        }
        let retry_after = ask.throttled_ms.map(Duration::from_millis);
        match (times <= ask.fails, retry_after) {
            (false, _) => Ok(times),
            (true, None) => Err(Outage(Verdict::Failure)),
            (true, retry_after) => Err(Outage(Verdict::Throttled { retry_after })),
        }
    }

    async fn plainly(&self, ctx: &ActivityContext, ask: &Ask) -> Result<String, ActivityError> {
        let times = tokio::select! {
            answer = self.upstream(ask) => answer?,
            () = ctx.cancelled() => return Err(ActivityError::cancelled()),
        };
        Ok(format!("answered, asked {times}"))
    }
}

#[activities]
impl Activities {
    /// Guards its own call.
    #[activity(name = "ask")]
    pub async fn ask(self: Arc<Self>, ctx: ActivityContext, ask: Ask) -> Result<String, ActivityError> {
        let call = self.registry.call(&ask.service, self.upstream(&ask));
        let answer = tokio::select! {
            answer = call => answer,
            () = ctx.cancelled() => return Err(ActivityError::cancelled()),
        };
        let times = answer.map_err(|error| application_failure(&ask.service, error))?;
        Ok(format!("answered, asked {times}"))
    }

    /// Does not guard its call.
    #[activity(name = "unguarded")]
    pub async fn unguarded(self: Arc<Self>, ctx: ActivityContext, ask: Ask) -> Result<String, ActivityError> {
        self.plainly(&ctx, &ask).await
    }

    /// The same, with a header of an unknown version.
    #[activity(name = "bad_header")]
    pub async fn bad_header(self: Arc<Self>, ctx: ActivityContext, ask: Ask) -> Result<String, ActivityError> {
        self.plainly(&ctx, &ask).await
    }
}

/// Stamps headers of another version.
struct HeaderCorruptor;

impl WorkflowInterceptor for HeaderCorruptor {
    fn schedule_activity(
        &self,
        _ctx: WorkflowInterceptorContext,
        mut input: ScheduleActivityInput,
        next: WorkflowNext<'static, ScheduleActivityInput, CancellableWorkflowOutboundFuture<ScheduleActivityResult>>,
    ) -> CancellableWorkflowOutboundFuture<ScheduleActivityResult> {
        if input.activity_type() == "bad_header" {
            let data = br#"{"v":99,"on_open":["something","else"]}"#.to_vec();
            input.headers_mut().insert(HEADER.to_owned(), Payload { data, ..Payload::default() });
        }
        next.run(input)
    }
}

#[workflow]
#[derive(Default)]
pub struct Asking;

#[workflow_methods]
impl Asking {
    /// Runs all at the same time. Returns their outcomes in order.
    #[run]
    pub async fn run(ctx: &mut WorkflowContext<Self>, asks: Vec<Ask>) -> WorkflowResult<Vec<String>> {
        let branches = asks.into_iter().map(|ask| {
            let ctx = ctx.clone();
            async move { outcome(one(&ctx, ask).await) }
        });
        Ok(join_all(branches).await)
    }
}

async fn one(ctx: &WorkflowContext<Asking>, ask: Ask) -> Result<String, ActivityExecutionError> {
    let millis = Duration::from_millis;
    let retry = RetryPolicy::builder()
        .initial_interval(millis(50))
        .backoff_coefficient(1.0)
        .maximum_attempts(ask.maximum_attempts)
        .build();
    let start_to_close = millis(ask.start_to_close_ms.unwrap_or(30_000));
    if ask.local {
        let options =
            LocalActivityOptions::builder().retry_policy(retry).start_to_close_timeout(start_to_close).build();
        return ctx.execute_local_activity(Activities::ask, ask, options).await;
    }
    let timeouts = match ask.schedule_to_close_ms.map(millis) {
        None => ActivityCloseTimeouts::StartToClose(start_to_close),
        Some(schedule_to_close) => {
            let start_to_close = start_to_close.min(schedule_to_close);
            ActivityCloseTimeouts::ScheduleAndStartToClose { schedule_to_close, start_to_close }
        }
    };
    let options = ActivityOptions::with_close_timeouts(timeouts).retry_policy(retry).build();
    let scope = match ask.scope.as_deref() {
        Some("wait") => ActivityPolicy::new().wait(),
        Some("degrade") => ActivityPolicy::new().degrade(),
        _ => ActivityPolicy::new(),
    };
    match ask.activity.as_str() {
        "unguarded" => ctx.execute_activity(Activities::unguarded, ask, options).await,
        "bad_header" => ctx.execute_activity(Activities::bad_header, ask, options).await,
        _ => {
            ctx.with_context_value_sync::<PolicyKey, _>(scope, || ctx.execute_activity(Activities::ask, ask, options))
                .await
        }
    }
}

fn outcome(result: Result<String, ActivityExecutionError>) -> String {
    match result {
        Ok(answer) => answer,
        Err(error) => match Degradation::from_activity_error(&error) {
            Some(degraded) => degraded.reason.as_str().to_owned(),
            None => format!("lost: {error:?}"),
        },
    }
}

/// A worker with the activities above, on its own server.
struct PolicyWorker {
    server: DevServer,
    client: Client,
    registry: CircuitRegistry,
    asked: Asked,
}

impl PolicyWorker {
    async fn start(breakers: &str) -> anyhow::Result<Self> {
        let server = DevServer::start(DevServerOptions::default()).await?;
        let client = server.client().await?;
        let registry = CircuitRegistry::new(BreakersConfig::from_yaml(breakers)?);
        Ok(Self { server, client, registry, asked: Asked::default() })
    }

    fn asked(&self, service: &str) -> u32 {
        self.asked.lock().expect("no panic while locked").get(service).copied().unwrap_or_default()
    }

    /// Runs a worker for as long as `script` takes.
    async fn work<T>(&self, script: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let theirs = Activities { registry: self.registry.clone(), asked: self.asked.clone() };
        let activities = CircuitInterceptor::new(self.registry.clone()).route(|ask: &Ask| ask.guard.clone());
        let workflows = CircuitWorkflowInterceptor::new()
            .activity("unguarded", ActivityPolicy::new().service("by_header"))
            .activity("bad_header", ActivityPolicy::new().wait());
        let mut options = WorkerOptions::new(QUEUE)
            .activity_inbound_interceptor(activities)
            .register_activities(theirs)
            .register_workflow::<Asking>()?
            .graceful_shutdown_period(Duration::from_millis(100))
            .build();
        // Outbound, the last comes first.
        let corruptor = WorkflowInterceptorConstructor::new(|_| HeaderCorruptor);
        options.register_workflow_interceptors(vec![workflows.constructor(), corruptor]);
        let runtime = Runtime::from_current_tokio(Default::default())?;
        while_running(Worker::new(&runtime, self.client.clone(), options)?, script).await
    }

    async fn ask(&self, id: &str, asks: &[Ask]) -> anyhow::Result<Vec<String>> {
        let options = WorkflowStartOptions::new(QUEUE, id).build();
        let handle = self.client.start_workflow(Asking::run, asks.to_vec(), options).await?;
        Ok(handle.get_result(WorkflowGetResultOptions::default()).await?)
    }
}

/// A service for each policy and kind of refusal, named `kind_policy`.
fn breakers() -> String {
    let kinds = [
        ("open", "fail_max: 1, reset_timeout: 1s"),
        ("busy", "fail_max: 1, reset_timeout: 100ms"),
        ("bulkhead", "bulkhead: { max_concurrent: 1 }"),
        ("rate", "rate_limit: 1/2s"),
        ("budget", "reset_timeout: 1s, retry: { max_attempts: 9, base: 10ms, cap: 10ms, budget: 1% }"),
        ("throttled", "reset_timeout: 1s"),
    ];
    let policies =
        [("degrade", "degrade"), ("wait", "wait"), ("fits", "{ wait_max: 1m }"), ("short", "{ wait_max: 300ms }")];
    let entries = kinds.iter().flat_map(|(kind, keys)| {
        policies.iter().map(move |(policy, on_open)| format!("  {kind}_{policy}: {{ {keys}, on_open: {on_open} }}\n"))
    });
    format!("services:\n{}", entries.collect::<String>())
}

const POLICIES: [&str; 4] = ["degrade", "wait", "fits", "short"];

/// The activities of one policy, and the outcome that each must have, as `kind_policy: outcome`.
struct Cases {
    asks: Vec<Ask>,
    expected: Vec<String>,
    /// Permits that fill the bulkheads, and later the probes.
    held: Vec<Permit>,
}

impl Cases {
    fn add(&mut self, kind: &str, policy: &str, ask: Ask, outcome: &str) {
        self.asks.push(ask);
        self.expected.push(format!("{kind}_{policy}: {outcome}"));
    }

    /// Brings the breakers of `policy` into the states that refuse, one state per kind.
    fn prepare(&mut self, env: &PolicyWorker, policy: &str) -> anyhow::Result<()> {
        let waited = matches!(policy, "wait" | "fits");
        let breaker = |kind: &str| env.registry.breaker(&format!("{kind}_{policy}"));
        let service = |kind: &str| ask(&format!("{kind}_{policy}"));
        let or = |reason: &'static str| if waited { "answered, asked 1" } else { reason };

        let order = Override::new("test", "an outage").lasting(Duration::from_secs(6));
        breaker("open").force_open(order);
        self.add("open", policy, service("open"), or("open"));

        breaker("busy").try_acquire()?.settle(Verdict::Failure);
        self.add("busy", policy, service("busy"), or("half_open_busy"));

        self.held.push(breaker("bulkhead").try_acquire()?);
        let at_once = if policy == "short" { "bulkhead_full" } else { "answered, asked 1" };
        self.add("bulkhead", policy, service("bulkhead"), at_once);

        let at_once = if policy == "short" { "rate_limited" } else { "answered, asked 1" };
        self.add("rate", policy, service("rate"), at_once);

        // The first attempt fails. The second has no retry budget until other calls refill it.
        let outcome = if waited { "answered, asked 2" } else { "budget_exhausted" };
        self.add("budget", policy, Ask { fails: 1, ..service("budget") }, outcome);

        let outcome = if waited { "answered, asked 2" } else { "throttled" };
        let throttled = Ask { fails: 1, throttled_ms: Some(1000), ..service("throttled") };
        self.add("throttled", policy, throttled, outcome);
        Ok(())
    }

    /// Takes the probes, the tokens of the rate limits and the retry budgets.
    async fn use_up(&mut self, env: &PolicyWorker) -> anyhow::Result<()> {
        for policy in POLICIES {
            self.held.push(env.registry.breaker(&format!("busy_{policy}")).try_acquire()?); // the probe
            env.registry.breaker(&format!("rate_{policy}")).try_acquire()?.settle(Verdict::Success);
            let budget = env.registry.breaker(&format!("budget_{policy}"));
            let retry = circuit_registry::CallContext::attempt(2);
            let repeated = || async { budget.try_acquire().map(|permit| permit.settle(Verdict::Success)) };
            while retry.clone().scope(repeated()).await.is_ok() {}
        }
        Ok(())
    }
}

/// Waits until every activity was refused, then gives back what `held` holds and refills the retry budgets.
async fn recover(env: &PolicyWorker, held: Vec<Permit>) -> anyhow::Result<()> {
    let refused = |view: &BreakerView| {
        let least = match view.service.as_str() {
            // It is not refused: it runs again when its breaker is due.
            name if name.starts_with("throttled") => 0,
            // Once when we emptied the budget, and once for the activity's second attempt.
            name if name.starts_with("budget") => 2,
            _ => 1,
        };
        view.calls.rejected() >= least
    };
    wait::eventually("all were refused", async || env.registry.views().iter().all(refused).then_some(())).await;
    for permit in held {
        permit.settle(Verdict::Success);
    }
    for policy in POLICIES {
        for _ in 0..200 {
            env.registry.breaker(&format!("budget_{policy}")).try_acquire()?.settle(Verdict::Success);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_policy_meets_each_kind_of_refusal() -> anyhow::Result<()> {
    let env = PolicyWorker::start(&breakers()).await?;
    let mut cases = Cases { asks: Vec::new(), expected: Vec::new(), held: Vec::new() };
    for policy in POLICIES {
        cases.prepare(&env, policy)?;
    }
    let outcomes = env
        .work(async {
            tokio::time::sleep(Duration::from_millis(150)).await;
            cases.use_up(&env).await?;
            let held = std::mem::take(&mut cases.held);
            let (outcomes, recovered) = tokio::join!(env.ask("each", &cases.asks), recover(&env, held));
            recovered?;
            outcomes
        })
        .await?;
    let named = cases.asks.iter().zip(outcomes).map(|(ask, outcome)| format!("{}: {outcome}", ask.service));
    assert_eq!(named.collect::<Vec<_>>(), cases.expected);

    // A wait adds no event: each activity has the same three events as one without a wait.
    let handle = env.client.get_workflow_handle::<Asking>("each");
    let history: Vec<HistoryEvent> = handle.fetch_history(Default::default()).try_collect().await?;
    let of_activities = history.iter().filter(|event| event.event_type().as_str_name().contains("ACTIVITY_TASK"));
    assert_eq!(of_activities.count(), 3 * cases.asks.len());
    env.server.stop().await;
    Ok(())
}

const STORIES: &str = "
defaults: { fail_max: 3, reset_timeout: 60s }
services:
  opens_for_good: { fail_max: 2, retry: { max_attempts: 9, base: 20ms, cap: 40ms } }
  comes_back: { reset_timeout: 1s, on_open: wait, retry: { max_attempts: 4, base: 20ms, cap: 40ms } }
  gives_up: { fail_max: 9, retry: { max_attempts: 2, base: 20ms, cap: 40ms } }
  down: { on_open: wait }
  slow: { timeout: 60s }
  local: { reset_timeout: 1s, on_open: wait, retry: { max_attempts: 4, base: 20ms, cap: 40ms } }
  patient_by_scope: {}
  hasty_by_scope: { on_open: wait }
  by_argument: { fail_max: 1 }
  by_header: { fail_max: 1 }
  by_yaml: { fail_max: 1, activities: [bad_header] }
  lingering: {}
";

fn unguarded(service: &str) -> Ask {
    Ask { activity: "unguarded".into(), fails: 99, ..ask(service) }
}

/// A title, the activity, and its expected outcome.
fn stories() -> [(&'static str, Ask, &'static str); 13] {
    [
        ("a breaker that opens mid-retry ends the attempts", Ask { fails: 99, ..ask("opens_for_good") }, "open"),
        ("or postpones them without using one up", Ask { fails: 3, ..ask("comes_back") }, "answered, asked 4"),
        ("max_attempts of the policy", Ask { fails: 99, ..ask("gives_up") }, "failed"),
        ("no time to wait", Ask { schedule_to_close_ms: Some(20_000), ..ask("down") }, "open"),
        ("no attempt to wait for", Ask { maximum_attempts: 1, ..ask("down") }, "open"),
        (
            "a deadline before the timeout",
            Ask { hangs: true, start_to_close_ms: Some(1000), maximum_attempts: 1, ..ask("slow") },
            "timed_out",
        ),
        ("a local activity", Ask { local: true, fails: 3, ..ask("local") }, "answered, asked 4"),
        (
            "patient by the workflow's word",
            Ask { scope: Some("wait".into()), ..ask("patient_by_scope") },
            "answered, asked 1",
        ),
        ("hasty by the workflow's word", Ask { scope: Some("degrade".into()), ..ask("hasty_by_scope") }, "open"),
        ("guarded by its header", unguarded("behind_a_header"), "open"),
        (
            "guarded by its argument",
            Ask { guard: Some("by_argument".into()), fails: 99, ..ask("behind_an_argument") },
            "open",
        ),
        ("a header of another version", Ask { activity: "bad_header".into(), fails: 99, ..ask("bad_header") }, "open"),
        (
            "an unconfigured service",
            Ask { guard: Some("unconfigured".into()), ..ask("by_unconfigured") },
            "answered, asked 1",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_meet_retries_deadlines_headers_and_shutdown() -> anyhow::Result<()> {
    let env = PolicyWorker::start(STORIES).await?;
    let outage = |time| Override::new("test", "an outage").lasting(time);
    env.registry.breaker("down").force_open(outage(Duration::from_secs(3600)));
    env.registry.breaker("patient_by_scope").force_open(outage(Duration::from_secs(6)));
    env.registry.breaker("hasty_by_scope").force_open(outage(Duration::from_secs(3600)));
    let stories = stories();
    let asks: Vec<Ask> = stories.iter().map(|(_, ask, _)| ask.clone()).collect();
    let lingering = [Ask { hangs: true, ..ask("lingering") }, Ask { hangs: true, ..unguarded("lingering_whole") }];
    let outcome = env
        .work(async {
            let outcome = env.ask("stories", &asks).await?;
            // The guard of the lingering activity must be closed again: the story about headers has opened it.
            env.registry.breaker("by_header").reset();
            let options = WorkflowStartOptions::new(QUEUE, "lingering").build();
            env.client.start_workflow(Asking::run, lingering.to_vec(), options).await?;
            wait::eventually("both linger", async || {
                (env.asked("lingering") + env.asked("lingering_whole") == 2).then_some(())
            })
            .await;
            Ok(outcome)
        })
        .await?;
    for ((story, _, expected), outcome) in stories.iter().zip(outcome) {
        assert_eq!(outcome, *expected, "{story}");
    }
    assert_eq!(env.asked("opens_for_good"), 2);
    assert_eq!(env.asked("gives_up"), 2);
    assert_eq!(env.asked("behind_a_header") + env.asked("behind_an_argument") + env.asked("bad_header"), 3);
    assert_eq!((env.asked("down"), env.asked("hasty_by_scope")), (0, 0));
    assert!(
        !env.registry.views().iter().any(|view| view.service.as_str() == "unconfigured"),
        "no breaker was made for it"
    );

    // The shutdown ended two calls, one guarded inside and one as a whole. Both are neutral for their services.
    for service in ["lingering", "by_header"] {
        let view = env.registry.breaker(service).view();
        assert_eq!((view.state, view.consecutive_failures, view.calls.neutral), (State::Closed, 0, 1), "{service}");
    }
    env.server.stop().await;
    Ok(())
}

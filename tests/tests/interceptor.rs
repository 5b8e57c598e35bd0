//! The library's Temporal layer in another project's worker, with its own workflow, activities and queue, on a real server.
//!
//! Not covered here: the table from refusals to failures; it has unit tests in `registry`.

#![allow(missing_docs, unreachable_pub, reason = "the SDK's macros make public items of their own")]

use std::{
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use circuit_registry::{
    BreakersConfig, CallContext, CallError, CircuitRegistry, Classify, Verdict,
    temporal::{CircuitInterceptor, Degradation, Reason},
};
use osint_tests::worker::while_running;
use osint_worker::dev::server::{DevServer, DevServerOptions};
use temporalio_client::{WorkflowGetResultOptions, WorkflowStartOptions};
use temporalio_common::{
    RetryPolicy,
    error::{ActivityExecutionError, ApplicationFailure},
};
use temporalio_sdk::{
    ActivityOptions, LocalActivityOptions, Runtime, Worker, WorkerOptions, WorkflowContext, WorkflowResult,
    activities::{ActivityContext, ActivityError, activities},
};
use temporalio_workflow::{workflow, workflow_methods};
use tracing_subscriber::fmt::format::FmtSpan;

const QUEUE: &str = "someone-elses";

const BREAKERS: &str = "
services:
  bureau: { fail_max: 2, reset_timeout: 60s, activities: [untouched] }
  portal: { fail_max: 2, reset_timeout: 60s }
";

#[derive(Debug)]
struct Outage;

impl std::fmt::Display for Outage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no answer")
    }
}

impl std::error::Error for Outage {}

impl Classify for Outage {
    fn verdict(&self) -> Verdict {
        Verdict::Failure
    }
}

pub struct Theirs {
    registry: CircuitRegistry,
    untouched: Arc<AtomicU32>,
    portal: Arc<AtomicU32>,
}

#[activities]
impl Theirs {
    /// Knows nothing of breakers; the configuration guards it as a whole.
    #[activity(name = "untouched")]
    pub async fn untouched(self: Arc<Self>, _ctx: ActivityContext) -> Result<(), ActivityError> {
        self.untouched.fetch_add(1, Ordering::Relaxed);
        Err(Outage.into())
    }

    /// Guards its own call.
    #[activity(name = "portal")]
    pub async fn portal(self: Arc<Self>, _ctx: ActivityContext) -> Result<(), ActivityError> {
        let calls = self.portal.clone();
        let call = async move {
            calls.fetch_add(1, Ordering::Relaxed);
            Err::<(), Outage>(Outage)
        };
        Ok(self
            .registry
            .call("portal", call)
            .await
            .map_err(|error: CallError<Outage>| ApplicationFailure::from(error))?)
    }

    /// What a call inside an activity knows about it.
    #[activity(name = "circumstances")]
    pub async fn circumstances(self: Arc<Self>, ctx: ActivityContext) -> Result<String, ActivityError> {
        let context = CallContext::with_current(Clone::clone).ok_or(Outage)?;
        let within = context.deadline.is_some_and(|at| at <= tokio::time::Instant::now() + Duration::from_secs(30));
        if ctx.info().attempt == 1 {
            return Err(Outage.into());
        }
        Ok(format!(
            "attempt {} of {} in {}, to be done in time: {within}",
            context.attempt,
            context.activity().unwrap_or_default(),
            context.workflow_id().unwrap_or_default()
        ))
    }
}

fn patient() -> RetryPolicy {
    RetryPolicy::builder().initial_interval(Duration::from_millis(50)).maximum_attempts(9).build()
}

fn remote() -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(30)).retry_policy(patient()).build()
}

fn local() -> LocalActivityOptions {
    LocalActivityOptions::builder().retry_policy(patient()).start_to_close_timeout(Duration::from_secs(30)).build()
}

#[workflow]
#[derive(Default)]
pub struct TheirWorkflow;

#[workflow_methods]
impl TheirWorkflow {
    /// What became of each activity, in order.
    #[run]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Vec<String>> {
        Ok(vec![
            outcome(&ctx.execute_activity(Theirs::untouched, (), remote()).await),
            outcome(&ctx.execute_local_activity(Theirs::untouched, (), local()).await),
            outcome(&ctx.execute_activity(Theirs::portal, (), remote()).await),
            outcome(&ctx.execute_local_activity(Theirs::portal, (), local()).await),
            ctx.execute_activity(Theirs::circumstances, (), remote()).await?,
            ctx.execute_local_activity(Theirs::circumstances, (), local()).await?,
        ])
    }
}

fn outcome(result: &Result<(), ActivityExecutionError>) -> String {
    let Err(error) = result else { return "answered".to_owned() };
    match Degradation::from_activity_error(error) {
        Some(degraded) => {
            let due = degraded.retry_in.is_some_and(|time| time <= Duration::from_secs(60));
            format!("{} {} due {due}", degraded.service.unwrap_or_default(), degraded.reason.as_str())
        }
        None => format!("lost: {error}"),
    }
}

/// Keeps the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic while locked").write(text)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Keeps the spans of the library.
    fn kept() -> Self {
        let log = Self::default();
        let writer = log.clone();
        tracing_subscriber::fmt()
            .with_env_filter("off,circuit_registry::temporal=debug")
            .with_span_events(FmtSpan::CLOSE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .init();
        log
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no panic while locked")).into_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interceptor_gives_any_worker_breakers_that_end_retries() -> anyhow::Result<()> {
    let log = Log::kept();
    let server = DevServer::start(DevServerOptions::default()).await?;
    let client = server.client().await?;
    let registry = CircuitRegistry::new(BreakersConfig::from_yaml(BREAKERS)?);
    let (untouched, portal) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let theirs = Theirs { registry: registry.clone(), untouched: untouched.clone(), portal: portal.clone() };
    let options = WorkerOptions::new(QUEUE)
        .activity_inbound_interceptor(CircuitInterceptor::new(registry.clone()))
        .activity_inbound_interceptor(CircuitInterceptor::new(registry)) // installed twice by mistake: no harm
        .register_activities(theirs)
        .register_workflow::<TheirWorkflow>()?
        .build();
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let worker = Worker::new(&runtime, client.clone(), options)?;
    let starter = async {
        let options = WorkflowStartOptions::new(QUEUE, "theirs").build();
        let handle = client.start_workflow(TheirWorkflow::run, (), options).await?;
        Ok(handle.get_result(WorkflowGetResultOptions::default()).await?)
    };
    let outcome = while_running(worker, starter).await?;
    let open = Reason::Open.as_str();
    assert_eq!(
        outcome,
        [
            format!("bureau {open} due true"),
            format!("bureau {open} due true"),
            format!("portal {open} due true"),
            format!("portal {open} due true"),
            "attempt 2 of circumstances in theirs, to be done in time: true".to_owned(),
            "attempt 2 of circumstances in theirs, to be done in time: true".to_owned(),
        ]
    );
    // Nine attempts were allowed; the breakers let as many through as it takes to open them, and count each once.
    assert_eq!((untouched.load(Ordering::Relaxed), portal.load(Ordering::Relaxed)), (2, 2));
    let spans = log.text();
    for span in [
        r#"circuit_breaker{activity="untouched" attempt=2 service="bureau" reason="failed"}: "#,
        r#"circuit_breaker{activity="untouched" attempt=1 service="bureau" reason="open"}: "#,
        r#"circuit_breaker{activity="portal" attempt=3 service="portal" reason="open"}: "#,
        r#"circuit_breaker{activity="circumstances" attempt=2}: "#,
    ] {
        assert!(spans.contains(span), "no {span} in\n{spans}");
    }
    server.stop().await;
    Ok(())
}

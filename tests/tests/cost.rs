//! What the interceptor costs an activity, counted on a real worker: the allocations between the SDK and the activity, with
//! our interceptor in between and without.
//!
//! The test puts one interceptor before and one after ours. Other threads of the SDK allocate at any time, so the activity
//! with the fewest allocations counts. The times are printed; no assertion uses them.

#![allow(missing_docs, unreachable_pub, reason = "the SDK's macros make public items of their own")]

use std::{
    alloc::System,
    sync::{Arc, Mutex},
    time::Duration,
};

use circuit_registry::{BreakersConfig, CircuitRegistry, temporal::CircuitInterceptor};
use osint_tests::worker::while_running;
use osint_worker::dev::server::{DevServer, DevServerOptions};
use serde::{Deserialize, Serialize};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use temporalio_client::{WorkflowGetResultOptions, WorkflowStartOptions};
use temporalio_sdk::{
    ActivityOptions, LocalActivityOptions, Runtime, Worker, WorkerOptions, WorkflowContext, WorkflowResult,
    activities::{ActivityContext, ActivityError, activities},
    interceptors::{ActivityInboundInterceptor, ExecuteActivityInput, ExecuteActivityOutput, Next},
};
use temporalio_workflow::{workflow, workflow_methods};
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const BREAKERS: &str = "services: { bureau: { fail_max: 5, timeout: 20s, activities: [guarded] } }";

/// Activities of each kind and measurement.
const TIMES: usize = 150;

pub struct Bureau;

#[activities]
impl Bureau {
    #[activity(name = "plain")]
    pub async fn plain(_ctx: ActivityContext) -> Result<(), ActivityError> {
        Ok(())
    }

    #[activity(name = "guarded")]
    pub async fn guarded(_ctx: ActivityContext) -> Result<(), ActivityError> {
        Ok(())
    }
}

/// Which activities.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Kind {
    guarded: bool,
    local: bool,
}

#[workflow]
#[derive(Default)]
pub struct Asking;

#[workflow_methods]
impl Asking {
    /// One after the other, so that none is counted with another. Remote ones come milliseconds apart, local ones at once.
    #[run]
    pub async fn run(ctx: &mut WorkflowContext<Self>, kind: Kind) -> WorkflowResult<()> {
        for _ in 0..TIMES {
            let limit = Duration::from_secs(30);
            let remote = ActivityOptions::start_to_close_timeout(limit);
            let local = LocalActivityOptions::builder().start_to_close_timeout(limit).build();
            match kind {
                Kind { guarded: true, local: false } => ctx.execute_activity(Bureau::guarded, (), remote).await?,
                Kind { guarded: false, local: false } => ctx.execute_activity(Bureau::plain, (), remote).await?,
                Kind { guarded: true, local: true } => ctx.execute_local_activity(Bureau::guarded, (), local).await?,
                Kind { guarded: false, local: true } => ctx.execute_local_activity(Bureau::plain, (), local).await?,
            }
        }
        Ok(())
    }
}

/// A moment: allocations so far, and the time.
#[derive(Debug, Clone, Copy)]
struct Moment(usize, Instant);

impl Moment {
    fn now() -> Self {
        let stats = ALLOCATOR.stats();
        Self(stats.allocations + stats.reallocations, Instant::now())
    }

    fn since(self, earlier: Self) -> (usize, Duration) {
        (self.0 - earlier.0, self.1 - earlier.1)
    }
}

/// The difference between the outer and the inner interceptor, on the way in and on the way out.
#[derive(Debug, Default)]
struct Meter {
    inner: Mutex<Option<(Moment, Moment)>>,
    between: Mutex<Vec<(usize, Duration)>>,
}

struct Outer(Arc<Meter>);
struct Inner(Arc<Meter>);

impl ActivityInboundInterceptor for Outer {
    fn execute_activity<'a>(
        &'a self,
        input: ExecuteActivityInput,
        next: Next<'a, ExecuteActivityInput, ExecuteActivityOutput<'a>>,
    ) -> ExecuteActivityOutput<'a> {
        Box::pin(async move {
            let began = Moment::now();
            let result = next.run(input).await;
            let ended = Moment::now();
            let inner = self.0.inner.lock().expect("no panic while locked").take();
            let (entered, left) = inner.expect("the inner one was asked");
            let ((a, s), (b, t)) = (entered.since(began), ended.since(left));
            self.0.between.lock().expect("no panic while locked").push((a + b, s + t));
            result
        })
    }
}

impl ActivityInboundInterceptor for Inner {
    fn execute_activity<'a>(
        &'a self,
        input: ExecuteActivityInput,
        next: Next<'a, ExecuteActivityInput, ExecuteActivityOutput<'a>>,
    ) -> ExecuteActivityOutput<'a> {
        Box::pin(async move {
            let entered = Moment::now();
            let result = next.run(input).await;
            *self.0.inner.lock().expect("no panic while locked") = Some((entered, Moment::now()));
            result
        })
    }
}

/// The fewest allocations, and the shortest and the middle time.
async fn measured(server: &DevServer, name: &str, ours: bool, kind: Kind) -> anyhow::Result<(usize, [Duration; 2])> {
    let client = server.client().await?;
    let meter = Arc::new(Meter::default());
    meter.between.lock().expect("no panic while locked").reserve(2 * TIMES);
    let registry = CircuitRegistry::new(BreakersConfig::from_yaml(BREAKERS)?);
    let options = WorkerOptions::new(name).activity_inbound_interceptor(Outer(meter.clone()));
    let options = if ours { options.activity_inbound_interceptor(CircuitInterceptor::new(registry)) } else { options };
    let options = options
        .activity_inbound_interceptor(Inner(meter.clone()))
        .register_activities(Bureau)
        .register_workflow::<Asking>()?
        .build();
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let worker = Worker::new(&runtime, client.clone(), options)?;
    let starter = async {
        let options = WorkflowStartOptions::new(name, name).build();
        let handle = client.start_workflow(Asking::run, kind, options).await?;
        Ok(handle.get_result(WorkflowGetResultOptions::default()).await?)
    };
    while_running(worker, starter).await?;
    let mut between = meter.between.lock().expect("no panic while locked").clone();
    assert!(between.len() >= TIMES);
    let fewest = between.iter().map(|(allocations, _)| *allocations).min().unwrap_or_default();
    between.sort_by_key(|(_, time)| *time);
    Ok((fewest, [between[0].1, between[between.len() / 2].1]))
}

#[tokio::test]
async fn the_interceptor_allocates_at_most_twice() -> anyhow::Result<()> {
    let server = DevServer::start(DevServerOptions::default()).await?;
    for local in [false, true] {
        let pace = if local { "at once" } else { "now and then" };
        let plain = Kind { guarded: false, local };
        let (none, base) = measured(&server, &format!("without {local}"), false, plain).await?;
        for (name, guarded) in [("unguarded", false), ("guarded", true)] {
            let kind = Kind { guarded, local };
            let (with, time) = measured(&server, &format!("{name} {local}"), true, kind).await?;
            let [least, middle] = [0, 1].map(|at| time[at].saturating_sub(base[at]));
            println!("{name}, {pace}: {} allocations more, {least:?} at least, {middle:?} in the middle", with - none);
            // The SDK's own link in the chain of interceptors is one of them, the future that we must return the other.
            assert!(with - none <= 2, "{name}, {pace}: {with} allocations, and {none} without us");
        }
    }
    server.stop().await;
    Ok(())
}

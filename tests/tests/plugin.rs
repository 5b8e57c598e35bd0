//! The plugin in another project's worker on a real server. An open breaker stays open over a restart, from the first task on.
//! A plugin that is registered twice acts once.

#![cfg(feature = "temporal-plugin")]
#![allow(missing_docs, unreachable_pub, reason = "the SDK's macros make public items of their own")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use circuit_registry::{
    BreakersConfig, CircuitRegistry,
    store::MemoryStore,
    temporal::{Degradation, plugin},
};
use osint_tests::worker::while_running;
use osint_worker::dev::server::{DevServer, DevServerOptions};
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, WorkflowGetResultOptions, WorkflowStartOptions,
};
use temporalio_sdk::{
    ActivityOptions, Runtime, Worker, WorkerOptions, WorkflowContext, WorkflowResult,
    activities::{ActivityContext, ActivityError, activities},
};
use temporalio_workflow::{workflow, workflow_methods};

const QUEUE: &str = "plugin";

const BREAKERS: &str = "services: { bureau: { fail_max: 2, reset_timeout: 10m, activities: [bureau] } }";

pub struct Bureau(Arc<AtomicU32>);

#[activities]
impl Bureau {
    /// Fails, and knows nothing of breakers.
    #[activity(name = "bureau")]
    pub async fn bureau(self: Arc<Self>, _ctx: ActivityContext) -> Result<(), ActivityError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err(std::io::Error::other("no answer").into())
    }
}

#[workflow]
#[derive(Default)]
pub struct Asking;

#[workflow_methods]
impl Asking {
    /// Why there was no answer.
    #[run]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<String> {
        let options = ActivityOptions::with_close_timeouts(temporalio_sdk::ActivityCloseTimeouts::ScheduleToClose(
            Duration::from_secs(60),
        ));
        let Err(error) = ctx.execute_activity(Bureau::bureau, (), options.build()).await else {
            return Ok("answered".to_owned());
        };
        let degraded = Degradation::from_activity_error(&error);
        Ok(degraded.map_or_else(|| format!("lost: {error:?}"), |degraded| degraded.reason.as_str().to_owned()))
    }
}

/// Runs a worker once. Returns why there was no answer and how often the bureau was called.
async fn live(server: &DevServer, store: &MemoryStore, id: &str) -> anyhow::Result<(String, u32)> {
    let config = BreakersConfig::from_yaml(BREAKERS)?;
    let registry = CircuitRegistry::builder().config(config).store(store.clone()).build();
    let target = format!("http://{}", server.address()).parse::<reqwest::Url>()?;
    let connection = Connection::connect(ConnectionOptions::new(target).build()).await?;
    let options = ClientOptions::new("default").plugin(plugin(registry.clone())).build();
    let client = Client::new(connection, options)?;
    let asked = Arc::new(AtomicU32::new(0));
    let options = WorkerOptions::new(QUEUE)
        .worker_plugin(plugin(registry)) // by mistake: the client brings it already
        .register_activities(Bureau(asked.clone()))
        .register_workflow::<Asking>()?
        .build();
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let worker = Worker::new(&runtime, client.clone(), options)?;
    let starter = async {
        let handle = client.start_workflow(Asking::run, (), WorkflowStartOptions::new(QUEUE, id).build()).await?;
        Ok(handle.get_result(WorkflowGetResultOptions::default()).await?)
    };
    Ok((while_running(worker, starter).await?, asked.load(Ordering::Relaxed)))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_breaker_is_restored_before_the_first_task() -> anyhow::Result<()> {
    let server = DevServer::start(DevServerOptions::default()).await?;
    let store = MemoryStore::new();
    assert_eq!(live(&server, &store, "first").await?, ("open".to_owned(), 2), "two failures open it");
    assert_eq!(live(&server, &store, "second").await?, ("open".to_owned(), 0), "the next process knows");
    server.stop().await;
    Ok(())
}

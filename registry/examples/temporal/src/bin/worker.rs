//! The worker: `cargo run -p temporal-example --bin worker`, beside `temporal server start-dev`.

use std::{path::Path, time::Duration};

use circuit_registry::{
    BreakersConfig, CircuitRegistry,
    temporal::{CircuitInterceptor, CircuitWorkflowInterceptor},
};
use temporal_example::{QUEUE, Register, ReportWorkflow, connect};
use temporalio_sdk::{Runtime, Worker, WorkerOptions};
use tokio::time::Instant;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_env_filter("warn,circuit_registry=debug").init();
    let config = BreakersConfig::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("breakers.yaml"))?;
    let registry = CircuitRegistry::new(config);
    let down_until = Instant::now() + Duration::from_secs(15);

    let client = connect().await?;
    let options = WorkerOptions::new(QUEUE)
        .activity_inbound_interceptor(CircuitInterceptor::new(registry.clone()))
        .register_workflow_interceptors(vec![CircuitWorkflowInterceptor::new().constructor()])
        .register_activities(Register { registry, down_until })
        .register_workflow::<ReportWorkflow>()?
        .build();
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let mut worker = Worker::new(&runtime, client, options)?;
    let stop = worker.shutdown_handle();
    let (ran, interrupted) = tokio::join!(worker.run(), async {
        let interrupted = tokio::signal::ctrl_c().await;
        stop();
        interrupted
    });
    interrupted?;
    Ok(ran?)
}

//! Kills a worker during a billed call: nothing is charged twice. Needs the `temporal` program.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use osint_activities::model::{Finding, Status, Subject};
use osint_worker::{
    dev::{DevStack, server::DevServerOptions},
    error::CliError,
    report::Report,
    temporal::starter::Investigation,
};
use temporalio_client::{Client, NamespacedClient, tonic::IntoRequest};
use temporalio_common::protos::temporal::api::{
    common::v1::WorkflowExecution, workflowservice::v1::DescribeWorkflowExecutionRequest,
};
use tokio::time::Instant;

const QUEUE: &str = "killed";

/// A worker as a program of its own, killed when dropped.
struct Worker(Child);

impl Worker {
    fn start(stack: &DevStack) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_osint"));
        command.args(["worker", "--admin", "127.0.0.1:0", "--store", "memory", "--task-queue", QUEUE]);
        command.args(["--address", &stack.server.address()]).env_remove("RUST_LOG").env_remove("OSINT_CONFIG");
        command.envs(stack.simulator.env()).envs(stack.simulator.credentials());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("the program runs"))
    }
}

impl Drop for Worker {
    /// Sends SIGKILL: the worker cannot report anything any more.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The heartbeat details of an operation's attempts on the server.
async fn trace(client: &Client, id: &str, operation: &str) -> String {
    let request = DescribeWorkflowExecutionRequest {
        namespace: client.namespace(),
        execution: Some(WorkflowExecution { workflow_id: id.to_owned(), run_id: String::new() }),
    };
    let described = client.connection().workflow_service().describe_workflow_execution(request.into_request()).await;
    let pending = described.map(|described| described.into_inner().pending_activities).unwrap_or_default();
    let ours = pending.into_iter().filter(|it| it.activity_type.as_ref().is_some_and(|it| it.name == operation));
    let payloads = ours.filter_map(|activity| activity.heartbeat_details).flat_map(|it| it.payloads);
    payloads.map(|payload| String::from_utf8_lossy(&payload.data).into_owned()).collect::<Vec<_>>().join(" ")
}

fn of<'a>(report: &'a Report, source: &str) -> &'a Finding {
    report.findings.iter().find(|finding| finding.source == source).expect("a finding")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_billed_once_when_its_worker_is_killed() -> Result<(), CliError> {
    let stack = DevStack::start(DevServerOptions::default(), &[]).await?;
    let client = stack.server.client().await?;
    stack.simulator.set_fault("brightdata_enrichment", "hang@progress").await.map_err(CliError::failure)?;
    stack.simulator.set_fault("tavily", "hang").await.map_err(CliError::failure)?;

    let first = Worker::start(&stack);
    let subject =
        Subject { name: Some("Equinor ASA".to_owned()), ..Subject::new("NO".parse().map_err(CliError::user)?) };
    let investigation = Investigation::start(&client, QUEUE, subject).await?;
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        let job = trace(&client, investigation.id(), "brightdata_enrichment.company").await;
        let search = trace(&client, investigation.id(), "tavily.adverse_media").await;
        if job.contains("started") && search.contains("asking") {
            break;
        }
        assert!(Instant::now() < limit, "the attempts have left nothing but {job:?} and {search:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(first);
    stack.simulator.clear_all().await.map_err(CliError::failure)?;

    let _second = Worker::start(&stack);
    let report = investigation.report().await?;
    let collected = of(&report, "brightdata_enrichment");
    assert_eq!((collected.status, collected.attempts), (Status::Complete, 2), "{collected:?}");
    let given_up = of(&report, "tavily");
    assert_eq!((given_up.status, given_up.attempts), (Status::Degraded, 2), "{given_up:?}");
    assert!(given_up.reason.as_deref().is_some_and(|reason| reason.contains("charged")), "{given_up:?}");
    for (source, billed) in [("brightdata_enrichment", "trigger"), ("tavily", "search")] {
        let calls = stack.simulator.calls(source).map_err(CliError::failure)?;
        assert_eq!(calls.operations.get(billed), Some(&1), "{source}: {calls:?}");
    }
    stack.stop().await;
    Ok(())
}

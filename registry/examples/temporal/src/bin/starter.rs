//! The starter: `cargo run -p temporal-example --bin starter`, while the worker runs.

use temporal_example::{QUEUE, ReportWorkflow, connect};
use temporalio_client::{WorkflowGetResultOptions, WorkflowStartOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = connect().await?;
    let companies = ["Alpha AS", "Beta Oy", "urgent: Gamma SE"].map(str::to_owned).to_vec();
    let options = WorkflowStartOptions::new(QUEUE, format!("report-{}", std::process::id())).build();
    let handle = client.start_workflow(ReportWorkflow::run, companies, options).await?;
    for line in handle.get_result(WorkflowGetResultOptions::default()).await? {
        println!("{line}");
    }
    Ok(())
}

//! Runs a plain worker of the SDK while a test needs it.

use temporalio_sdk::Worker;

/// Runs a worker until `script` is done, well or not, then stops it.
///
/// # Errors
/// When the worker fails, or what the script returns.
pub async fn while_running<T>(
    mut worker: Worker,
    script: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let stop = worker.shutdown_handle();
    let script = async {
        let outcome = script.await;
        stop();
        outcome
    };
    let (ran, outcome) = tokio::join!(worker.run(), script);
    ran?;
    outcome
}

//! The signals that end a command.

use tokio::signal::unix::{SignalKind, signal};

use crate::error::CliError;

/// Resolves at the first SIGTERM or SIGINT (Ctrl-C).
///
/// # Errors
/// When the system refuses signal handlers.
pub async fn shutdown_signal() -> Result<(), CliError> {
    let refused = |error: std::io::Error| CliError::failure(format!("cannot listen for signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(refused)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(refused)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

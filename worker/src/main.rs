//! The command `osint`.

use std::process::ExitCode;

use clap::Parser;
use osint_worker::cli::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    match Cli::parse().run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => {
            eprintln!("{exit}");
            exit.into()
        }
    }
}

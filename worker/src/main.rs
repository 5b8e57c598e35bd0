//! The command `osint`.

use std::{io::Write, process::ExitCode};

use clap::Parser;
use osint_worker::cli::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    match Cli::parse().run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => {
            let _ = writeln!(std::io::stderr(), "{exit}");
            exit.into()
        }
    }
}

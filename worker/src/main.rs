//! The command `osint`.

use std::{io::Write, process::ExitCode};

use osint_worker::cli::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match cli.run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            error.into()
        }
    }
}

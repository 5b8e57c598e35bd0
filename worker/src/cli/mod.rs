//! The command `osint`. Each subcommand has a file with its arguments and the function that runs it.

mod admin_client;
mod breakers;
mod check;
mod demo;
mod dev;
mod effective;
mod find;
mod history;
mod investigate;
mod output;
mod progress;
mod report;
mod sources;
mod worker;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use circuit_registry::BreakersConfig;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::{
    admin::Token,
    error::CliError,
    report::neutral::escaped_json,
    telemetry::{LogFormat, init_log},
};

/// The thresholds that are built into this program.
const SHIPPED: &str = include_str!("../../../breakers.yaml");

/// The file that is read when none is named.
const DEFAULT_FILE: &str = "breakers.yaml";

/// Investigate companies across many registers, and keep going when some of them are down.
///
/// Every question to every source is a Temporal activity behind a circuit breaker. If a source is down, only its own
/// finding is missing: the report says what is missing and what that means.
#[derive(Debug, Parser)]
#[command(name = "osint", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "\
Try it without anything else running:
  osint demo                                    one source goes down; the report is still made
  osint dev --fault tavily=down                 server, simulated sources and worker, until Ctrl-C
  osint investigate --country NO --id 923609016 after that, in another terminal

Exit codes: 0 done, 1 a failure of the program or its environment, 2 your input needs a correction, 3 the report has a
gap (--fail-on gap), 4 a watch list names the company (--fail-on hit), 130 interrupted.")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// File with the breakers' thresholds; without one, ./breakers.yaml if there is one, else the shipped thresholds
    #[arg(long, global = true, value_name = "FILE", env = "OSINT_CONFIG")]
    config: Option<PathBuf>,
    /// Log more: -v for what the worker does, -vv for the Temporal SDK too. RUST_LOG overrides
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Format of the log on standard error
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    log: LogFormat,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Investigate a company while one source is down, on a Temporal server of its own
    Demo(demo::Demo),
    /// Run a Temporal server, simulated sources and a worker until Ctrl-C
    Dev(dev::Dev),
    /// Run a worker until SIGTERM or Ctrl-C
    Worker(worker::WorkerCommand),
    /// Investigate a company and print the report
    Investigate(investigate::Investigate),
    /// Print the report of an investigation that has ended, or what differs between two
    Report(report::ReportCommand),
    /// List investigations
    List(find::List),
    /// Print the report of an investigation as far as it is
    Show(find::Show),
    /// Follow an investigation that was started before
    Follow(find::Follow),
    /// End an investigation
    Cancel(find::Cancel),
    /// Create the search attributes that `list` needs on the Temporal server
    Setup(find::Setup),
    /// Show the breakers of a running worker
    Breakers(breakers::Breakers),
    /// List the sources, their operations, and what they need
    Sources(sources::Sources),
    /// Check a file of breakers and show its errors
    Check(check::Check),
    /// Export the history of a workflow
    #[command(subcommand)]
    History(history::History),
}

impl Cli {
    /// Reads the command line and the environment.
    ///
    /// # Errors
    /// When they cannot be used. The error names the flag, and the variable if the value came from there. A request for
    /// help is also an error.
    pub fn read(line: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches =
            command.try_get_matches_from_mut(line).map_err(|error| effective::name_variable(error, &command))?;
        let mut cli = Self::from_arg_matches(&matches)?;
        if let Command::Worker(worker) = &mut cli.command {
            worker.given = effective::given(&command, &matches, "worker");
        }
        Ok(cli)
    }

    /// Runs the command.
    ///
    /// # Errors
    /// When it fails. The error says why and what to do.
    pub async fn run(self) -> Result<(), CliError> {
        let level = match self.verbose {
            // The demo says itself what its breakers do.
            0 if matches!(self.command, Command::Demo(_)) => "error",
            0 => "error,circuit_registry=info",
            1 => "warn,circuit_registry=info,osint_worker=debug,osint_activities=debug",
            _ => "info,circuit_registry=debug,osint_worker=debug,osint_activities=debug",
        };
        init_log(level, self.log);
        let file = self.config.as_deref();
        match self.command {
            Command::Demo(command) => command.run().await,
            Command::Dev(command) => command.run(load(file)?).await,
            Command::Worker(command) => command.run(load(file)?).await,
            Command::Investigate(command) => command.run().await,
            Command::Report(command) => command.run().await,
            Command::List(command) => command.run().await,
            Command::Show(command) => command.run().await,
            Command::Follow(command) => command.run().await,
            Command::Cancel(command) => command.run().await,
            Command::Setup(command) => command.run().await,
            Command::Breakers(command) => command.run().await,
            Command::Sources(command) => command.run(),
            Command::Check(command) => command.run(file),
            Command::History(command) => command.run().await,
        }
    }
}

/// Thresholds, and the file to watch for changes.
#[derive(Debug)]
struct Thresholds {
    config: BreakersConfig,
    file: Option<PathBuf>,
}

/// The thresholds from the named file, from `./breakers.yaml`, or as shipped.
fn load(file: Option<&Path>) -> Result<Thresholds, CliError> {
    let default = Path::new(DEFAULT_FILE);
    match file {
        Some(file) => read(file),
        None if default.exists() => read(default),
        None => BreakersConfig::from_yaml(SHIPPED)
            .map(|config| Thresholds { config, file: None })
            .map_err(|error| CliError::failure(format!("the shipped thresholds: {error}"))),
    }
}

fn read(file: &Path) -> Result<Thresholds, CliError> {
    let config = BreakersConfig::load(file)
        .map_err(|error| CliError::user(error).hint("correct the file, and try it with `osint check FILE`"))?;
    Ok(Thresholds { config, file: Some(file.to_owned()) })
}

/// The token of the admin server, from `OSINT_ADMIN_TOKEN` or the file that `OSINT_ADMIN_TOKEN_FILE` names.
fn admin_token() -> Result<Option<Token>, CliError> {
    const VARIABLE: &str = "OSINT_ADMIN_TOKEN";
    const FILE: &str = "OSINT_ADMIN_TOKEN_FILE";
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (text, name) = match (set(VARIABLE), set(FILE)) {
        (Some(text), _) => (text, VARIABLE),
        (None, Some(file)) => {
            let read = std::fs::read_to_string(&file);
            (read.map_err(|error| CliError::user(format!("{FILE}: {file} cannot be read: {error}")))?, FILE)
        }
        (None, None) => return Ok(None),
    };
    text.parse().map(Some).map_err(|error| CliError::user(format!("{name}: {error}")))
}

/// Prints a document for programs.
fn print_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CliError::failure(format!("cannot write JSON: {error}")))?;
    print(&escaped_json(&text))
}

/// Prints to standard error. If standard error is closed, the text is lost and the command goes on.
fn say(text: std::fmt::Arguments<'_>) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints to standard output. A closed pipe (`| head`) is no error.
fn print(text: &str) -> Result<(), CliError> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") })
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CliError::failure(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_subcommand_and_argument_has_a_description() {
        fn check(command: &clap::Command, path: &str) {
            assert!(command.get_about().is_some(), "{path} has no description");
            for argument in command.get_arguments().filter(|argument| argument.get_id() != "help") {
                assert!(argument.get_help().is_some(), "{path} {} has no description", argument.get_id());
            }
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                check(sub, &format!("{path} {}", sub.get_name()));
            }
        }
        check(&Cli::command(), "osint");
    }

    #[test]
    fn the_shipped_thresholds_are_valid() {
        assert!(BreakersConfig::from_yaml(SHIPPED).is_ok());
    }
}

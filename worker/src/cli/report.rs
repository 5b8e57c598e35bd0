//! `osint report`: the report of an investigation that has ended, and the difference between two.

use std::io::stdout;

use clap::Args;

use super::output::{OutputArgs, width};
use crate::{
    error::CliError,
    report::{
        Paint, Report,
        again::{changes, page},
        neutral::escaped_json,
        page::text,
    },
    temporal::{
        connect::{Target, connect},
        starter::Investigation,
    },
};

/// Arguments of `osint report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osint report investigation-0123456789abcdef --format html -o report.html
  osint report --diff investigation-0123456789abcdef investigation-fedcba9876543210")]
pub(super) struct ReportCommand {
    /// Id of the investigation; with --diff, of the earlier and the later one
    #[arg(required = true, num_args = 1..=2, value_name = "ID")]
    ids: Vec<String>,
    /// Show what differs between two reports
    #[arg(long)]
    diff: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    target: Target,
}

impl ReportCommand {
    /// Prints the report, or the difference.
    pub(super) async fn run(self) -> Result<(), CliError> {
        self.output.check()?;
        let count = if self.diff { 2 } else { 1 };
        if self.ids.len() != count {
            return Err(CliError::user(if self.diff { "--diff needs two ids" } else { "two ids need --diff" }));
        }
        let client = connect(&self.target).await?;
        let mut reports = Vec::new();
        for id in &self.ids {
            reports.push(ended(&Investigation::existing(&client, id)).await?);
        }
        match reports.as_slice() {
            [before, after] => difference(before, after, self.output.is_json()),
            [report] => self.output.write(report),
            _ => Ok(()),
        }
    }
}

/// The report of an investigation, which must have ended.
pub(super) async fn ended(investigation: &Investigation) -> Result<Report, CliError> {
    let id = investigation.id();
    investigation.report_if_ended().await?.ok_or_else(|| {
        CliError::user(format!("investigation {id} has not ended yet"))
            .hint(format!("`osint follow {id}` waits for it, `osint show {id}` shows what is known so far"))
    })
}

/// Prints what differs between two reports.
pub(super) fn difference(before: &Report, after: &Report, json: bool) -> Result<(), CliError> {
    if json {
        let document = serde_json::to_string_pretty(&changes(before, after));
        let document = document.map_err(|error| CliError::failure(format!("cannot write JSON: {error}")))?;
        return super::print(&escaped_json(&document));
    }
    super::print(&text(&page(before, after), Paint::of(&stdout()), width()))
}

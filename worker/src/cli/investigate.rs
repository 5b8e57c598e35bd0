//! `osint investigate`: one company, one report.

use std::io::stderr;

use clap::Args;
use osint_activities::{
    identifiers::IdentifierError,
    model::{Subject, SubjectError},
};

use super::say;
use crate::{
    error::CliError,
    report::{Paint, step, warnings},
    run::TASK_QUEUE,
    temporal::{
        connect::{Target, connect},
        starter::{Investigation, require_worker},
    },
    workflow::admit,
};

/// Arguments of `osint investigate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Progress goes to standard error, the report to standard output.

Examples:
  osint investigate --country NO --id 923609016 --name 'Equinor ASA'
  osint investigate --country CZ --id 00177041 --json | jq .coverage.statement")]
pub(super) struct Investigate {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Print the report as one JSON document
    #[arg(long)]
    json: bool,
    /// Queue that the workers take tasks from
    #[arg(long, value_name = "NAME", default_value = TASK_QUEUE, env = "OSINT_TASK_QUEUE")]
    task_queue: String,
    #[command(flatten)]
    target: Target,
}

/// The company that an investigation is about.
#[derive(Debug, Args)]
#[command(next_help_heading = "Subject")]
pub(super) struct SubjectArgs {
    /// Home country of the company, as a two-letter code
    #[arg(long, value_name = "CODE")]
    country: String,
    /// Number in the home register (orgnr, IČO, Y-tunnus, SIREN …)
    #[arg(long, value_name = "NUMBER")]
    id: Option<String>,
    /// Registered name; watch lists and the press are asked by name
    #[arg(long)]
    name: Option<String>,
    /// Legal entity identifier
    #[arg(long)]
    lei: Option<String>,
    /// VAT number with its country prefix
    #[arg(long)]
    vat: Option<String>,
    /// Postal address on one line
    #[arg(long, value_name = "ADDRESS")]
    postal_address: Option<String>,
    /// Website
    #[arg(long, value_name = "URL")]
    website: Option<String>,
    /// Person who acts for the company; may be given several times
    #[arg(long = "person", value_name = "NAME")]
    persons: Vec<String>,
    /// Accept a number with wrong check digits, if the investigation asks the register that issues such numbers
    #[arg(long)]
    as_written: bool,
}

impl SubjectArgs {
    /// The subject in the form in which sources are asked about it.
    fn subject(self) -> Result<Subject, CliError> {
        let country = self.country.parse().map_err(CliError::user)?;
        let Self { id, name, lei, vat, postal_address: address, website, persons, as_written, .. } = self;
        let subject = Subject { id, name, lei, vat, address, website, persons, as_written, ..Subject::new(country) };
        let subject = admit(subject).map_err(|error| {
            let mistyped = matches!(error, SubjectError::Identifier(IdentifierError::Checksum { .. }));
            let insist = if mistyped && !as_written { "; if the number is right, add --as-written" } else { "" };
            CliError::user(error).hint(format!("see `osint investigate --help` for what to give{insist}"))
        })?;
        warnings(&subject).iter().for_each(|warning| say(format_args!("warning: {warning}")));
        Ok(subject)
    }
}

impl Investigate {
    /// Starts an investigation, shows its progress and prints its report.
    pub(super) async fn run(self) -> Result<(), CliError> {
        let subject = self.subject.subject()?;
        let client = connect(&self.target).await?;
        require_worker(&client, &self.task_queue).await?;
        let investigation = Investigation::start(&client, &self.task_queue, subject).await?;
        let paint = Paint::of(&stderr());
        say(format_args!("investigation {}", investigation.id()));
        let report = investigation.follow(|each| say(format_args!("{}", step(each, paint, 100)))).await?;
        super::print_report(&report, self.json)
    }
}

//! `osint investigate`: one company, one report.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use osint_activities::{
    catalog,
    identifiers::IdentifierError,
    model::{Subject, SubjectError},
};
use temporalio_client::Client;
use tokio::time::{sleep, timeout};

use super::{find::Age, output::OutputArgs, progress::Progress, report, say};
use crate::{
    error::CliError,
    report::{Report, again::carried, warnings},
    run::{TASK_QUEUE, shutdown_signal},
    temporal::{
        connect::{Target, connect},
        starter::{Investigation, require_worker},
    },
    workflow::{InvestigationInput, admit},
};

/// Most bytes of one text about a subject. No register has a longer name.
const TEXT: usize = 1_000;

/// Time for a second Ctrl-C, which cancels.
const SECOND: Duration = Duration::from_secs(3);

/// Time for a worker to end a cancelled investigation.
const CANCELLATION: Duration = Duration::from_secs(8);

/// Arguments of `osint investigate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Progress goes to standard error, the report to standard output. Ctrl-C ends the command; the investigation goes on.

Examples:
  osint investigate --country NO --id 923609016 --name 'Equinor ASA'
  osint investigate --country CZ --id 00177041 --json | jq .coverage.statement
  osint investigate --country NO --id 923609016 --format html -o report.html --fail-on hit
  osint investigate --again investigation-0123456789abcdef")]
pub(super) struct Investigate {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Ask again what an earlier investigation lacks, and show the difference. What was paid for is never asked again
    #[arg(long, value_name = "ID", conflicts_with_all = ["country", "id", "name", "lei", "vat", "postal_address", "website", "persons", "as_written"])]
    again: Option<String>,
    /// With --again, ask again what is older than this, too
    #[arg(long, value_name = "TIME", default_value = "24h", requires = "again")]
    older_than: Age,
    #[command(flatten)]
    output: OutputArgs,
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
    #[arg(long, value_name = "CODE", required_unless_present = "again")]
    country: Option<String>,
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
        let country = self.country.unwrap_or_default().parse().map_err(CliError::user)?;
        let Self { id, name, lei, vat, postal_address: address, website, persons, as_written, .. } = self;
        let texts = [&id, &name, &lei, &vat, &address, &website].into_iter().flatten().chain(&persons);
        if let Some(long) = texts.map(String::len).find(|length| *length > TEXT) {
            return Err(CliError::user(format!("a value about the subject has {long} bytes, the most is {TEXT}")));
        }
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
        self.output.check()?;
        let Some(earlier) = &self.again else {
            let subject = self.subject.subject()?;
            let client = connect(&self.target).await?;
            let report = start_and_follow(&client, &self.task_queue, subject.into()).await?;
            return self.output.write(&report);
        };
        let client = connect(&self.target).await?;
        let before = report::ended(&Investigation::existing(&client, earlier)).await?;
        let billed = |name: &str| catalog::operation(name).is_some_and(|entry| entry.operation.billed);
        let earlier = carried(&before, self.older_than.0, Timestamp::now(), billed);
        say(format_args!("{} answers of {} are taken over", earlier.len(), before.investigation_id));
        let input = InvestigationInput { subject: before.subject.clone(), earlier };
        let after = start_and_follow(&client, &self.task_queue, input).await?;
        if !self.output.is_json() {
            report::difference(&before, &after, false)?;
            super::print("\n")?;
        }
        self.output.write(&after)
    }
}

async fn start_and_follow(client: &Client, task_queue: &str, input: InvestigationInput) -> Result<Report, CliError> {
    require_worker(client, task_queue).await?;
    let (investigation, refused) = Investigation::start_findable(client, task_queue, input).await?;
    if let Some(refused) = refused {
        say(format_args!("note: `osint list` cannot filter by verdict here. {refused}"));
    }
    say(format_args!("investigation {}", investigation.id()));
    follow(&investigation).await
}

/// Shows the progress of an investigation and waits for its report. Ctrl-C ends the waiting; a second one cancels.
pub(super) async fn follow(investigation: &Investigation) -> Result<Report, CliError> {
    let mut progress = Progress::new();
    let outcome = tokio::select! {
        report = investigation.follow(|steps| progress.show(steps)) => Some(report),
        signal = shutdown_signal() => signal.map(|()| None)?,
    };
    progress.clear();
    if let Some(report) = outcome {
        return report;
    }
    let id = investigation.id();
    say(format_args!(
        "\ninvestigation {id} goes on. `osint follow {id}` shows it, `osint cancel {id}` ends it.\n\
         Ctrl-C again within {} s cancels it.",
        SECOND.as_secs()
    ));
    tokio::select! {
        () = sleep(SECOND) => {}
        signal = shutdown_signal() => {
            signal?;
            investigation.cancel().await?;
            wait_for_cancellation(investigation).await?;
        }
    }
    Err(CliError::interrupted())
}

/// Waits until a worker has ended a cancelled investigation.
pub(super) async fn wait_for_cancellation(investigation: &Investigation) -> Result<(), CliError> {
    let id = investigation.id();
    let ended = async {
        while investigation.status().await? == "running" {
            sleep(Duration::from_millis(100)).await;
        }
        investigation.status().await
    };
    match timeout(CANCELLATION, ended).await {
        Ok(status) => {
            say(format_args!("investigation {id} is {}; `osint report {id}` shows what was learnt", status?));
            Ok(())
        }
        Err(_) => {
            Err(CliError::failure(format!("investigation {id} is to be cancelled, but no worker has done it yet"))
                .hint(format!("`osint cancel {id} --force` ends it without one")))
        }
    }
}

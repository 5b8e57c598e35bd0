//! `osint list`, `show`, `follow`, `cancel` and `setup`: investigations that were started before.

use std::{str::FromStr, time::Duration};

use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};

use super::{investigate, output::OutputArgs, say};
use crate::{
    error::CliError,
    report::{
        Paint,
        neutral::clipped,
        page::{Cell, wrap},
    },
    temporal::{
        attributes,
        connect::{Target, connect},
        find::{Filter, Row, list},
        starter::Investigation,
    },
};

/// A time span as typed: `90s`, `30m`, `12h`, `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Age(pub(super) Duration);

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a time span is a number with s, m, h or d, such as 12h".to_owned();
        let unit = text.chars().last().ok_or_else(wrong)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        let count: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
        // A thousand years is more than any server remembers.
        let span = count.checked_mul(seconds).filter(|span| *span <= 86_400 * 365_000).ok_or_else(wrong)?;
        Ok(Self(Duration::from_secs(span)))
    }
}

/// How far an investigation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Status {
    Running,
    Completed,
    Cancelled,
    Failed,
    Terminated,
    TimedOut,
}

/// A verdict to search for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Verdict {
    Complete,
    #[value(name = "complete-as-far-as-it-applies")]
    AsFarAsItApplies,
    Partial,
}

/// Arguments of `osint list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Subjects are shown only if the key that encrypted them is there (OSINT_CODEC_KEY).

Examples:
  osint list --since 7d --verdict partial
  osint list --degraded-by northdata")]
pub(super) struct List {
    /// Only those started within this time, such as 30m, 12h or 7d
    #[arg(long, value_name = "TIME")]
    since: Option<Age>,
    /// Only those that are so far
    #[arg(long, value_enum)]
    status: Option<Status>,
    /// Only those with this verdict
    #[arg(long, value_enum)]
    verdict: Option<Verdict>,
    /// Only those in which this source gave no full answer
    #[arg(long, value_name = "SOURCE")]
    degraded_by: Option<String>,
    /// Most investigations to list
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    limit: usize,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

impl List {
    /// Lists investigations, newest first.
    pub(super) async fn run(self) -> Result<(), CliError> {
        let ago = |Age(age): Age| Timestamp::now().checked_sub(SignedDuration::try_from(age).unwrap_or_default()).ok();
        let filter = Filter {
            since: self.since.and_then(ago),
            status: self.status.map(|status| match status {
                Status::Running => "Running",
                Status::Completed => "Completed",
                Status::Cancelled => "Canceled",
                Status::Failed => "Failed",
                Status::Terminated => "Terminated",
                Status::TimedOut => "TimedOut",
            }),
            verdict: self.verdict.map(|verdict| match verdict {
                Verdict::Complete => "complete",
                Verdict::AsFarAsItApplies => "complete_as_far_as_it_applies",
                Verdict::Partial => "partial",
            }),
            degraded_by: self.degraded_by,
            limit: self.limit,
        };
        let client = connect(&self.target).await?;
        let rows = list(&client, &filter).await?;
        if self.json {
            return super::print_json(&rows);
        }
        if rows.is_empty() {
            say(format_args!("no investigation matches"));
            return Ok(());
        }
        super::print(&table(&rows, Paint::of(&std::io::stdout()), super::output::width()))
    }
}

/// Two lines an investigation: the id with how far it is, then what it is about.
fn table(rows: &[Row], paint: Paint, width: usize) -> String {
    let mut out = String::new();
    for row in rows {
        let started = row.started_at.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default();
        let verdict = row.verdict.as_deref().filter(|_| row.status == "completed").map(|word| word.replace('_', " "));
        let word = Cell::plain(verdict.as_deref().unwrap_or(row.status));
        out.push_str(&format!(
            "{}  {}  {}\n",
            paint.bold(Cell::plain(&row.id).text()),
            paint.dim(&started),
            word.text()
        ));
        let subject = row.subject.as_ref().map(|subject| {
            let name =
                subject.name.as_deref().or(subject.lei.as_deref()).or(subject.vat.as_deref()).unwrap_or_default();
            format!("{} {} {name}", subject.country, subject.id.as_deref().unwrap_or_default())
        });
        let degraded =
            (!row.degraded_by.is_empty()).then(|| format!("no full answer from {}", row.degraded_by.join(", ")));
        for text in [subject, degraded].into_iter().flatten() {
            wrap(&clipped(&text, 400), width - 4).iter().for_each(|line| out.push_str(&format!("    {line}\n")));
        }
    }
    out
}

/// Arguments of `osint show`.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// Id of the investigation
    id: String,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    target: Target,
}

impl Show {
    /// Prints the report, or the report so far.
    pub(super) async fn run(self) -> Result<(), CliError> {
        self.output.check()?;
        let client = connect(&self.target).await?;
        let investigation = Investigation::existing(&client, &self.id);
        let report = match investigation.report_if_ended().await? {
            Some(report) => report,
            None => {
                let so_far = investigation.report_so_far().await?;
                say(format_args!("investigation {} is under way; this is what is known so far", self.id));
                so_far
            }
        };
        self.output.write(&report)
    }
}

/// Arguments of `osint follow`.
#[derive(Debug, Args)]
pub(super) struct Follow {
    /// Id of the investigation
    id: String,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    target: Target,
}

impl Follow {
    /// Shows the progress, then the report.
    pub(super) async fn run(self) -> Result<(), CliError> {
        self.output.check()?;
        let client = connect(&self.target).await?;
        let report = investigate::follow(&Investigation::existing(&client, &self.id)).await?;
        self.output.write(&report)
    }
}

/// Arguments of `osint cancel`.
#[derive(Debug, Args)]
pub(super) struct Cancel {
    /// Id of the investigation
    id: String,
    /// End it at once and without a report, also if no worker is there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    target: Target,
}

impl Cancel {
    /// Ends the investigation.
    pub(super) async fn run(self) -> Result<(), CliError> {
        let client = connect(&self.target).await?;
        let investigation = Investigation::existing(&client, &self.id);
        let status = investigation.status().await?;
        if status != "running" {
            return Err(CliError::user(format!("investigation {} is {status} already", self.id))
                .hint(format!("`osint report {}` shows its report, if there is one", self.id)));
        }
        if self.force {
            investigation.terminate().await?;
            say(format_args!("investigation {} was ended without a report", self.id));
            return Ok(());
        }
        investigation.cancel().await?;
        investigate::wait_for_cancellation(&investigation).await
    }
}

/// Arguments of `osint setup`.
#[derive(Debug, Args)]
pub(super) struct Setup {
    #[command(flatten)]
    target: Target,
}

impl Setup {
    /// Creates what the server needs for `osint list`.
    pub(super) async fn run(self) -> Result<(), CliError> {
        let client = connect(&self.target).await?;
        match attributes::ensure(&client).await?.as_slice() {
            [] => say(format_args!("the search attributes are there")),
            created => say(format_args!("created the search attributes {}", created.join(" and "))),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_span_has_a_unit() {
        let seconds = |text: &str| text.parse::<Age>().map(|Age(age)| age.as_secs());
        assert_eq!((seconds("90s"), seconds("30m"), seconds("7d")), (Ok(90), Ok(1_800), Ok(604_800)));
        for text in ["", "7", "d", "-1h", "1.5h", "7 d", "9999999999999d", "1é"] {
            assert!(text.parse::<Age>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_list_fits_the_terminal_and_is_harmless() {
        let row = Row {
            id: "investigation-0123456789abcdef".into(),
            started_at: Some(Timestamp::UNIX_EPOCH),
            ended_at: None,
            status: "completed",
            verdict: Some("complete_as_far_as_it_applies".into()),
            degraded_by: vec!["northdata".into(); 12],
            subject: Some(osint_activities::model::Subject {
                name: Some("Evil\u{1b}[2J\nCompany".into()),
                ..osint_activities::model::Subject::new("NO".parse().expect("a country"))
            }),
        };
        let text = table(&[row], Paint::PLAIN, 80);
        assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("complete as far as it applies") && text.contains("no full answer from northdata"));
    }
}

//! `osint demo`: the story of an outage. It starts all it needs, tells what happens, and ends it.

use std::{collections::BTreeSet, io::stderr, path::PathBuf, slice, time::Duration};

use circuit_registry::{BreakersConfig, CircuitRegistry, State};
use clap::Args;
use jiff::Timestamp;
use osint_activities::{catalog, model::Subject};
use temporalio_client::Client;
use tokio::time::{Instant, sleep, timeout};

use super::{
    output::{Format, save, set},
    progress::Progress,
    say,
};
use crate::{
    dev::{DevStack, FaultArg, server::DevServerOptions},
    error::CliError,
    report::{
        Paint, Report,
        again::carried,
        page::{Block, Tone, compose, text},
    },
    run::{Settings, TASK_QUEUE, run_until, shutdown_signal},
    temporal::{codec::Codec, starter::Investigation},
    workflow::{InvestigationInput, plan},
};

/// The demo's own thresholds: a breaker opens fast and probes soon, and no limit of ours slows the demo down.
const BREAKERS: &str = "defaults: { fail_max: 2, reset_timeout: 6s, timeout: 2s }";

/// The same, but every breaker only counts. That is how a program without breakers behaves.
const WITHOUT: &str = "defaults: { fail_max: 2, reset_timeout: 6s, timeout: 2s, mode: observe }";

/// Investigations while the source is down, with breakers and without. The fastest counts, because other load can only make
/// one slower.
const RUNS: usize = 2;

/// Runs that a breaker may take to open. A question has three attempts, but they may end early.
const UNTIL_OPEN: usize = 3;

/// Time for a source that is back to be asked again.
const RECOVERY: Duration = Duration::from_secs(10);

/// How much longer an investigation may take while a source is down, once its breaker is open.
const ALLOWED: f64 = 1.2;

/// Facts of the company that the demo shows.
const FACTS: usize = 6;

/// Arguments of `osint demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs no Temporal server, no accounts and no internet: the demo runs its own dev server, simulated sources and worker.")]
pub(super) struct Demo {
    /// Print only the report of the run with the source down, as one JSON document
    #[arg(long)]
    json: bool,
    /// Which source goes down, and how
    #[arg(long, value_name = "SOURCE=FAULT", default_value = "tavily=hang")]
    fault: FaultArg,
    /// Write the last report as HTML and open it in the browser
    #[arg(long, conflicts_with = "json")]
    open: bool,
}

/// What several investigations cost: the time of the fastest, and the calls to the source that is down.
struct Cost {
    fastest: Duration,
    calls: u64,
}

/// What the demo measured.
struct Outcome {
    healthy: Duration,
    with: Cost,
    without: Cost,
    degraded: Report,
    whole: Report,
}

/// The parts that the story needs.
struct Stage<'a> {
    stack: &'a DevStack,
    client: &'a Client,
    registry: &'a CircuitRegistry,
    breaker: &'a str,
    paint: Paint,
}

impl Demo {
    /// Runs the demo from start to end.
    pub(super) async fn run(self) -> Result<(), CliError> {
        let began = Instant::now();
        let breaker = self.breaker()?;
        say(format_args!("starting a Temporal server, simulated sources and a worker …"));
        let server = DevServerOptions { converter: Codec::from_env()?.converter(), ..DevServerOptions::default() };
        let stack = tokio::select! {
            stack = DevStack::start(server, slice::from_ref(&self.fault)) => stack?,
            signal = shutdown_signal() => return signal.and(Err(CliError::interrupted())),
        };
        let outcome = self.investigate(&stack, &breaker).await;
        stack.stop().await;
        let outcome = outcome?;
        let numbers = self.numbers(&outcome);
        if self.json {
            say(format_args!("\n{numbers}"));
            super::print(&set(&outcome.degraded, Format::Json, Paint::PLAIN, 100)?)?;
        } else {
            super::print(&format!("\n{numbers}{}", self.next()))?;
        }
        if self.open {
            open(&outcome.whole)?;
        }
        say(format_args!("done in {:.1} s; nothing is left running", began.elapsed().as_secs_f64()));
        Ok(())
    }

    /// The breaker of the source that goes down. The demo must ask this source about its company.
    fn breaker(&self) -> Result<String, CliError> {
        let questions = plan(equinor(), catalog::operations()).questions;
        let asked = questions.iter().find(|question| question.source == self.fault.source);
        asked.map(|question| question.breaker.clone()).ok_or_else(|| {
            let names: BTreeSet<_> = questions.into_iter().map(|question| question.source).collect();
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            CliError::user(format!("no source '{}' is asked about the company of the demo", self.fault.source))
                .hint(format!("one of {names}"))
        })
    }

    async fn investigate(&self, stack: &DevStack, breaker: &str) -> Result<Outcome, CliError> {
        let registry = CircuitRegistry::new(config(BREAKERS)?);
        let activities = stack.activities(&registry)?;
        let client = stack.server.client().await?;
        let script = async |_admin| {
            let stage = Stage { stack, client: &client, registry: &registry, breaker, paint: Paint::of(&stderr()) };
            tokio::select! {
                outcome = self.script(&stage) => outcome,
                signal = shutdown_signal() => signal.and(Err(CliError::interrupted())),
            }
        };
        run_until(client.clone(), registry.clone(), activities, Settings::default(), script).await
    }

    async fn script(&self, stage: &Stage<'_>) -> Result<Outcome, CliError> {
        let FaultArg { source, fault } = &self.fault;
        let simulator = &stage.stack.simulator;
        // The start set the fault only to check that it exists.
        simulator.clear(source).await.map_err(CliError::failure)?;
        stage.title("1  every source is healthy");
        let (report, first) = stage.investigate(equinor().into()).await?;
        stage.show(&report);
        let healthy = stage.investigate(equinor().into()).await?.1.min(first);

        stage.title(&format!("2  {source} is {fault}: its breaker opens"));
        simulator.set_fault(source, fault).await.map_err(CliError::user)?;
        for _ in 0..UNTIL_OPEN {
            let (report, _) = stage.investigate(equinor().into()).await?;
            stage.gaps(&report, source);
            if stage.is_open() {
                break;
            }
        }
        if !stage.is_open() {
            let text = format!("the breaker of {source} has not opened: '{fault}' is no outage");
            say(format_args!("  {}", stage.paint.dim(&text)));
        }

        stage.title("3  the next investigation is on time, and names its gap");
        let (degraded, with) = stage.several(source).await?;
        say(format_args!("  {} ms, healthy {} ms", with.fastest.as_millis(), healthy.as_millis()));
        stage.gaps(&degraded, source);

        stage.title(&format!("4  {source} recovers: one probe, and the breaker closes"));
        simulator.clear(source).await.map_err(CliError::failure)?;
        let whole = stage.again(&degraded).await?;
        stage.title("5  the report is whole");
        stage.show(&whole);

        // The same outage once more, for the numbers.
        simulator.set_fault(source, fault).await.map_err(CliError::user)?;
        stage.registry.apply(config(WITHOUT)?);
        let (_, without) = stage.several(source).await?;
        Ok(Outcome { healthy, with, without, degraded, whole })
    }

    fn numbers(&self, outcome: &Outcome) -> String {
        let Outcome { healthy, with, without, .. } = outcome;
        let ratio = with.fastest.as_secs_f64() / healthy.as_secs_f64();
        let judged = if ratio <= ALLOWED { "within" } else { "above" };
        let source = &self.fault.source;
        let ms = |time: &Duration| format!("{} ms", time.as_millis());
        format!(
            "The numbers ({RUNS} investigations of each kind, the fastest counts)\n\
             \x20                       healthy     {source} down   down, without breakers\n\
             \x20 time of a report      {:<11} {:<13} {}\n\
             \x20 calls to {source:<12} {:<11} {:<13} {}\n\
             \x20 ratio {ratio:.2}, {judged} the {ALLOWED} allowed\n",
            ms(healthy),
            ms(&with.fastest),
            ms(&without.fastest),
            "",
            with.calls,
            without.calls
        )
    }

    fn next(&self) -> String {
        "\nTry next\n  osint demo --open                        the report as a page in the browser\n\
         \x20 osint demo --fault opensanctions=down    a company that was not screened\n\
         \x20 osint dev                                all of it until Ctrl-C, for your own investigations\n"
            .to_owned()
    }
}

impl Stage<'_> {
    fn title(&self, text: &str) {
        say(format_args!("\n{}", self.paint.bold(text)));
    }

    /// One investigation with its progress, and the time it took.
    async fn investigate(&self, input: InvestigationInput) -> Result<(Report, Duration), CliError> {
        let began = Instant::now();
        let investigation = Investigation::start(self.client, TASK_QUEUE, input).await?;
        let mut progress = Progress::in_place();
        let report = investigation.follow(|steps| progress.show(steps)).await;
        progress.clear();
        Ok((report?, began.elapsed()))
    }

    /// Several investigations one after the other: the first report, and what they cost.
    async fn several(&self, source: &str) -> Result<(Report, Cost), CliError> {
        let calls = || self.stack.simulator.calls(source).map(|calls| calls.total).map_err(CliError::failure);
        let before = calls()?;
        let (report, mut fastest) = self.investigate(equinor().into()).await?;
        for _ in 1..RUNS {
            fastest = fastest.min(self.investigate(equinor().into()).await?.1);
        }
        Ok((report, Cost { fastest, calls: calls()? - before }))
    }

    /// Asks again only for what is missing, as soon as the breaker lets a probe through.
    async fn again(&self, degraded: &Report) -> Result<Report, CliError> {
        let probed = async {
            loop {
                let earlier = carried(degraded, Duration::from_secs(3600), Timestamp::now(), |_| false);
                let taken_over = earlier.len();
                let input = InvestigationInput { subject: degraded.subject.clone(), earlier };
                let waits = self.views().filter_map(|view| view.retry_in).max();
                if let Some(wait) = waits {
                    say(format_args!("  next probe in {:.0} s", wait.as_secs_f64().ceil()));
                    sleep(wait).await;
                }
                let (report, _) = self.investigate(input).await?;
                if report.coverage.gaps.is_empty() || waits.is_none() {
                    let state = if self.is_open() { "open" } else { "closed" };
                    say(format_args!(
                        "  {taken_over} answers were taken over, the rest was asked; the breaker is {state}"
                    ));
                    return Ok(report);
                }
            }
        };
        timeout(RECOVERY, probed).await.map_err(|_| CliError::failure("the source has not recovered in time"))?
    }

    fn views(&self) -> impl Iterator<Item = circuit_registry::BreakerView> {
        self.registry.views().into_iter().filter(|view| part_of(&view.service, self.breaker))
    }

    fn is_open(&self) -> bool {
        self.views().any(|view| view.state != State::Closed)
    }

    /// The summary of a report and its first facts.
    fn show(&self, report: &Report) {
        let mut page = compose(report);
        page.sections.truncate(1);
        for block in page.sections.iter_mut().flat_map(|section| &mut section.blocks) {
            if let Block::Facts(facts) = block {
                facts.truncate(FACTS);
            }
        }
        say(format_args!("{}", text(&page, self.paint, super::output::width()).trim_end()));
    }

    /// The gaps that a source left.
    fn gaps(&self, report: &Report, source: &str) {
        for finding in report.findings.iter().filter(|finding| finding.source == source) {
            let reason = finding.reason.as_deref().unwrap_or("without a reason");
            let line = format!("  {}  {}: {reason}", finding.operation, finding.status);
            say(format_args!("{}", if finding.status.is_gap() { self.paint.tone(Tone::Bad, &line) } else { line }));
        }
    }
}

fn config(yaml: &str) -> Result<BreakersConfig, CliError> {
    BreakersConfig::from_yaml(yaml).map_err(|error| CliError::failure(format!("the thresholds of the demo: {error}")))
}

/// True for the breaker itself and for those of its parts, such as `vies:DE` of `vies`.
fn part_of(service: &str, breaker: &str) -> bool {
    service.split_once(':').map_or(service, |(whole, _)| whole) == breaker
}

/// A large listed company. Its facts are public, and every kind of source has an answer.
fn equinor() -> Subject {
    Subject {
        id: Some("923609016".to_owned()),
        name: Some("Equinor ASA".to_owned()),
        address: Some("Forusbeen 50, 4035 Stavanger".to_owned()),
        ..Subject::new(osint_activities::model::Country::new("NO"))
    }
}

/// Writes the report as HTML into the folder for temporary files, and opens it.
fn open(report: &Report) -> Result<(), CliError> {
    let file: PathBuf = std::env::temp_dir().join(format!("{}.html", report.investigation_id));
    save(&file, &set(report, Format::Html, Paint::PLAIN, 100)?)?;
    say(format_args!("the report is in {}", file.display()));
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let null = std::process::Stdio::null;
    let opened = std::process::Command::new(program).arg(&file).stdin(null()).stdout(null()).stderr(null()).spawn();
    if opened.is_err() {
        say(format_args!("no browser could be opened: there is no {program}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demos_thresholds_are_valid() {
        assert!(config(BREAKERS).is_ok() && config(WITHOUT).is_ok());
    }
}

//! `osint demo`: what a source that is down costs an investigation. It starts all it needs, and ends it.

use std::{
    collections::BTreeSet,
    io::{stderr, stdout},
    slice,
    time::Duration,
};

use circuit_registry::{BreakersConfig, CircuitRegistry, State};
use clap::Args;
use osint_activities::{catalog, model::Subject};
use temporalio_client::Client;
use tokio::time::{Instant, sleep};

use super::{
    output::{Format, set, width},
    progress::Progress,
    say,
};
use crate::{
    dev::{DevStack, FaultArg, server::DevServerOptions},
    error::CliError,
    report::{Paint, Report},
    run::{Settings, TASK_QUEUE, run_until, shutdown_signal},
    temporal::{codec::Codec, starter::Investigation},
    workflow::plan,
};

/// Timed runs of each kind. The fastest is reported, because other load can only make a run slower.
const TIMED: usize = 3;

/// Runs that a breaker may take to open. A question has three attempts, but they may end early. Five runs give at least one
/// failure each for `fail_max: 5`.
const UNTIL_OPEN: usize = 5;

/// Pause before each run. Some sources allow one request a second; without a pause, the runs would measure that limit.
const PAUSE: Duration = Duration::from_millis(1_050);

/// How much longer an investigation may take while a source is down, once its breaker is open.
const ALLOWED: f64 = 1.2;

/// Arguments of `osint demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs no Temporal server, no accounts and no internet: the demo runs its own dev server, simulated sources and worker. Progress goes to standard error, the result to standard output.")]
pub(super) struct Demo {
    /// Print only the report of the run with the source down, as one JSON document
    #[arg(long)]
    json: bool,
    /// Which source goes down, and how
    #[arg(long, value_name = "SOURCE=FAULT", default_value = "tavily=down")]
    fault: FaultArg,
}

/// What the demo measured.
struct Outcome {
    healthy: Duration,
    outage: Duration,
    report: Report,
}

impl Demo {
    /// Runs the demo from start to end.
    pub(super) async fn run(self, breakers: BreakersConfig) -> Result<(), CliError> {
        let began = Instant::now();
        let breaker = self.breaker()?;
        say(format_args!("starting a Temporal server, simulated sources and a worker …"));
        let server = DevServerOptions { converter: Codec::from_env()?.converter(), ..DevServerOptions::default() };
        let stack = tokio::select! {
            stack = DevStack::start(server, slice::from_ref(&self.fault)) => stack?,
            signal = shutdown_signal() => return signal.and(Err(CliError::interrupted())),
        };
        let outcome = self.investigate(&stack, &breaker, breakers).await;
        stack.stop().await;
        let Outcome { healthy, outage, report } = outcome?;
        let format = if self.json { Format::Json } else { Format::Table };
        super::print(&set(&report, format, Paint::of(&stdout()), width())?)?;
        let times = times(healthy, outage);
        if self.json {
            say(format_args!("\n{times}"))
        } else {
            super::print(&format!("\n{times}"))?
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

    async fn investigate(
        &self,
        stack: &DevStack,
        breaker: &str,
        breakers: BreakersConfig,
    ) -> Result<Outcome, CliError> {
        let registry = CircuitRegistry::new(breakers);
        let activities = stack.activities(&registry)?;
        let client = stack.server.client().await?;
        let script = async |_admin| {
            tokio::select! {
                outcome = self.script(stack, breaker, &client, &registry) => outcome,
                signal = shutdown_signal() => signal.and(Err(CliError::interrupted())),
            }
        };
        run_until(client.clone(), registry.clone(), activities, Settings::default(), script).await
    }

    async fn script(
        &self,
        stack: &DevStack,
        breaker: &str,
        client: &Client,
        registry: &CircuitRegistry,
    ) -> Result<Outcome, CliError> {
        let paint = Paint::of(&stderr());
        let FaultArg { source, fault } = &self.fault;
        let subject = equinor();

        // The start set the fault only to check that it exists.
        stack.simulator.clear(source).await.map_err(CliError::failure)?;
        say(format_args!("\n{}", paint.bold("1  every source is healthy")));
        follow(client, &subject).await?;
        let healthy = timed(client, &subject).await?;

        say(format_args!("\n{}", paint.bold(&format!("2  {source} is {fault}: until its breaker opens"))));
        stack.simulator.set_fault(source, fault).await.map_err(CliError::user)?;
        let open =
            || registry.views().iter().any(|view| part_of(&view.service, breaker) && view.state != State::Closed);
        for _ in 0..UNTIL_OPEN {
            if open() {
                break;
            }
            follow(client, &subject).await?;
        }
        if !open() {
            say(format_args!(
                "  {}",
                paint.dim(&format!("the breaker of {source} has not opened: '{fault}' is no outage"))
            ));
        }

        say(format_args!("\n{}", paint.bold(&format!("3  {source} is {fault}, and its breaker is open"))));
        let outage = timed(client, &subject).await?;
        let report = follow(client, &subject).await?;
        Ok(Outcome { healthy, outage, report })
    }
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

/// One investigation with its progress.
async fn follow(client: &Client, subject: &Subject) -> Result<Report, CliError> {
    sleep(PAUSE).await;
    let investigation = Investigation::start(client, TASK_QUEUE, subject.clone()).await?;
    let mut progress = Progress::new();
    let report = investigation.follow(|steps| progress.show(steps)).await;
    progress.clear();
    report
}

/// The time of the fastest of several investigations, without progress queries.
async fn timed(client: &Client, subject: &Subject) -> Result<Duration, CliError> {
    let mut fastest = Duration::MAX;
    for _ in 0..TIMED {
        sleep(PAUSE).await;
        let start = Instant::now();
        Investigation::start(client, TASK_QUEUE, subject.clone()).await?.report().await?;
        fastest = fastest.min(start.elapsed());
    }
    Ok(fastest)
}

fn times(healthy: Duration, outage: Duration) -> String {
    let ratio = outage.as_secs_f64() / healthy.as_secs_f64();
    let judged = if ratio <= ALLOWED { "within" } else { "above" };
    format!(
        "  healthy {} ms, one source down {} ms (fastest of {TIMED} each): ratio {ratio:.2}, {judged} the {ALLOWED} allowed",
        healthy.as_millis(),
        outage.as_millis()
    )
}

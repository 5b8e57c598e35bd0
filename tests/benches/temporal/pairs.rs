//! Investigations per second with the interceptors and without, in pairs.
//!
//! Both workers run during the whole measurement, each on its own queue, so a slow moment affects both. The worker that begins
//! alternates from pair to pair. Both guard the calls inside the activities; only the interceptors differ.
//!
//! The promise is about wall time, which other programs on the machine disturb. So the processor time of this process is
//! measured too: a worker that needs 1 % more processor time does 1 % less work.

use std::fs;

use circuit_registry::{BreakersConfig, CircuitRegistry, temporal::CircuitInterceptor};
use futures::future::try_join_all;
use osint_tests::{test_env::equinor, worker::while_running};
use osint_worker::{
    dev::{DevStack, server::DevServerOptions},
    run::workflow_interceptor,
    temporal::starter::Investigation,
    workflow::{InvestigationWorkflow, PlanningActivities},
};
use temporalio_client::Client;
use temporalio_sdk::{Runtime, Worker, WorkerOptions};
use tokio::time::Instant;

use crate::Figure;

const PAIRS: usize = 40;
const AT_ONCE: usize = 4;
const LEAST: f64 = 0.97;

const QUEUES: [&str; 2] = ["without", "with"];

fn worker(runtime: &Runtime, stack: &DevStack, client: &Client, queue: &str) -> anyhow::Result<Worker> {
    let registry = CircuitRegistry::new(BreakersConfig::default());
    let options = WorkerOptions::new(queue)
        .register_activities(stack.activities(&registry)?)
        .register_activities(PlanningActivities::new(registry.clone()))
        .register_workflow::<InvestigationWorkflow>()?;
    let options = if queue == "with" {
        let mut options = options.activity_inbound_interceptor(CircuitInterceptor::new(registry)).build();
        options.register_workflow_interceptors(vec![workflow_interceptor()]);
        options
    } else {
        options.build()
    };
    Ok(Worker::new(runtime, client.clone(), options)?)
}

/// Seconds of some investigations: on the wall, and on processors.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    wall: f64,
    processor: f64,
}

async fn round(client: &Client, queue: &str) -> anyhow::Result<Spent> {
    let (from, before) = (Instant::now(), processor()?);
    let one = async || Investigation::start(client, queue, equinor()).await?.report().await;
    try_join_all((0..AT_ONCE).map(|_| one())).await?;
    Ok(Spent { wall: from.elapsed().as_secs_f64(), processor: processor()? - before })
}

/// Seconds that the threads of this process have run.
fn processor() -> anyhow::Result<f64> {
    let mut nanos = 0.0;
    for thread in fs::read_dir("/proc/self/task")? {
        // A thread may have ended since it was listed.
        let Ok(line) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        nanos += line.split(' ').next().unwrap_or_default().parse::<f64>()?;
    }
    Ok(nanos / 1e9)
}

async fn rounds(client: &Client) -> anyhow::Result<Vec<[Spent; 2]>> {
    for queue in QUEUES {
        round(client, queue).await?;
    }
    let mut pairs = Vec::new();
    for pair in 0..PAIRS {
        let mut spent = [Spent::default(); 2];
        for turn in [pair % 2, (pair + 1) % 2] {
            spent[turn] = round(client, QUEUES[turn]).await?;
        }
        pairs.push(spent);
    }
    Ok(pairs)
}

pub async fn measure() -> anyhow::Result<Vec<Figure>> {
    let stack = DevStack::start(DevServerOptions::default(), &[]).await?;
    let client = stack.server.client().await?;
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let (without, with) =
        (worker(&runtime, &stack, &client, QUEUES[0])?, worker(&runtime, &stack, &client, QUEUES[1])?);
    let pairs = while_running(without, while_running(with, rounds(&client))).await;
    stack.stop().await;
    let pairs = pairs?;

    let of = |value: &dyn Fn(&[Spent; 2]) -> f64| quartiles(pairs.iter().map(value).collect());
    let on_the_wall = of(&|[without, with]| without.wall / with.wall);
    let on_processors = of(&|[without, with]| without.processor / with.processor);
    println!("\n## Investigations, {AT_ONCE} at once, {PAIRS} pairs\n");
    println!("| | lower quartile | median | upper quartile |\n|---|---:|---:|---:|");
    for (what, [lower, middle, upper]) in [
        ("per second, without", of(&|pair| at_once() / pair[0].wall)),
        ("per second, with", of(&|pair| at_once() / pair[1].wall)),
        ("per second of a processor, without", of(&|pair| at_once() / pair[0].processor)),
        ("per second of a processor, with", of(&|pair| at_once() / pair[1].processor)),
        ("with : without, per second, pair by pair", on_the_wall),
        ("with : without, per second of a processor, pair by pair", on_processors),
    ] {
        println!("| {what} | {lower:.3} | {middle:.3} | {upper:.3} |");
    }
    let figure = |what: &str, ratio: f64| Figure {
        what: format!("{what}, with : without the interceptors, median of {PAIRS} pairs"),
        measured: format!("{ratio:.3}"),
        promised: "≥ 0.97",
        kept: ratio >= LEAST,
    };
    Ok(vec![
        figure("investigations per second", on_the_wall[1]),
        figure("investigations per second of a processor", on_processors[1]),
    ])
}

fn at_once() -> f64 {
    u32::try_from(AT_ONCE).map_or(f64::NAN, f64::from)
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[values.len() / 4], values[values.len() / 2], values[values.len() * 3 / 4]]
}

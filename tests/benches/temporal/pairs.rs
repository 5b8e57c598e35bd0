//! Investigations per second with the interceptors and without, in pairs.
//!
//! Both workers live through the whole measurement, each on a queue of its own, so that a slow moment hits both; which of the
//! two begins a pair changes from pair to pair. Inside the activities the calls are guarded in either case: what differs is
//! what the interceptors add.

use std::time::{Duration, Instant};

use circuit_registry::{BreakersConfig, CircuitRegistry, temporal::CircuitInterceptor};
use futures::future::try_join_all;
use osint_tests::lab::equinor;
use osint_worker::{
    devserver::DevServerOptions,
    run::workflow_interceptor,
    stack::Stack,
    starter::Investigation,
    workflow::{Desk, InvestigationWorkflow},
};
use temporalio_client::Client;
use temporalio_sdk::{Runtime, Worker, WorkerOptions};

use crate::Figure;

const PAIRS: usize = 40;
const AT_ONCE: usize = 8;
const LEAST: f64 = 0.97;

const QUEUES: [&str; 2] = ["without", "with"];

fn worker(runtime: &Runtime, stack: &Stack, client: &Client, queue: &str) -> anyhow::Result<Worker> {
    let registry = CircuitRegistry::new(BreakersConfig::default());
    let options = WorkerOptions::new(queue)
        .register_activities(stack.activities(&registry)?)
        .register_activities(Desk::new(registry.clone()))
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

async fn round(client: &Client, queue: &str) -> anyhow::Result<Duration> {
    let from = Instant::now();
    let one = async || Investigation::start(client, queue, equinor()).await?.report().await;
    try_join_all((0..AT_ONCE).map(|_| one())).await?;
    Ok(from.elapsed())
}

async fn rounds(client: &Client) -> anyhow::Result<Vec<[f64; 2]>> {
    for queue in QUEUES {
        round(client, queue).await?;
    }
    let mut pairs = Vec::new();
    for pair in 0..PAIRS {
        let mut seconds = [0.0; 2];
        for turn in [pair % 2, (pair + 1) % 2] {
            seconds[turn] = round(client, QUEUES[turn]).await?.as_secs_f64();
        }
        pairs.push(seconds);
    }
    Ok(pairs)
}

pub async fn measure() -> anyhow::Result<Figure> {
    let stack = Stack::start(DevServerOptions::default(), &[]).await?;
    let client = stack.server.client().await?;
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let (mut without, mut with) =
        (worker(&runtime, &stack, &client, QUEUES[0])?, worker(&runtime, &stack, &client, QUEUES[1])?);
    let (stop_without, stop_with) = (without.shutdown_handle(), with.shutdown_handle());
    let script = async {
        let pairs = rounds(&client).await;
        stop_without();
        stop_with();
        pairs
    };
    let (one, other, pairs) = tokio::join!(without.run(), with.run(), script);
    one?;
    other?;
    stack.stop().await;
    let pairs = pairs?;

    let per_second = |which: usize| {
        let each = pairs.iter().map(|pair| at_once() / pair[which]).collect();
        quartiles(each)
    };
    let ratios = quartiles(pairs.iter().map(|[without, with]| without / with).collect());
    println!("\n## Investigations per second, {AT_ONCE} at once, {PAIRS} pairs\n");
    println!("| | lower quartile | median | upper quartile |\n|---|---:|---:|---:|");
    for (what, [lower, middle, upper]) in
        [("without", per_second(0)), ("with", per_second(1)), ("with : without, pair by pair", ratios)]
    {
        println!("| {what} | {lower:.3} | {middle:.3} | {upper:.3} |");
    }
    Ok(Figure {
        what: "investigations per second, with : without the interceptors, median of pairs".to_owned(),
        measured: format!("{:.3}", ratios[1]),
        promised: "≥ 0.97",
        kept: ratios[1] >= LEAST,
    })
}

fn at_once() -> f64 {
    u32::try_from(AT_ONCE).map_or(f64::NAN, f64::from)
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[values.len() / 4], values[values.len() / 2], values[values.len() * 3 / 4]]
}

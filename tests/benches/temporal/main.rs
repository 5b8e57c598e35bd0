//! What the Temporal layer costs a worker, measured on a real server. `make temporal-numbers`; with `ARGS=pairs`, `rejection` or
//! `soak`, one part alone.
//!
//! Everything except the server runs in one process on one machine, so absolute figures depend on the machine. Compare the
//! pairs (the same work with and without the interceptors), the time between two points of one worker, and the growth.

#![allow(missing_docs, unreachable_pub, reason = "a program of its own")]

mod pairs;
mod rejection;
mod soak;

use std::fs;

use osint_worker::dev::server::{DevServer, DevServerOptions};

/// One figure and what was promised.
pub struct Figure {
    pub what: String,
    pub measured: String,
    pub promised: &'static str,
    pub kept: bool,
}

fn main() -> anyhow::Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |part: &str| wanted.is_empty() || wanted.iter().any(|word| word == part);
    let runtime = tokio::runtime::Runtime::new()?;
    let mut figures = Vec::new();
    println!("load of the machine before: {}", load());
    runtime.block_on(async {
        if is_wanted("pairs") {
            figures.extend(pairs::measure().await?);
        }
        if is_wanted("rejection") {
            let server = DevServer::start(DevServerOptions::default()).await?;
            figures.push(rejection::measure(&server.client().await?).await?);
            server.stop().await;
        }
        if is_wanted("soak") {
            let server = DevServer::start(DevServerOptions::default()).await?;
            figures.push(soak::measure(&server.client().await?).await?);
            server.stop().await;
        }
        anyhow::Ok(())
    })?;
    println!("load of the machine after: {}\n", load());
    println!("| figure | measured | promised | |\n|---|---:|---:|---|");
    for Figure { what, measured, promised, kept } in figures {
        println!("| {what} | {measured} | {promised} | {} |", if kept { "kept" } else { "**missed**" });
    }
    Ok(())
}

/// The load averages of one, five and fifteen minutes, of which two processors can carry 2.0.
fn load() -> String {
    let averages = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    averages.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

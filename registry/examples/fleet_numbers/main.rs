//! Measures what `docs/fleet.md` promises, in one run: with a real Redis, with worker processes of its own, and with an upstream that
//! dies and recovers. It prints one line for each promise and fails if one is not kept.
//!
//! ```text
//! make fleet-numbers                  # all of it, about four minutes
//! make fleet-numbers ARGS="deaths"    # a part
//! ```
//!
//! The parts are `calls`, `restore`, `deaths`, `outage` and `kills`.

mod calls;
mod fleet;
mod restore;
mod worker;

use std::{env, process::ExitCode, time::Duration};

use circuit_registry::{BreakersConfig, CircuitRegistry, RegistryBuilder, store};

/// What must come comes within this time.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    // Rejections are reported as numbers here, not as log lines.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    match env::var(worker::SETTING) {
        Ok(setting) => {
            runtime.block_on(worker::run(&setting));
            ExitCode::SUCCESS
        }
        Err(_) => runtime.block_on(measure()),
    }
}

async fn measure() -> ExitCode {
    let mut report = Report { kept: true };
    let parts: Vec<String> = env::args().skip(1).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|named| named == part);
    if wanted("calls") {
        calls::measure(&mut report).await;
    }
    if wanted("restore") {
        restore::measure(&mut report).await;
    }
    if wanted("deaths") {
        fleet::deaths(&mut report).await;
    }
    if wanted("outage") {
        fleet::outage(&mut report).await;
    }
    if wanted("kills") {
        fleet::kills(&mut report).await;
    }
    if report.kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One line for each promise.
struct Report {
    kept: bool,
}

impl Report {
    fn line(&mut self, what: &str, measured: &str, promised: &str, kept: bool) {
        self.kept &= kept;
        println!("{} {what:<58} {measured:>18}   {promised}", if kept { "ok  " } else { "MISS" });
    }
}

fn registry(builder: RegistryBuilder, setting: &str, yaml: &str) -> CircuitRegistry {
    let config = BreakersConfig::from_yaml(yaml).expect("valid configuration");
    builder.config(config).log(false).store(store::open(setting).expect("a valid setting")).build()
}

//! `osint worker`: a worker for a real cluster and real upstreams.

use std::{net::SocketAddr, time::Duration};

use circuit_registry::{CircuitRegistry, store};
use clap::Args;
use osint_activities::guard::Names;

use super::{
    Thresholds, admin_token,
    effective::{Given, effective},
    say,
};
use crate::{
    error::CliError,
    run::{Breakers, Settings, TASK_QUEUE, Tuning, run_until, shutdown_signal, source_activities},
    temporal::connect::{Target, connect},
};

/// The default address of the admin server.
pub(super) const ADMIN: &str = "127.0.0.1:9464";

/// The default store of the breakers.
pub(super) const STORE: &str = "file:breakers.state";

/// Arguments of `osint worker`.
#[derive(Debug, Args)]
#[command(after_help = "\
The sources' base addresses and credentials come from the environment; `osint sources` lists them.
TLS, API keys and profiles come from TEMPORAL_* variables and temporal.toml, as for Temporal's own tools.
OSINT_CODEC_KEY=ID:BASE64[,…] (or OSINT_CODEC_KEY_FILE) encrypts what the server stores; the first key encrypts, all decrypt.

On SIGTERM or Ctrl-C the worker reports itself unready, takes no more tasks, lets running tasks finish within
the grace period, and stores its breakers. It exits with 0, or with 1 if tasks were still running 5 s after the grace period.")]
pub(super) struct WorkerCommand {
    /// Queue to take tasks from
    #[arg(long, value_name = "NAME", default_value = TASK_QUEUE, env = "OSINT_TASK_QUEUE")]
    task_queue: String,
    /// Where to serve the dashboard, /metrics, /live, /ready and /breakers. Other machines need the token of
    /// OSINT_ADMIN_TOKEN (or OSINT_ADMIN_TOKEN_FILE) for all but /live and /ready
    #[arg(long, value_name = "ADDRESS:PORT", default_value = ADMIN, env = "OSINT_ADMIN")]
    admin: SocketAddr,
    /// Store of the breakers' state: `memory` (nothing is stored), `file:PATH` (one worker), or a Redis for several workers,
    /// `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?prefix=NAME]`, `rediss://…` with TLS
    #[arg(long, value_name = "STORE", default_value = STORE, env = "OSINT_STORE", hide_env_values = true)]
    store: String,
    /// Seconds that running activities may take after the shutdown signal
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(..=86_400))]
    #[arg(env = "OSINT_GRACE")]
    grace: u64,
    /// Print the settings and where each comes from, without secrets, and exit
    #[arg(long)]
    print_config: bool,
    /// Print them as one JSON document
    #[arg(long, requires = "print_config")]
    json: bool,
    #[command(flatten)]
    tuning: Tuning,
    #[command(flatten)]
    target: Target,
    #[arg(skip)]
    pub(super) given: Vec<Given>,
}

impl WorkerCommand {
    /// Runs a worker until a signal ends it.
    pub(super) async fn run(self, thresholds: Thresholds) -> Result<(), CliError> {
        self.tuning.check()?;
        let token = admin_token()?;
        if self.print_config {
            // Nothing is opened or written for this page.
            store::open(&self.store).map_err(|error| CliError::user(format!("--store (OSINT_STORE): {error}")))?;
            let registry = CircuitRegistry::new(thresholds.config);
            source_activities(&registry, |name| std::env::var(name).ok(), Names::of_system())?;
            return effective(&self.given, &self.target, thresholds.file.as_deref())?.print(self.json);
        }
        let Breakers { registry, journal } = Breakers::open(thresholds.config, &self.store)?;
        let _ = CircuitRegistry::set_global(registry.clone());
        let activities = source_activities(&registry, |name| std::env::var(name).ok(), Names::of_system())?;
        let client = connect(&self.target).await?;
        let settings = Settings {
            task_queue: self.task_queue.clone(),
            admin: Some(self.admin),
            token,
            journal,
            thresholds: thresholds.file,
            grace: Duration::from_secs(self.grace),
            tuning: self.tuning,
        };
        run_until(client, registry, activities, settings, async move |admin| {
            if let Some(admin) = admin {
                say(format_args!("worker on task queue '{}'; admin server at http://{admin}", self.task_queue));
            }
            shutdown_signal().await?;
            say(format_args!("shutdown signal received: running activities may take up to {} s to finish", self.grace));
            Ok(())
        })
        .await
    }
}

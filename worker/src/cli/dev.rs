//! `osint dev`: a server, simulated sources and a worker, until Ctrl-C.

use std::net::SocketAddr;

use circuit_registry::CircuitRegistry;
use clap::Args;

use super::{Thresholds, admin_token, say};
use crate::{
    dev::{DevStack, FaultArg, server::DevServerOptions},
    error::CliError,
    run::{Breakers, Settings, run_until, shutdown_signal},
    temporal::codec::Codec,
};

/// The default store, beside that of `osint worker`.
const STORE: &str = "file:osint-dev.state";

/// Arguments of `osint dev`.
#[derive(Debug, Args)]
#[command(after_help = "\
In another terminal:
  osint investigate --country NO --id 923609016 --name 'Equinor ASA'
  osint breakers

Faults can also be changed while it runs; the address of the simulator's control page is printed at the start.")]
pub(super) struct Dev {
    /// Give a source a fault from the start, such as tavily=down or vies=slow:2s; may be repeated
    #[arg(long = "fault", value_name = "SOURCE=FAULT")]
    faults: Vec<FaultArg>,
    /// Port of the Temporal server
    #[arg(long, default_value_t = 7233)]
    port: u16,
    /// Port of Temporal's web UI
    #[arg(long, default_value_t = 8233)]
    ui_port: u16,
    /// Where to serve the dashboard, /metrics, /live, /ready and /breakers
    #[arg(long, value_name = "ADDRESS:PORT", default_value = super::worker::ADMIN, env = "OSINT_ADMIN")]
    admin: SocketAddr,
    /// Store of the breakers' state, as for `osint worker`; `memory` stores nothing
    #[arg(long, value_name = "STORE", default_value = STORE, env = "OSINT_STORE", hide_env_values = true)]
    store: String,
}

impl Dev {
    /// Runs the whole stack until a signal ends it.
    pub(super) async fn run(self, thresholds: Thresholds) -> Result<(), CliError> {
        let token = admin_token()?;
        let breakers = Breakers::open(thresholds.config, &self.store)?;
        let (port, ui_port, converter) = (Some(self.port), Some(self.ui_port), Codec::from_env()?.converter());
        let options = DevServerOptions { port, ui_port, converter, ..DevServerOptions::default() };
        let stack = tokio::select! {
            stack = DevStack::start(options, &self.faults) => stack?,
            signal = shutdown_signal() => return signal.and(Err(CliError::interrupted())),
        };
        let settings = Settings {
            admin: Some(self.admin),
            token,
            journal: breakers.journal,
            thresholds: thresholds.file,
            ..Settings::default()
        };
        let done = self.serve(&stack, breakers.registry, settings).await;
        stack.stop().await;
        done
    }

    async fn serve(&self, stack: &DevStack, registry: CircuitRegistry, settings: Settings) -> Result<(), CliError> {
        let activities = stack.activities(&registry)?;
        run_until(stack.server.client().await?, registry, activities, settings, async move |admin| {
            say(format_args!("Temporal    {}   http://127.0.0.1:{}", stack.server.address(), self.ui_port));
            say(format_args!("simulator   http://{}/_control", stack.simulator.addr()));
            if let Some(admin) = admin {
                say(format_args!("dashboard   http://{admin}   and /breakers /metrics /live /ready"));
            }
            for FaultArg { source, fault } in &self.faults {
                say(format_args!("fault       {source}: {fault}"));
            }
            say(format_args!("Ctrl-C ends everything."));
            shutdown_signal().await
        })
        .await
    }
}

//! What `demo` and `dev` run besides the worker: a Temporal server and simulated sources. Both end with the command.

pub mod server;

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    str::FromStr,
};

use circuit_registry::CircuitRegistry;
use osint_activities::{activity::Activities, guard::Names};
use osint_simulator::Simulator;

use self::server::{DevServer, DevServerOptions};
use crate::{error::CliError, run::source_activities};

/// A fault to give a simulated source, as typed: `tavily=down`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultArg {
    /// Name of the source.
    pub source: String,
    /// What is wrong with it.
    pub fault: String,
}

impl FromStr for FaultArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((source, fault)) if !source.is_empty() && !fault.is_empty() => {
                Ok(Self { source: source.to_owned(), fault: fault.to_owned() })
            }
            _ => Err("a fault is SOURCE=FAULT, such as tavily=down or vies=slow:2s".to_owned()),
        }
    }
}

/// A server and simulated sources.
#[derive(Debug)]
pub struct DevStack {
    /// The Temporal server.
    pub server: DevServer,
    /// The sources.
    pub simulator: Simulator,
}

impl DevStack {
    /// Starts both. A wrong fault is reported before the server starts.
    ///
    /// # Errors
    /// When there is no such fault (the user's mistake), or the server or the sources cannot start.
    pub async fn start(options: DevServerOptions, faults: &[FaultArg]) -> Result<Self, CliError> {
        let simulator = Simulator::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await;
        let simulator =
            simulator.map_err(|error| CliError::failure(format!("the simulated sources cannot start: {error}")))?;
        for FaultArg { source, fault } in faults {
            simulator.set_fault(source, fault).await.map_err(CliError::user)?;
        }
        Ok(Self { server: DevServer::start(options).await?, simulator })
    }

    /// The sources' operations, pointed at the simulator with credentials that only it accepts.
    ///
    /// # Errors
    /// When the HTTP client cannot be set up.
    pub fn activities(&self, registry: &CircuitRegistry) -> Result<Activities, CliError> {
        let values: BTreeMap<_, _> = self.simulator.env().into_iter().chain(self.simulator.credentials()).collect();
        source_activities(registry, |name| values.get(name).cloned(), Names::none())
    }

    /// Ends both. Returns when their processes are gone and their ports are free.
    pub async fn stop(self) {
        self.server.stop().await;
        self.simulator.shutdown().await;
    }
}

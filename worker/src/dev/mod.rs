//! What `demo` and `dev` run besides the worker: a Temporal server and simulated sources, for as long as the command lasts.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
};

use circuit_registry::CircuitRegistry;
use osint_activities::{
    activity::Activities,
    client::{Client, Settings, guard::Names},
    simulator::Simulator,
};

use crate::{
    devserver::{DevServer, DevServerOptions},
    exit::Exit,
};

/// A fault to give a simulated source, as typed: `tavily=down`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultArg {
    /// Name of the source.
    pub source: String,
    /// What is wrong with it.
    pub fault: String,
}

impl std::str::FromStr for FaultArg {
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
pub struct Stack {
    /// The Temporal server.
    pub server: DevServer,
    /// The sources.
    pub simulator: Simulator,
}

impl Stack {
    /// Starts both. A wrong fault is found before the server is started.
    ///
    /// # Errors
    /// When there is no such fault (the user's mistake), or either cannot start.
    pub async fn start(options: DevServerOptions, faults: &[FaultArg]) -> Result<Self, Exit> {
        let simulator = Simulator::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await;
        let simulator =
            simulator.map_err(|error| Exit::ours(format!("the simulated sources cannot start: {error}")))?;
        for FaultArg { source, fault } in faults {
            simulator.set_fault(source, fault).await.map_err(Exit::user)?;
        }
        Ok(Self { server: DevServer::start(options).await?, simulator })
    }

    /// The sources' operations, pointed at the simulator with credentials that only it accepts.
    ///
    /// # Errors
    /// When the HTTP client cannot be set up.
    pub fn activities(&self, registry: &CircuitRegistry) -> Result<Activities, Exit> {
        let values: BTreeMap<_, _> = self.simulator.env().into_iter().chain(self.simulator.credentials()).collect();
        activities(registry, |name| values.get(name).cloned(), Names::none())
    }

    /// Ends both and returns when every process and port of theirs is gone.
    pub async fn stop(self) {
        self.server.stop().await;
        self.simulator.shutdown().await;
    }
}

/// The sources' operations, set up by whoever knows the values of environment variables and what names stand for.
///
/// # Errors
/// When a value cannot be used (the user's mistake), or the HTTP client cannot be set up.
pub fn activities(
    registry: &CircuitRegistry,
    lookup: impl Fn(&str) -> Option<String>,
    names: Names,
) -> Result<Activities, Exit> {
    let settings = Settings::read(lookup)
        .map_err(|error| Exit::user(error).hint("correct or unset the variable; `osint sources` lists them"))?;
    let client =
        Client::with_names(settings, names).map_err(|error| Exit::ours(format!("TLS cannot be set up: {error}")))?;
    Ok(Activities::new(registry.clone(), client))
}

//! Every upstream on this machine, over real sockets, with faults that can be switched while it runs.
//!
//! The demo, the development server and the tests all call the simulator instead of the internet. It is an HTTP server and
//! not a mock of the client, because most failures of an upstream happen below the client's types: a refused connect, a
//! reset in the middle of the body, a page of HTML with status 200, a body that stops half-way. Each upstream has its own
//! port, so that `refused` can close one of them alone. One more port serves the [control API](self#control-api).
//!
//! Answers come from fixtures written to the documented shapes, about real companies with public facts; every person in
//! them is invented. For a company that is not in the fixtures an upstream gives its own "not found", and nearly every
//! upstream has another one. Searches find by name.
//!
//! A request goes through these files: `port` accepts it, `simulated_upstream` finds its route, records it and asks the
//! `fault` for the effect, a handler in `upstreams` answers, `delivery` sends the answer as the fault wants it.
//!
//! ```
//! use osint_simulator::Simulator;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let simulator = Simulator::start("127.0.0.1:0".parse()?).await?;
//! simulator.set_fault("gleif", "503_retry_after:30").await?;
//! let url = format!("{}/lei-records/213800LH1BZH3DI6G760", simulator.base_url("gleif")?);
//! assert_eq!(reqwest::get(url).await?.status(), 503);
//! assert_eq!(simulator.calls("gleif")?.total, 1);
//! simulator.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Control API
//!
//! `GET /_control` on the control port describes it all. `curl -X PUT -d slow:500ms http://…/_control/faults/gleif` sets a
//! fault, `DELETE` clears it, `GET /_control/calls` counts.

mod answer;
mod call_log;
mod callbacks;
mod control;
mod delivery;
mod digest;
mod fault;
mod port;
mod servers;
mod simulated_upstream;
mod spec;
mod upstreams;

use std::net::SocketAddr;
use std::sync::Arc;

pub use call_log::Calls;
pub use fault::{Fault, FaultError};
pub use servers::{SetFaultError, StartError};

use port::Port;
use servers::Servers;
use simulated_upstream::SimulatedUpstream;

/// A running simulator. [`Simulator::shutdown`] ends it; dropping it does too, without waiting.
#[derive(Debug)]
pub struct Simulator {
    control: Port,
    servers: Arc<Servers>,
}

impl Simulator {
    /// Starts on this address: the control API on its port, the upstreams on the ports after it, in the order of
    /// [`Simulator::sources`]. With port 0 the system chooses all ports.
    ///
    /// # Errors
    ///
    /// [`StartError`] names the port that could not be bound; nothing is left running then.
    pub async fn start(addr: SocketAddr) -> Result<Simulator, StartError> {
        let failed = |source| StartError { what: "the control API", addr, source };
        let (listener, bound) = Port::bind(addr).await.map_err(failed)?;
        let mut first = addr;
        first.set_port(if addr.port() == 0 { 0 } else { addr.port().saturating_add(1) });
        let servers = Arc::new(Servers::start(first).await?);
        let control = Port::serve(listener, bound, control::router(servers.clone()));
        Ok(Simulator { control, servers })
    }

    /// The address of the control API.
    pub fn addr(&self) -> SocketAddr {
        self.control.addr()
    }

    /// The names of the upstreams, in the order of their ports.
    pub fn sources(&self) -> impl Iterator<Item = &'static str> {
        self.servers.upstreams().map(SimulatedUpstream::name)
    }

    /// The URL that stands for an upstream's public base URL, without a slash at its end.
    ///
    /// # Errors
    ///
    /// [`FaultError::UnknownUpstream`].
    pub fn base_url(&self, source: &str) -> Result<String, FaultError> {
        self.servers.upstream(source).map(SimulatedUpstream::base_url)
    }

    /// The environment that points every client here: `GLEIF_BASE_URL` and so on, with their values.
    pub fn env(&self) -> Vec<(String, String)> {
        self.servers.upstreams().map(|upstream| (upstream.env_name(), upstream.base_url())).collect()
    }

    /// Credentials that the simulated upstreams accept, as environment variables. They open nothing else.
    pub fn credentials(&self) -> Vec<(String, String)> {
        let rows = self.servers.upstreams().flat_map(SimulatedUpstream::credentials);
        rows.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// Every fault an upstream can have: the text to set it with, and what it does.
    ///
    /// # Errors
    ///
    /// [`FaultError::UnknownUpstream`].
    pub fn faults(&self, source: &str) -> Result<Vec<(String, &'static str)>, FaultError> {
        self.servers.upstream(source).map(SimulatedUpstream::forms)
    }

    /// The faults that only this upstream has, without their arguments.
    ///
    /// # Errors
    ///
    /// [`FaultError::UnknownUpstream`].
    pub fn scenarios(&self, source: &str) -> Result<impl Iterator<Item = &'static str>, FaultError> {
        Ok(self.servers.upstream(source)?.scenarios())
    }

    /// Gives an upstream a fault, in place of the one it has. When this returns, the fault is in force.
    ///
    /// # Errors
    ///
    /// [`SetFaultError`] if there is no such upstream or fault, or a refused port cannot be opened again.
    pub async fn set_fault(&self, source: &str, fault: &str) -> Result<(), SetFaultError> {
        self.servers.set_fault(source, fault).await
    }

    /// The fault an upstream has.
    ///
    /// # Errors
    ///
    /// [`FaultError::UnknownUpstream`].
    pub fn fault(&self, source: &str) -> Result<Option<Fault>, FaultError> {
        self.servers.upstream(source).map(SimulatedUpstream::fault)
    }

    /// Heals an upstream.
    ///
    /// # Errors
    ///
    /// As [`Simulator::set_fault`].
    pub async fn clear(&self, source: &str) -> Result<(), SetFaultError> {
        self.servers.clear(source).await
    }

    /// Heals every upstream.
    ///
    /// # Errors
    ///
    /// As [`Simulator::set_fault`].
    pub async fn clear_all(&self) -> Result<(), SetFaultError> {
        self.servers.clear_all().await
    }

    /// The calls an upstream has received.
    ///
    /// # Errors
    ///
    /// [`FaultError::UnknownUpstream`].
    pub fn calls(&self, source: &str) -> Result<Calls, FaultError> {
        self.servers.upstream(source).map(SimulatedUpstream::calls)
    }

    /// Counts the calls of every upstream from zero, and makes each forget its jobs, tokens and credits.
    pub fn forget_calls(&self) {
        self.servers.upstreams().for_each(SimulatedUpstream::forget);
    }

    /// Closes every port and waits for every task.
    pub async fn shutdown(self) {
        self.control.stop().await;
        if let Ok(servers) = Arc::try_unwrap(self.servers) {
            servers.stop().await;
        }
    }
}

#[cfg(test)]
mod tests;

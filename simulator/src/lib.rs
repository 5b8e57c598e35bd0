//! A local stand-in for every upstream, over real sockets, with faults that can be switched while it runs.
//!
//! The demo, the development server and the tests all talk to this instead of the internet. It is an HTTP server rather
//! than a mock of the client, because most of what can go wrong with an upstream happens below the client's types: a refused
//! connect, a reset in mid-body, a page of HTML with status 200, a body that stops half-way. Each upstream has a port of its
//! own, so that `refused` can be what it says for one of them only; one more port serves the [control API](self#control-api).
//!
//! Answers come from fixtures written to the documented shapes, about real companies with public facts; every person in
//! them is invented. A company that is not in the fixtures gets the upstream's own "not found", which is different for
//! nearly every upstream, and searches find by name.
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
mod control;
mod digest;
mod fault;
mod fleet;
mod ledger;
mod port;
mod station;
mod upstream;
mod upstreams;

use std::net::SocketAddr;
use std::sync::Arc;

pub use fault::{Fault, FaultError};
pub use fleet::{SetFaultError, StartError};
pub use ledger::Calls;

use fleet::Fleet;
use port::Port;

/// A running simulator. [`Simulator::shutdown`] ends it; dropping it does too, without waiting.
#[derive(Debug)]
pub struct Simulator {
    control: Port,
    fleet: Arc<Fleet>,
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
        let fleet = Arc::new(Fleet::start(first).await?);
        let control = Port::serve(listener, bound, control::router(fleet.clone()));
        Ok(Simulator { control, fleet })
    }

    /// The address of the control API.
    pub fn addr(&self) -> SocketAddr {
        self.control.addr()
    }

    /// The names of the upstreams, in the order of their ports.
    pub fn sources(&self) -> impl Iterator<Item = &'static str> {
        self.fleet.stations().map(|station| station.upstream.name)
    }

    /// The URL that stands for an upstream's public base URL, without a slash at its end.
    ///
    /// # Errors
    ///
    /// [`FaultError::UnknownUpstream`].
    pub fn base_url(&self, source: &str) -> Result<String, FaultError> {
        self.fleet.station(source).map(station::Station::base_url)
    }

    /// The environment that points every client here: `GLEIF_BASE_URL` and so on, with their values.
    pub fn env(&self) -> Vec<(String, String)> {
        self.fleet.stations().map(|station| (station.env_name(), station.base_url())).collect()
    }

    /// Credentials that the simulated upstreams accept, as environment variables. They open nothing else.
    pub fn credentials(&self) -> Vec<(String, String)> {
        let rows = self.fleet.stations().flat_map(|station| station.upstream.credentials);
        rows.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// Every fault an upstream can have: the text to set it with, and what it does.
    ///
    /// # Errors
    ///
    /// [`FaultError::UnknownUpstream`].
    pub fn faults(&self, source: &str) -> Result<Vec<(String, &'static str)>, FaultError> {
        self.fleet.station(source).map(station::Station::forms)
    }

    /// The faults that only this upstream has, without their arguments.
    ///
    /// # Errors
    ///
    /// [`FaultError::UnknownUpstream`].
    pub fn scenarios(&self, source: &str) -> Result<impl Iterator<Item = &'static str>, FaultError> {
        let station = self.fleet.station(source)?;
        Ok(station.upstream.scenarios.iter().map(|scenario| scenario.name))
    }

    /// Gives an upstream a fault, in place of the one it has. When this returns, the fault is in force.
    ///
    /// # Errors
    ///
    /// [`SetFaultError`] if there is no such upstream or fault, or a refused port cannot be opened again.
    pub async fn set_fault(&self, source: &str, fault: &str) -> Result<(), SetFaultError> {
        self.fleet.set_fault(source, fault).await
    }

    /// The fault an upstream has.
    ///
    /// # Errors
    ///
    /// [`FaultError::UnknownUpstream`].
    pub fn fault(&self, source: &str) -> Result<Option<Fault>, FaultError> {
        self.fleet.station(source).map(station::Station::fault)
    }

    /// Heals an upstream.
    ///
    /// # Errors
    ///
    /// As [`Simulator::set_fault`].
    pub async fn clear(&self, source: &str) -> Result<(), SetFaultError> {
        self.fleet.clear(source).await
    }

    /// Heals every upstream.
    ///
    /// # Errors
    ///
    /// As [`Simulator::set_fault`].
    pub async fn clear_all(&self) -> Result<(), SetFaultError> {
        self.fleet.clear_all().await
    }

    /// The calls an upstream has received.
    ///
    /// # Errors
    ///
    /// [`FaultError::UnknownUpstream`].
    pub fn calls(&self, source: &str) -> Result<Calls, FaultError> {
        self.fleet.station(source).map(station::Station::calls)
    }

    /// Counts the calls of every upstream from zero, and makes each forget its jobs, tokens and credits.
    pub fn forget_calls(&self) {
        self.fleet.stations().for_each(station::Station::forget);
    }

    /// Closes every port and waits for every task.
    pub async fn shutdown(self) {
        self.control.stop().await;
        if let Ok(fleet) = Arc::try_unwrap(self.fleet) {
            fleet.stop().await;
        }
    }
}

#[cfg(test)]
mod tests;

//! All upstreams together: each a station behind its own port.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::fault::FaultError;
use super::port::Port;
use super::station::Station;
use super::upstream::Upstream;
use super::upstreams::UPSTREAMS;

/// Why a fault was not set or cleared.
#[derive(Debug, thiserror::Error)]
pub enum SetFaultError {
    /// The text names no upstream or no fault.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// The port could not be opened again, most likely because something else has taken it meanwhile.
    #[error("cannot listen for {upstream} on {addr} again: {source}")]
    Port {
        /// The upstream whose port it is.
        upstream: &'static str,
        /// The address.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// Why the simulator did not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for {what} on {addr}: {source}")]
pub struct StartError {
    /// The upstream, or `the control API`.
    pub what: &'static str,
    /// The address that was asked for.
    pub addr: SocketAddr,
    /// What the system said.
    pub source: io::Error,
}

#[derive(Debug)]
struct Member {
    station: Arc<Station>,
    port: Port,
    /// Orders changes of the fault, so that the port ends as the last one wants it.
    change: Mutex<()>,
}

#[derive(Debug)]
pub(super) struct Fleet(Vec<Member>);

impl Fleet {
    /// Binds every port first, since answers of one upstream may link to another.
    pub(super) async fn start(first: SocketAddr) -> Result<Fleet, StartError> {
        let mut bound = Vec::with_capacity(UPSTREAMS.len());
        for (n, upstream) in UPSTREAMS.iter().copied().enumerate() {
            let mut addr = first;
            // Port 0 lets the system choose each; a fixed one is followed by the rest in the order of the table.
            let offset = if first.port() == 0 { 0 } else { n as u16 };
            addr.set_port(first.port().saturating_add(offset));
            let failed = |source| StartError { what: upstream.name, addr, source };
            bound.push((upstream, Port::bind(addr).await.map_err(failed)?));
        }
        let origin = |addr: &SocketAddr| format!("http://{addr}");
        let links: Vec<_> = bound
            .iter()
            .flat_map(|(upstream, (_, addr))| upstream.hosts.iter().map(move |host| (*host, origin(addr))))
            .collect();
        let member = |(upstream, (listener, addr)): (&'static Upstream, _)| {
            let station = Arc::new(Station::new(upstream, origin(&addr), links.clone()));
            let port = Port::serve(listener, addr, station.clone().router());
            Member { station, port, change: Mutex::new(()) }
        };
        Ok(Fleet(bound.into_iter().map(member).collect()))
    }

    pub(super) fn stations(&self) -> impl Iterator<Item = &Station> {
        self.0.iter().map(|member| member.station.as_ref())
    }

    pub(super) fn station(&self, name: &str) -> Result<&Station, FaultError> {
        self.member(name).map(|member| member.station.as_ref())
    }

    fn member(&self, name: &str) -> Result<&Member, FaultError> {
        let valid = || self.stations().map(|station| station.upstream.name).collect::<Vec<_>>().join(", ");
        let unknown = || FaultError::UnknownUpstream { name: name.to_owned(), valid: valid() };
        self.0.iter().find(|member| member.station.upstream.name == name).ok_or_else(unknown)
    }

    pub(super) async fn set_fault(&self, name: &str, text: &str) -> Result<(), SetFaultError> {
        let member = self.member(name)?;
        let fault = member.station.parse(text)?;
        let _change = member.change.lock().await;
        let closes = fault.closes_port();
        member.station.set(Some(fault));
        let done = if closes { member.port.close().await } else { member.port.open().await };
        let upstream = member.station.upstream.name;
        done.map_err(|source| SetFaultError::Port { upstream, addr: member.port.addr(), source })
    }

    pub(super) async fn clear(&self, name: &str) -> Result<(), SetFaultError> {
        self.set_fault(name, "ok").await?;
        self.member(name)?.station.set(None);
        Ok(())
    }

    pub(super) async fn clear_all(&self) -> Result<(), SetFaultError> {
        for member in &self.0 {
            self.clear(member.station.upstream.name).await?;
        }
        Ok(())
    }

    pub(super) async fn stop(self) {
        for member in self.0 {
            member.port.stop().await;
        }
    }
}

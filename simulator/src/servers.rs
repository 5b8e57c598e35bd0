//! All simulated upstreams together, each behind its own port.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::fault::FaultError;
use crate::port::Port;
use crate::simulated_upstream::SimulatedUpstream;
use crate::spec::UpstreamSpec;
use crate::upstreams::UPSTREAMS;

/// Why a fault was not set or cleared.
#[derive(Debug, thiserror::Error)]
pub enum SetFaultError {
    /// The text names no upstream or no fault.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// The port could not be opened again, most likely because another process has taken it.
    #[error("cannot listen for {upstream} on {addr} again: {source}")]
    Port {
        /// The upstream whose port it is.
        upstream: &'static str,
        /// The address.
        addr: SocketAddr,
        /// The error of the operating system.
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
    /// The error of the operating system.
    pub source: io::Error,
}

/// One upstream and its port.
#[derive(Debug)]
struct Server {
    upstream: Arc<SimulatedUpstream>,
    port: Port,
    /// Held during a change of the fault, so that the port ends as the last change wants it.
    change: Mutex<()>,
}

/// The servers of all upstreams.
#[derive(Debug)]
pub(crate) struct Servers(Vec<Server>);

impl Servers {
    /// Binds every port first, since answers of one upstream may link to another.
    pub(crate) async fn start(first: SocketAddr) -> Result<Servers, StartError> {
        let mut bound = Vec::with_capacity(UPSTREAMS.len());
        for (n, spec) in UPSTREAMS.iter().copied().enumerate() {
            let mut addr = first;
            // With port 0 the system chooses each port. A fixed port is followed by the rest, in the order of the table.
            let offset = if first.port() == 0 { 0 } else { n as u16 };
            addr.set_port(first.port().saturating_add(offset));
            let failed = |source| StartError { what: spec.name, addr, source };
            bound.push((spec, Port::bind(addr).await.map_err(failed)?));
        }
        let origin = |addr: &SocketAddr| format!("http://{addr}");
        let links: Vec<_> = bound
            .iter()
            .flat_map(|(spec, (_, addr))| spec.hosts.iter().map(move |host| (*host, origin(addr))))
            .collect();
        let server = |(spec, (listener, addr)): (&'static UpstreamSpec, _)| {
            let upstream = Arc::new(SimulatedUpstream::new(spec, origin(&addr), links.clone()));
            let port = Port::serve(listener, addr, upstream.clone().router());
            Server { upstream, port, change: Mutex::new(()) }
        };
        Ok(Servers(bound.into_iter().map(server).collect()))
    }

    /// The upstreams, in the order of their ports.
    pub(crate) fn upstreams(&self) -> impl Iterator<Item = &SimulatedUpstream> {
        self.0.iter().map(|server| server.upstream.as_ref())
    }

    /// The upstream of this name.
    pub(crate) fn upstream(&self, name: &str) -> Result<&SimulatedUpstream, FaultError> {
        self.server(name).map(|server| server.upstream.as_ref())
    }

    fn server(&self, name: &str) -> Result<&Server, FaultError> {
        let valid = || self.upstreams().map(SimulatedUpstream::name).collect::<Vec<_>>().join(", ");
        let unknown = || FaultError::UnknownUpstream { name: name.to_owned(), valid: valid() };
        self.0.iter().find(|server| server.upstream.name() == name).ok_or_else(unknown)
    }

    /// Gives an upstream a fault. When this returns, its port is open or closed as the fault wants it.
    pub(crate) async fn set_fault(&self, name: &str, text: &str) -> Result<(), SetFaultError> {
        let server = self.server(name)?;
        let fault = server.upstream.parse(text)?;
        let _change = server.change.lock().await;
        let closes = fault.closes_port();
        server.upstream.set_fault(Some(fault));
        let done = if closes { server.port.close().await } else { server.port.open().await };
        let upstream = server.upstream.name();
        done.map_err(|source| SetFaultError::Port { upstream, addr: server.port.addr(), source })
    }

    /// Heals an upstream.
    pub(crate) async fn clear(&self, name: &str) -> Result<(), SetFaultError> {
        self.set_fault(name, "ok").await?;
        self.upstream(name)?.set_fault(None);
        Ok(())
    }

    /// Heals every upstream.
    pub(crate) async fn clear_all(&self) -> Result<(), SetFaultError> {
        for upstream in self.upstreams() {
            self.clear(upstream.name()).await?;
        }
        Ok(())
    }

    /// Closes every port and waits for its tasks.
    pub(crate) async fn stop(self) {
        for server in self.0 {
            server.port.stop().await;
        }
    }
}

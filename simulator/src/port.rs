//! One TCP port that can really be closed.
//!
//! A fault must look real to the client's kernel. `refused` drops the listener, so that the next connect gets
//! ECONNREFUSED, and every open connection with it, so that a pooled one cannot outlive the outage; clearing the fault
//! binds the same port again. `reset` closes the socket with a zero linger, which sends RST instead of FIN. Both need the
//! accept loop and the sockets to be ours, so this is not `axum::serve`.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

/// The connection a request came over, as a request extension.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection(Arc<AtomicBool>);

impl Connection {
    /// From now on, closing this connection resets it.
    pub(crate) fn reset_on_close(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A response extension: close the connection instead of sending this response.
#[derive(Clone, Debug)]
pub(crate) struct DropConnection;

enum Command {
    Close(oneshot::Sender<io::Result<()>>),
    Open(oneshot::Sender<io::Result<()>>),
    Stop(oneshot::Sender<io::Result<()>>),
}

/// A port with a router behind it. Dropping it stops it; [`Port::stop`] also waits until that is done.
#[derive(Debug)]
pub(crate) struct Port {
    addr: SocketAddr,
    commands: mpsc::Sender<Command>,
    task: JoinHandle<()>,
}

impl Port {
    /// Binds the address without serving it yet.
    pub(crate) async fn bind(addr: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        Ok((listener, addr))
    }

    /// Serves the router on a bound listener.
    pub(crate) fn serve(listener: TcpListener, addr: SocketAddr, router: Router) -> Port {
        let (commands, inbox) = mpsc::channel(4);
        let task = tokio::spawn(run(listener, addr, router, inbox));
        Port { addr, commands, task }
    }

    /// The address it serves, or served before it was closed.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Closes the port and drops its connections. Returns when connecting fails.
    pub(crate) async fn close(&self) -> io::Result<()> {
        self.command(Command::Close).await
    }

    /// Opens a closed port again.
    pub(crate) async fn open(&self) -> io::Result<()> {
        self.command(Command::Open).await
    }

    /// Closes the port for good and waits for its tasks.
    pub(crate) async fn stop(mut self) {
        // An error means that the task has ended already.
        let _ = self.command(Command::Stop).await;
        let _ = (&mut self.task).await;
    }

    async fn command(&self, command: fn(oneshot::Sender<io::Result<()>>) -> Command) -> io::Result<()> {
        let (reply, done) = oneshot::channel();
        let gone = |_| io::Error::other("the port is stopped");
        self.commands.send(command(reply)).await.map_err(|_| io::Error::other("the port is stopped"))?;
        done.await.map_err(gone)?
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(listener: TcpListener, addr: SocketAddr, router: Router, mut inbox: mpsc::Receiver<Command>) {
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            command = inbox.recv() => match command {
                Some(Command::Close(reply)) => {
                    listener = None;
                    connections.shutdown().await;
                    let _ = reply.send(Ok(()));
                }
                Some(Command::Open(reply)) => {
                    let opened = match &listener {
                        Some(_) => Ok(()),
                        None => TcpListener::bind(addr).await.map(|bound| listener = Some(bound)),
                    };
                    let _ = reply.send(opened);
                }
                Some(Command::Stop(reply)) => {
                    drop(listener);
                    connections.shutdown().await;
                    let _ = reply.send(Ok(()));
                    return;
                }
                None => return,
            },
            Some(accepted) = accept(listener.as_ref()) => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(stream, router.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> Option<io::Result<(TcpStream, SocketAddr)>> {
    Some(listener?.accept().await)
}

async fn serve(stream: TcpStream, router: Router) {
    // Headers and body may go out as two writes: without this the second waits for the client's delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    let connection = Connection::default();
    let socket = Socket { stream, connection: connection.clone() };
    let inner = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        let response = inner.call(request);
        async move {
            let response: Response<Body> = response.await.unwrap_or_else(|never| match never {});
            let drops = response.extensions().get::<DropConnection>().is_some();
            if drops { Err(io::Error::other("dropped on purpose")) } else { Ok(response) }
        }
    });
    // Errors here are clients that went away and faults that closed the connection.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}

/// A stream that is reset rather than closed if its connection says so.
struct Socket {
    stream: TcpStream,
    connection: Connection,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.connection.0.load(Ordering::Acquire) {
            // If this fails, the connection still closes, with FIN instead of RST.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

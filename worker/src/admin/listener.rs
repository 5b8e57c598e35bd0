//! Accepts connections within limits: how many, how many from one address, how long a head may take and how large it may be.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{Extension, Router, extract::ConnectInfo};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, task::JoinSet, time::sleep};

/// Connections at once. A dashboard holds one, a scraper one.
const CONNECTIONS: usize = 128;

/// Connections at once from one address of another machine.
const FROM_ONE: usize = 32;

/// How long the head of a request may take. The next request of a connection must begin within this time, too.
const HEAD: Duration = Duration::from_secs(10);

/// How large the head of a request may be, in bytes.
const HEAD_BYTES: usize = 16 * 1024;

/// Serves until the task is dropped; then all connections end, too.
pub(super) async fn serve(listener: TcpListener, router: Router) {
    serve_with(listener, router, HEAD).await;
}

async fn serve_with(listener: TcpListener, router: Router, head: Duration) {
    let peers = Peers::default();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "the admin server cannot accept a connection");
                sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        // Over a limit, the connection is closed at once: it costs nothing, and the caller notices.
        let Some(place) = peers.enter(peer) else { continue };
        let service = TowerToHyperService::new(router.clone().layer(Extension(ConnectInfo(peer))));
        connections.spawn(async move {
            let _place = place;
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(head).max_buf_size(HEAD_BYTES);
            // A caller that hangs up or sends no HTTP is no trouble of ours.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Counts open connections by address.
#[derive(Debug, Clone, Default)]
struct Peers(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A counted connection.
struct Place(Peers, IpAddr);

impl Peers {
    fn enter(&self, peer: SocketAddr) -> Option<Place> {
        let ip = peer.ip().to_canonical();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let from_one = open.get(&ip).copied().unwrap_or(0);
        if open.values().sum::<usize>() >= CONNECTIONS || (from_one >= FROM_ONE && !ip.is_loopback()) {
            return None;
        }
        open.insert(ip, from_one + 1);
        drop(open);
        Some(Place(self.clone(), ip))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;

    #[test]
    fn connections_are_limited_by_number_and_by_address() {
        let peers = Peers::default();
        let from = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let places: Vec<_> = (0..FROM_ONE).map(|_| peers.enter(from("192.0.2.1:5")).expect("room")).collect();
        assert!(peers.enter(from("192.0.2.1:6")).is_none(), "one address has its share");
        let more: Vec<_> = std::iter::from_fn(|| peers.enter(from("127.0.0.1:1"))).collect();
        assert_eq!(places.len() + more.len(), CONNECTIONS);
        assert!(peers.enter(from("192.0.2.9:1")).is_none());
        drop((places, more));
        assert!(peers.0.lock().expect("no panic").is_empty(), "what ended is forgotten");
    }

    #[tokio::test]
    async fn a_head_that_is_too_large_or_too_slow_ends_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let router = Router::new().route("/", get(|| async { "here" }));
        let server = tokio::spawn(serve_with(listener, router, Duration::from_millis(200)));

        let mut large = TcpStream::connect(address).await.expect("listening");
        let _ =
            large.write_all(format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(4 * HEAD_BYTES)).as_bytes()).await;
        let mut answer = [0; 12];
        large.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 431");

        let mut slow = TcpStream::connect(address).await.expect("listening");
        slow.write_all(b"GET / HT").await.expect("open");
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(HEAD, slow.read_to_end(&mut rest)).await;
        assert!(ended.is_ok() && !rest.starts_with(b"HTTP/1.1 200"), "{rest:?}");
        server.abort();
    }
}

//! A network that fails on command, between a registry and its Redis.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinHandle,
    time::sleep,
};

/// What the network does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// It works.
    Good,
    /// Every answer takes this long.
    Slow(Duration),
    /// Nothing comes through, and no end notices.
    Partitioned,
    /// Connections break, and new ones are refused.
    Reset,
}

/// A proxy that ends with this value.
pub struct Proxy {
    address: SocketAddr,
    network: watch::Sender<Network>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (network, watching) = watch::channel(Network::Good);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, port, watching.clone()));
            }
        });
        Self { address, network, task }
    }

    pub fn address(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub fn set(&self, network: Network) {
        self.network.send_replace(network);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
        self.set(Network::Reset);
    }
}

async fn connect(client: TcpStream, port: u16, mut network: watch::Receiver<Network>) {
    if *network.borrow() == Network::Reset {
        return;
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = pass(from_client, to_server, network.clone(), false) => {}
        () = pass(from_server, to_client, network.clone(), true) => {}
        _ = network.wait_for(|network| *network == Network::Reset) => {}
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut network: watch::Receiver<Network>, answers: bool) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
        let now = *network.borrow();
        match now {
            Network::Slow(time) if answers => sleep(time).await,
            // What was sent into a partition arrives when it ends, as TCP has it; if the partition never ends, it never arrives.
            Network::Partitioned => drop(network.wait_for(|network| *network != Network::Partitioned).await),
            _ => {}
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

//! A redis-server of our own.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// What must come comes within this time, on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that ends with this value.
pub struct Server {
    pub port: u16,
    child: Child,
    arguments: Vec<String>,
    folder: TempDir,
}

impl Server {
    pub async fn start() -> Self {
        Self::with(&[]).await
    }

    pub async fn with(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        // Another test may be faster at the port: then this server ends at once, and the next port is tried.
        for _ in 0..10 {
            let port = free_port();
            let mut child = spawn(port, &arguments, folder.path());
            if ready(port, &mut child).await {
                return Self { port, child, arguments, folder };
            }
            let _ = child.wait();
        }
        panic!("redis-server does not start");
    }

    pub fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// A connection to look at what is there, and to change it.
    pub async fn look(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.address()).expect("a valid address");
        client.get_multiplexed_async_connection().await.expect("the server is there")
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {signal}");
    }

    /// Kills it; what it held is lost.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Starts it again, empty, on the same port.
    pub async fn restart(&mut self) {
        let start = Instant::now();
        loop {
            self.child = spawn(self.port, &self.arguments, self.folder.path());
            if ready(self.port, &mut self.child).await {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "the port is not free again");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(port: u16, arguments: &[String], folder: &Path) -> Child {
    let mut command = Command::new(program());
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]);
    command.arg(folder).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("redis-server runs: install it, or run `make tools`")
}

async fn ready(port: u16, child: &mut Child) -> bool {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return false;
        }
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            // The port has a listener: make sure that it is this server, and not one that took the port before.
            sleep(Duration::from_millis(50)).await;
            return matches!(child.try_wait(), Ok(None));
        }
        sleep(Duration::from_millis(10)).await;
    }
    false
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}

/// `$REDIS_SERVER`, the one that `make tools` fetched, or the one on the PATH.
fn program() -> PathBuf {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/bin/redis-server");
    match std::env::var_os("REDIS_SERVER") {
        Some(named) => named.into(),
        None if fetched.exists() => fetched,
        None => "redis-server".into(),
    }
}

//! Processes that are killed. A child is this test program once more, and its environment names its job; it talks on
//! its standard output, one line for everything that it knows to be stored.

use circuit_registry_testing::redis_server::Server;
use std::{
    env,
    io::{BufRead, BufReader, Lines},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use circuit_registry::State;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::{Process, eventually};

const STORE: &str = "BREAKER_TEST_STORE";
const ROLE: &str = "BREAKER_TEST_ROLE";

/// A short lease, so that a dead holder's end can be waited for.
const FLEET: &str = "fleet: { share: { lease: 1s } }\nservices: { s: { fail_max: 1, reset_timeout: 200ms } }";
const OWN: &str = "defaults: { fail_max: 1, reset_timeout: 1h }";

/// Kills its process with this value.
struct Killed {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Killed {
    fn start(role: &str, store: &str) -> Self {
        let program = env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        command.args(["--exact", "crash::the_child", "--nocapture"]).env(STORE, store).env(ROLE, role);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, lines }
    }

    /// Waits for a line that begins with `word`; what follows it.
    fn says(&mut self, word: &str) -> String {
        loop {
            let line = self.lines.next().expect("it runs").expect("text");
            if let Some(rest) = line.split_once(word).map(|(_, rest)| rest.trim().to_owned()) {
                return rest;
            }
        }
    }

    /// Kills it, and reads what it printed before.
    fn kill(&mut self) -> Vec<String> {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
        self.lines.by_ref().map_while(Result::ok).collect()
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Does nothing unless it is a child's only test.
#[tokio::test]
async fn the_child() {
    let (Ok(role), Ok(store)) = (env::var(ROLE), env::var(STORE)) else { return };
    match role.as_str() {
        // Opens one breaker after the other and says which are known to be stored.
        "opener" => {
            let process = Process::start(&store, OWN).await;
            for i in 0.. {
                let name = format!("d{i}");
                let _ = process.registry.call(&name, async { Err::<(), _>(std::io::Error::other("down")) }).await;
                if process.registry.breaker(&name).stored().await.is_ok() {
                    println!("stored {i}");
                }
            }
        }
        // Probes as soon as it may, and never ends a probe.
        "prober" => {
            let process = Process::start(&store, FLEET).await;
            println!("ready 1");
            loop {
                match process.breaker().acquire().await {
                    Ok(permit) if permit.is_probe() => {
                        println!("probing 1");
                        std::future::pending::<()>().await;
                    }
                    _ => sleep(Duration::from_millis(1)).await,
                }
            }
        }
        other => panic!("{other} is no role"),
    }
}

#[tokio::test]
async fn a_file_is_whole_whenever_its_process_is_killed() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("breakers.state");
    let setting = format!("file:{}", path.display());
    for round in 0..20 {
        let _ = std::fs::remove_file(&path);
        let mut child = Killed::start("opener", &setting);
        child.says("stored 0");
        sleep(Duration::from_millis(17 * round)).await; // somewhere else each time
        let known =
            child.kill().iter().filter_map(|line| line.strip_prefix("stored ")?.parse().ok()).max().unwrap_or(0);
        assert_restored(&path, known, round).await;
    }
}

async fn assert_restored(path: &Path, known: u64, round: u64) {
    let text = std::fs::read_to_string(path).expect("there is a file");
    let process = Process::start(&format!("file:{}", path.display()), OWN).await;
    // Everything that was acknowledged is there, and every line of the file could be read.
    for i in 0..=known {
        let state = process.registry.breaker(&format!("d{i}")).view().state;
        assert_eq!(state, State::Open, "round {round}, d{i} of {known}");
    }
    assert!(text.lines().all(|line| line.starts_with('{') && line.ends_with('}')), "{text}");
}

#[tokio::test]
async fn acknowledged_records_are_in_redis() {
    let server = Server::start().await;
    let mut child = Killed::start("opener", &server.address());
    child.says("stored 3");
    child.kill();
    let process = Process::start(&server.address(), OWN).await;
    for i in 0..=3 {
        assert_eq!(process.registry.breaker(&format!("d{i}")).view().state, State::Open, "d{i}");
    }
}

// Of several threads, because reading what a child says blocks one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_process_dies_its_probe_blocks_only_for_the_lease() {
    let server = Server::start().await;
    let survivor = Process::start(&server.address(), FLEET).await;
    eventually("it shares", || survivor.errors("sync").1 == 0 && survivor.state() == State::Closed).await;
    for round in 0..5 {
        let mut child = Killed::start("prober", &server.address());
        child.says("ready");
        survivor.fail(1).await;
        child.says("probing");
        child.kill();
        let start = Instant::now();
        let mut refused = 0;
        while survivor.ok().await.is_err() {
            refused += 1;
            assert!(start.elapsed() < crate::PATIENCE, "stuck in round {round}");
            sleep(Duration::from_millis(5)).await;
        }
        assert!(refused > 0, "the lease of the dead holds for a while");
        assert_eq!(survivor.state(), State::Closed);
    }
}

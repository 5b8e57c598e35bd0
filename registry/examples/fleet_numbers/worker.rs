//! A worker process under constant load, and the upstream that it calls.

use std::{
    env,
    io::{self, BufRead, BufReader},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, channel},
    },
    thread,
    time::{Duration, SystemTime},
};

use circuit_registry::{CallError, CircuitRegistry, State};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep},
};

use crate::registry;

/// Tells a process to be a worker: the store's address, the upstream's port, and the number of callers.
pub(crate) const SETTING: &str = "FLEET_NUMBERS_WORKER";

/// Callers in each of several workers.
pub(crate) const CALLERS: usize = 4;

/// The pause of a caller between two calls.
const PAUSE: Duration = Duration::from_millis(5);

/// How long the upstream takes for an answer.
const ANSWER: Duration = Duration::from_millis(3);

pub(crate) const FAIL_MAX: usize = 5;
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
pub(crate) const LEASE: Duration = Duration::from_secs(2);

const YAML: &str = "
fleet: { share: { lease: 2s } }
names: { max_dynamic: 100000 }
services:
  upstream: { fail_max: 5, reset_timeout: 1s, timeout: 5s }
defaults: { fail_max: 1, reset_timeout: 1h }
";

/// Microseconds since 1970, by which processes of one machine compare times.
#[expect(clippy::disallowed_methods, reason = "the one clock that two processes have in common")]
pub(crate) fn micros() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}

/// The life of a worker: it calls for as long as its standard input is open, and says on its standard output when its breaker
/// changes, and which of its other breakers are open and acknowledged.
pub(crate) async fn run(setting: &str) {
    let [store, port, callers]: [&str; 3] =
        setting.split(' ').collect::<Vec<_>>().try_into().expect("a store, a port and a number");
    let (port, callers): (u16, usize) = (port.parse().expect("a port"), callers.parse().expect("a number"));
    let registry = registry(CircuitRegistry::builder(), store, YAML);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let sync_task = tokio::spawn(registry.restore().await.run(async { drop(stopped.await) }));
    println!("ready");
    for _ in 0..callers {
        tokio::spawn(load(registry.clone(), port));
    }
    tokio::spawn(watch(registry.clone()));
    tokio::spawn(open_others(registry.clone()));
    let _ = tokio::task::spawn_blocking(|| io::stdin().lines().for_each(drop)).await;
    drop(stop);
    let _ = sync_task.await;
}

async fn load(registry: CircuitRegistry, port: u16) {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await.expect("the upstream is there");
    loop {
        let call = registry.call("upstream", async {
            connection.write_all(b"?").await?;
            match connection.read_u8().await? {
                b'+' => Ok(()),
                _ => Err(io::Error::other("down")),
            }
        });
        if let Err(CallError::Upstream(error)) = call.await
            && error.kind() == io::ErrorKind::UnexpectedEof
        {
            return; // the measurement is over
        }
        sleep(PAUSE).await;
    }
}

async fn watch(registry: CircuitRegistry) {
    let (breaker, mut closed) = (registry.breaker("upstream"), None);
    loop {
        let now = breaker.view().state == State::Closed;
        if closed != Some(now) {
            println!("{} {}", if now { "closed" } else { "open" }, micros());
            closed = Some(now);
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// Opens one breaker of its own after the other, slowly.
async fn open_others(registry: CircuitRegistry) {
    for i in 0.. {
        let name = format!("own-{}-{i}", std::process::id());
        let _ = registry.call(&name, async { Err::<(), _>(io::Error::other("down")) }).await;
        // Without waiting for the acknowledgement: what is known after the coalescing interval must be stored.
        println!("opened {name} {}", micros());
        sleep(Duration::from_millis(100)).await;
    }
}

/// A worker process, killed with this value.
pub(crate) struct Worker {
    child: Child,
    _stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Worker {
    pub(crate) fn start(store: &str, port: u16, callers: usize) -> Self {
        let mut command = Command::new(env::current_exe().expect("this program has a path"));
        command.env(SETTING, format!("{store} {port} {callers}")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let (told, lines) = channel();
        thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| told.send(line))
        });
        let worker = Self { child, _stdin: stdin, lines };
        let first = worker.lines.recv_timeout(crate::PATIENCE);
        assert_eq!(first.as_deref(), Ok("ready"));
        worker
    }

    /// What it has said since it was last asked.
    pub(crate) fn printed(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// kill -9
    pub(crate) fn kill(mut self) -> Vec<String> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.lines.iter().collect()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An upstream that answers, or is down, and knows when it was asked.
#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) port: u16,
    shared: Arc<Asked>,
}

#[derive(Default)]
struct Asked {
    down: AtomicBool,
    /// Questions without an answer so far.
    in_flight: AtomicUsize,
    death: Mutex<Death>,
    /// When the first good answer since the recovery was sent.
    recovered: Mutex<Option<u64>>,
}

/// What an upstream has seen since it died.
#[derive(Clone, Default)]
pub(crate) struct Death {
    /// When each question came.
    pub(crate) asked: Vec<Instant>,
    /// Answers so far, all of them bad.
    answers: usize,
    /// When there were enough of them for its callers to know, and how many other questions were in flight then.
    pub(crate) enough: Option<(Instant, usize)>,
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let shared = Arc::<Asked>::default();
        let asked = shared.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(answer(connection, asked.clone()));
            }
        });
        Self { port, shared }
    }

    pub(crate) fn die(&self) {
        *lock(&self.shared.death) = Death::default();
        self.shared.down.store(true, Ordering::SeqCst);
    }

    /// What it has seen since it died.
    pub(crate) fn death(&self) -> Death {
        lock(&self.shared.death).clone()
    }

    pub(crate) fn recover(&self) {
        *lock(&self.shared.recovered) = None;
        self.shared.down.store(false, Ordering::SeqCst);
    }

    /// When the first good answer since the recovery was sent.
    pub(crate) fn recovered(&self) -> Option<u64> {
        *lock(&self.shared.recovered)
    }
}

async fn answer(mut connection: TcpStream, asked: Arc<Asked>) {
    while connection.read_u8().await.is_ok() {
        asked.in_flight.fetch_add(1, Ordering::SeqCst);
        if asked.down.load(Ordering::SeqCst) {
            lock(&asked.death).asked.push(Instant::now());
        }
        sleep(ANSWER).await;
        let others = asked.in_flight.fetch_sub(1, Ordering::SeqCst) - 1;
        let word = if asked.down.load(Ordering::SeqCst) {
            let mut death = lock(&asked.death);
            death.answers += 1;
            if death.answers == FAIL_MAX {
                death.enough = Some((Instant::now(), others));
            }
            b"-"
        } else {
            lock(&asked.recovered).get_or_insert_with(micros);
            b"+"
        };
        if connection.write_all(word).await.is_err() {
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

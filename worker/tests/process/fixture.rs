//! The fixture for worker processes: a server, simulated sources, a thresholds file and a folder.

use std::{
    collections::BTreeMap,
    fs,
    process::{Output, Stdio},
    time::Duration,
};

use osint_activities::model::{Country, Subject};
use osint_tests::wait::eventually;
use osint_worker::{
    dev::{DevStack, server::DevServerOptions},
    run::TASK_QUEUE,
    temporal::{codec::Codec, starter::Investigation},
};
use serde_json::Value;
use temporalio_client::Client;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, ChildStderr, Command},
};

/// A large listed company.
pub(crate) fn equinor() -> Subject {
    Subject {
        id: Some("923609016".to_owned()),
        name: Some("Equinor ASA".to_owned()),
        address: Some("Forusbeen 50, 4035 Stavanger".to_owned()),
        persons: vec!["Ola Eksempel".to_owned()],
        ..Subject::new(Country::new("NO"))
    }
}

/// The command `osint` with only `variables` in its environment.
pub(crate) fn osint(variables: &BTreeMap<String, String>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_osint"));
    command.env_clear().envs(variables).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    command
}

/// Variables from pairs.
pub(crate) fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Standard output and standard error.
pub(crate) fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A server and sources for worker processes.
pub(crate) struct Fixture {
    pub(crate) stack: DevStack,
    pub(crate) client: Client,
    pub(crate) variables: BTreeMap<String, String>,
    folder: tempfile::TempDir,
}

impl Fixture {
    /// Starts the server and the sources. Its client and its workers hold `keys`.
    pub(crate) async fn start(breakers: &str, keys: Option<&str>) -> Self {
        let codec: Codec = keys.map(|keys| keys.parse().unwrap()).unwrap_or_default();
        let options = DevServerOptions { converter: codec.converter(), ..DevServerOptions::default() };
        let stack = DevStack::start(options, &[]).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (thresholds, state) = (folder.path().join("breakers.yaml"), folder.path().join("breakers.state"));
        fs::write(&thresholds, breakers).unwrap();
        let mut variables = variables(&[
            ("TEMPORAL_ADDRESS", &stack.server.address()),
            ("OSINT_ADMIN", "127.0.0.1:0"),
            ("OSINT_CONFIG", &thresholds.display().to_string()),
            ("OSINT_STORE", &format!("file:{}", state.display())),
        ]);
        variables.extend(stack.simulator.env().into_iter().chain(stack.simulator.credentials()));
        variables.extend(keys.map(|keys| ("OSINT_CODEC_KEY".to_owned(), keys.to_owned())));
        let client = stack.server.client().await.unwrap();
        Self { stack, client, variables, folder }
    }

    /// Runs a worker with additional variables, and waits until it takes tasks.
    pub(crate) async fn worker(&self, more: &[(&str, &str)]) -> Worker {
        let worker = self.begin(more).await;
        eventually("the worker is ready", async || worker.page("ready").await.filter(|(status, _)| *status == 200))
            .await;
        worker
    }

    /// As [`Fixture::worker`], but waits only for the address of the admin server.
    pub(crate) async fn begin(&self, more: &[(&str, &str)]) -> Worker {
        let mut child = osint(&self.variables).envs(more.iter().copied()).arg("worker").spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let (mut log, mut admin) = (String::new(), None);
        while admin.is_none() {
            assert!(stderr.read_line(&mut log).await.unwrap() > 0, "the worker has ended: {log}");
            admin = log.rsplit_once("http://").map(|(_, address)| address.trim().to_owned());
        }
        Worker { child, stderr, admin: admin.unwrap() }
    }

    /// Begins an investigation.
    pub(crate) async fn investigate(&self) -> Investigation {
        Investigation::start(&self.client, TASK_QUEUE, equinor()).await.unwrap()
    }

    /// How often a source has been called.
    pub(crate) fn calls(&self, source: &str) -> u64 {
        self.stack.simulator.calls(source).unwrap().total
    }

    pub(crate) async fn stop(self) {
        self.stack.stop().await;
        drop(self.folder);
    }
}

/// A worker process; dropping it kills it.
pub(crate) struct Worker {
    child: Child,
    stderr: BufReader<ChildStderr>,
    admin: String,
}

impl Worker {
    /// Status and body of a page of its admin server; `None` without an answer.
    pub(crate) async fn page(&self, page: &str) -> Option<(u16, String)> {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().ok()?;
        let answer = http.get(format!("http://{}/{page}", self.admin)).send().await.ok()?;
        Some((answer.status().as_u16(), answer.text().await.ok()?))
    }

    /// The state of a breaker, such as `open`.
    pub(crate) async fn breaker(&self, service: &str) -> Option<String> {
        let (_, page) = self.page("breakers").await?;
        let list: Vec<Value> = serde_json::from_str(&page).ok()?;
        let breaker = list.iter().find(|breaker| breaker["service"] == service)?;
        breaker["state"].as_str().map(str::to_owned)
    }

    /// Sends a signal.
    pub(crate) async fn signal(&self, name: &str) {
        let id = self.child.id().expect("still running").to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().await.unwrap().success());
    }

    /// Waits for its end. Returns the exit code and the rest of the log.
    pub(crate) async fn ended(mut self) -> (Option<i32>, String) {
        let mut log = String::new();
        self.stderr.read_to_string(&mut log).await.unwrap();
        (self.child.wait().await.unwrap().code(), log)
    }

    /// Kills it at once.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

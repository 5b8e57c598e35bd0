//! A file that cannot be written or read: calls do not notice, the log says once what is wrong, the metric counts it. The disks
//! that are full or read-only here are real ones; where the system does not let a test make one, the test says so.

#![cfg(feature = "prometheus")]

use std::{
    env, fs, io,
    os::unix::{fs::MetadataExt, fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Output},
};

use circuit_registry::{BreakersConfig, CallError, CircuitRegistry, State, prometheus::register, store::FileStore};
use circuit_registry_testing::log::Log;
use prometheus::{Registry, TextEncoder};
use tempfile::TempDir;

const YAML: &str = "defaults: { fail_max: 3, reset_timeout: 60s }\nservices: { s: {}, t: {} }";

/// Tells a child of these tests which folder to try, and what the error should say.
const FOLDER: &str = "BREAKER_TEST_FOLDER";
const EXPECTED: &str = "BREAKER_TEST_EXPECTED";

/// A user without rights, on every system.
const NOBODY: u32 = 65534;

/// A process whose breakers are in the file at `path`.
struct Process {
    registry: CircuitRegistry,
    metrics: Registry,
    sync_task: tokio::task::JoinHandle<()>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.sync_task.abort();
    }
}

impl Process {
    async fn start(path: &Path, yaml: &str) -> Self {
        let config = BreakersConfig::from_yaml(yaml).expect("valid configuration");
        let registry = CircuitRegistry::builder().config(config).store(FileStore::new(path)).build();
        let metrics = Registry::new();
        register(&registry, &metrics).expect("names of its own");
        let sync_task = tokio::spawn(registry.restore().await.run(std::future::pending()));
        Self { registry, metrics, sync_task }
    }

    async fn fail(&self, service: &str, times: usize) {
        for _ in 0..times {
            let result = self.registry.call(service, async { Err::<(), _>(io::Error::other("down")) }).await;
            assert!(matches!(result, Err(CallError::Upstream(_))), "{result:?}");
        }
    }

    /// What Prometheus would read.
    fn failures(&self, op: &str) -> u64 {
        let text = TextEncoder::new().encode_to_string(&self.metrics.gather()).expect("text");
        let series = format!("circuit_breaker_store_errors_total{{op=\"{op}\",store=\"file\"}} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&series)).expect("a series for each operation");
        value.parse().expect("a number")
    }

    /// Calls go as ever; nothing is acknowledged, and that is counted, and logged once.
    async fn touches_no_call(&self, log: &Log, expected: &str) {
        self.registry.call("t", async { Ok::<_, io::Error>(()) }).await.expect("calls pass");
        self.fail("s", 3).await;
        assert_eq!(self.registry.breaker("s").view().state, State::Open, "in memory all is as ever");
        for _ in 0..2 {
            let error = self.registry.breaker("s").stored().await.expect_err("not acknowledged").to_string();
            assert!(error.contains(expected) && error.contains("breakers.state"), "{error}");
        }
        self.registry.call("t", async { Ok::<_, io::Error>(()) }).await.expect("calls pass");
        assert!(self.failures("save") >= 2, "every failure is counted");
        let lines = log.lines(&["WARN", "does not work", "store=file", "op=save"]);
        assert!(lines.len() == 1 && lines[0].contains(expected), "one line, however often it fails: {lines:?}");
    }
}

#[tokio::test]
async fn a_full_disk_touches_no_call_and_is_written_once_it_has_room() {
    let (log, _guard) = Log::listen();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let process = Process::start(&folder.path().join("breakers.state"), YAML).await;
    // Whatever is written to these names ends on a device that is always full.
    let full = |write: usize| folder.path().join(format!("breakers.state.tmp-{}-{write}", std::process::id()));
    for write in 0..100 {
        std::os::unix::fs::symlink("/dev/full", full(write)).expect("a link");
    }
    process.touches_no_call(&log, "No space left on device").await;
    assert!(!folder.path().join("breakers.state").exists(), "half a file is none");
    (0..100).for_each(|write| drop(fs::remove_file(full(write))));
    process.registry.breaker("s").stored().await.expect("there is room again");
    assert_eq!(log.lines(&["INFO", "works again", "op=save"]).len(), 1);
    let other = Process::start(&folder.path().join("breakers.state"), YAML).await;
    assert_eq!(other.registry.breaker("s").view().state, State::Open);
}

#[tokio::test]
async fn a_folder_that_is_not_there_touches_no_call() {
    let (log, _guard) = Log::listen();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let process = Process::start(&folder.path().join("nowhere").join("breakers.state"), YAML).await;
    process.touches_no_call(&log, "No such file or directory").await;
}

#[tokio::test]
async fn a_folder_that_is_a_file_touches_no_call() {
    let (log, _guard) = Log::listen();
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("file"), "").expect("written");
    let process = Process::start(&folder.path().join("file").join("breakers.state"), YAML).await;
    process.touches_no_call(&log, "Not a directory").await;
    assert_eq!(process.failures("load"), 1);
    assert_eq!(log.lines(&["WARN", "could not be restored", "store=file"]).len(), 1);
}

#[tokio::test]
async fn a_device_is_neither_read_nor_replaced() {
    let (log, _guard) = Log::listen();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("breakers.state");
    std::os::unix::fs::symlink("/dev/null", &path).expect("a link");
    let process = Process::start(&path, YAML).await;
    process.touches_no_call(&log, "is not a file").await;
    assert_eq!(fs::read_link(&path).expect("still a link"), Path::new("/dev/null"));
}

/// Does nothing unless it is a child's only test.
#[tokio::test]
async fn the_child() {
    let (Ok(folder), Ok(expected)) = (env::var(FOLDER), env::var(EXPECTED)) else { return };
    let (log, _guard) = Log::listen();
    let process = Process::start(&Path::new(&folder).join("breakers.state"), YAML).await;
    process.touches_no_call(&log, &expected).await;
    println!("no call was touched");
}

/// A disk of its own for the child, with these options of `mount`; no other process sees it.
fn with_a_disk(options: &str, before: &str, expected: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = format!(
        "mount -t tmpfs -o {options} breakers \"$0\" || exit 99; {before}; exec \"$1\" --exact the_child --nocapture"
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]).arg(folder.path());
    command.arg(env::current_exe().expect("this program has a path"));
    command.env(FOLDER, folder.path()).env(EXPECTED, expected);
    match command.output() {
        Ok(output)
            if !String::from_utf8_lossy(&output.stderr).contains("unshare:") && output.status.code() != Some(99) =>
        {
            assert_untouched(&output);
        }
        other => eprintln!("NOT TESTED: this system does not let us mount a disk with {options}: {other:?}"),
    }
}

fn assert_untouched(output: &Output) {
    let output_text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output_text.contains("no call was touched"), "{output_text}");
}

#[test]
fn a_disk_without_room_touches_no_call() {
    with_a_disk("size=64k", "cat /dev/zero >\"$0/filled\" 2>/dev/null", "No space left on device");
}

#[test]
fn a_read_only_disk_touches_no_call() {
    with_a_disk("ro", ":", "Read-only file system");
}

#[test]
fn a_folder_that_may_not_be_written_touches_no_call() {
    let folder: TempDir = tempfile::tempdir().expect("a temporary folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).expect("it is ours");
    let mut command = Command::new(env::current_exe().expect("this program has a path"));
    command.args(["--exact", "the_child", "--nocapture"]).current_dir("/");
    // Rights do not hold for root: the child gives them up.
    if fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
        command.uid(NOBODY).gid(NOBODY);
    }
    match command.env(FOLDER, folder.path()).env(EXPECTED, "Permission denied").output() {
        Ok(output) => assert_untouched(&output),
        Err(error) => eprintln!("NOT TESTED: this program cannot be run by another user: {error}"),
    }
}

#[tokio::test]
async fn a_bad_record_is_logged_once_and_the_rest_is_restored() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("breakers.state");
    let names = ["good", "newer", "odd", "partial", "changed"];
    {
        let process = Process::start(&path, YAML).await;
        for name in names {
            process.fail(name, 3).await;
            process.registry.breaker(name).stored().await.expect("stored");
        }
    }
    let text = fs::read_to_string(&path).expect("written");
    let line = |name: &str| text.lines().find(|line| line.contains(&format!("\"{name}\""))).expect("there").to_owned();
    let lines = [
        line("good"),
        "garbage".to_owned(),
        line("newer").replace("\"version\":1", "\"version\":7"),
        line("odd").replace("\"state\":\"open\"", "\"state\":5"),
        line("partial").replace("\"until\":", "\"other\":"),
        line("changed"),
    ];
    fs::write(&path, lines.join("\n")).expect("written");

    let (log, _guard) = Log::listen();
    let process = Process::start(&path, &YAML.replace("t: {}", "changed: { fail_max: 9 }")).await;
    let state = |name: &str| process.registry.breaker(name).view().state;
    assert_eq!(names.map(state), [State::Open, State::Closed, State::Closed, State::Closed, State::Closed]);
    for (service, problem) in [
        ("?", "it is not a snapshot"),
        ("newer", "its version is 7, and this program reads version 1"),
        ("odd", "it is not a snapshot"),
        ("partial", "it is not a snapshot"),
        ("changed", "under another policy"),
    ] {
        let lines = log.lines(&["WARN", "starts closed", &format!("service={service}"), problem]);
        assert_eq!(lines.len(), 1, "{service}: {lines:?}");
    }
    assert_eq!(log.lines(&["WARN"]).len(), 5, "and nothing else: {:?}", log.lines(&["WARN"]));
    assert_eq!(log.lines(&["INFO", "breakers restored", "restored=1"]).len(), 1);
    // What was in the way is out of the way.
    process.fail("newer", 3).await;
    process.registry.breaker("newer").stored().await.expect("stored");
    let (log, _guard) = Log::listen();
    let process = Process::start(&path, YAML).await;
    assert_eq!(process.registry.breaker("newer").view().state, State::Open);
    assert_eq!(log.lines(&["WARN", "starts closed"]).len(), 0, "{:?}", log.lines(&["WARN"]));
}

#[tokio::test]
async fn too_many_breakers_are_logged_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("breakers.state");
    {
        let process = Process::start(&path, YAML).await;
        for i in 0..8 {
            process.fail(&format!("dynamic-{i}"), 3).await;
        }
        process.registry.breaker("dynamic-7").stored().await.expect("stored");
    }
    let (log, _guard) = Log::listen();
    let process = Process::start(&path, &format!("names: {{ max_dynamic: 5 }}\n{YAML}")).await;
    let open = process.registry.views().iter().filter(|view| view.state == State::Open).count();
    assert_eq!(open, 5);
    assert_eq!(log.lines(&["WARN", "max_dynamic", "too_many=3"]).len(), 1, "{:?}", log.lines(&["WARN"]));
    assert_eq!(log.lines(&["INFO", "breakers restored", "restored=5"]).len(), 1);
}

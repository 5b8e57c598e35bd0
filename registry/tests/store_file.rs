//! Breakers that survive their process in a file: what is restored, what is not, and what a broken file costs. A process that is
//! killed is in `store_crash`.

use std::{
    fs, io,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use circuit_registry::{BreakersConfig, CircuitRegistry, Override, State, WallClock, policy::Mode, store::FileStore};
use tempfile::TempDir;

const YAML: &str = "defaults: { fail_max: 3, reset_timeout: 60s }\nservices: { s: {}, t: {} }";

/// A wall clock that a test sets.
#[derive(Clone)]
struct SetClock(Arc<Mutex<SystemTime>>);

impl SetClock {
    fn at(secs: u64) -> Self {
        Self(Arc::new(Mutex::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + secs))))
    }
}

impl WallClock for SetClock {
    fn now(&self) -> SystemTime {
        *self.0.lock().expect("no test panics with it")
    }
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("breakers.state")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap_or_default()
    }

    /// A process with this policy, whose wall clock shows `at`; runs `work` and shuts down in order.
    async fn process<T>(&self, yaml: &str, at: u64, work: impl AsyncFnOnce(&CircuitRegistry) -> T) -> T {
        let config = BreakersConfig::from_yaml(yaml).expect("valid configuration");
        let builder = CircuitRegistry::builder().config(config).wall_clock(SetClock::at(at));
        let registry = builder.store(FileStore::new(self.path())).build();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let sync_task = tokio::spawn(registry.restore().await.run(async { drop(stopped.await) }));
        let result = work(&registry).await;
        drop(stop);
        sync_task.await.expect("the sync task ends in order");
        result
    }
}

async fn fail(registry: &CircuitRegistry, service: &str, times: usize) {
    for _ in 0..times {
        let _ = registry.call(service, async { Err::<(), _>(io::Error::other("down")) }).await;
    }
}

fn errors(registry: &CircuitRegistry, op: &str) -> u64 {
    let (_, errors) = registry.store_errors().expect("there is a store");
    errors.into_iter().find(|(name, _)| *name == op).expect("a known operation").1
}

#[tokio::test]
async fn an_open_breaker_stays_open_for_the_rest_of_its_time() {
    let folder = Folder::new();
    folder.process(YAML, 0, async |registry| fail(registry, "s", 3).await).await;
    folder
        .process(YAML, 45, async |registry| {
            let view = registry.breaker("s").view();
            assert_eq!(
                (view.state, view.openings, view.consecutive_failures),
                (State::Open, 1, 0),
                "counters start empty"
            );
            let left = view.retry_in.unwrap();
            assert!(left > Duration::from_secs(14) && left <= Duration::from_secs(15), "{left:?}");
            assert_eq!(registry.breaker("t").view().state, State::Closed);
        })
        .await;
    folder.process(YAML, 60, async |registry| assert_eq!(registry.breaker("s").view().state, State::HalfOpen)).await;
}

#[tokio::test]
async fn a_clock_that_was_set_back_prolongs_no_opening() {
    let folder = Folder::new();
    folder.process(YAML, 100_000, async |registry| fail(registry, "s", 3).await).await;
    folder
        .process(YAML, 0, async |registry| {
            let left = registry.breaker("s").view().retry_in.unwrap();
            assert!(left <= Duration::from_secs(60), "{left:?}");
        })
        .await;
}

#[tokio::test]
async fn half_open_comes_back_as_open_and_due() {
    let folder = Folder::new();
    let yaml = "services: { s: { fail_max: 1, reset_timeout: 20ms } }";
    folder
        .process(yaml, 0, async |registry| {
            fail(registry, "s", 1).await;
            while registry.breaker("s").view().state != State::HalfOpen {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let _probe = registry.breaker("s").acquire().await.expect("due");
            registry.breaker("s").stored().await.expect("stored");
        })
        .await;
    folder
        .process(yaml, 0, async |registry| {
            assert_eq!(registry.breaker("s").view().state, State::HalfOpen);
            assert!(registry.breaker("s").acquire().await.expect("due at once").is_probe());
        })
        .await;
}

#[tokio::test]
async fn overrides_come_back_and_end_by_themselves() {
    let folder = Folder::new();
    folder
        .process(YAML, 0, async |registry| {
            registry.breaker("s").force_open(Override::new("alice", "maintenance").lasting(Duration::from_secs(100)));
            registry.breaker("t").force_closed(Override::new("bob", "trusted"));
            registry.breaker("t").stored().await.expect("acknowledged");
        })
        .await;
    let other_policy = YAML.replace("60s", "90s");
    folder
        .process(&other_policy, 99, async |registry| {
            let view = registry.breaker("s").view();
            assert_eq!((view.mode, view.state), (Mode::ForceOpen, State::Open), "whatever the policy");
            assert_eq!(registry.breaker("t").view().mode, Mode::ForceClosed);
            registry.breaker("t").auto();
        })
        .await;
    folder
        .process(YAML, 101, async |registry| {
            assert_eq!(registry.breaker("s").view().mode, Mode::Enforce);
            assert_eq!(registry.breaker("t").view().mode, Mode::Enforce);
        })
        .await;
}

#[tokio::test]
async fn another_policy_starts_closed() {
    let folder = Folder::new();
    folder.process(YAML, 0, async |registry| fail(registry, "s", 3).await).await;
    let other = YAML.replace("fail_max: 3", "fail_max: 4");
    folder.process(&other, 1, async |registry| assert_eq!(registry.breaker("s").view().state, State::Closed)).await;
}

#[tokio::test]
async fn a_broken_line_costs_its_own_breaker_only() {
    let folder = Folder::new();
    folder
        .process(YAML, 0, async |registry| {
            fail(registry, "s", 3).await;
            fail(registry, "t", 3).await;
            fail(registry, "dynamic:DE", 3).await;
        })
        .await;
    let good = folder.text();
    let line = |service: &str| good.lines().find(|line| line.contains(service)).unwrap().to_owned();
    let (s, rest) = (line("\"s\""), format!("{}\n{}\n", line("\"t\""), line("dynamic:DE")));
    let cases = [
        ("garbage", "not a record"),
        ("nothing", ""),
        ("half a line", &s[..s.len() / 2]),
        ("binary", "\u{0}\u{1}\u{fffd}"),
        ("another version", &s.replace("\"version\":1", "\"version\":99")),
        ("wrong types", &s.replace("\"until\":", "\"until\":\"later\",\"was\":")),
    ];
    for (case, text) in cases {
        fs::write(folder.path(), format!("{text}\n{rest}")).unwrap();
        folder
            .process(YAML, 1, async |registry| {
                assert_eq!(registry.breaker("s").view().state, State::Closed, "{case}");
                assert_eq!(registry.breaker("t").view().state, State::Open, "{case}");
                assert_eq!(registry.breaker("dynamic:DE").view().state, State::Open, "{case}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_file_cut_at_any_byte_is_read_as_far_as_it_goes() {
    let folder = Folder::new();
    folder
        .process(YAML, 0, async |registry| {
            fail(registry, "s", 3).await;
            fail(registry, "t", 3).await;
        })
        .await;
    let good = fs::read(folder.path()).unwrap();
    let first = good.iter().position(|byte| *byte == b'\n').unwrap();
    for cut in (0..good.len()).step_by(7) {
        fs::write(folder.path(), &good[..cut]).unwrap();
        folder
            .process(YAML, 1, async |registry| {
                let open = registry.views().iter().filter(|view| view.state == State::Open).count();
                assert_eq!(open, usize::from(cut >= first) + usize::from(cut + 1 >= good.len()), "cut at {cut}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_half_written_file_is_removed_and_not_read() {
    let folder = Folder::new();
    folder.process(YAML, 0, async |registry| fail(registry, "s", 3).await).await;
    let leftover = folder.0.path().join("breakers.state.tmp-1-0");
    fs::write(&leftover, "half a li").unwrap();
    folder.process(YAML, 1, async |registry| assert_eq!(registry.breaker("s").view().state, State::Open)).await;
    assert!(!leftover.exists());
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_touches_no_call() {
    let folder = Folder::new();
    let missing = folder.0.path().join("nowhere").join("breakers.state");
    let config = BreakersConfig::from_yaml(YAML).unwrap();
    let registry = CircuitRegistry::builder().config(config).store(FileStore::new(missing)).build();
    let sync_task = tokio::spawn(registry.restore().await.run(std::future::pending()));
    fail(&registry, "s", 3).await;
    assert_eq!(registry.breaker("s").view().state, State::Open, "in memory all is as ever");
    registry.breaker("s").stored().await.expect_err("not acknowledged");
    assert!(errors(&registry, "save") > 0);
    sync_task.abort();
}

#[tokio::test]
async fn a_folder_in_the_files_place_touches_no_call() {
    let folder = Folder::new();
    fs::create_dir(folder.path()).unwrap();
    folder
        .process(YAML, 0, async |registry| {
            assert_eq!(errors(registry, "load"), 1);
            fail(registry, "s", 3).await;
            registry.breaker("s").stored().await.expect_err("not acknowledged");
            assert!(errors(registry, "save") > 0);
        })
        .await;
}

#[tokio::test]
async fn changes_in_a_row_are_written_together() {
    let folder = Folder::new();
    folder
        .process(YAML, 0, async |registry| {
            for i in 0..500 {
                fail(registry, &format!("dynamic-{i}"), 3).await;
            }
        })
        .await;
    assert_eq!(folder.text().lines().count(), 500, "and at shutdown nothing is missing");
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 1, "one file");
}

#[tokio::test]
async fn a_closed_breaker_is_forgotten() {
    let folder = Folder::new();
    folder
        .process(YAML, 0, async |registry| {
            fail(registry, "s", 3).await;
            registry.breaker("s").stored().await.unwrap();
            registry.breaker("s").reset();
        })
        .await;
    assert_eq!(folder.text(), "");
}

#[tokio::test]
async fn without_a_store_nothing_is_acknowledged() {
    let registry = CircuitRegistry::new(BreakersConfig::default());
    assert!(registry.store_errors().is_none());
    registry.breaker("s").stored().await.expect_err("there is no store");
    registry.restore().await.run(std::future::ready(())).await;
}

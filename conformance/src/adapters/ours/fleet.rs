//! The cases about what outlives a process, and what processes share.

use std::time::{Duration, SystemTime};

use circuit_registry::{
    Breaker, BreakersConfig, CircuitRegistry, RegistryBuilder, State, WallClock,
    store::{FileStore, MemoryStore, Store},
};
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::check::{Result, same, seconds};
use crate::contract::Sick;

/// Long enough for every process to hear what was published.
const MOMENT: Duration = Duration::from_millis(50);

/// Runs a case on a paused clock of its own. While all its processes wait, time passes by itself.
fn on_paused_time(case: impl Future<Output = Result>) -> Result {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.map_err(|error| error.to_string())?.block_on(case)
}

/// A process with a registry of one service, `s`, and the keeper of its store.
struct Process {
    breaker: Breaker,
    stop: oneshot::Sender<()>,
    keeper: JoinHandle<()>,
}

impl Process {
    async fn start(name: &str, yaml: &str, store: impl Store + 'static, wall: Wall) -> Self {
        let config = BreakersConfig::from_yaml(yaml).expect("the cases configure valid policies");
        let builder: RegistryBuilder = CircuitRegistry::builder().config(config).log(false);
        let registry = builder.store(store).process(name).wall_clock(wall).build();
        let keeper = registry.restore().await;
        let (stop, stopped) = oneshot::channel::<()>();
        let keeper = tokio::spawn(keeper.run(async { drop(stopped.await) }));
        sleep(MOMENT).await;
        Self { breaker: registry.breaker("s"), stop, keeper }
    }

    /// Ends it in good order, so that its store knows how it stood.
    async fn stop(self) -> Result {
        drop(self.stop);
        self.keeper.await.map_err(|error| error.to_string())
    }

    async fn fail(&self, times: u32) {
        for _ in 0..times {
            let _ = self.breaker.call(async { Err::<(), _>(Sick::Ill) }).await;
        }
    }

    async fn is_admitted(&self) -> bool {
        self.breaker.call(async { Ok::<(), Sick>(()) }).await.is_ok()
    }

    fn state(&self) -> State {
        self.breaker.view().state
    }

    /// The time to the probe, as a whole number of seconds: the moments between the steps of a case do not count.
    fn seconds_left(&self) -> Option<u64> {
        self.breaker.view().retry_in.map(|left| (left + Duration::from_millis(900)).as_secs())
    }
}

/// A wall clock that goes with the case's time, and may be ahead of others.
#[derive(Clone, Copy)]
struct Wall {
    began: Instant,
    ahead: Duration,
}

impl Wall {
    fn start() -> Self {
        Self { began: Instant::now(), ahead: Duration::ZERO }
    }

    const fn ahead(self, ahead: Duration) -> Self {
        Self { ahead, ..self }
    }
}

impl WallClock for Wall {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + seconds(1_700_000_000) + self.began.elapsed() + self.ahead
    }
}

const ALONE: &str = "services: { s: { fail_max: 3, reset_timeout: 60s } }";
const SHARED: &str = "fleet: share\nservices: { s: { fail_max: 3, reset_timeout: 60s } }";

pub(super) fn a_day_of_uptime() -> Result {
    on_paused_time(async {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (file, wall) = (folder.path().join("breakers"), Wall::start());
        let old = Process::start("old", ALONE, FileStore::new(&file), wall).await;
        sleep(seconds(24 * 3600)).await;
        old.fail(3).await;
        sleep(seconds(10)).await;
        same("time left in the old process", Some(50), old.seconds_left())?;
        old.stop().await?;
        let new = Process::start("new", ALONE, FileStore::new(&file), wall).await;
        sleep(seconds(5)).await;
        same("state in the new process", State::Open, new.state())?;
        same("time left in the new process, five seconds later", Some(45), new.seconds_left())
    })
}

pub(super) fn a_clock_ten_minutes_ahead() -> Result {
    on_paused_time(async {
        let (store, wall) = (MemoryStore::new(), Wall::start());
        let ahead = Process::start("ahead", SHARED, store.clone(), wall.ahead(seconds(600))).await;
        ahead.fail(3).await;
        sleep(seconds(10)).await;
        let other = Process::start("other", SHARED, store, wall).await;
        same("state in the other process", State::Open, other.state())?;
        same("time left in the other process", Some(50), other.seconds_left())
    })
}

pub(super) fn an_opening_observed_late() -> Result {
    on_paused_time(async {
        let (store, wall) = (MemoryStore::new(), Wall::start());
        let peer = Process::start("peer", SHARED, store.clone(), wall).await;
        peer.fail(3).await;
        sleep(seconds(50)).await;
        let late = Process::start("late", SHARED, store, wall).await;
        same("state at t=50", State::Open, late.state())?;
        same("time left at t=50", Some(10), late.seconds_left())?;
        sleep(seconds(10)).await;
        same("state at t=60", State::HalfOpen, late.state())?;
        same("a call at t=60 is admitted", true, late.is_admitted().await)
    })
}

pub(super) fn a_lost_key() -> Result {
    on_paused_time(async {
        let (store, wall) = (MemoryStore::new(), Wall::start());
        let before = Process::start("before", ALONE, store.clone(), wall).await;
        before.fail(3).await;
        before.stop().await?;
        if store.text("s").is_none() {
            return Err("expected a remembered opening, observed none".into());
        }
        for left in [None, Some(""), Some("{"), Some("{\"version\":99}"), Some("\u{0}")] {
            let store = MemoryStore::new();
            if let Some(text) = left {
                store.set_text("s", text);
            }
            let after = Process::start("after", ALONE, store, wall).await;
            same(&format!("state where the store has {left:?}"), State::Closed, after.state())?;
            same("a call is admitted", true, after.is_admitted().await)?;
        }
        Ok(())
    })
}

pub(super) fn a_half_open_snapshot() -> Result {
    on_paused_time(async {
        let (store, wall) = (MemoryStore::new(), Wall::start());
        let before = Process::start("before", ALONE, store.clone(), wall).await;
        before.fail(3).await;
        sleep(seconds(60)).await;
        let probe = before.breaker.try_acquire().map_err(|refusal| refusal.to_string())?;
        before.stop().await?;
        drop(probe);
        let text = store.text("s").unwrap_or_default();
        if !text.contains("half_open") {
            return Err(format!("expected a half-open snapshot, observed {text:?}"));
        }
        let after = Process::start("after", ALONE, store, wall).await;
        same("state, being due", State::HalfOpen, after.state())?;
        let probe = after.breaker.try_acquire().map_err(|refusal| refusal.to_string())?;
        same("the call is a probe", true, probe.is_probe())?;
        same("a second call is admitted", false, after.is_admitted().await)
    })
}

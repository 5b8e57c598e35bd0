//! A store that is away at the start, that panics, or whose sync task does not run.

use std::{
    future::ready,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use circuit_registry::{
    BreakersConfig, CircuitRegistry, Override, State, StoreTask,
    policy::Mode,
    store::{Answer, Loaded, MemoryStore, Record, Store, StoreErrorKind},
};
use tokio::time::{Instant, sleep};

fn yaml(fleet: &str) -> String {
    format!(
        "defaults: {{ fail_max: 3, reset_timeout: 10m, fleet: {fleet} }}\nservices: {{ s: {{}}, t: {{}}, u: {{}} }}"
    )
}

async fn start(store: impl Store + 'static, fleet: &str) -> (CircuitRegistry, StoreTask) {
    let config = BreakersConfig::from_yaml(&yaml(fleet)).expect("valid configuration");
    let registry = CircuitRegistry::builder().config(config).store(store).build();
    let task = registry.restore().await.spawn();
    (registry, task)
}

async fn fail(registry: &CircuitRegistry, service: &str) {
    for _ in 0..3 {
        let _ = registry.call(service, async { Err::<(), _>(io::Error::other("down")) }).await;
    }
}

/// What is stored arrives as soon as the store answers, and nothing is written over it before.
async fn an_override_arrives_later(fleet: &str) {
    let store = MemoryStore::new();
    let (first, task) = start(store.clone(), fleet).await;
    first.breaker("s").force_open(Override::new("alice", "maintenance"));
    fail(&first, "t").await;
    first.breaker("s").stored().await.expect("stored");
    task.end().await;

    store.set_away(true);
    let (second, task) = start(store.clone(), fleet).await;
    fail(&second, "u").await;
    second.breaker("s").force_closed(Override::new("bob", "has not heard of alice"));
    let error = second.breaker("s").stored().await.expect_err("the store is away");
    assert_eq!(error.kind(), StoreErrorKind::Unreachable);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(second.breaker("s").view().mode, Mode::ForceClosed, "{fleet}");
    store.set_away(false);
    sleep(Duration::from_secs(10)).await;
    let view = |name: &str| second.breaker(name).view();
    assert_eq!(view("s").mode, Mode::ForceOpen, "{fleet}: the more cautious of both");
    assert_eq!((view("t").state, view("u").state), (State::Open, State::Open), "{fleet}");
    task.end().await;

    let text = store.text("s").expect("a record");
    assert!(text.contains("alice") && text.contains("bob"), "{fleet}: {text}");
    let (third, task) = start(store, fleet).await;
    let modes = ["s", "t", "u"].map(|name| (third.breaker(name).view().mode, third.breaker(name).view().state));
    assert_eq!(modes[0].0, Mode::ForceOpen);
    assert_eq!((modes[1].1, modes[2].1), (State::Open, State::Open));
    task.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_away_at_the_start_is_read_later() {
    an_override_arrives_later("off").await;
}

#[tokio::test(start_paused = true)]
async fn a_fleet_away_at_the_start_is_read_later() {
    an_override_arrives_later("share").await;
}

#[tokio::test(start_paused = true)]
async fn a_store_away_until_the_end_is_not_written() {
    let store = MemoryStore::new();
    store.set_text("s", "what another process wrote");
    store.set_away(true);
    let (registry, task) = start(store.clone(), "off").await;
    fail(&registry, "s").await;
    sleep(Duration::from_secs(3600)).await;
    task.end().await;
    store.set_away(false);
    assert_eq!(store.text("s").as_deref(), Some("what another process wrote"));
}

/// Panics at the first calls of each function.
#[derive(Clone, Default)]
struct Panics(Arc<AtomicUsize>);

impl Panics {
    fn next(&self) {
        let call = self.0.fetch_add(1, Ordering::Relaxed);
        if call < 4 {
            std::panic::resume_unwind(Box::new("the store's own affair"));
        }
    }
}

impl Store for Panics {
    fn kind(&self) -> &'static str {
        "panics"
    }

    fn load<'a>(&'a self, _: &'a [circuit_registry::ServiceName]) -> Answer<'a, Vec<Loaded>> {
        self.next();
        Box::pin(ready(Ok(Vec::new())))
    }

    fn save<'a>(&'a self, _: &'a [Record]) -> Answer<'a, ()> {
        Box::pin(async {
            self.next();
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_does_not_end_the_sync_task() {
    let store = Panics(Arc::new(AtomicUsize::new(2)));
    let (registry, task) = start(store.clone(), "off").await;
    let error = registry.breaker("s").stored().await.expect_err("the load panicked");
    assert!(error.to_string().contains("panicked"), "{error}");
    sleep(Duration::from_secs(1)).await;
    store.0.store(3, Ordering::Relaxed);
    fail(&registry, "s").await;
    registry.breaker("s").stored().await.expect_err("the save panicked");
    registry.breaker("s").stored().await.expect("the task goes on");
    task.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_sync_task_stored_does_not_wait() {
    let config = BreakersConfig::from_yaml(&yaml("off")).expect("valid configuration");
    let registry = CircuitRegistry::builder().config(config).store(MemoryStore::new()).build();
    let began = Instant::now();
    let absent = async || registry.breaker("s").stored().await.expect_err("no task").kind();
    assert_eq!(absent().await, StoreErrorKind::Absent, "never restored");
    let sync = registry.restore().await;
    assert_eq!(absent().await, StoreErrorKind::Absent, "restored, and not run");
    drop(sync);
    assert_eq!(absent().await, StoreErrorKind::Absent, "dropped");
    let task = tokio::spawn(registry.restore().await.run(std::future::pending()));
    registry.breaker("s").stored().await.expect("it runs");
    task.abort();
    let _ = task.await;
    assert_eq!(absent().await, StoreErrorKind::Absent, "ended by force");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

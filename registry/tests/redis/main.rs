//! Breakers in a real Redis: remembered, shared, and in every kind of trouble. A server is started for each test on a free
//! port, and stands behind a proxy of ours where its network is to fail. What processes do about each other, apart from Redis, is tried
//! faster in `fleet_memory`.
//!
//! These tests wait for what must come and never for a time to pass: they are slow where the machine is, and right all the same.

mod bad_input;
mod crash;
mod fleet;
mod outage;
mod restore;
mod tls;

use std::{io, time::Duration};

use circuit_registry::{Breaker, BreakersConfig, CallError, CircuitRegistry, Rejection, State, store};
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep},
};

/// What must come comes within this time, on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process with a store, as far as a registry is one.
pub(crate) struct Process {
    pub(crate) registry: CircuitRegistry,
    stop: Option<oneshot::Sender<()>>,
    sync_task: JoinHandle<()>,
}

impl Process {
    pub(crate) async fn start(store: &str, yaml: &str) -> Self {
        Self::build(CircuitRegistry::builder(), store, yaml).await
    }

    pub(crate) async fn build(builder: circuit_registry::RegistryBuilder, store: &str, yaml: &str) -> Self {
        let config = BreakersConfig::from_yaml(yaml).expect("valid configuration");
        let store = store::open(store).expect("a valid setting");
        let registry = builder.config(config).store(store).build();
        let (stop, stopped) = oneshot::channel::<()>();
        let sync_task = tokio::spawn(registry.restore().await.run(async { drop(stopped.await) }));
        Self { registry, stop: Some(stop), sync_task }
    }

    /// Ends it in order.
    pub(crate) async fn end(mut self) {
        drop(self.stop.take());
        (&mut self.sync_task).await.expect("the sync task ends in order");
    }

    pub(crate) fn breaker(&self) -> Breaker {
        self.registry.breaker("s")
    }

    pub(crate) fn state(&self) -> State {
        self.breaker().view().state
    }

    pub(crate) async fn fail(&self, times: usize) {
        for _ in 0..times {
            let result = self.registry.call("s", async { Err::<(), _>(io::Error::other("down")) }).await;
            assert!(matches!(result, Err(CallError::Upstream(_))), "{result:?}");
        }
    }

    pub(crate) async fn ok(&self) -> Result<(), Rejection> {
        match self.registry.call("s", async { Ok::<(), io::Error>(()) }).await {
            Err(CallError::Rejected(rejection)) => Err(rejection),
            _ => Ok(()),
        }
    }

    /// Failures of the store at `op`, and altogether.
    pub(crate) fn errors(&self, op: &str) -> (u64, u64) {
        let (_, errors) = self.registry.store_errors().expect("there is a store");
        let sum = errors.iter().map(|(_, count)| count).sum();
        (errors.iter().find(|(name, _)| *name == op).expect("a known operation").1, sum)
    }

    /// What Prometheus would read.
    #[cfg(feature = "prometheus")]
    pub(crate) fn page(&self) -> String {
        let metrics = prometheus::Registry::new();
        circuit_registry::prometheus::register(&self.registry, &metrics).expect("names of its own");
        prometheus::TextEncoder::new().encode_to_string(&metrics.gather()).expect("text")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.sync_task.abort();
    }
}

/// Waits until `there` is true.
pub(crate) async fn eventually(what: &str, mut there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !there() {
        assert!(start.elapsed() < PATIENCE, "never came: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until all `processes` are in `state`.
pub(crate) async fn all(processes: &[&Process], state: State) {
    eventually(&format!("all are {state}"), || processes.iter().all(|process| process.state() == state)).await;
}

//! A Temporal server and simulated sources that a whole test file shares, and workers of its own for each test.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use circuit_registry::{BreakersConfig, CircuitRegistry};
use osint_activities::model::{Country, Subject};
use osint_worker::{
    devserver::DevServerOptions,
    report::Report,
    run::{Settings, run_until},
    stack::Stack,
    starter::Investigation,
};
use temporalio_client::Client;

/// A server and simulated sources.
#[derive(Debug)]
pub struct Lab {
    /// The server, and the sources with their faults.
    pub stack: Stack,
    workers: AtomicUsize,
}

/// A worker at work, with breakers of its own.
pub struct Bench {
    /// The worker's breakers.
    pub registry: CircuitRegistry,
    /// A client of the worker's server.
    pub client: Client,
    /// The queue that only this worker serves.
    pub task_queue: String,
}

impl Lab {
    /// Starts a server and healthy sources.
    ///
    /// # Errors
    /// When either does not start.
    pub async fn open() -> Result<Self> {
        let stack = Stack::start(DevServerOptions::default(), &[]).await.context("run `scripts/tools temporal`")?;
        Ok(Self { stack, workers: AtomicUsize::new(0) })
    }

    /// Heals every source, forgets its calls, and runs `test` beside a fresh worker with these thresholds.
    ///
    /// # Errors
    /// When the worker does not start or does not end well, or what the test returns.
    pub async fn with_worker<T>(&self, breakers: &str, test: impl AsyncFnOnce(&Bench) -> Result<T>) -> Result<T> {
        self.stack.simulator.clear_all().await?;
        self.stack.simulator.forget_calls();
        let registry = CircuitRegistry::new(BreakersConfig::from_yaml(breakers)?);
        let activities = self.stack.activities(&registry)?;
        let client = self.stack.server.client().await?;
        let task_queue = format!("test-{}", self.workers.fetch_add(1, Ordering::Relaxed));
        let settings = Settings { task_queue: task_queue.clone(), ..Settings::default() };
        let bench = Bench { registry: registry.clone(), client: client.clone(), task_queue };
        // The test's own error goes round the worker's, so that a failed expectation is not reported as a failed worker.
        run_until(client, registry, activities, settings, async |_| Ok(test(&bench).await)).await?
    }

    /// Ends both, and returns when their processes and ports are gone.
    pub async fn close(self) {
        self.stack.stop().await;
    }
}

impl Bench {
    /// Investigates a company from start to report.
    ///
    /// # Errors
    /// When the investigation has no report.
    pub async fn investigate(&self, subject: &Subject) -> Result<Report> {
        Ok(Investigation::start(&self.client, &self.task_queue, subject.clone()).await?.report().await?)
    }
}

/// A company that every kind of source has something to say about. Public facts.
#[must_use]
pub fn equinor() -> Subject {
    Subject {
        id: Some("923609016".to_owned()),
        name: Some("Equinor ASA".to_owned()),
        address: Some("Forusbeen 50, 4035 Stavanger".to_owned()),
        ..Subject::new(Country::new("NO"))
    }
}

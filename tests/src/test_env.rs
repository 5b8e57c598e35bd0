//! The test environment: a real Temporal server, simulated sources with switchable faults, and workers.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicU32, Ordering},
};

use circuit_registry::{BreakersConfig, CircuitRegistry};
use osint_activities::{
    activity::Activities,
    model::{Country, Subject},
};
use osint_simulator::Simulator;
use osint_worker::{
    dev::{DevStack, server::DevServerOptions},
    error::CliError,
    report::Report,
    run::{Settings, Tuning, run_until},
    temporal::starter::Investigation,
};
use temporalio_client::Client;

/// The server and the sources. They live as long as the test.
#[derive(Debug)]
pub struct TestEnv {
    stack: DevStack,
    workers: AtomicU32,
}

/// A worker in the test environment.
pub struct TestWorker<'a> {
    /// Its breakers.
    pub registry: CircuitRegistry,
    /// A client of the server.
    pub client: Client,
    /// The sources.
    pub simulator: &'a Simulator,
    /// Where its admin server listens.
    pub admin: SocketAddr,
    queue: String,
}

impl TestEnv {
    /// Starts the server and the sources.
    ///
    /// # Errors
    /// When either cannot start; the text says what to install.
    pub async fn start() -> Result<Self, CliError> {
        Self::start_with(DevServerOptions::default()).await
    }

    /// As [`TestEnv::start`], with other options for the server.
    ///
    /// # Errors
    /// As [`TestEnv::start`].
    pub async fn start_with(server: DevServerOptions) -> Result<Self, CliError> {
        Ok(Self { stack: DevStack::start(server, &[]).await?, workers: AtomicU32::new(0) })
    }

    /// The sources.
    #[must_use]
    pub const fn simulator(&self) -> &Simulator {
        &self.stack.simulator
    }

    /// A client of the server, and the sources' operations with these breakers: for a worker of the test's own.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn parts(&self, registry: &CircuitRegistry) -> Result<(Client, Activities), CliError> {
        Ok((self.stack.server.client().await?, self.stack.activities(registry)?))
    }

    /// Runs a worker with breakers of its own, on a task queue of its own, for as long as `test` takes.
    ///
    /// # Errors
    /// When the worker fails, or what `test` returns.
    ///
    /// # Panics
    /// When `breakers` is no valid configuration.
    pub async fn with_worker<T>(
        &self,
        breakers: &str,
        test: impl AsyncFnOnce(&TestWorker<'_>) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        self.with_tuned_worker(breakers, Tuning::default(), test).await
    }

    /// The same with a worker that takes on as much as `tuning` says.
    ///
    /// # Errors
    /// As [`TestEnv::with_worker`].
    ///
    /// # Panics
    /// As [`TestEnv::with_worker`].
    pub async fn with_tuned_worker<T>(
        &self,
        breakers: &str,
        tuning: Tuning,
        test: impl AsyncFnOnce(&TestWorker<'_>) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let registry = CircuitRegistry::new(BreakersConfig::from_yaml(breakers).expect("a valid configuration"));
        let queue = format!("env-{}", self.workers.fetch_add(1, Ordering::Relaxed));
        let activities = self.stack.activities(&registry)?;
        let client = self.stack.server.client().await?;
        let admin = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let settings = Settings { task_queue: queue.clone(), admin, tuning, ..Settings::default() };
        let (simulator, breakers, test_client) = (self.simulator(), registry.clone(), client.clone());
        run_until(client, registry, activities, settings, async move |admin| {
            let admin = admin.expect("an admin server was asked for");
            test(&TestWorker { registry: breakers, client: test_client, simulator, admin, queue }).await
        })
        .await
    }

    /// Ends everything, and waits until it is gone.
    pub async fn stop(self) {
        self.stack.stop().await;
    }
}

impl TestWorker<'_> {
    /// Investigates to the end.
    ///
    /// # Errors
    /// When there is no report.
    pub async fn investigate(&self, subject: Subject) -> Result<Report, CliError> {
        self.begin(subject).await?.report().await
    }

    /// Begins to investigate.
    ///
    /// # Errors
    /// When the server does not accept it.
    pub async fn begin(&self, subject: Subject) -> Result<Investigation, CliError> {
        Investigation::start(&self.client, &self.queue, subject).await
    }
}

/// A large listed company that every kind of source has something to say about.
#[must_use]
pub fn equinor() -> Subject {
    Subject {
        id: Some("923609016".to_owned()),
        lei: Some("OW6OFBNCKXC4US5C7523".to_owned()),
        name: Some("Equinor ASA".to_owned()),
        address: Some("Forusbeen 50, 4035 Stavanger".to_owned()),
        ..Subject::new(Country::new("NO"))
    }
}

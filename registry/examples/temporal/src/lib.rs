//! A workflow that asks a register about companies, and the activity that asks. The register is down when the worker starts.

#![allow(missing_docs, unreachable_pub, reason = "the SDK's macros make public items of their own")]

use std::{error::Error, io, sync::Arc, time::Duration};

use circuit_registry::{
    CircuitRegistry,
    temporal::{ActivityPolicy, Degradation, PolicyKey, failure::application_failure},
};
use temporalio_client::{Client, ClientOptions, Connection, envconfig::LoadClientConfigProfileOptions};
use temporalio_sdk::{
    ActivityOptions, WorkflowContext, WorkflowResult,
    activities::{ActivityContext, ActivityError, activities},
};
use temporalio_workflow::{workflow, workflow_methods};
use tokio::time::Instant;

/// The task queue of both.
pub const QUEUE: &str = "circuit-registry-example";

/// The server that the environment and `temporal.toml` name; without either, the one on this machine.
pub async fn connect() -> Result<Client, Box<dyn Error>> {
    let (connection, client) = ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())?;
    Ok(Client::new(Connection::connect(connection).await?, client)?)
}

/// The activities and what they need.
pub struct Register {
    /// The breakers.
    pub registry: CircuitRegistry,
    /// When the register is back.
    pub down_until: Instant,
}

#[activities]
impl Register {
    /// Asks the register, through its breaker.
    #[activity(name = "lookup")]
    pub async fn lookup(self: Arc<Self>, _ctx: ActivityContext, company: String) -> Result<String, ActivityError> {
        let answer = self.registry.call("register", self.ask(&company)).await;
        Ok(answer.map_err(|error| application_failure("register", error))?)
    }
}

impl Register {
    async fn ask(&self, company: &str) -> io::Result<String> {
        if Instant::now() < self.down_until {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        Ok(format!("{company} is registered"))
    }
}

/// One report on many companies.
#[workflow]
#[derive(Default)]
pub struct ReportWorkflow;

#[workflow_methods]
impl ReportWorkflow {
    /// A line for each company, with an answer or without one.
    #[run]
    pub async fn run(ctx: &mut WorkflowContext<Self>, companies: Vec<String>) -> WorkflowResult<Vec<String>> {
        let options = ActivityOptions::start_to_close_timeout(Duration::from_secs(10));
        let mut report = Vec::new();
        for company in companies {
            let policy =
                if company.starts_with("urgent") { ActivityPolicy::new().wait() } else { ActivityPolicy::new() };
            let lookup = ctx.with_context_value_sync::<PolicyKey, _>(policy, || {
                ctx.execute_activity(Register::lookup, company.clone(), options.clone())
            });
            report.push(match lookup.await {
                Ok(answer) => answer,
                Err(error) => match Degradation::from_activity_error(&error) {
                    Some(degraded) => format!("{company}: no answer ({})", degraded.reason.as_str()),
                    None => return Err(error.into()),
                },
            });
        }
        Ok(report)
    }
}

#[cfg(doctest)]
#[doc = include_str!("../../../../docs/temporal.md")]
struct DocsTemporal;

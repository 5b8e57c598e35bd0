//! The SDK's options for a worker.

use std::fmt::Display;

use circuit_registry::{
    CircuitRegistry,
    temporal::{CircuitInterceptor, CircuitWorkflowInterceptor},
};
use osint_activities::activity::Activities;
use temporalio_sdk::{WorkerOptions, workflow_interceptors::WorkflowInterceptorConstructor};

use super::Settings;
use crate::{
    error::CliError,
    workflow::{InvestigationWorkflow, PlanningActivities},
};

/// What the worker runs, and how much at once.
pub(super) fn worker_options(
    settings: &Settings,
    registry: CircuitRegistry,
    activities: Activities,
) -> Result<WorkerOptions, CliError> {
    let tuning = &settings.tuning;
    let (own_rate, queue_rate) = tuning.rates();
    let mut options = WorkerOptions::new(settings.task_queue.as_str())
        .tuner(tuning.slots())
        .maybe_workflow_task_poller_behavior(tuning.workflow_polls())
        .maybe_activity_task_poller_behavior(tuning.activity_polls())
        .max_cached_workflows(tuning.cache())
        .maybe_max_worker_activities_per_second(own_rate)
        .maybe_max_task_queue_activities_per_second(queue_rate)
        .maybe_deployment_options(tuning.version())
        .activity_inbound_interceptor(CircuitInterceptor::new(registry.clone()))
        .register_activities(activities)
        .register_activities(PlanningActivities::new(registry))
        .graceful_shutdown_period(settings.grace)
        .register_workflow::<InvestigationWorkflow>()
        .map_err(|error| cannot_start(&error))?
        .build();
    options.register_workflow_interceptors(vec![workflow_interceptor()]);
    Ok(options)
}

pub(super) fn cannot_start(error: &dyn Display) -> CliError {
    CliError::failure(format!("the worker cannot start: {error}"))
}

/// Lets workflows pass to their activities how much time a question has. With `on_open: wait`, an activity then gives up
/// while the report can still be on time. Replayers need it, too.
#[must_use]
pub fn workflow_interceptor() -> WorkflowInterceptorConstructor {
    CircuitWorkflowInterceptor::new().constructor()
}

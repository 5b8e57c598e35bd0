//! The workflow's side: it stamps each activity with the workflow's policy for it, so that neither the activity nor the call needs
//! code for that.
//!
//! All of this is deterministic: the stamp depends on the table from the start of the worker, on the activity's options and on the
//! scope of the call. A changed table changes only headers, which a replay does not compare.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use temporalio_sdk::{
    WorkflowContextKey,
    workflow_interceptors::{
        CancellableWorkflowOutboundFuture, ScheduleActivityInput, ScheduleActivityResult, ScheduleLocalActivityInput,
        WorkflowInterceptor, WorkflowInterceptorConstructor, WorkflowInterceptorContext, WorkflowNext,
    },
};

use super::header::{ActivityPolicy, HEADER};

/// The key under which workflow code sets a policy for the activities that it starts within a scope.
///
/// ```no_run
/// use circuit_registry::temporal::{ActivityPolicy, PolicyKey};
/// # use temporalio_sdk::{ActivityOptions, WorkflowContext, activities::{ActivityContext, ActivityError, activities}};
/// # struct Register;
/// # #[activities] impl Register {
/// #     #[activity] async fn lookup(_ctx: ActivityContext, name: String) -> Result<String, ActivityError> { Ok(name) }
/// # }
/// # async fn workflow<W>(ctx: &mut WorkflowContext<W>, name: String, options: ActivityOptions)
/// # -> Result<String, Box<dyn std::error::Error>> {
/// let lookup = ctx.with_context_value_sync::<PolicyKey, _>(ActivityPolicy::new().wait(), || {
///     ctx.execute_activity(Register::lookup, name, options)
/// });
/// # Ok(lookup.await?)
/// # }
/// ```
#[derive(Debug)]
pub struct PolicyKey;

impl WorkflowContextKey for PolicyKey {
    type Value = ActivityPolicy;
}

/// Stamps activities, remote and local, with an [`ActivityPolicy`]. The [`CircuitInterceptor`](super::CircuitInterceptor) of the worker
/// that runs them follows it. The scope of [`PolicyKey`] comes first, then the table by activity type. The stamp also carries the activity's
/// schedule-to-close timeout, which the activity could not see.
///
/// Give it to workers with `register_workflow_interceptors`, and to replayers too.
///
/// ```no_run
/// use circuit_registry::temporal::{ActivityPolicy, CircuitWorkflowInterceptor};
/// use temporalio_sdk::WorkerOptions;
///
/// let mut options = WorkerOptions::new("queue").build();
/// let policies = CircuitWorkflowInterceptor::new().activity("lookup", ActivityPolicy::new().service("northdata").wait());
/// options.register_workflow_interceptors(vec![policies.constructor()]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct CircuitWorkflowInterceptor {
    by_type: Arc<BTreeMap<String, ActivityPolicy>>,
    logged: Arc<AtomicBool>,
}

impl CircuitWorkflowInterceptor {
    /// Stamps the time limit of activities, and nothing else.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The policy of every activity of this type.
    #[must_use]
    pub fn activity(mut self, activity_type: impl Into<String>, policy: ActivityPolicy) -> Self {
        Arc::make_mut(&mut self.by_type).insert(activity_type.into(), policy);
        self
    }

    /// The form that workers and replayers take.
    #[must_use]
    pub fn constructor(self) -> WorkflowInterceptorConstructor {
        WorkflowInterceptorConstructor::new(move |_view| self.clone())
    }

    /// The stamp for an activity; `None` for an empty policy.
    fn policy(
        &self,
        ctx: &WorkflowInterceptorContext,
        activity_type: &str,
        schedule_to_close: Option<Duration>,
    ) -> Option<ActivityPolicy> {
        let scoped = ctx.context_value::<PolicyKey>();
        let mut policy = scoped.map_or_else(ActivityPolicy::new, |scoped| (*scoped).clone());
        if let Some(by_type) = self.by_type.get(activity_type) {
            policy = policy.or(by_type);
        }
        policy.budget = match (policy.budget, schedule_to_close) {
            (Some(budget), Some(limit)) => Some(budget.min(limit)),
            (budget, limit) => budget.or(limit),
        };
        (policy != ActivityPolicy::new()).then_some(policy)
    }

    /// The activity has a stamp already: this interceptor is registered twice, or the program set the header.
    fn log_existing_header(&self, activity_type: &str) {
        if !self.logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(activity_type, "the activity has a `{HEADER}` header already, which stays");
        }
    }
}

macro_rules! stamp {
    ($self:ident, $ctx:ident, $input:ident, $limit:expr) => {
        if $input.headers().contains_key(HEADER) {
            $self.log_existing_header($input.activity_type());
        } else if let Some(policy) = $self.policy(&$ctx, $input.activity_type(), $limit) {
            $input.headers_mut().insert(HEADER.to_owned(), policy.to_payload());
        }
    };
}

impl WorkflowInterceptor for CircuitWorkflowInterceptor {
    fn schedule_activity(
        &self,
        ctx: WorkflowInterceptorContext,
        mut input: ScheduleActivityInput,
        next: WorkflowNext<'static, ScheduleActivityInput, CancellableWorkflowOutboundFuture<ScheduleActivityResult>>,
    ) -> CancellableWorkflowOutboundFuture<ScheduleActivityResult> {
        stamp!(self, ctx, input, input.options().close_timeouts.schedule_to_close());
        next.run(input)
    }

    fn schedule_local_activity(
        &self,
        ctx: WorkflowInterceptorContext,
        mut input: ScheduleLocalActivityInput,
        next: WorkflowNext<
            'static,
            ScheduleLocalActivityInput,
            CancellableWorkflowOutboundFuture<ScheduleActivityResult>,
        >,
    ) -> CancellableWorkflowOutboundFuture<ScheduleActivityResult> {
        stamp!(self, ctx, input, input.options().schedule_to_close_timeout);
        next.run(input)
    }
}

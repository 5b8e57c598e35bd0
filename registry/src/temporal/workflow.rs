//! The workflow's side: it stamps each activity with what the workflow says about it, so that no activity's code and no
//! workflow's call has to.
//!
//! All of it is deterministic: what is stamped depends on the table given at the start of the worker, on the activity's
//! options and on the scope the call is made in. A changed table changes headers only, which a replay does not compare.

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

/// The key under which workflow code says something about the activities it starts within a scope.
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

/// Stamps activities, remote and local, with an [`ActivityPolicy`] that the [`CircuitInterceptor`](super::CircuitInterceptor)
/// of whichever worker runs them goes by. Said in the scope of [`PolicyKey`] first, then by activity type; and whatever
/// is said, an activity with a schedule-to-close timeout is told of it, because it could not know.
///
/// Given to workers with `register_workflow_interceptors`, and to replayers too.
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
    said_twice: Arc<AtomicBool>,
}

impl CircuitWorkflowInterceptor {
    /// Tells activities of their time, and nothing else.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What is said about every activity of this type.
    #[must_use]
    pub fn activity(mut self, activity_type: impl Into<String>, policy: ActivityPolicy) -> Self {
        Arc::make_mut(&mut self.by_type).insert(activity_type.into(), policy);
        self
    }

    /// As workers and replayers take it.
    #[must_use]
    pub fn constructor(self) -> WorkflowInterceptorConstructor {
        WorkflowInterceptorConstructor::new(move |_view| self.clone())
    }

    /// What to stamp on an activity; `None` if there is nothing to say.
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

    /// The activity is stamped already: by this interceptor, given to the worker twice, or by the program itself.
    fn already(&self, activity_type: &str) {
        if !self.said_twice.swap(true, Ordering::Relaxed) {
            tracing::warn!(activity_type, "the activity has a `{HEADER}` header already, which stays");
        }
    }
}

macro_rules! stamp {
    ($self:ident, $ctx:ident, $input:ident, $limit:expr) => {
        if $input.headers().contains_key(HEADER) {
            $self.already($input.activity_type());
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

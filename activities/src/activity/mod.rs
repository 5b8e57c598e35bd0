//! Operations as Temporal activities: every row of the catalog is an activity type of its own.
//!
//! `engine` runs one attempt: an answer that is still fresh, else the source, else its fallbacks, else an older answer.
//! `failure` turns a failed attempt into the failure that the workflow reads. This module only meets Temporal.

mod engine;
mod failure;

use std::sync::Arc;

use circuit_registry::CircuitRegistry;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use temporalio_client::{ActivityIdentifier, AsyncActivityHandle, RpcOptions, errors::AsyncActivityError};
use temporalio_common::{ActivityDefinition, protos::TaskToken};
use temporalio_sdk::activities::{
    ActivityContext, ActivityDefinitions, ActivityError, ActivityImplementer, ExecutableActivity,
};

use crate::{
    cache::Answers,
    catalog::{self},
    client::Client,
    editions::EditionCache,
    model::{Finding, Job, Query},
    spec::Entry,
};

pub use engine::{AttemptInfo, Failed};

/// All operations, ready for `WorkerOptions::register_activities`.
#[derive(Debug, Clone)]
pub struct Activities {
    registry: CircuitRegistry,
    client: Client,
    answers: Answers,
    editions: EditionCache,
}

impl Activities {
    /// Operations that query through these, and keep answers where the client's settings say.
    #[must_use]
    pub fn new(registry: CircuitRegistry, client: Client) -> Self {
        let answers = Answers::new(client.settings().cache());
        let editions = EditionCache::new(client.settings().cache());
        Self { registry, client, answers, editions }
    }

    async fn run(&self, entry: Entry, ctx: &ActivityContext, mut query: Query) -> Result<Finding, ActivityError> {
        let task = ctx.info();
        let most = task.retry_policy.as_ref().map_or(1, |policy| policy.maximum_attempts());
        let most = query.tries.map_or(most, |tries| tries.min(most));
        let info = AttemptInfo { attempt: task.attempt, last: task.attempt >= most };
        let starts = entry.operation.billed && query.job.is_none();
        match ctx.heartbeat_details().deserialize::<Trace>() {
            Ok(Some(Trace::Started(job))) => query.job = Some(job),
            Ok(Some(Trace::Asking)) if starts => {
                return Err(ActivityError::application(Self::not_again(entry, info).failure(info)));
            }
            _ => {}
        }
        let starts = starts && query.job.is_none();
        let left = async |trace: Trace| {
            if let Err(error) = leave(ctx, trace).await {
                tracing::warn!(%error, "an attempt could not leave a trace");
            }
        };
        let on_job = |job: Job| -> BoxFuture<'_, ()> { Box::pin(left(Trace::Started(job))) };
        if starts {
            leave(ctx, Trace::Asking).await?; // or nothing is asked
        }
        let finding = self.investigate(entry, &query, info, Some(&on_job)).await;
        if starts && finding.is_err() {
            left(Trace::Over).await;
        }
        finding.map_err(|failed| ActivityError::application(failed.failure(info)))
    }
}

/// Leaves a trace with the server, and returns when it is there. The SDK's own heartbeats are sent some time later.
async fn leave(ctx: &ActivityContext, trace: Trace) -> Result<(), AsyncActivityError> {
    let token = TaskToken::from(ctx.info().task_token.clone());
    let activity = AsyncActivityHandle::new(ctx.client(), ActivityIdentifier::TaskToken(token));
    activity.heartbeat(Some(trace), RpcOptions::default()).await.map(drop)
}

/// What an attempt at a billed operation leaves behind, in case its worker dies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Trace {
    /// It is about to send a request that is charged.
    Asking,
    /// It has started a job, to be collected.
    Started(Job),
    /// It ended like an attempt should; what the error says about the charge counts.
    Over,
}

/// The `N`th row of the catalog as an activity: one implementation, as many types as there are rows.
struct Row<const N: usize>;

impl<const N: usize> ActivityDefinition for Row<N> {
    type Input = Query;
    type Output = Finding;

    fn name(&self) -> &str {
        catalog::operations().get(N).map_or("", |entry| entry.operation.name)
    }
}

impl<const N: usize> ExecutableActivity for Row<N> {
    type Implementer = Activities;
    const REQUIRES_INSTANCE: bool = true;

    fn definition() -> Self {
        Self
    }

    fn execute(
        receiver: Option<Arc<Activities>>,
        ctx: ActivityContext,
        query: Query,
    ) -> BoxFuture<'static, Result<Finding, ActivityError>> {
        Box::pin(async move {
            match (receiver, catalog::operations().get(N)) {
                (Some(activities), Some(entry)) => activities.run(*entry, &ctx, query).await,
                _ => Err(std::io::Error::other("this operation has no row or no implementation").into()),
            }
        })
    }
}

/// Registers the rows of the catalog whose numbers are given; numbers beyond its end are no rows.
macro_rules! register_rows {
    ($activities:ident, $definitions:ident, $($n:literal)*) => {
        $(if $n < catalog::operations().len() {
            $definitions.register_activity::<Row<$n>>($activities.clone());
        })*
    };
}

/// Rows that [`Activities`] can register: the literals below, counted.
#[cfg(test)]
const CAPACITY: usize = 80;

impl ActivityImplementer for Activities {
    fn register_all(self: Arc<Self>, definitions: &mut ActivityDefinitions) {
        register_rows!(self, definitions,
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39
            40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76
            77 78 79);
    }
}

#[cfg(test)]
mod tests;

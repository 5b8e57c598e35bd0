//! Operations as Temporal activities: every row of the catalog under an activity type of its own.

mod engine;
mod failure;

use std::sync::Arc;

use circuit_registry::CircuitRegistry;
use futures::future::BoxFuture;
use temporalio_common::ActivityDefinition;
use temporalio_sdk::activities::{
    ActivityContext, ActivityDefinitions, ActivityError, ActivityImplementer, ExecutableActivity,
};

use crate::{
    cache::{Answers, Files},
    catalog::{self, Entry},
    client::Client,
    model::{Ask, Finding, Job},
};

pub use engine::{Chance, Failed};

/// How a workflow names an operation: `ctx.execute_activity(Call::to(entry), Ask::from(subject), options)`. Each operation
/// has an activity type of its own, so the UI and the metrics tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call(pub &'static str);

impl Call {
    /// The activity of that operation.
    #[must_use]
    pub const fn to(entry: Entry) -> Self {
        Self(entry.operation.name)
    }
}

impl ActivityDefinition for Call {
    type Input = Ask;
    type Output = Finding;

    fn name(&self) -> &str {
        self.0
    }
}

/// All operations, ready for `WorkerOptions::register_activities`.
#[derive(Debug, Clone)]
pub struct Activities {
    registry: CircuitRegistry,
    client: Client,
    answers: Answers,
    files: Files,
}

impl Activities {
    /// Operations that ask through these, and keep answers where the client's settings say.
    #[must_use]
    pub fn new(registry: CircuitRegistry, client: Client) -> Self {
        let answers = Answers::new(client.settings().cache());
        let files = Files::new(client.settings().cache());
        Self { registry, client, answers, files }
    }

    async fn run(&self, entry: Entry, ctx: &ActivityContext, mut ask: Ask) -> Result<Finding, ActivityError> {
        let info = ctx.info();
        let most = info.retry_policy.as_ref().map_or(1, |policy| policy.maximum_attempts());
        let most = ask.tries.map_or(most, |tries| tries.min(most));
        let chance = Chance { attempt: info.attempt, last: info.attempt >= most };
        if let Ok(Some(job)) = ctx.heartbeat_details().deserialize::<Job>() {
            ask.job = Some(job); // started by an earlier attempt that did not live to tell
        }
        let keeper = |job: Job| -> BoxFuture<'_, ()> {
            Box::pin(async move {
                if let Err(error) = ctx.record_heartbeat(job).await {
                    tracing::warn!(%error, "a job could not be remembered");
                }
            })
        };
        let finding = self.investigate(entry, &ask, chance, Some(&keeper)).await;
        finding.map_err(|failed| ActivityError::application(failed.failure(chance)))
    }
}

/// The `N`th row of the catalog as an activity: one implementation, as many types as there are rows.
struct Row<const N: usize>;

impl<const N: usize> ActivityDefinition for Row<N> {
    type Input = Ask;
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
        ask: Ask,
    ) -> BoxFuture<'static, Result<Finding, ActivityError>> {
        Box::pin(async move {
            match (receiver, catalog::operations().get(N)) {
                (Some(activities), Some(entry)) => activities.run(*entry, &ctx, ask).await,
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

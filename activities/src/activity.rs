//! Operations as Temporal activities.

use temporalio_common::ActivityDefinition;

use crate::{
    catalog::Entry,
    model::{Ask, Finding},
};

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

//! What a call should know about the work it is part of: which attempt this is, and when the whole must be done.
//!
//! It travels as a task-local, so that `registry.call` deep inside an activity knows what the interceptor around
//! the activity knew. Nothing pays for it until the first scope is entered.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

/// The circumstances of the calls made within a scope.
///
/// ```
/// # use circuit_registry::{BreakersConfig, CircuitRegistry, CallContext};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # let registry = CircuitRegistry::new(BreakersConfig::default());
/// let answer = CallContext::attempt(2)
///     .scope(async { registry.call("northdata", async { Ok::<_, std::io::Error>(42) }).await })
///     .await;
/// # assert_eq!(answer.unwrap(), 42);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallContext {
    /// Counts from 1. An attempt above 1 is paid from the retry budget, where the policy has one.
    pub attempt: u32,
    /// When the surrounding work must be done. A call is given up shortly before.
    pub deadline: Option<Instant>,
    /// The kind of work, such as a Temporal activity type.
    pub activity: Option<String>,
    /// The workflow it belongs to.
    pub workflow_id: Option<String>,
    /// The run of that workflow.
    pub run_id: Option<String>,
}

tokio::task_local! {
    static CONTEXT: CallContext;
}

/// Whether any scope was ever entered.
static IN_USE: AtomicBool = AtomicBool::new(false);

impl CallContext {
    /// The given attempt, with nothing else known.
    #[must_use]
    pub const fn attempt(attempt: u32) -> Self {
        Self { attempt, deadline: None, activity: None, workflow_id: None, run_id: None }
    }

    /// The same, to be done by `deadline`.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Runs `work` within this context.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        IN_USE.store(true, Ordering::Relaxed);
        CONTEXT.scope(self, work).await
    }

    /// Reads the context that the present task runs in, if it runs in one.
    pub fn with_current<T>(read: impl FnOnce(&Self) -> T) -> Option<T> {
        if !in_use() {
            return None;
        }
        CONTEXT.try_with(read).ok()
    }
}

#[inline]
pub(crate) fn in_use() -> bool {
    IN_USE.load(Ordering::Relaxed)
}

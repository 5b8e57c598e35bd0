//! What a call should know about the work it is part of: which attempt this is, and when the whole must be done.
//!
//! It travels as a task-local, so that `registry.call` deep inside an activity knows what the interceptor around
//! the activity knew. Nothing pays for it until the first scope is entered, and then only calls that it changes anything for.

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
    labels: Labels,
}

/// So much text lives inside the context: an activity type, a workflow id and the 36 bytes of a run id.
const ROOM: usize = 126;

/// Three texts in a row, without an allocation where they are short: an interceptor makes them for every activity, and hardly
/// anybody reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Labels {
    text: Text,
    /// Where the first and the second text end.
    ends: [usize; 2],
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    Inline { len: u8, bytes: [u8; ROOM] },
    Heap(String),
}

impl Text {
    const EMPTY: Self = Self::Inline { len: 0, bytes: [0; ROOM] };

    fn of(parts: [&str; 3]) -> Self {
        if parts.iter().map(|part| part.len()).sum::<usize>() > ROOM {
            return Self::Heap(parts.concat());
        }
        let (mut bytes, mut len) = ([0; ROOM], 0);
        for part in parts {
            bytes[len..len + part.len()].copy_from_slice(part.as_bytes());
            len += part.len();
        }
        Self::Inline { len: len as u8, bytes }
    }

    fn as_str(&self) -> &str {
        match self {
            // Whole texts went in, so text comes out.
            Self::Inline { len, bytes } => str::from_utf8(&bytes[..usize::from(*len)]).unwrap_or_default(),
            Self::Heap(text) => text,
        }
    }
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
        Self { attempt, deadline: None, labels: Labels { text: Text::EMPTY, ends: [0; 2] } }
    }

    /// The same, to be done by `deadline`.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The same, with names for what it is part of: the kind of work, such as a Temporal activity type, and the workflow and run
    /// that it is done for. An empty name is none.
    #[must_use]
    pub fn named(mut self, activity: &str, workflow_id: &str, run_id: &str) -> Self {
        let text = Text::of([activity, workflow_id, run_id]);
        self.labels = Labels { text, ends: [activity.len(), activity.len() + workflow_id.len()] };
        self
    }

    /// The kind of work, such as a Temporal activity type.
    #[must_use]
    pub fn activity(&self) -> Option<&str> {
        self.label(0, self.labels.ends[0])
    }

    /// The workflow it belongs to.
    #[must_use]
    pub fn workflow_id(&self) -> Option<&str> {
        self.label(self.labels.ends[0], self.labels.ends[1])
    }

    /// The run of that workflow.
    #[must_use]
    pub fn run_id(&self) -> Option<&str> {
        self.label(self.labels.ends[1], self.labels.text.as_str().len())
    }

    fn label(&self, start: usize, end: usize) -> Option<&str> {
        self.labels.text.as_str().get(start..end).filter(|label| !label.is_empty())
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

/// Whether a call made here has to look at its context: a retry may have to be paid for, and a deadline needs an alarm.
#[inline]
pub(crate) fn matters() -> bool {
    in_use() && matters_here()
}

#[inline(never)]
fn matters_here() -> bool {
    CONTEXT.try_with(|context| context.attempt > 1 || context.deadline.is_some()).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_an_empty_one_is_none() {
        let context = CallContext::attempt(1).named("lookup", "", "run");
        assert_eq!((context.activity(), context.workflow_id(), context.run_id()), (Some("lookup"), None, Some("run")));
        let context = CallContext::attempt(1).named("lookup", "kyb-Ä", "");
        assert_eq!(
            (context.activity(), context.workflow_id(), context.run_id()),
            (Some("lookup"), Some("kyb-Ä"), None)
        );
        assert_eq!(CallContext::attempt(1).activity(), None);
        for length in [ROOM - 8, ROOM - 7, 1000] {
            let (workflow, run) = ("w".repeat(length), "ž");
            let context = CallContext::attempt(1).named("lookup", &workflow, run);
            let names = (context.activity(), context.workflow_id(), context.run_id());
            assert_eq!(names, (Some("lookup"), Some(workflow.as_str()), Some(run)));
        }
    }

    #[tokio::test]
    async fn a_context_matters_to_retries_and_deadlines_only() {
        assert!(!matters());
        CallContext::attempt(1).scope(async { assert!(!matters()) }).await;
        CallContext::attempt(2).scope(async { assert!(matters()) }).await;
        CallContext::attempt(1).with_deadline(Instant::now()).scope(async { assert!(matters()) }).await;
        assert!(!matters(), "a scope that was left changes no call");
    }
}

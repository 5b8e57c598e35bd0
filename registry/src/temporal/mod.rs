//! Circuit breakers inside a Temporal worker (feature `temporal`, the SDK's stable API only).
//!
//! Temporal owns retries, and a breaker must not fight them. So a refusal reaches the server as a failure that says whether another
//! attempt can help, and the workflow recognises it and goes on without the answer.
//!
//! * [`CircuitInterceptor`] gives every call inside an activity its attempt and deadline, so that the call ends before its activity
//!   does. It guards whole activities without a change of their code. And it decides when an activity without an answer is retried.
//! * [`failure`] is the one table from refusals to [`ApplicationFailure`](temporalio_common::error::ApplicationFailure)s.
//!   `map_err(ApplicationFailure::from)?` in an activity is enough; a bare `?` loses the type on its way through `anyhow`.
//! * [`CircuitWorkflowInterceptor`] lets a workflow override that, activity by activity, with an [`ActivityPolicy`].
//! * [`QueuePauser`] keeps the work of a service with its own task queue on the server while its breaker is open.
//! * [`Degradation`] reads such a failure back in a workflow, whichever of the SDK's two shapes it arrives in.
//!
//! ```no_run
//! use circuit_registry::{CircuitRegistry, temporal::CircuitInterceptor};
//! use temporalio_sdk::WorkerOptions;
//!
//! # fn options(registry: CircuitRegistry) -> WorkerOptions {
//! WorkerOptions::new("queue").activity_inbound_interceptor(CircuitInterceptor::new(registry)).build()
//! # }
//! ```
//!
//! The interceptor returns the activity's own value or an error. It never makes up a value, because a value of the wrong type would
//! *complete* the activity and break the workflow that reads it.

mod degradation;
pub mod failure;
mod header;
mod interceptor;
mod next;
mod once;
#[cfg(feature = "temporal-plugin")]
pub(crate) mod plugin;
mod queue_pausing;
mod retry_directive;
mod waiting;
mod workflow;

pub use degradation::{Degradation, details};
pub use failure::{FailureDetails, Reason};
pub use header::{ActivityPolicy, HEADER};
pub use interceptor::CircuitInterceptor;
#[cfg(feature = "temporal-plugin")]
pub use plugin::{PLUGIN, plugin, plugin_of};
pub use queue_pausing::QueuePauser;
pub use workflow::{CircuitWorkflowInterceptor, PolicyKey};

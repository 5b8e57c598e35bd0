//! Circuit breakers inside a Temporal worker (feature `temporal`, the SDK's stable API only).
//!
//! Temporal owns retries, so a breaker must not fight them: what it refuses has to reach the server as a failure that
//! says whether another attempt can help, and has to be recognised by the workflow that goes on without the answer.
//!
//! * [`CircuitInterceptor`] tells every call inside an activity which attempt it belongs to and when the activity ends, so
//!   that the call is given up before its activity is; it guards whole activities whose code nobody wants to touch; and it
//!   decides when an activity without an answer comes back.
//! * [`failure`] is the one table from refusals to [`ApplicationFailure`](temporalio_common::error::ApplicationFailure)s.
//!   `map_err(ApplicationFailure::from)?` in an activity is enough; a bare `?` loses the type on its way through `anyhow`.
//! * [`CircuitWorkflowInterceptor`] lets a workflow say otherwise, activity by activity, with an [`ActivityPolicy`].
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
//! The interceptor only ever returns what the activity returned, or an error: it never makes up a value, because a value of
//! the wrong type would *complete* the activity and break the workflow that reads it.

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

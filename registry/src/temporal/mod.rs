//! Circuit breakers inside a Temporal worker (feature `temporal`, the SDK's stable API only).
//!
//! Temporal owns retries, so a breaker must not fight them: what it refuses has to reach the server as a failure that
//! says whether another attempt can help, and has to be recognised by the workflow that goes on without the answer.
//!
//! * [`failure`] is the one table from refusals to [`ApplicationFailure`](temporalio_common::error::ApplicationFailure)s.
//!   `map_err(ApplicationFailure::from)?` in an activity is enough; a bare `?` loses the type on its way through `anyhow`.
//! * [`Degradation`] reads such a failure back in a workflow, whichever of the SDK's two shapes it arrives in.

mod degradation;
pub mod failure;

pub use degradation::{Degradation, details};
pub use failure::{FailureDetails, Reason};

//! Named circuit breakers for Rust services and Temporal activities.

mod outcome;

pub use outcome::{CallError, Classify, Rejection, ServiceName, Settlement, State, Verdict};

#[cfg(feature = "temporal")]
pub mod temporal;

//! The invariants of the contract through the public API: whole calls that end, hang, are dropped or panic on paused time, against the
//! same naive model as the books; many threads on real ones; observers and clocks that misbehave; names that come and go.
//!
//! What one breaker's books do with explicit time, clocks that step back included, is tested beside them.

#[path = "../../src/state/properties/model.rs"]
mod model;
mod names;
mod observers;
mod sequences;
mod threads;

use circuit_registry::{
    BreakersConfig, Settlement, State, Verdict,
    policy::{Mode, Policy, Rate, Span},
};

fn config(yaml: &str) -> BreakersConfig {
    BreakersConfig::from_yaml(yaml).expect("valid configuration")
}

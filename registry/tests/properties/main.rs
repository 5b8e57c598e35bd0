//! The invariants of the contract through the public API: many threads, observers and clocks that misbehave, names that come
//! and go.
//!
//! Random calls of one breaker run beside a naive model in the crate itself: `state/properties` with explicit time,
//! `breaker/sequences` with whole calls on paused time.

mod names;
mod observers;
mod threads;

use circuit_registry::{BreakersConfig, State, Verdict};

fn config(yaml: &str) -> BreakersConfig {
    BreakersConfig::from_yaml(yaml).expect("valid configuration")
}

//! The published circuit breakers of Rust and ours, side by side: what each does in the cases of the contract, and what
//! a call costs.

#![expect(
    clippy::disallowed_methods,
    reason = "the machine's own clock is what is measured, and what most of these crates live by"
)]

pub mod adapters;
pub mod contract;
pub mod speed;

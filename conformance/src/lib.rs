//! The published circuit breakers of Rust and ours, side by side: what each does in the cases of the contract, and what
//! a call costs.

pub mod adapters;
pub mod contract;
pub mod speed;

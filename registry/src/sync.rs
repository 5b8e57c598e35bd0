//! The atomics our own lock-free code is written with: the real ones, or loom's when it explores their interleavings.

#[cfg(circuit_loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(circuit_loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

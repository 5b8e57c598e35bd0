#![doc = include_str!("README.md")]

mod sharded_counters;
mod state_word;

#[cfg(all(test, circuit_loom))]
mod loom_tests;

pub(crate) use sharded_counters::{Counter, ShardedCounters};
pub(crate) use state_word::{FastPath, StateWord};

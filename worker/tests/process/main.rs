//! The program `osint` itself, as an orchestrator meets it: told to end, killed, asked for its settings, given keys.
//!
//! A real Temporal server and simulated sources run in the test's own process; the worker is a child. Nothing here asserts
//! on time: waits end when their condition holds.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene may panic")]

mod encryption;
mod fixture;
mod kills;
mod settings;
mod signals;

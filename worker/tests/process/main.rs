//! The program `osint` as an orchestrator runs it: signals, kills, settings, encryption keys.
//!
//! A real Temporal server and simulated sources run in the test's own process; the worker is a child. Nothing here asserts
//! on time: waits end when their condition holds.

#![allow(clippy::unwrap_used, reason = "a test whose set-up fails may panic")]

mod encryption;
mod find;
mod fixture;
mod kills;
mod settings;
mod signals;

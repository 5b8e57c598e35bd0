//! What the tests and the measurements of circuit-registry share: a Redis server, a network that fails on command, and a log
//! that can be read.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "helpers of tests: names say it, and a failure is a panic")]

pub mod log;
pub mod proxy;
pub mod redis_server;

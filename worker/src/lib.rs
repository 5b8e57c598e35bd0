//! The OSINT/KYB pipeline as a program: workflows, the worker that runs them, and the command `osint`.
//!
//! [`cli`] reads what the user wants and says what became of it; [`run`] is where everything that a worker process consists
//! of is put together; [`workflow`] is the deterministic part; [`report`] is what comes out.

pub mod admin;
pub mod cli;
pub mod codec;
pub mod connect;
pub mod devserver;
pub mod exit;
pub mod history;
pub mod report;
pub mod run;
pub mod stack;
pub mod starter;
pub mod telemetry;
pub mod tuning;
pub mod workflow;

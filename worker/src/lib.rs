//! The OSINT/KYB pipeline as a program: workflows, the worker that runs them, and the command `osint`.
//!
//! | module | what it is |
//! |---|---|
//! | [`cli`] | the command line: one file per subcommand |
//! | [`run`] | a worker process: all its parts start and stop here |
//! | [`workflow`] | the deterministic part: what an investigation asks, in which order |
//! | [`report`] | the result: its document, its coverage, its page on a terminal. It knows nothing of workflows |
//! | [`admin`] | the worker's own HTTP server |
//! | [`temporal`] | what speaks to a Temporal server as a client |
//! | [`dev`] | a Temporal server and simulated sources for `osint demo` and `osint dev` |
//! | [`telemetry`], [`error`] | log and metrics; how a command fails |

pub mod admin;
pub mod cli;
pub mod dev;
pub mod error;
pub mod report;
pub mod run;
pub mod telemetry;
pub mod temporal;
mod words;
pub mod workflow;

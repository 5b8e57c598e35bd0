//! Named circuit breakers for Rust services and Temporal activities.
//!
//! ```
//! use circuit_registry::{BreakersConfig, CircuitRegistry};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = CircuitRegistry::new(BreakersConfig::from_yaml(
//!     "services: { northdata: { fail_max: 5, reset_timeout: 60s, timeout: 10s } }",
//! )?);
//! let answer = registry.call("northdata", async { Ok::<_, std::io::Error>("Equinor ASA") }).await?;
//! # assert_eq!(answer, "Equinor ASA");
//! # Ok(()) }
//! ```
//!
//! # How it is built
//!
//! | layer | modules | knows |
//! |---|---|---|
//! | words | [`outcome`](Verdict), `policy`, `view`, `event` | plain data |
//! | decisions | `machine`, `window`, `backoff`, `budget`, `limiter`, `control`, `books` | the stored state, now, a draw |
//! | shell | `breaker`, `call`, `shell`, `registry`, `gate`, `lanes` | locks, clocks, waiting, announcing |
//! | remembering and sharing | [`store`], `snapshot`, `fleet` | records, leases, merging |
//! | edges | `config`, `reload`, `metrics`, `http`, `tower`, `temporal` | YAML, files, Prometheus, HTTP, tower, the Temporal SDK |

mod backoff;
mod books;
mod breaker;
mod budget;
mod call;
mod classify;
mod clock;
mod config;
mod context;
mod control;
mod event;
mod fleet;
mod gate;
mod hash;
mod histogram;
pub mod http;
mod hub;
mod lanes;
mod limiter;
mod machine;
mod outcome;
pub mod policy;
#[cfg(feature = "prometheus")]
#[path = "metrics.rs"]
pub mod prometheus;
mod registry;
#[cfg(feature = "reload")]
pub mod reload;
mod shell;
mod snapshot;
pub mod store;
mod sync;
#[cfg(feature = "temporal")]
pub mod temporal;
#[cfg(feature = "tower")]
pub mod tower;
mod view;
mod window;

pub use breaker::{Breaker, Permit};
pub use clock::{SystemWallClock, WallClock};
pub use config::{BreakersConfig, ConfigError, Place};
pub use context::CallContext;
pub use control::Override;
pub use event::{Event, EventKind, Observer};
pub use fleet::keeper::Keeper;
pub use machine::{Cause, Transition};
pub use outcome::{CallError, Classify, Rejection, ServiceName, Settlement, State, Verdict};
pub use policy::{Mode, Policy};
pub use registry::{CircuitRegistry, ConfigDiff, RegistryBuilder};
pub use snapshot::Stamp;
pub use view::{BreakerView, CallCounts};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

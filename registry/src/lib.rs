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
//! | layer | folder | knows |
//! |---|---|---|
//! | words | `outcome`, `error`, `clock`, `view`, `event`, [`policy`] | plain data, the YAML file |
//! | decisions | `state` | the stored state, the time, a random draw |
//! | one breaker | `breaker` | locks, clocks, waiting, announcing |
//! | stores and fleets | [`store`], `fleet` | records, leases, merging |
//! | the registry | `registry` | names |
//! | integrations | [`http`], `tower`, `prometheus`, `temporal` | other libraries |

mod breaker;
mod clock;
mod error;
mod event;
mod failure;
mod fleet;
mod hash;
mod integrations;
mod outcome;
pub mod policy;
mod registry;
mod state;
pub mod store;
#[cfg(feature = "temporal")]
pub mod temporal;
mod view;

pub use breaker::{Breaker, Permit, context::CallContext};
pub use clock::{Stamp, SystemWallClock, WallClock};
pub use error::{CallError, Classify, RejectReason, Rejection};
pub use event::{Event, EventKind, Observer};
pub use failure::{Failure, FailureKind, Judgement};
pub use fleet::store_sync::StoreSync;
pub use integrations::http;
#[cfg(feature = "prometheus")]
pub use integrations::prometheus;
#[cfg(feature = "tower")]
pub use integrations::tower;
pub use outcome::{ServiceName, Settlement, State, Verdict};
#[cfg(feature = "reload")]
pub use policy::reload;
pub use policy::{
    ConfigDiff, Mode, Policy,
    config::{BreakersConfig, ConfigError, Place},
};
pub use registry::{CircuitRegistry, RegistryBuilder};
pub use state::{machine::Cause, overrides::Override};
pub use view::{BreakerView, CallCounts, LastFailure, OverrideView, Transition};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

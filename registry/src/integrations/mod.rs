//! Adapters to other libraries: HTTP statuses, Prometheus, reqwest, tower.

pub mod http;
#[cfg(feature = "prometheus")]
pub mod prometheus;
#[cfg(feature = "reqwest")]
pub mod reqwest;
#[cfg(feature = "tower")]
pub mod tower;

//! Adapters to other libraries: HTTP statuses, Prometheus, tower.

pub mod http;
#[cfg(feature = "prometheus")]
pub mod prometheus;
#[cfg(feature = "tower")]
pub mod tower;

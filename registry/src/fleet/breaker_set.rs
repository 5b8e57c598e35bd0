//! What the sync task needs of a registry.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    breaker::inner::BreakerInner,
    outcome::ServiceName,
    policy::{Policy, config::BreakersConfig},
};

/// The breakers of a registry, and the configuration that they follow.
pub(crate) trait BreakerSet: Send + Sync {
    /// The breaker of `service`, if there is one.
    fn existing(&self, service: &str) -> Option<Arc<BreakerInner>>;

    /// The breaker of `service`, made if it does not exist.
    fn get_or_make(&self, service: &str) -> Arc<BreakerInner>;

    /// Every breaker.
    fn all(&self) -> BTreeMap<ServiceName, Arc<BreakerInner>>;

    /// The configuration in force.
    fn config(&self) -> BreakersConfig;

    /// The policy of `service`.
    fn policy_of(&self, service: &str) -> Arc<Policy>;

    /// Whether the configuration shares anything with a fleet.
    fn shares(&self) -> bool;
}

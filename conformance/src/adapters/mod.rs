//! One file per crate: how its own words say what the contract asks, and what it has no word for.

mod circuitbreaker_rs;
mod execution_policy;
mod failsafe;
mod nobreak;
mod ours;
mod recloser;
mod secure_resilience;
mod tower_resilience;

use crate::contract::Adapter;

/// The published crates.
pub fn rivals() -> Vec<Box<dyn Adapter>> {
    vec![
        Box::new(failsafe::Failsafe),
        Box::new(recloser::Recloser),
        Box::new(nobreak::Nobreak),
        Box::new(circuitbreaker_rs::CircuitbreakerRs),
        Box::new(tower_resilience::TowerResilience),
        Box::new(execution_policy::ExecutionPolicy),
        Box::new(secure_resilience::SecureResilience),
    ]
}

/// Ours.
pub fn ours() -> Box<dyn Adapter> {
    Box::new(ours::Ours)
}

/// All crates that are examined, ours first.
pub fn all() -> Vec<Box<dyn Adapter>> {
    std::iter::once(ours()).chain(rivals()).collect()
}

/// Polls where a crate needs no context of its own.
fn bare(poll: &mut dyn FnMut()) {
    poll();
}

/// Reasons that hold for every crate without the feature.
mod why {
    pub(super) const NEUTRAL: &str = "an outcome is a success or a failure, there is no third verdict";
    pub(super) const NO_LIMIT: &str = "no limit on probes: while half-open every caller passes";
    pub(super) const MAX_WAIT: &str = "no time limit for a probe";
    pub(super) const TIMEOUT: &str = "no time limit for calls";
    pub(super) const NO_WINDOW: &str = "no sliding window over the last calls";
    pub(super) const MINIMUM: &str = "no minimum number of calls";
    pub(super) const EVENTS: &str = "announces nothing";
    pub(super) const REJECTIONS: &str = "counts and announces no rejections";
    pub(super) const GROWTH: &str = "the open time does not grow";
    pub(super) const JITTER: &str = "no jitter";
    pub(super) const WALL_CLOCK: &str = "reads no wall clock, so there is nothing to set back";
    pub(super) const SNAPSHOT: &str = "state lives in the process only";
    pub(super) const FORCE: &str = "an operator cannot force it open";
    pub(super) const OBSERVE: &str = "no mode that judges without enforcing";
    pub(super) const RELOAD: &str = "configuration is fixed when it is built";
    pub(super) const FILE: &str = "configured in code, not by a file";
    pub(super) const NAMES: &str = "a single breaker; no registry of names";
    pub(super) const BUDGET: &str = "no retry budget";
}

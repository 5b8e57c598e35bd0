//! One file per crate: how its own words say what the contract asks, and what it has no word for.

mod circuitbreaker_rs;
mod execution_policy;
mod failsafe;
mod nobreak;
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

/// All crates that are examined.
pub fn all() -> Vec<Box<dyn Adapter>> {
    rivals()
}

/// Polls where a crate needs no context of its own.
fn bare(poll: &mut dyn FnMut()) {
    poll();
}

/// Reasons that hold for every crate without the feature.
mod why {
    pub const NEUTRAL: &str = "an outcome is a success or a failure, there is no third verdict";
    pub const NO_LIMIT: &str = "no limit on probes: while half-open every caller passes";
    pub const MAX_WAIT: &str = "no time limit for a probe";
    pub const TIMEOUT: &str = "no time limit for calls";
    pub const NO_WINDOW: &str = "no sliding window over the last calls";
    pub const MINIMUM: &str = "no minimum number of calls";
    pub const EVENTS: &str = "announces nothing";
    pub const REJECTIONS: &str = "counts and announces no rejections";
    pub const GROWTH: &str = "the open time does not grow";
    pub const JITTER: &str = "no jitter";
    pub const WALL_CLOCK: &str = "reads no wall clock, so there is nothing to set back";
    pub const SNAPSHOT: &str = "state lives in the process only";
    pub const FORCE: &str = "an operator cannot force it open";
    pub const OBSERVE: &str = "no mode that judges without enforcing";
    pub const RELOAD: &str = "configuration is fixed when it is built";
    pub const FILE: &str = "configured in code, not by a file";
    pub const NAMES: &str = "a single breaker; no registry of names";
    pub const BUDGET: &str = "no retry budget";
}

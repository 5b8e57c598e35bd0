//! The contract of a breaker as a table of cases, and the small trait through which any crate can be asked to keep it.
//!
//! A case is data: steps on a clock. The runner drives one breaker through them, call by call, with futures (or, where a
//! crate takes closures, threads) that finish only when the case says so. What a crate's design has no word for is not
//! held against it: the adapter names the feature and the reason, and the case counts as ruled out.

pub mod cases;
mod flight;
pub mod report;
mod run;

use std::time::Duration;

pub use flight::{Controlled, Sick, launch_closure, launch_future};
pub use run::{Outcome, run};

/// The state of a breaker, as far as a crate tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Traffic flows.
    Closed,
    /// Calls are rejected.
    Open,
    /// Probes may pass.
    HalfOpen,
}

/// How a call in flight ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It answers.
    Ok,
    /// It fails.
    Err,
    /// It ends in an error that says nothing about the upstream.
    Neutral,
    /// Its caller goes away.
    Drop,
    /// It panics.
    Panic,
}

/// A count window: the last `size` calls, judged from `minimum` on, open at `percent` failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Calls it holds.
    pub size: u32,
    /// Calls before it judges.
    pub minimum: u32,
    /// Failure rate that opens, in percent.
    pub percent: u32,
}

/// What a case asks of a breaker. Durations are case time; an adapter on a real clock divides them by its speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Consecutive failures that open, unless there is a window.
    pub fail_max: u32,
    /// Time from an opening to its first probe.
    pub reset_timeout: Duration,
    /// Probes at a time, and good probes that close.
    pub permits: u32,
    /// Time after which a silent probe is replaced.
    pub max_wait: Duration,
    /// Judge by a window instead of by consecutive failures.
    pub window: Option<Window>,
    /// Time a call is given.
    pub timeout: Option<Duration>,
}

impl Policy {
    /// `fail_max: 3, reset_timeout: 60s`, one probe.
    pub const BASE: Self = Self {
        fail_max: 3,
        reset_timeout: Duration::from_secs(60),
        permits: 1,
        max_wait: Duration::from_secs(30),
        window: None,
        timeout: None,
    };
}

/// What a case needs beyond calls that succeed and fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Opening on consecutive failures.
    Consecutive,
    /// A sliding window over the last calls.
    CountWindow,
    /// A minimum number of calls before a rate judges.
    MinimumCalls,
    /// A verdict that is neither success nor failure.
    Neutral,
    /// A call that can be dropped in flight.
    Cancel,
    /// One probe at a time.
    OnePermit,
    /// A configurable number of probes at a time.
    ManyPermits,
    /// A time limit for probes.
    MaxWait,
    /// A time limit for calls.
    Timeout,
    /// A way to ask for the state.
    StateReading,
    /// Notice of each opening.
    Events,
    /// A count of rejections.
    RejectionCount,
    /// Open time that grows.
    Growth,
    /// Jitter on the open time.
    Jitter,
    /// Dependence on the wall clock anywhere.
    WallClock,
    /// State that outlives the process or is shared between processes.
    Snapshot,
    /// An operator's forced opening.
    ForceOpen,
    /// Judging without enforcing.
    Observe,
    /// A change of configuration at run time.
    Reload,
    /// Configuration from a file.
    ConfigFile,
    /// A registry of named breakers.
    Names,
    /// A budget for retries.
    RetryBudget,
}

/// What kind of clock a breaker lives by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The test moves it.
    Virtual,
    /// The machine moves it; cases run faster than life and sleep.
    Real,
}

/// A crate under examination.
pub trait Adapter: Send + Sync {
    /// Crate and version.
    fn name(&self) -> &'static str;
    /// The clock of its breakers.
    fn clock(&self) -> Clock;
    /// Why its design has no such feature; `None` if it has.
    fn lacks(&self, feature: Feature) -> Option<&'static str>;
    /// A closed breaker. `speed` is by how much durations are to be divided; 1 on a virtual clock.
    fn build(&self, policy: &Policy, speed: u32) -> Box<dyn Guard>;
    /// Runs a case that is about more than one breaker and its calls. `None`: this adapter has no such code, and
    /// [`lacks`](Self::lacks) must say why.
    fn own(&self, _group: &str, _key: &str) -> Option<Result<(), String>> {
        None
    }
}

/// A breaker under examination.
pub trait Guard: Send + Sync {
    /// Starts a call that runs until it is ordered to end; `None` means rejected.
    fn start(&self) -> Option<Box<dyn Flight>>;
    /// The state it reports, or last announced.
    fn state(&self) -> State;
    /// Failures in a row that open it from closed, for crates whose nearest setting is not `fail_max`.
    fn failures_to_trip(&self, policy: &Policy) -> u32 {
        policy.window.map_or(policy.fail_max, |window| window.minimum)
    }
    /// Moves a virtual clock.
    fn advance(&self, _by: Duration) {}
    /// Openings announced so far.
    fn openings(&self) -> u32 {
        0
    }
    /// Rejections counted so far.
    fn rejections(&self) -> u32 {
        0
    }
    /// Forces it open until further notice.
    fn force_open(&self) {}
}

/// A call in flight.
pub trait Flight: Send {
    /// Ends it.
    fn end(self: Box<Self>, how: End);
    /// Lets it notice that time has passed.
    fn poke(&mut self) {}
}

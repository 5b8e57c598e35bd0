//! What a breaker looks like from outside, at one moment.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use serde::{Serialize, Serializer};

use crate::{
    clock::WallTime,
    failure::FailureKind,
    outcome::{ServiceName, State},
    policy::Mode,
    state::{PastFailure, machine::Cause},
};

/// The last failure of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LastFailure {
    /// Its kind.
    #[serde(serialize_with = "kind")]
    pub kind: FailureKind,
    /// What happened, in a few words without secrets.
    pub text: String,
    /// When the call ended, by the wall clock.
    #[serde(serialize_with = "wall_time")]
    pub at: SystemTime,
    /// How long the call took, where that is measured.
    #[serde(rename = "took_ms", serialize_with = "millis")]
    pub took: Option<Duration>,
}

impl LastFailure {
    pub(crate) fn new(past: PastFailure, wall: &WallTime) -> Self {
        let PastFailure { failure, at, took } = past;
        Self { kind: failure.kind(), text: failure.text().to_owned(), at: wall.at(at), took }
    }
}

/// `timeout: no answer within 5s (after 5.001s, at 2026-12-01T03:20:00Z)`.
impl fmt::Display for LastFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = jiff::Timestamp::try_from(self.at).unwrap_or_default();
        write!(f, "{}: {} (", self.kind, self.text)?;
        if let Some(took) = self.took {
            write!(f, "after {took:?}, ")?;
        }
        write!(f, "at {at})")
    }
}

/// A change of state, as observers hear of it. The transitions of one breaker form a path: each begins in the state in which
/// the one before ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transition {
    /// The state before.
    pub from: State,
    /// Since when the breaker had been in the state before, by the wall clock.
    pub since: SystemTime,
    /// The state after.
    pub to: State,
    /// Why.
    pub cause: Cause,
    /// The generation that began with it.
    pub generation: u64,
    /// For an opening, how long it lasts.
    pub open_for: Option<Duration>,
    /// The last failure before it, if there was one.
    pub last_failure: Option<LastFailure>,
}

/// One breaker, as it was when it was looked at. Looking changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BreakerView {
    /// The protected service.
    pub service: ServiceName,
    /// The state that callers feel.
    #[serde(serialize_with = "display")]
    pub state: State,
    /// Whether the breaker decides, watches or is overruled.
    #[serde(serialize_with = "mode")]
    pub mode: Mode,
    /// Since when callers have felt this state, by the wall clock.
    #[serde(serialize_with = "wall_time")]
    pub since: SystemTime,
    /// The last failure that counted, if there was one since the process started.
    pub last_failure: Option<LastFailure>,
    /// Why it is not simply closed: what opened it, or who overrules it and why.
    pub reason: Option<String>,
    /// Changes with every change of state.
    pub generation: u64,
    /// Failures since the last success.
    pub consecutive_failures: u32,
    /// Openings since it was last closed.
    pub openings: u32,
    /// Share of failed calls in the window, 0 to 1; `None` without a window or without calls in it.
    pub failure_rate: Option<f64>,
    /// Share of slow calls in the window, 0 to 1; `None` without a window or without calls in it.
    pub slow_rate: Option<f64>,
    /// Calls in the window; `None` without one.
    pub window_calls: Option<u64>,
    /// Time until the next probe is due, or until a forced opening ends. `None` when no probe is waited for.
    #[serde(rename = "retry_in_ms", serialize_with = "millis")]
    pub retry_in: Option<Duration>,
    /// Calls admitted and not yet ended.
    pub in_flight: u64,
    /// Size of the bulkhead, if there is one.
    pub bulkhead_limit: Option<u32>,
    /// Retries that the budget can pay now, if there is one.
    pub budget_balance: Option<u64>,
    /// Calls so far.
    pub calls: CallCounts,
    /// The overrides in force. Several operators may hold one each; the most cautious decides the [mode](Self::mode).
    pub overrides: Vec<OverrideView>,
}

/// An override in force, as [`BreakerView`] shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OverrideView {
    /// What it makes the breaker do.
    #[serde(serialize_with = "mode")]
    pub mode: Mode,
    /// Who holds it.
    pub who: String,
    /// Why.
    pub why: String,
    /// Time until it ends; `None` when it lasts until it is released.
    #[serde(rename = "ends_in_ms", serialize_with = "millis")]
    pub ends_in: Option<Duration>,
}

/// Calls by what became of them, since the process started. None ever goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct CallCounts {
    /// Ended well.
    pub success: u64,
    /// Failed, timeouts included.
    pub failure: u64,
    /// Given up after the policy's timeout.
    pub timed_out: u64,
    /// Asked to stay away.
    pub throttled: u64,
    /// Ended without a word about the service.
    pub neutral: u64,
    /// Ended after their generation was over.
    pub late: u64,
    /// Rejected: the breaker was open.
    pub rejected_open: u64,
    /// Rejected: half-open with every probe out.
    pub rejected_half_open_busy: u64,
    /// Rejected: no place in the bulkhead.
    pub rejected_bulkhead_full: u64,
    /// Rejected: over the rate limit.
    pub rejected_rate_limited: u64,
    /// Rejected: no retry left in the budget.
    pub rejected_budget_exhausted: u64,
    /// Times it opened.
    pub to_open: u64,
    /// Times it half-opened.
    pub to_half_open: u64,
    /// Times it closed.
    pub to_closed: u64,
}

impl CallCounts {
    /// Calls rejected, for whatever reason.
    #[must_use]
    pub const fn rejected(&self) -> u64 {
        self.rejected_open
            + self.rejected_half_open_busy
            + self.rejected_bulkhead_full
            + self.rejected_rate_limited
            + self.rejected_budget_exhausted
    }
}

fn display<S: Serializer>(state: &State, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.as_str())
}

fn kind<S: Serializer>(kind: &FailureKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.as_str())
}

fn wall_time<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&jiff::Timestamp::try_from(*time).unwrap_or_default())
}

fn mode<S: Serializer>(mode: &Mode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(mode.as_str())
}

#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
fn millis<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        // Rounded up: a caller who comes back after this many milliseconds is not too early.
        Some(time) => {
            serializer.serialize_some(&u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
        }
        None => serializer.serialize_none(),
    }
}

impl Serialize for ServiceName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

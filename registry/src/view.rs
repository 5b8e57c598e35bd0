//! What a breaker looks like from outside, at one moment.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::outcome::{ServiceName, State};
use crate::policy::Mode;

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

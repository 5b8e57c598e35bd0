//! A breaker's policy as a validated value: whatever exists of this type makes sense, and two of them compare, so that a
//! reload is a comparison.
//!
//! Policies are made by [`BreakersConfig`](crate::BreakersConfig) from `breakers.yaml`. Rates are exact integers
//! (parts per million) and never floats: "50 % of 10" is 5 on every machine.

pub(crate) mod config;
mod diff;
#[cfg(feature = "reload")]
pub mod reload;

pub use diff::ConfigDiff;

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

/// A share between 0 % and 100 %, exact to a millionth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u32);

impl Rate {
    const WHOLE: u64 = 1_000_000;

    /// 100 %.
    pub const ALL: Self = Self(1_000_000);

    /// A share in parts per million; `None` above 1 000 000.
    #[must_use]
    pub const fn from_ppm(ppm: u32) -> Option<Self> {
        if ppm as u64 <= Self::WHOLE { Some(Self(ppm)) } else { None }
    }

    /// A share in whole per cent; `None` above 100.
    #[must_use]
    pub const fn percent(percent: u32) -> Option<Self> {
        if percent <= 100 { Some(Self(percent * 10_000)) } else { None }
    }

    /// The share in parts per million.
    #[must_use]
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// Whether `part` of `whole` is at least this share. False when `whole` is 0.
    #[must_use]
    pub const fn reached(self, part: u64, whole: u64) -> bool {
        whole > 0 && part as u128 * Self::WHOLE as u128 >= self.0 as u128 * whole as u128
    }

    /// The smallest `part` of `whole` that reaches this share, at least 1.
    #[must_use]
    pub const fn threshold(self, whole: u32) -> u32 {
        let needed = (self.0 as u64 * whole as u64).div_ceil(Self::WHOLE) as u32;
        if needed == 0 { 1 } else { needed }
    }

    /// This share of `whole`, rounded down.
    #[must_use]
    pub fn of(self, whole: Duration) -> Duration {
        let nanos = whole.as_nanos() * u128::from(self.0) / u128::from(Self::WHOLE);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// How much of the past a window judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Span {
    /// The last calls, this many, at most [`WindowPolicy::MAX_CALLS`].
    Calls(NonZeroU32),
    /// The calls of the last so much time.
    Time(Duration),
}

/// When a sliding window trips the breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowPolicy {
    /// How much of the past counts.
    pub span: Span,
    /// Below this number of calls in the window nothing trips. Default 10, never more than `calls`.
    pub minimum_calls: u32,
    /// Trips at this share of failures.
    pub failure_rate: Option<Rate>,
    /// Trips at this share of slow calls.
    pub slow: Option<SlowPolicy>,
}

impl WindowPolicy {
    /// The largest `calls`: two bits per call make 250 kB.
    pub const MAX_CALLS: u32 = 1_000_000;
}

/// What a slow call is, and how many of them are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlowPolicy {
    /// A call that took at least this long was slow, whatever its verdict.
    pub call: Duration,
    /// Trips at this share of slow calls.
    pub rate: Rate,
}

/// What opens a closed breaker. With both conditions, whichever trips first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TripPolicy {
    /// This many failures in a row.
    pub fail_max: Option<NonZeroU32>,
    /// A share of a sliding window.
    pub window: Option<WindowPolicy>,
}

/// How long an opening lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenTime {
    /// The first opening, and the least of any.
    pub reset_timeout: Duration,
    /// Each opening without a close in between lasts this many thousandths of the one before. 1000 = no growth.
    pub factor_milli: u32,
    /// The most of any opening, jitter included.
    pub max: Duration,
    /// Up to this share is added at random, so that many breakers do not probe at once.
    pub jitter: Rate,
}

/// How an open breaker finds out whether the service is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HalfOpenPolicy {
    /// Probes that may be out at once, and the number of verdicts that decide.
    pub permits: NonZeroU32,
    /// The share of failed probes that opens again; without it the first failure does.
    pub failure_rate: Option<Rate>,
    /// The share of slow probes that opens again; without it the window's own `slow_rate` does.
    pub slow_rate: Option<Rate>,
    /// After so long without a verdict the probes out count as lost and new ones are let through.
    pub max_wait: Duration,
}

/// How many calls may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BulkheadPolicy {
    /// Calls in flight at the most.
    pub max_concurrent: NonZeroU32,
    /// How long [`Breaker::acquire`](crate::Breaker::acquire) waits for a place; zero rejects at once.
    pub max_wait: Duration,
}

/// How many calls may start per unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimitPolicy {
    /// This many calls …
    pub limit: NonZeroU32,
    /// … per this much time.
    pub per: Duration,
    /// Whether the limit is this process's own or shared by every process of the fleet.
    pub scope: LimitScope,
}

/// Who shares a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LimitScope {
    /// Each process has the whole limit.
    #[default]
    Process,
    /// All processes together have it.
    Fleet,
}

/// Whether processes share a breaker's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FleetPolicy {
    /// Each process finds out for itself.
    #[default]
    Off,
    /// What one finds out all go by.
    Share(SharePolicy),
}

/// How processes share a breaker's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharePolicy {
    /// This many processes must open before all do. With 1, failures are counted together as well.
    pub quorum: NonZeroU32,
    /// A process that got the probe and is not heard of for so long loses it.
    pub lease: Duration,
}

impl Default for SharePolicy {
    /// One opening counts for all; a probe's right lasts ten seconds and is renewed.
    fn default() -> Self {
        Self { quorum: NonZeroU32::MIN, lease: Duration::from_secs(10) }
    }
}

/// How failed calls are repeated. The library never repeats a call itself; a caller that does, such as Temporal, follows this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    pub max_attempts: NonZeroU32,
    /// Upper bound of the first delay.
    pub base: Duration,
    /// Upper bound of any delay.
    pub cap: Duration,
    /// Retries may add at most this share to the first attempts.
    pub budget: Option<Rate>,
}

/// What a guarded activity does while its breaker is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnOpen {
    /// Fail now and for good; the workflow degrades.
    #[default]
    Degrade,
    /// Come back when the breaker is due.
    Wait,
    /// Come back when the breaker is due, unless that is further away than this.
    WaitMax(Duration),
}

/// Whether the breaker decides, watches or is overruled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// It decides.
    #[default]
    Enforce,
    /// It only says what it would have done.
    Observe,
    /// Every call passes.
    ForceClosed,
    /// No call passes.
    ForceOpen,
}

impl Mode {
    /// `enforce`, `observe`, `force_closed` or `force_open`: the spelling of `breakers.yaml`, logs and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Observe => "observe",
            Self::ForceClosed => "force_closed",
            Self::ForceOpen => "force_open",
        }
    }
}

/// The verdict that a `status:` entry gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatusVerdict {
    /// Proof of life.
    Success,
    /// Counts against the service.
    Failure,
    /// Opens until the time the answer names.
    Throttled,
    /// Says nothing.
    Neutral,
}

/// Verdicts for HTTP statuses that differ from the defaults. An exact status outranks a class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatusOverrides {
    pub(crate) exact: BTreeMap<u16, StatusVerdict>,
    /// By hundreds: 4 for `4xx`.
    pub(crate) class: BTreeMap<u16, StatusVerdict>,
}

impl StatusOverrides {
    /// What the policy says about `status`, if anything.
    #[must_use]
    pub fn get(&self, status: u16) -> Option<StatusVerdict> {
        self.exact.get(&status).or_else(|| self.class.get(&(status / 100))).copied()
    }
}

/// Everything a breaker goes by. One of these exists per configured service, and one for all others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// What opens it.
    pub trip: TripPolicy,
    /// For how long.
    pub open: OpenTime,
    /// How it comes back.
    pub half_open: HalfOpenPolicy,
    /// The time one attempt gets.
    pub timeout: Option<Duration>,
    /// Calls at once.
    pub bulkhead: Option<BulkheadPolicy>,
    /// Calls per time.
    pub rate_limit: Option<RateLimitPolicy>,
    /// Repetitions.
    pub retry: Option<RetryPolicy>,
    /// What activities do while it is open.
    pub on_open: OnOpen,
    /// Whether it decides.
    pub mode: Mode,
    /// The most that a service can make us stay away by asking.
    pub throttle_max: Duration,
    /// HTTP statuses that mean something else here.
    pub status: StatusOverrides,
    /// How old a kept answer may be.
    pub cache_max_age: Option<Duration>,
    /// Whole activities guarded by this breaker.
    pub activities: Vec<String>,
    /// Whether processes share its state.
    pub fleet: FleetPolicy,
}

impl Default for Policy {
    /// Five failures in a row open for 30 seconds; one probe decides.
    fn default() -> Self {
        const FIVE: NonZeroU32 = NonZeroU32::new(5).unwrap();
        let reset_timeout = Duration::from_secs(30);
        Self {
            trip: TripPolicy { fail_max: Some(FIVE), window: None },
            open: OpenTime { reset_timeout, factor_milli: 1000, max: Duration::from_secs(600), jitter: Rate(0) },
            half_open: HalfOpenPolicy {
                permits: NonZeroU32::MIN,
                failure_rate: None,
                slow_rate: None,
                max_wait: Duration::from_secs(60),
            },
            timeout: None,
            bulkhead: None,
            rate_limit: None,
            retry: None,
            on_open: OnOpen::Degrade,
            mode: Mode::Enforce,
            throttle_max: Duration::from_secs(3600),
            status: StatusOverrides::default(),
            cache_max_age: None,
            activities: Vec::new(),
            fleet: FleetPolicy::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_exact() {
        let half = Rate::percent(50).unwrap();
        assert!(half.reached(5, 10) && !half.reached(4, 10) && !half.reached(0, 0));
        assert_eq!((half.threshold(10), half.threshold(9), half.threshold(1)), (5, 5, 1));
        assert_eq!(Rate::from_ppm(333_333).unwrap().threshold(3), 1);
        assert_eq!(half.of(Duration::from_secs(3)), Duration::from_millis(1500));
        assert!(Rate::percent(101).is_none() && Rate::from_ppm(1_000_001).is_none());
    }

    #[test]
    fn an_exact_status_outranks_its_class() {
        let mut status = StatusOverrides::default();
        status.class.insert(4, StatusVerdict::Neutral);
        status.exact.insert(404, StatusVerdict::Success);
        assert_eq!(status.get(404), Some(StatusVerdict::Success));
        assert_eq!(status.get(410), Some(StatusVerdict::Neutral));
        assert_eq!(status.get(500), None);
    }
}

//! A policy built key by key: in code, or by the reader of `breakers.yaml`.

use std::{num::NonZeroU32, time::Duration};

use super::{
    BulkheadPolicy, FleetPolicy, HalfOpenPolicy, LimitScope, Mode, OnOpen, OpenTime, Policy, Rate, RateLimitPolicy,
    RetryPolicy, SlowPolicy, Span, StatusOverrides, StatusVerdict, TripPolicy, WindowPolicy,
    contradiction::contradiction,
};

/// Why there is no such policy: the key as it is called in `breakers.yaml`, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct PolicyError {
    key: &'static str,
    message: String,
}

impl PolicyError {
    /// The key, as `breakers.yaml` calls it.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        self.key
    }

    /// What is wrong with it.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Builds a [`Policy`] in code. What is not set has the default of `breakers.yaml`.
///
/// ```
/// use std::time::Duration;
/// use circuit_registry::{BreakersConfig, CircuitRegistry, Policy, policy::{Rate, WindowPolicy}};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let half = Rate::percent(50).expect("at most 100");
/// let policy = Policy::builder()
///     .fail_max(3)
///     .window(WindowPolicy::last_calls(100).failing(half))
///     .reset_timeout(Duration::from_secs(60))
///     .timeout(Duration::from_secs(10))
///     .bulkhead(40, Duration::ZERO)
///     .build()?;
/// let registry = CircuitRegistry::new(BreakersConfig::default());
/// registry.configure("northdata", policy);
/// assert_eq!(registry.breaker("northdata").policy().timeout, Some(Duration::from_secs(10)));
///
/// let error = Policy::builder().timeout(Duration::from_secs(10)).bulkhead(1, Duration::from_secs(20)).build().unwrap_err();
/// assert_eq!(error.key(), "bulkhead.max_wait");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "a builder builds nothing until `build`"]
pub struct PolicyBuilder {
    pub(super) fail_max: Option<Option<NonZeroU32>>,
    pub(super) window: Option<Option<WindowPolicy>>,
    pub(super) reset_timeout: Option<Duration>,
    pub(super) growth: Option<Growth>,
    pub(super) half_open: Option<HalfOpen>,
    pub(super) timeout: Option<Duration>,
    pub(super) bulkhead: Option<BulkheadPolicy>,
    pub(super) rate_limit: Option<RateLimitPolicy>,
    pub(super) retry: Option<RetryPolicy>,
    pub(super) on_open: Option<OnOpen>,
    pub(super) mode: Option<Mode>,
    pub(super) throttle_max: Option<Duration>,
    pub(super) status: Option<StatusOverrides>,
    pub(super) cache_max_age: Option<Duration>,
    pub(super) activities: Option<Vec<String>>,
    pub(super) fleet: Option<FleetPolicy>,
    /// The first number that cannot be.
    pub(super) wrong: Option<PolicyError>,
}

/// How open times grow, before what is not said follows from `reset_timeout`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Growth {
    pub(crate) factor_milli: u32,
    pub(crate) max: Option<Duration>,
    pub(crate) jitter: Rate,
}

impl Default for Growth {
    fn default() -> Self {
        let base = Policy::default().open;
        Self { factor_milli: base.factor_milli, max: None, jitter: base.jitter }
    }
}

/// How a breaker half-opens, before what is not said follows from its other times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HalfOpen {
    pub(crate) permits: NonZeroU32,
    pub(crate) failure_rate: Option<Rate>,
    pub(crate) slow_rate: Option<Rate>,
    pub(crate) max_wait: Option<Duration>,
}

impl Default for HalfOpen {
    fn default() -> Self {
        Self { permits: NonZeroU32::MIN, failure_rate: None, slow_rate: None, max_wait: None }
    }
}

impl WindowPolicy {
    const USUAL_MINIMUM: u32 = 10;

    /// The `minimum_calls` of a window of this span that does not say.
    pub(crate) fn usual_minimum(span: Span) -> u32 {
        match span {
            Span::Calls(calls) => Self::USUAL_MINIMUM.min(calls.get()),
            Span::Time(_) => Self::USUAL_MINIMUM,
        }
    }

    fn of(span: Span) -> Self {
        Self { span, minimum_calls: Self::usual_minimum(span), failure_rate: None, slow: None }
    }

    /// A window of the last calls, at least one and at most [`MAX_CALLS`](Self::MAX_CALLS).
    #[must_use]
    pub fn last_calls(calls: u32) -> Self {
        Self::of(Span::Calls(NonZeroU32::new(calls.min(Self::MAX_CALLS)).unwrap_or(NonZeroU32::MIN)))
    }

    /// A window of the calls of the last so much time.
    #[must_use]
    pub fn last_time(time: Duration) -> Self {
        Self::of(Span::Time(time))
    }

    /// The same, that judges nothing below so many calls.
    #[must_use]
    pub const fn minimum_calls(mut self, calls: u32) -> Self {
        self.minimum_calls = calls;
        self
    }

    /// The same, that trips at this share of failures.
    #[must_use]
    pub const fn failing(mut self, rate: Rate) -> Self {
        self.failure_rate = Some(rate);
        self
    }

    /// The same, that trips at this share of calls that took at least `call`.
    #[must_use]
    pub const fn slow(mut self, call: Duration, rate: Rate) -> Self {
        self.slow = Some(SlowPolicy { call, rate });
        self
    }
}

impl PolicyBuilder {
    /// This many failures in a row open the breaker. At least 1.
    pub fn fail_max(mut self, failures: u32) -> Self {
        self.fail_max = self.count("fail_max", failures).map(Some);
        self
    }

    /// Failures in a row do not open the breaker: a window does.
    pub fn fail_max_off(mut self) -> Self {
        self.fail_max = Some(None);
        self
    }

    /// A sliding window may open the breaker too.
    pub fn window(mut self, window: WindowPolicy) -> Self {
        self.window = Some(Some(window));
        self
    }

    /// The length of the first opening.
    pub fn reset_timeout(mut self, time: Duration) -> Self {
        self.reset_timeout = Some(time);
        self
    }

    /// Each opening without a close in between lasts `factor_milli` thousandths of the one before, at most `max`, and up to
    /// `jitter` longer at random.
    pub fn reset_growth(mut self, factor_milli: u32, max: Duration, jitter: Rate) -> Self {
        self.growth = Some(Growth { factor_milli, max: Some(max), jitter });
        self
    }

    /// Probes that may be out at once, and the number of verdicts that decide. At least 1.
    pub fn permits(mut self, permits: u32) -> Self {
        if let Some(permits) = self.count("half_open.permits", permits) {
            self.half_open.get_or_insert_default().permits = permits;
        }
        self
    }

    /// The share of failed probes that opens again. Without it the first one does.
    pub fn probe_failure_rate(mut self, rate: Rate) -> Self {
        self.half_open.get_or_insert_default().failure_rate = Some(rate);
        self
    }

    /// The share of slow probes that opens again. Without it that of the window does.
    pub fn probe_slow_rate(mut self, rate: Rate) -> Self {
        self.half_open.get_or_insert_default().slow_rate = Some(rate);
        self
    }

    /// After so long without a verdict the probes out count as lost.
    pub fn probe_max_wait(mut self, time: Duration) -> Self {
        self.half_open.get_or_insert_default().max_wait = Some(time);
        self
    }

    /// The time one attempt gets.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// At most so many calls at once, at least 1; a call waits `max_wait` for a place.
    pub fn bulkhead(mut self, max_concurrent: u32, max_wait: Duration) -> Self {
        let max_concurrent = self.count("bulkhead.max_concurrent", max_concurrent);
        self.bulkhead = max_concurrent.map(|max_concurrent| BulkheadPolicy { max_concurrent, max_wait });
        self
    }

    /// At most `limit` calls in any `per`, in this process or in the whole fleet. At least 1.
    pub fn rate_limit(mut self, limit: u32, per: Duration, scope: LimitScope) -> Self {
        self.rate_limit = self.count("rate_limit", limit).map(|limit| RateLimitPolicy { limit, per, scope });
        self
    }

    /// How often a call is repeated by those who repeat calls, the first attempt included; and the upper bounds of the first and
    /// of any delay.
    pub fn retry(mut self, max_attempts: u32, base: Duration, cap: Duration) -> Self {
        let budget = self.retry.and_then(|retry| retry.budget);
        let attempts = self.count("retry.max_attempts", max_attempts);
        self.retry = attempts.map(|max_attempts| RetryPolicy { max_attempts, base, cap, budget });
        self
    }

    /// Retries may add at most this share to the first attempts.
    pub fn retry_budget(mut self, budget: Rate) -> Self {
        let retry = self.retry.unwrap_or(RetryPolicy::USUAL);
        self.retry = Some(RetryPolicy { budget: Some(budget), ..retry });
        self
    }

    /// What a guarded activity does while the breaker is open.
    pub fn on_open(mut self, on_open: OnOpen) -> Self {
        self.on_open = Some(on_open);
        self
    }

    /// Whether the breaker decides.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// The most that the service can make us stay away by asking.
    pub fn throttle_max(mut self, time: Duration) -> Self {
        self.throttle_max = Some(time);
        self
    }

    /// What an HTTP status means here, 100 to 599.
    pub fn status(mut self, status: u16, verdict: StatusVerdict) -> Self {
        if (100..=599).contains(&status) {
            self.status.get_or_insert_default().exact.insert(status, verdict);
        } else {
            self.refuse("status", format!("{status} is no HTTP status"));
        }
        self
    }

    /// How old a kept answer may be.
    pub fn cache_max_age(mut self, time: Duration) -> Self {
        self.cache_max_age = Some(time);
        self
    }

    /// Activity types that the breaker guards as a whole.
    pub fn activities(mut self, types: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.activities = Some(types.into_iter().map(Into::into).collect());
        self
    }

    /// Whether processes share the breaker.
    pub fn fleet(mut self, fleet: FleetPolicy) -> Self {
        self.fleet = Some(fleet);
        self
    }

    fn count(&mut self, key: &'static str, number: u32) -> Option<NonZeroU32> {
        let count = NonZeroU32::new(number);
        if count.is_none() {
            self.refuse(key, "must be at least 1".into());
        }
        count
    }

    fn refuse(&mut self, key: &'static str, message: String) {
        self.wrong.get_or_insert(PolicyError { key, message });
    }

    /// The policy.
    ///
    /// # Errors
    /// The first value that cannot be, or the first two that contradict each other.
    pub fn build(self) -> Result<Policy, PolicyError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let policy = self.fill();
        match contradiction(&policy) {
            Some((keys, message)) => Err(PolicyError { key: keys[0], message }),
            None => Ok(policy),
        }
    }

    /// This, with what it does not say taken from `defaults`.
    pub(super) fn or(self, defaults: &Self) -> Self {
        let d = defaults.clone();
        Self {
            fail_max: self.fail_max.or(d.fail_max),
            window: self.window.or(d.window),
            reset_timeout: self.reset_timeout.or(d.reset_timeout),
            growth: self.growth.or(d.growth),
            half_open: self.half_open.or(d.half_open),
            timeout: self.timeout.or(d.timeout),
            bulkhead: self.bulkhead.or(d.bulkhead),
            rate_limit: self.rate_limit.or(d.rate_limit),
            retry: self.retry.or(d.retry),
            on_open: self.on_open.or(d.on_open),
            mode: self.mode.or(d.mode),
            throttle_max: self.throttle_max.or(d.throttle_max),
            status: self.status.or(d.status),
            cache_max_age: self.cache_max_age.or(d.cache_max_age),
            fleet: self.fleet.or(d.fleet),
            activities: self.activities, // a guarded activity belongs to one breaker
            wrong: self.wrong.or(d.wrong),
        }
    }

    /// The policy with the defaults for what is not said, whether it makes sense or not.
    pub(super) fn fill(self) -> Policy {
        let base = Policy::default();
        let reset_timeout = self.reset_timeout.unwrap_or(base.open.reset_timeout);
        let growth = self.growth.unwrap_or_default();
        let roomy = base.open.max.max(reset_timeout.saturating_add(growth.jitter.of(reset_timeout)));
        let half_open = self.half_open.unwrap_or_default();
        // A probe that is merely slow must not be given up for lost.
        let patient =
            base.half_open.max_wait.max(reset_timeout).max(self.timeout.unwrap_or_default().saturating_mul(2));
        Policy {
            trip: TripPolicy {
                fail_max: self.fail_max.unwrap_or(base.trip.fail_max),
                window: self.window.unwrap_or_default(),
            },
            open: OpenTime {
                reset_timeout,
                factor_milli: growth.factor_milli,
                max: growth.max.unwrap_or(roomy),
                jitter: growth.jitter,
            },
            half_open: HalfOpenPolicy {
                permits: half_open.permits,
                failure_rate: half_open.failure_rate,
                slow_rate: half_open.slow_rate,
                max_wait: half_open.max_wait.unwrap_or(patient),
            },
            timeout: self.timeout,
            bulkhead: self.bulkhead,
            rate_limit: self.rate_limit,
            retry: self.retry,
            on_open: self.on_open.unwrap_or_default(),
            mode: self.mode.unwrap_or_default(),
            throttle_max: self.throttle_max.unwrap_or(base.throttle_max),
            status: self.status.unwrap_or_default(),
            cache_max_age: self.cache_max_age,
            activities: self.activities.unwrap_or_default(),
            fleet: self.fleet.unwrap_or_default(),
        }
    }
}

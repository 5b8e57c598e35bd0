//! The words of a breaker: what a call may hear (admission), what it may say (verdict), and what became of it.
//!
//! Everything here is plain data. Nothing reads a clock, takes a lock or knows how a breaker decides.

use std::{borrow::Borrow, fmt, ops::Deref, time::Duration};

use smol_str::SmolStr;

/// The name of a protected service. Names up to 23 bytes live inside the value, so that a refusal carries its service's name
/// without allocating and without two threads meeting at a reference count.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceName(SmolStr);

impl ServiceName {
    /// The name as a string slice.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ServiceName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl From<String> for ServiceName {
    fn from(name: String) -> Self {
        Self(name.into())
    }
}

impl From<ServiceName> for String {
    fn from(name: ServiceName) -> Self {
        name.0.into()
    }
}

impl Deref for ServiceName {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for ServiceName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ServiceName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for ServiceName {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for ServiceName {
    fn eq(&self, other: &&str) -> bool {
        self.0 == **other
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// What a finished call says about the health of the service it asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It answered as its contract says. A "not found" in the service's own format is proof of life too.
    Success,
    /// It did not: no connection, a timeout, a 5xx, an outage hidden in a 200.
    Failure,
    /// It asked us to stay away. Opens the breaker for that long without counting as a failure.
    Throttled {
        /// How long; `None` means the policy's `reset_timeout`. Capped by the policy's `throttle_max`.
        retry_after: Option<Duration>,
    },
    /// Says nothing about the service: cancelled by the caller, refused by us, rejected credentials.
    Neutral,
}

/// Whether a verdict still belonged to the generation that admitted its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// It did, and was taken into account.
    Counted,
    /// The breaker has moved on since; the verdict changed nothing but a counter.
    Late,
}

/// The state of a breaker; the number is the value of `circuit_breaker_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// Traffic flows.
    Closed = 0,
    /// Calls are rejected without touching the network.
    Open = 1,
    /// A limited number of probes may pass.
    HalfOpen = 2,
}

impl State {
    /// `closed`, `open` or `half_open`: the spelling of logs and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a call was not admitted, and when it may come back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The breaker is open: by its own judgement, by a throttle, or because an operator said so.
    #[error("Circuit breaker open for '{service}' — failing fast")]
    #[non_exhaustive]
    Open {
        /// The service that was not called.
        service: ServiceName,
        /// Time until the next probe is due; for a forced opening without an end, the policy's `reset_timeout`.
        retry_in: Duration,
        /// True when an operator or the configuration holds it open.
        forced: bool,
    },
    /// The breaker is half-open and every probe slot is taken.
    #[error("Circuit breaker half-open for '{service}' — all probe slots taken")]
    #[non_exhaustive]
    HalfOpenBusy {
        /// The service that was not called.
        service: ServiceName,
        /// Time until a lost probe would be replaced.
        retry_in: Duration,
    },
    /// As many calls as the bulkhead allows are already running.
    #[error("Bulkhead full for '{service}' — {max_concurrent} calls in flight")]
    #[non_exhaustive]
    BulkheadFull {
        /// The service that was not called.
        service: ServiceName,
        /// The bulkhead's size.
        max_concurrent: u32,
    },
    /// The rate limit is used up.
    #[error("Rate limit reached for '{service}'")]
    #[non_exhaustive]
    RateLimited {
        /// The service that was not called.
        service: ServiceName,
        /// Time until the next call fits the limit.
        retry_in: Duration,
    },
    /// A retry (attempt > 1) found the retry budget empty.
    #[error("Retry budget exhausted for '{service}'")]
    #[non_exhaustive]
    BudgetExhausted {
        /// The service that was not called.
        service: ServiceName,
    },
}

impl Rejection {
    /// The service that was not called.
    #[must_use]
    pub const fn service(&self) -> &ServiceName {
        match self {
            Self::Open { service, .. }
            | Self::HalfOpenBusy { service, .. }
            | Self::BulkheadFull { service, .. }
            | Self::RateLimited { service, .. }
            | Self::BudgetExhausted { service } => service,
        }
    }

    /// When it makes sense to come back, where the breaker knows.
    #[must_use]
    pub const fn retry_in(&self) -> Option<Duration> {
        match self {
            Self::Open { retry_in, .. } | Self::HalfOpenBusy { retry_in, .. } | Self::RateLimited { retry_in, .. } => {
                Some(*retry_in)
            }
            Self::BulkheadFull { .. } | Self::BudgetExhausted { .. } => None,
        }
    }

    /// The reason as one word, as in metrics and failure details.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::HalfOpenBusy { .. } => "half_open_busy",
            Self::BulkheadFull { .. } => "bulkhead_full",
            Self::RateLimited { .. } => "rate_limited",
            Self::BudgetExhausted { .. } => "budget_exhausted",
        }
    }
}

/// Why a guarded call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError<E> {
    /// It never started.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// It was given up after `after`; the breaker counted a failure.
    #[error("Call to '{service}' timed out after {after:?}")]
    TimedOut {
        /// The service that did not answer.
        service: ServiceName,
        /// The time it was given.
        after: Duration,
    },
    /// It ran and failed with the caller's own error.
    #[error("{0}")]
    Upstream(E),
}

impl<E> CallError<E> {
    /// The rejection, if the call never started.
    #[must_use]
    pub const fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::TimedOut { .. } | Self::Upstream(_) => None,
        }
    }
}

/// Errors that know what they say about the health of the service that caused them.
///
/// ```
/// use circuit_registry::{Classify, Verdict};
///
/// enum LookupError { Unreachable, UnknownCompany }
///
/// impl Classify for LookupError {
///     fn verdict(&self) -> Verdict {
///         match self {
///             Self::Unreachable => Verdict::Failure,
///             Self::UnknownCompany => Verdict::Success, // it answered
///         }
///     }
/// }
/// ```
pub trait Classify {
    /// The verdict this error gives.
    fn verdict(&self) -> Verdict;

    /// For a [`Verdict::Failure`]: how long the service asked us to stay away (503 with Retry-After). If this failure
    /// opens the breaker, it stays open at least that long, capped by the policy's `throttle_max`.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

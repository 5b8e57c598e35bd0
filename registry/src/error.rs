//! The errors of a guarded call: a rejection, a timeout, or the caller's own error, and what an error says about the service.

use std::{convert::Infallible, error::Error, fmt, io, time::Duration};

use crate::{
    failure::{Failure, FailureKind, Judgement},
    outcome::{ServiceName, Verdict},
};

/// Why a breaker rejects a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectReason {
    /// The breaker is open by its own judgement or by a throttle.
    Open,
    /// An operator or the configuration holds the breaker open.
    ForcedOpen,
    /// The breaker is half-open and every probe slot is taken.
    HalfOpenBusy,
    /// As many calls as the bulkhead allows are already running.
    BulkheadFull,
    /// The rate limit is used up.
    RateLimited,
    /// A retry (attempt > 1) found the retry budget empty.
    BudgetExhausted,
}

impl RejectReason {
    /// The reason as one word, as in metrics and failure details. A forced opening is `open` too.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open | Self::ForcedOpen => "open",
            Self::HalfOpenBusy => "half_open_busy",
            Self::BulkheadFull => "bulkhead_full",
            Self::RateLimited => "rate_limited",
            Self::BudgetExhausted => "budget_exhausted",
        }
    }
}

/// A call was not admitted: by which breaker, why, and when it may come back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejection {
    /// The service that was not called.
    pub service: ServiceName,
    /// Why.
    pub reason: RejectReason,
    /// Time until a call may come back, where the breaker knows: the next probe, the next token, or the end of a forced
    /// opening (the policy's `reset_timeout` if it has no end). `None` for a full bulkhead and an empty budget.
    pub retry_in: Option<Duration>,
    /// The size of the bulkhead, for [`RejectReason::BulkheadFull`].
    pub max_concurrent: Option<u32>,
}

impl Rejection {
    /// The rejection of a call to `service`.
    pub fn new(service: impl Into<ServiceName>, reason: RejectReason, retry_in: Option<Duration>) -> Self {
        Self { service: service.into(), reason, retry_in, max_concurrent: None }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = &self.service;
        match self.reason {
            RejectReason::Open | RejectReason::ForcedOpen => {
                write!(f, "Circuit breaker open for '{service}' — failing fast")
            }
            RejectReason::HalfOpenBusy => {
                write!(f, "Circuit breaker half-open for '{service}' — all probe slots taken")
            }
            RejectReason::BulkheadFull => match self.max_concurrent {
                Some(calls) => write!(f, "Bulkhead full for '{service}' — {calls} calls in flight"),
                None => write!(f, "Bulkhead full for '{service}'"),
            },
            RejectReason::RateLimited => write!(f, "Rate limit reached for '{service}'"),
            RejectReason::BudgetExhausted => write!(f, "Retry budget exhausted for '{service}'"),
        }
    }
}

impl Error for Rejection {}

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

/// Errors that classify themselves: what they say about the health of the service.
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

    /// For a [`Verdict::Failure`]: what happened, in a few words without secrets. It is shown as the last failure of the
    /// breaker. The default says that the kind is unknown, because the text of an error may hold anything.
    fn failure(&self) -> Failure {
        Failure::new(FailureKind::Other)
    }

    /// All of these at once.
    fn judgement(&self) -> Judgement {
        let verdict = self.verdict();
        let failure = (verdict == Verdict::Failure).then(|| self.failure());
        Judgement { verdict, retry_after: self.retry_after(), failure }
    }
}

impl Classify for Infallible {
    fn verdict(&self) -> Verdict {
        match *self {}
    }
}

/// Every I/O error is a failure of the other side, except those that we make ourselves.
impl Classify for io::Error {
    fn verdict(&self) -> Verdict {
        match self.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::Interrupted | io::ErrorKind::OutOfMemory => Verdict::Neutral,
            _ => Verdict::Failure,
        }
    }

    fn failure(&self) -> Failure {
        let kind = match self.kind() {
            io::ErrorKind::TimedOut => FailureKind::Timeout,
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => FailureKind::Answer,
            io::ErrorKind::Other => return Failure::new(FailureKind::Other),
            _ => FailureKind::Connection,
        };
        // The words of the kind, and not of the error, which may name files and hosts.
        Failure::new(kind).saying(&self.kind().to_string())
    }
}

impl Classify for tokio::time::error::Elapsed {
    fn verdict(&self) -> Verdict {
        Verdict::Failure
    }

    fn failure(&self) -> Failure {
        Failure::new(FailureKind::Timeout)
    }
}

/// An error of an unknown kind is a failure. Use [`Breaker::call_with`](crate::Breaker::call_with) to classify it.
impl Classify for Box<dyn Error + Send + Sync> {
    fn verdict(&self) -> Verdict {
        Verdict::Failure
    }
}

/// A text as an error is a failure. Use [`Breaker::call_with`](crate::Breaker::call_with) to classify it.
impl Classify for String {
    fn verdict(&self) -> Verdict {
        Verdict::Failure
    }
}

/// A text as an error is a failure. Use [`Breaker::call_with`](crate::Breaker::call_with) to classify it.
impl Classify for &str {
    fn verdict(&self) -> Verdict {
        Verdict::Failure
    }
}

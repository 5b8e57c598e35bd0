//! The plain words of a breaker: the name of a service, the verdict of a call, what the verdict changed, and the state.
//!
//! Nothing here reads a clock, takes a lock or knows how a breaker decides.

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

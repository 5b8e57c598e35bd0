//! What a store answers, and why it could not do its work.

use std::{fmt, pin::Pin, time::Duration};

/// What the functions of a store return: a future that may be sent between threads.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// What kind of error a store met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The setting names no store.
    Setting,
    /// The registry has no store, or its sync task does not run.
    Absent,
    /// The store does not answer in time.
    Unreachable,
    /// The store refuses our user, password or rights.
    Denied,
    /// The store can be read but not written.
    ReadOnly,
    /// The store is full.
    Full,
    /// Anything else.
    Other,
}

impl StoreErrorKind {
    /// What an operator can do.
    const fn remedy(self) -> &'static str {
        match self {
            Self::Setting => "see the manual of the setting",
            Self::Absent => "give the registry a store, and run its sync task",
            Self::Unreachable => "check that it runs and that the address is right",
            Self::Denied => "check user, password, rights and database",
            Self::ReadOnly => "name a place that can be written: the primary, not a replica",
            Self::Full => "free some space",
            Self::Other => "see the message",
        }
    }
}

/// Why a store could not do its work. Calls go on without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.kind.remedy())
    }
}

impl StoreError {
    /// An error with this message, which must hold no secret.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// What kind of error it is.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    pub(crate) fn absent() -> Self {
        Self::new(StoreErrorKind::Absent, "nothing is stored")
    }

    pub(crate) fn late(after: Duration) -> Self {
        Self::new(StoreErrorKind::Unreachable, format!("no answer within {after:?}"))
    }
}

/// The operations of a store, as the metric `circuit_breaker_store_errors_total` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Op {
    Load,
    Save,
    Lease,
    Limit,
    Sync,
    Publish,
    Subscribe,
}

impl Op {
    pub(crate) const ALL: [(Self, &'static str); 7] = [
        (Self::Load, "load"),
        (Self::Save, "save"),
        (Self::Lease, "lease"),
        (Self::Limit, "limit"),
        (Self::Sync, "sync"),
        (Self::Publish, "publish"),
        (Self::Subscribe, "subscribe"),
    ];
}

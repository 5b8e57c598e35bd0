//! The one error of an upstream: what its answer means, and what it says about the health of the upstream that gave it.
//!
//! Two questions that look alike are kept apart. A [`Class`] is about the *answer*: is it one, is it a "no", is it an
//! outage in disguise? A verdict is about the *upstream*: only that reaches its breaker. A status code settles neither:
//! there are outages inside a 200 and plain answers inside a 500. So each upstream has a table of
//! [`Rule`](crate::spec::Rule)s, which [`classify`](crate::classify) consults before the defaults of HTTP.

use std::time::Duration;

use circuit_registry::{Classify, Failure, FailureKind, Verdict};
use serde::{Deserialize, Serialize};

/// What one answer of an upstream turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The answer that was asked for.
    Ok,
    /// The upstream knows no such thing, in its own format.
    NotFound,
    /// An answer about the question: input it refuses, data it may not give, too many hits.
    Business,
    /// It asks to be left alone for a while: rate limit, quota, block.
    Throttled,
    /// Credentials, plan or address refused.
    Denied,
    /// It cannot answer anybody at the moment.
    Unavailable,
    /// It did not answer in time.
    Timeout,
    /// It answered something that its contract does not describe.
    BadShape,
}

impl Class {
    /// The verdict a class gives, where no rule says otherwise.
    #[must_use]
    pub const fn verdict(self, retry_after: Option<Duration>) -> Verdict {
        match self {
            Self::Ok | Self::NotFound | Self::Business => Verdict::Success,
            Self::Throttled => Verdict::Throttled { retry_after },
            Self::Denied => Verdict::Neutral,
            Self::Unavailable | Self::Timeout | Self::BadShape => Verdict::Failure,
        }
    }
}

/// Whose trouble it is, where an upstream is more than one thing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The upstream's own: its breaker takes the verdict.
    #[default]
    Service,
    /// That of the part behind it which the call was about, such as one member state of VIES. The upstream itself
    /// answered; the breaker of the part takes the verdict.
    Part,
    /// That of this one subject: no breaker learns from it.
    Subject,
    /// That of our account: the breakers of all sources that use it take the verdict.
    Account,
}

/// A call that brought no answer to work with, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SourceError {
    /// What it was; never [`Class::Ok`].
    pub class: Class,
    /// A sentence for the reader of the report, without personal data.
    pub reason: String,
    /// How long the upstream asked to be left alone.
    pub retry_after: Option<Duration>,
    /// Whose trouble it is.
    pub scope: Scope,
    /// True if nothing can have been charged: the request never reached the upstream, or is free.
    pub uncharged: bool,
    verdict: Verdict,
}

impl SourceError {
    /// SourceError of a class, with the verdict that the class gives.
    #[must_use]
    pub fn new(class: Class, reason: impl Into<String>) -> Self {
        let verdict = class.verdict(None);
        Self { class, reason: reason.into(), retry_after: None, scope: Scope::Service, uncharged: false, verdict }
    }

    /// The upstream knows no such thing.
    #[must_use]
    pub fn not_found(reason: impl Into<String>) -> Self {
        Self::new(Class::NotFound, reason)
    }

    /// An answer about the question.
    #[must_use]
    pub fn business(reason: impl Into<String>) -> Self {
        Self::new(Class::Business, reason)
    }

    /// An outage.
    #[must_use]
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::new(Class::Unavailable, reason)
    }

    /// Not what the contract describes.
    #[must_use]
    pub fn bad_shape(reason: impl Into<String>) -> Self {
        Self::new(Class::BadShape, reason)
    }

    /// The same, with the time the upstream asked for.
    #[must_use]
    pub fn after(mut self, retry_after: Option<Duration>) -> Self {
        self.retry_after = retry_after;
        if let Verdict::Throttled { .. } = self.verdict {
            self.verdict = Verdict::Throttled { retry_after };
        }
        self
    }

    /// The same, as the trouble of somebody else.
    #[must_use]
    pub const fn of(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// The same with another verdict than its class gives.
    #[must_use]
    pub const fn judged(mut self, verdict: Verdict) -> Self {
        self.verdict = verdict;
        self
    }

    /// The same, certain not to have reached the upstream.
    #[must_use]
    pub const fn unsent(self) -> Self {
        self.uncharged()
    }

    /// The same, about a request that costs nothing.
    #[must_use]
    pub const fn uncharged(mut self) -> Self {
        self.uncharged = true;
        self
    }

    /// What the breaker of the part behind the upstream makes of it. SourceError of the way to the part says nothing about
    /// the part.
    #[must_use]
    pub const fn verdict_on_part(&self) -> Verdict {
        match (self.scope, self.class) {
            (Scope::Part, _) | (_, Class::NotFound | Class::Business) => self.verdict,
            _ => Verdict::Neutral,
        }
    }
}

impl Classify for SourceError {
    fn verdict(&self) -> Verdict {
        match self.scope {
            Scope::Service | Scope::Account => self.verdict,
            Scope::Part => Verdict::Success, // it relayed somebody else's trouble, which takes being alive
            Scope::Subject => Verdict::Neutral,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    fn failure(&self) -> Failure {
        let kind = match self.class {
            Class::Throttled => FailureKind::Throttled,
            Class::Timeout => FailureKind::Timeout,
            Class::BadShape => FailureKind::Answer,
            _ => FailureKind::Other,
        };
        Failure::new(kind).saying(&self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_verdict() {
        let wait = Some(Duration::from_secs(7));
        let table = [
            (Class::Ok, Verdict::Success),
            (Class::NotFound, Verdict::Success),
            (Class::Business, Verdict::Success),
            (Class::Throttled, Verdict::Throttled { retry_after: wait }),
            (Class::Denied, Verdict::Neutral),
            (Class::Unavailable, Verdict::Failure),
            (Class::Timeout, Verdict::Failure),
            (Class::BadShape, Verdict::Failure),
        ];
        for (class, verdict) in table {
            assert_eq!(class.verdict(wait), verdict, "{class:?}");
            assert_eq!(SourceError::new(class, "").after(wait).verdict(), verdict, "{class:?}");
        }
    }

    #[test]
    fn trouble_counts_where_it_belongs() {
        let outage = SourceError::unavailable("x");
        let cases = [
            (Scope::Service, Verdict::Failure, Verdict::Neutral),
            (Scope::Account, Verdict::Failure, Verdict::Neutral),
            (Scope::Part, Verdict::Success, Verdict::Failure),
            (Scope::Subject, Verdict::Neutral, Verdict::Neutral),
        ];
        for (scope, service, part) in cases {
            let outage = outage.clone().of(scope);
            assert_eq!((outage.verdict(), outage.verdict_on_part()), (service, part), "{scope:?}");
        }
        let unknown = SourceError::not_found("x");
        assert_eq!((unknown.verdict(), unknown.verdict_on_part()), (Verdict::Success, Verdict::Success));
    }
}

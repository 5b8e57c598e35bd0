//! The policy that a workflow gives one of its activities: which breaker guards it, what it does while that breaker is open, and how
//! much time it has. A header of the activity carries it, because an activity cannot see its schedule-to-close timeout.
//!
//! The header is a JSON payload with a version. A worker that does not understand it logs that once and follows its own
//! configuration, because two versions of a program may work on one queue.

use std::{
    borrow::Cow,
    collections::HashMap,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use temporalio_common::protos::temporal::api::common::v1::Payload;

use crate::{ServiceName, policy::OnOpen};

/// The header's name.
pub const HEADER: &str = "circuit-breaker";

/// The version that this library writes and reads.
const VERSION: u32 = 1;

/// The policy that a workflow gives an activity. The worker's `breakers.yaml` decides what it leaves open.
///
/// ```
/// use std::time::Duration;
/// use circuit_registry::temporal::ActivityPolicy;
///
/// let patient = ActivityPolicy::new().service("northdata").wait_max(Duration::from_secs(600));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActivityPolicy {
    pub(super) service: Option<ServiceName>,
    pub(super) on_open: Option<OnOpen>,
    pub(super) budget: Option<Duration>,
}

impl ActivityPolicy {
    /// A policy that leaves everything open.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The breaker of `service` guards the activity as a whole.
    #[must_use]
    pub fn service(mut self, service: impl Into<ServiceName>) -> Self {
        self.service = Some(service.into());
        self
    }

    /// What the activity does when a breaker refuses it: the one around it, or one inside it.
    #[must_use]
    pub const fn on_open(mut self, on_open: OnOpen) -> Self {
        self.on_open = Some(on_open);
        self
    }

    /// The activity fails at once and for good, and the workflow goes on without its answer.
    #[must_use]
    pub const fn degrade(self) -> Self {
        self.on_open(OnOpen::Degrade)
    }

    /// The activity is retried when the breaker is due.
    #[must_use]
    pub const fn wait(self) -> Self {
        self.on_open(OnOpen::Wait)
    }

    /// The activity is retried when the breaker is due, unless that is later than `most` after it was scheduled.
    #[must_use]
    pub const fn wait_max(self, most: Duration) -> Self {
        self.on_open(OnOpen::WaitMax(most))
    }

    /// The workflow's time limit from scheduling the activity, with all attempts and waits. The default is the activity's
    /// schedule-to-close timeout.
    #[must_use]
    pub const fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// This policy, with gaps filled from `other`.
    pub(super) fn or(self, other: &Self) -> Self {
        Self {
            service: self.service.or_else(|| other.service.clone()),
            on_open: self.on_open.or(other.on_open),
            budget: self.budget.or(other.budget),
        }
    }

    /// The time left at `now` for a wait by `on_open`; `None` without a limit.
    pub(super) fn left(&self, on_open: OnOpen, scheduled: SystemTime, now: SystemTime) -> Option<Duration> {
        let own = match on_open {
            OnOpen::WaitMax(most) => Some(most),
            OnOpen::Degrade | OnOpen::Wait => None,
        };
        let limit = match (own, self.budget) {
            (Some(own), Some(budget)) => own.min(budget),
            (own, budget) => own.or(budget)?,
        };
        // `scheduled` is by the server's clock, `now` by ours. If our clock is behind, `scheduled` is in the future: then no time
        // has passed.
        let passed = now.duration_since(scheduled).unwrap_or(Duration::ZERO);
        Some(limit.saturating_sub(passed))
    }
}

/// The header's JSON.
#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    v: u32,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    service: Option<Cow<'a, str>>,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    on_open: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wait_max_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget_ms: Option<u64>,
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl ActivityPolicy {
    pub(super) fn to_payload(&self) -> Payload {
        let (on_open, wait_max) = match self.on_open {
            None => (None, None),
            Some(OnOpen::Degrade) => (Some("degrade"), None),
            Some(OnOpen::Wait) => (Some("wait"), None),
            Some(OnOpen::WaitMax(most)) => (Some("wait_max"), Some(most)),
        };
        let wire = Wire {
            v: VERSION,
            service: self.service.as_deref().map(Cow::Borrowed),
            on_open: on_open.map(Cow::Borrowed),
            wait_max_ms: wait_max.map(millis),
            budget_ms: self.budget.map(millis),
        };
        Payload {
            metadata: HashMap::from([("encoding".to_owned(), b"json/plain".to_vec())]),
            // Text and numbers always have a JSON form.
            data: serde_json::to_vec(&wire).unwrap_or_default(),
            ..Payload::default()
        }
    }

    /// The policy in a header.
    ///
    /// # Errors
    /// Why the header cannot be used.
    pub(super) fn from_payload(payload: &Payload) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Versioned {
            v: u32,
        }
        let unreadable = |error: serde_json::Error| format!("it cannot be read: {error}");
        let Versioned { v } = serde_json::from_slice(&payload.data).map_err(unreadable)?;
        if v != VERSION {
            return Err(format!("it has version {v}, and this worker reads version {VERSION}"));
        }
        let wire: Wire<'_> = serde_json::from_slice(&payload.data).map_err(unreadable)?;
        let on_open = match (wire.on_open.as_deref(), wire.wait_max_ms) {
            (None, None) => None,
            (Some("degrade"), None) => Some(OnOpen::Degrade),
            (Some("wait"), None) => Some(OnOpen::Wait),
            (Some("wait_max"), Some(most)) => Some(OnOpen::WaitMax(Duration::from_millis(most))),
            (Some("degrade" | "wait" | "wait_max") | None, _) => {
                return Err("`on_open` and `wait_max_ms` do not go together".to_owned());
            }
            (Some(_), _) => return Err("`on_open` is not a policy that this worker knows".to_owned()),
        };
        let service = wire.service.as_deref().filter(|name| !name.is_empty()).map(ServiceName::from);
        Ok(Self { service, on_open, budget: wire.budget_ms.map(Duration::from_millis) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(json: &str) -> Payload {
        Payload { data: json.as_bytes().to_vec(), ..Payload::default() }
    }

    #[test]
    fn every_policy_survives_its_encoding() {
        let minute = Duration::from_secs(60);
        let on_open = [None, Some(OnOpen::Degrade), Some(OnOpen::Wait), Some(OnOpen::WaitMax(minute))];
        for on_open in on_open {
            for policy in [
                ActivityPolicy { on_open, ..ActivityPolicy::new() },
                ActivityPolicy { on_open, ..ActivityPolicy::new().service("vies:DE").budget(minute) },
            ] {
                assert_eq!(ActivityPolicy::from_payload(&policy.to_payload()), Ok(policy));
            }
        }
    }

    #[test]
    fn the_wire_format_stays() {
        let policy = ActivityPolicy::new().service("northdata").wait_max(Duration::from_secs(600));
        let payload = policy.budget(Duration::from_secs(900)).to_payload();
        let expected = r#"{"v":1,"service":"northdata","on_open":"wait_max","wait_max_ms":600000,"budget_ms":900000}"#;
        assert_eq!(String::from_utf8_lossy(&payload.data), expected);
        assert_eq!(payload.metadata["encoding"], b"json/plain");
    }

    #[test]
    fn an_unknown_header_is_refused_with_a_reason() {
        for (json, reason) in [
            ("", "cannot be read"),
            ("[]", "cannot be read"),
            (r#"{"v":1,"budget_ms":-5}"#, "cannot be read"),
            (r#"{"v":2,"on_open":{"of":"another shape"}}"#, "version 2"),
            (r#"{"v":1,"on_open":"panic"}"#, "not a policy"),
            (r#"{"v":1,"on_open":"wait_max"}"#, "do not go together"),
            (r#"{"v":1,"wait_max_ms":5}"#, "do not go together"),
        ] {
            let error = ActivityPolicy::from_payload(&payload(json)).expect_err(json);
            assert!(error.contains(reason), "{json}: {error}");
        }
        let newer = payload(r#"{"v":1,"on_open":"wait","of_a_later_release":true}"#);
        assert_eq!(ActivityPolicy::from_payload(&newer), Ok(ActivityPolicy::new().wait()));
    }

    #[test]
    fn the_time_left_is_the_shorter_of_both_limits() {
        let (scheduled, minute) = (SystemTime::UNIX_EPOCH + Duration::from_secs(1000), Duration::from_secs(60));
        let at = |secs| scheduled + Duration::from_secs(secs);
        let unlimited = ActivityPolicy::new();
        assert_eq!(unlimited.left(OnOpen::Wait, scheduled, at(10)), None);
        assert_eq!(unlimited.left(OnOpen::WaitMax(minute), scheduled, at(10)), Some(Duration::from_secs(50)));
        assert_eq!(unlimited.left(OnOpen::WaitMax(minute), at(5), scheduled), Some(minute), "a clock behind");
        let limited = ActivityPolicy::new().budget(Duration::from_secs(30));
        assert_eq!(limited.left(OnOpen::Wait, scheduled, at(10)), Some(Duration::from_secs(20)));
        assert_eq!(limited.left(OnOpen::WaitMax(minute), scheduled, at(40)), Some(Duration::ZERO));
    }
}

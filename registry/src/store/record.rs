//! The record of a breaker in a store: one small JSON object with a version, on one line.
//!
//! A record has no ticks, which mean nothing to another process. It has [`Stamp`]s: microseconds by the clock of the store. A reader turns
//! "due at" back into "due in" and limits it. So neither a clock that was set nor a changed record can keep a breaker open for longer
//! than its policy allows.
//!
//! A record has no counters. Evidence from before a restart says little about the time after it, and a breaker that was closed starts
//! closed.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    clock::Stamp,
    hash,
    policy::{Mode, Policy},
};

/// The version that this program writes, and the only one it reads.
const VERSION: u64 = 1;

/// The stored state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoredState {
    Closed,
    Open,
    /// Restored as open and due.
    HalfOpen,
}

/// An override as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredOverride {
    #[serde(with = "mode")]
    pub(crate) kind: Mode,
    pub(crate) who: String,
    pub(crate) why: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ends: Option<Stamp>,
    /// When it was ordered or released. Of two versions the newer epoch counts.
    pub(crate) epoch: Stamp,
    /// Released. It is kept for a while, so that an older order that arrives late does not revive it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) released: bool,
}

impl StoredOverride {
    pub(crate) fn holds(&self, now: Stamp) -> bool {
        !self.released && self.ends.is_none_or(|end| now < end)
    }
}

/// A process that opened while its fleet did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Vote {
    pub(crate) by: String,
    pub(crate) until: Stamp,
}

/// The record of one breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) version: u64,
    pub(crate) service: String,
    /// The [fingerprint] of its policy.
    pub(crate) policy: String,
    pub(crate) state: StoredState,
    /// When the state was decided. Of two records the newer epoch counts.
    pub(crate) epoch: Stamp,
    /// While open: when the next probe is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Stamp>,
    /// While open: how long this opening lasts in total.
    #[serde(default, skip_serializing_if = "Duration::is_zero", rename = "open_for_us", with = "micros")]
    pub(crate) open_for: Duration,
    /// Openings since it was last closed.
    #[serde(default)]
    pub(crate) openings: u32,
    /// Why it is open, for a person who reads the store.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) cause: String,
    /// The process that decided.
    #[serde(default)]
    pub(crate) by: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) overrides: Vec<StoredOverride>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) votes: Vec<Vote>,
}

/// Why a record cannot be used. Displays without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Not a record.
    Garbage,
    /// Written by another version of this program.
    Version(u64),
    /// Of another service than its key says.
    Misplaced,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Garbage => f.write_str("it is not a snapshot"),
            Self::Version(version) => write!(f, "its version is {version}, and this program reads version {VERSION}"),
            Self::Misplaced => f.write_str("it belongs to another service"),
        }
    }
}

impl Snapshot {
    /// A closed breaker without overrides.
    pub(crate) fn closed(service: &str, policy: &Policy) -> Self {
        Self {
            version: VERSION,
            service: service.to_owned(),
            policy: fingerprint(policy),
            state: StoredState::Closed,
            epoch: Stamp::default(),
            until: None,
            open_for: Duration::ZERO,
            openings: 0,
            cause: String::new(),
            by: String::new(),
            overrides: Vec::new(),
            votes: Vec::new(),
        }
    }

    /// True if a missing record would mean the same.
    pub(crate) fn is_blank(&self) -> bool {
        self.state == StoredState::Closed && self.overrides.is_empty() && self.votes.is_empty()
    }

    /// One line of JSON, all ASCII, so that any other text in its place is recognised as foreign.
    pub(crate) fn encode(&self) -> String {
        let json = serde_json::to_string(self).expect("strings and numbers always serialise");
        let mut ascii = String::with_capacity(json.len());
        let mut units = [0; 2];
        for c in json.chars() {
            if c.is_ascii() {
                ascii.push(c);
            } else {
                // Other characters occur only inside strings.
                c.encode_utf16(&mut units).iter().for_each(|unit| ascii.push_str(&format!("\\u{unit:04x}")));
            }
        }
        ascii
    }

    /// Reads a line. `service` is the service that the record should belong to, if known.
    pub(crate) fn decode(text: &str, service: Option<&str>) -> Result<Self, Unreadable> {
        let value: Value = serde_json::from_str(text).map_err(|_| Unreadable::Garbage)?;
        match value.get("version").and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(other) => return Err(Unreadable::Version(other)),
            None => return Err(Unreadable::Garbage),
        }
        let snapshot: Self = serde_json::from_value(value).map_err(|_| Unreadable::Garbage)?;
        if service.is_some_and(|service| service != snapshot.service) {
            return Err(Unreadable::Misplaced);
        }
        if snapshot.state == StoredState::Open && snapshot.until.is_none() {
            return Err(Unreadable::Garbage);
        }
        Ok(snapshot)
    }

    /// The service that a record names, even if the rest cannot be used.
    pub(crate) fn service_of(text: &str) -> Option<String> {
        let value: Value = serde_json::from_str(text).ok()?;
        value.get("service")?.as_str().map(str::to_owned)
    }

    /// Whether it is open, due or not.
    pub(crate) fn is_open(&self) -> bool {
        self.state != StoredState::Closed
    }

    /// Time until a probe is due: at most the whole of this opening, and at most what `policy` could make of one.
    pub(crate) fn remaining(&self, now: Stamp, policy: &Policy) -> Duration {
        let longest = if self.open_for > policy.open.max {
            policy.open.max.max(policy.throttle_max) // a Retry-After made it so long
        } else {
            policy.open.max
        };
        let left = self.until.map_or(Duration::ZERO, |until| until.since(now));
        left.min(self.open_for).min(longest)
    }
}

/// Identifies the parts of a policy that a stored state depends on: when it trips, for how long, and how it closes again.
pub(crate) fn fingerprint(policy: &Policy) -> String {
    let text = format!(
        "{:?} {:?} {:?} {:?} {:?}",
        policy.trip, policy.open, policy.half_open, policy.throttle_max, policy.timeout
    );
    format!("{:016x}", hash::fnv(hash::BASIS, text.as_bytes()))
}

mod mode {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::policy::Mode;

    pub(super) fn serialize<S: Serializer>(mode: &Mode, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(mode.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Mode, D::Error> {
        let text = String::deserialize(deserializer)?;
        [Mode::Observe, Mode::ForceClosed, Mode::ForceOpen]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| D::Error::custom("not an override"))
    }
}

mod micros {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(time.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::Index};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn open() -> Snapshot {
        Snapshot {
            state: StoredState::Open,
            until: Some(Stamp::from_micros(100_000_000)),
            open_for: MINUTE,
            openings: 3,
            overrides: vec![StoredOverride {
                kind: Mode::ForceOpen,
                who: "alice".into(),
                why: "angekündigte Wartung 🔧".into(),
                ends: None,
                epoch: Stamp::from_micros(7),
                released: false,
            }],
            ..Snapshot::closed("vies:DE", &Policy::default())
        }
    }

    #[test]
    fn a_record_survives_its_encoding_on_one_line() {
        let text = open().encode();
        assert!(!text.contains('\n') && text.is_ascii());
        assert_eq!(Snapshot::decode(&text, Some("vies:DE")), Ok(open()));
    }

    #[test]
    fn an_unusable_record_has_a_reason() {
        let text = open().encode();
        let newer = text.replace("\"version\":1", "\"version\":2");
        let cases = [
            ("", Unreadable::Garbage),
            ("OK", Unreadable::Garbage),
            ("null", Unreadable::Garbage),
            ("[1,2]", Unreadable::Garbage),
            ("{\"version\":1}", Unreadable::Garbage),
            (&text[..text.len() / 2], Unreadable::Garbage),
            (&text.replace("\"open\"", "\"ajar\""), Unreadable::Garbage),
            (&text.replace("\"force_open\"", "\"enforce\""), Unreadable::Garbage),
            (&text.replace("\"until\":100000000,", ""), Unreadable::Garbage),
            (&newer, Unreadable::Version(2)),
            (&text.replace("vies:DE", "vies:BE"), Unreadable::Misplaced),
        ];
        for (text, expected) in cases {
            assert_eq!(Snapshot::decode(text, Some("vies:DE")), Err(expected), "{text}");
        }
    }

    proptest! {
        /// A damaged record is refused, or describes a possible state.
        #[test]
        fn damaged_records_are_refused_or_possible(damage in vec((any::<Index>(), any::<char>()), 1..4), now in any::<u64>()) {
            let mut text: Vec<char> = open().encode().chars().collect();
            for (at, c) in damage {
                *at.get_mut(&mut text) = c;
            }
            let text: String = text.into_iter().collect();
            let policy = Policy::default();
            if let Ok(record) = Snapshot::decode(&text, Some("vies:DE")) {
                prop_assert!(record.remaining(Stamp::from_micros(now), &policy) <= policy.throttle_max.max(policy.open.max));
                prop_assert_eq!(Snapshot::decode(&record.encode(), None), Ok(record));
            }
        }

        #[test]
        fn any_text_is_refused_without_a_panic(text in ".*") {
            prop_assert!(Snapshot::decode(&text, None).is_err());
            prop_assert_eq!(Snapshot::service_of(&text), None);
        }
    }

    #[test]
    fn the_rest_of_an_opening_is_clamped() {
        let policy = Policy::default();
        let at = |secs: u64| Stamp::from_micros(secs * 1_000_000);
        let rest = |secs| open().remaining(at(secs), &policy);
        assert_eq!(rest(90), Duration::from_secs(10));
        assert_eq!(rest(100), Duration::ZERO);
        assert_eq!(rest(5000), Duration::ZERO);
        assert_eq!(rest(0), MINUTE, "a clock that was set back does not prolong it");
        let endless = Snapshot { until: Some(at(1 << 40)), open_for: Duration::from_secs(1 << 30), ..open() };
        assert_eq!(endless.remaining(at(0), &policy), policy.throttle_max, "nor does a record that makes no sense");
    }

    #[test]
    fn the_fingerprint_depends_on_the_breaker_alone() {
        let base = Policy::default();
        let mut longer = base.clone();
        longer.open.reset_timeout = MINUTE;
        let kept = Policy { cache_max_age: Some(MINUTE), activities: vec!["screen".into()], ..base.clone() };
        assert_ne!(fingerprint(&base), fingerprint(&longer));
        assert_eq!(fingerprint(&base), fingerprint(&kept));
    }
}

//! The messages on the fleet's channel, one line each. A line of another version is ignored.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{fleet_store::Lease, record::Snapshot};
use crate::clock::Stamp;

/// A message between processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// A record changed.
    Record(Box<Snapshot>, Arc<str>),
    /// A process got the lease of a probe.
    Lease(LeaseNote),
    /// A process has this many failures in a row.
    Failures(FailuresNote),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseNote {
    pub(crate) service: String,
    pub(crate) epoch: Stamp,
    pub(crate) by: String,
    pub(crate) for_us: u64,
}

impl LeaseNote {
    pub(crate) fn of(lease: &Lease) -> Self {
        Self {
            service: lease.service.as_str().to_owned(),
            epoch: lease.epoch,
            by: lease.process.clone(),
            for_us: u64::try_from(lease.lasting.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FailuresNote {
    pub(crate) service: String,
    pub(crate) by: String,
    /// Zero after a success.
    pub(crate) in_a_row: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Note {
    Lease(LeaseNote),
    Failures(FailuresNote),
}

impl Message {
    pub(crate) fn encode(&self) -> String {
        let note = match self {
            Self::Record(_, text) => return text.to_string(),
            Self::Lease(note) => Note::Lease(note.clone()),
            Self::Failures(note) => Note::Failures(note.clone()),
        };
        serde_json::to_string(&note).expect("strings and numbers always serialise")
    }

    /// `None` for a foreign text, or one of another version.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        match serde_json::from_str(text) {
            Ok(Note::Lease(note)) => Some(Self::Lease(note)),
            Ok(Note::Failures(note)) => Some(Self::Failures(note)),
            Err(_) => Snapshot::decode(text, None).ok().map(|record| Self::Record(Box::new(record), text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;

    #[test]
    fn every_kind_of_message_survives_its_encoding() {
        let record = Snapshot::closed("vies", &Policy::default());
        let text = record.encode();
        let messages = [
            Message::Record(Box::new(record), text.as_str().into()),
            Message::Lease(LeaseNote {
                service: "vies".into(),
                epoch: Stamp::from_micros(7),
                by: "a".into(),
                for_us: 5,
            }),
            Message::Failures(FailuresNote { service: "vies".into(), by: "a".into(), in_a_row: 2 }),
        ];
        for message in messages {
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
        assert_eq!(Message::decode("{\"hello\":1}"), None);
    }
}

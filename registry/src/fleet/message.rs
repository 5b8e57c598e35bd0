//! What processes tell each other on the fleet's channel. Each message is a line; a line of another version is none of ours.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    clock::Stamp,
    store::{Lease, record::Snapshot},
};

/// What processes tell each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// A record changed.
    Record(Box<Snapshot>, Arc<str>),
    /// Someone got the probe.
    Lease(LeaseNote),
    /// Someone has so many failures in a row.
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
    /// Zero: a success.
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

    /// `None` for what is none of ours, or of another version.
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
    fn messages_are_told_apart() {
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

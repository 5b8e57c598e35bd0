//! One question to one source, and its result.

use std::time::Duration;

use circuit_registry::temporal::Reason;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Facts, Subject};
use crate::error::Class;

/// How well one question was answered. "No answer" and "nothing found" are different words on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The source answered in full.
    Complete,
    /// Partly: part of the source failed, or answered about less than was asked.
    Partial,
    /// An earlier answer is the fallback for the source; [`Finding::as_of`] says how old it is.
    Cached,
    /// The source could not be asked, or failed; nothing is known, in either direction.
    Degraded,
    /// The source is still working on it: slow is not failed.
    Pending,
    /// The source answered that it knows no such subject.
    NotFound,
    /// The source does not cover this country or kind of subject.
    NotApplicable,
    /// Not asked, because credentials or settings are missing.
    Skipped,
    /// The source answered, but a person has to judge what it means.
    NeedsReview,
}

impl Status {
    /// Every status, in the order of a report.
    pub const ALL: [Self; 9] = [
        Self::Complete,
        Self::Partial,
        Self::Cached,
        Self::Degraded,
        Self::Pending,
        Self::NotFound,
        Self::NotApplicable,
        Self::Skipped,
        Self::NeedsReview,
    ];

    /// The spelling of reports and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Cached => "cached",
            Self::Degraded => "degraded",
            Self::Pending => "pending",
            Self::NotFound => "not_found",
            Self::NotApplicable => "not_applicable",
            Self::Skipped => "skipped",
            Self::NeedsReview => "needs_review",
        }
    }

    /// True if the source itself spoke about the subject now: anything else is a gap or no question at all.
    #[must_use]
    pub const fn answered(self) -> bool {
        matches!(self, Self::Complete | Self::Partial | Self::NotFound | Self::NeedsReview)
    }

    /// True if the report must name this as a gap: the question applied, and there is no full answer of today.
    #[must_use]
    pub const fn is_gap(self) -> bool {
        matches!(
            self,
            Self::Partial | Self::Cached | Self::Degraded | Self::Pending | Self::Skipped | Self::NeedsReview
        )
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The input of every operation's activity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// Whom the question is about.
    pub subject: Subject,
    /// A job of an earlier attempt or of a [`Status::Pending`] finding, to be collected instead of started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
    /// The attempt after which an upstream that fails is given up. The retry policy may allow more: those are for attempts
    /// that we refuse ourselves, because a rate limit or a bulkhead has no room yet. Waiting is not failing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
}

impl From<Subject> for Query {
    fn from(subject: Subject) -> Self {
        Self { subject, job: None, tries: None }
    }
}

/// Work that an upstream is doing for us and that we collect by its id. Starting it again may be billed again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The upstream's own id.
    pub id: String,
    /// When it was started.
    pub started_at: Timestamp,
    /// How often it was looked at in vain.
    #[serde(default)]
    pub polls: u32,
}

/// What one operation has to say: the output of every operation's activity, and an entry of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the source, such as `gleif`.
    pub source: String,
    /// Name of the operation, such as `gleif.record`; also the activity type.
    pub operation: String,
    /// How well it was answered.
    pub status: Status,
    /// Why it is not simply complete; a sentence for the reader of the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Attempts made, zero if the source was not asked.
    #[serde(default)]
    pub attempts: u32,
    /// When the last attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// How long the last attempt took, in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// What was learnt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Facts>,
    /// The date the source itself gives for its data, or the age of a cached answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
    /// The fallback that answered instead of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// When it makes sense to ask again, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// The job to collect later, for [`Status::Pending`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
}

impl Finding {
    /// A finding with nothing in it but its status.
    #[must_use]
    pub fn new(source: &str, operation: &str, status: Status) -> Self {
        Self {
            source: source.to_owned(),
            operation: operation.to_owned(),
            status,
            reason: None,
            attempts: 0,
            started_at: None,
            duration_ms: 0,
            data: None,
            as_of: None,
            via: None,
            retry_at: None,
            job: None,
        }
    }

    /// The same with a reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// What a workflow makes of an operation that ended in an error: the source stays a gap, and the gap has a reason.
    #[must_use]
    pub fn unanswered(details: &FailureDetails) -> Self {
        let ended = details.started_at.and_then(|at| at.checked_add(Duration::from_millis(details.duration_ms)).ok());
        let wait = details.retry_in_ms.map(Duration::from_millis);
        Self {
            attempts: details.attempts,
            started_at: details.started_at,
            duration_ms: details.duration_ms,
            retry_at: ended.zip(wait).and_then(|(ended, wait)| ended.checked_add(wait).ok()),
            ..Self::new(&details.source, &details.operation, Status::Degraded).because(&*details.text)
        }
    }
}

/// The details of an activity failure: why a source has no answer. Reads as the registry's own failure details too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureDetails {
    /// The breaker that refused or judged the call, such as `vies:DE`.
    pub service: String,
    /// Why there is no answer, as the registry's word for it.
    pub reason: Reason,
    /// Milliseconds until it makes sense to ask again, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
    /// Name of the source.
    pub source: String,
    /// Name of the operation.
    pub operation: String,
    /// What kind of answer it was; `None` if there was none to judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// A sentence for the reader of the report, without personal data.
    pub text: String,
    /// Attempts made so far.
    pub attempts: u32,
    /// When the last attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// How long the last attempt took, in milliseconds.
    pub duration_ms: u64,
}

impl FailureDetails {
    /// An attempt that was given up, without a breaker, a cause or a time yet.
    #[must_use]
    pub fn new(source: &str, operation: &str, attempts: u32) -> Self {
        Self {
            service: String::new(),
            reason: Reason::Declined,
            retry_in_ms: None,
            source: source.to_owned(),
            operation: operation.to_owned(),
            class: None,
            text: String::new(),
            attempts,
            started_at: None,
            duration_ms: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use circuit_registry::temporal::FailureDetails as RegistryDetails;

    use super::*;

    #[test]
    fn a_lack_reads_as_the_registrys_failure_details() {
        let details = FailureDetails {
            service: "vies:DE".into(),
            reason: Reason::Open,
            retry_in_ms: Some(30_000),
            source: "vies".into(),
            operation: "vies.check".into(),
            class: None,
            text: "open".into(),
            attempts: 2,
            started_at: Some(Timestamp::UNIX_EPOCH),
            duration_ms: 1_000,
        };
        let json = serde_json::to_value(&details).expect("a details serialises");
        let read: RegistryDetails = serde_json::from_value(json).expect("and reads as the registry's details");
        assert_eq!((read.service.as_deref(), read.retry_in_ms), (Some("vies:DE"), Some(30_000)));
        let finding = Finding::unanswered(&details);
        assert_eq!(finding.status, Status::Degraded);
        assert_eq!(finding.retry_at.map(Timestamp::as_second), Some(31), "counted from the end of the attempt");
    }

    #[test]
    fn statuses_are_spelt_alike_everywhere() {
        for status in Status::ALL {
            assert_eq!(serde_json::to_value(status).expect("serialises"), status.as_str());
            assert!(!(status == Status::NotApplicable && status.is_gap()));
        }
    }
}

//! What an investigation planned to ask. Plain data: the workflow fills it in, the report counts it.

use osint_activities::model::{Finding, Status, Subject};
use serde::{Deserialize, Serialize};

/// One operation to ask, with what the report needs to know about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Name of the source, such as `gleif`.
    pub source: String,
    /// Name of the operation and of its activity type, such as `gleif.record`.
    pub operation: String,
    /// Name of the breaker that guards it.
    pub breaker: String,
    /// What it answers, for people. The report describes a gap with these words.
    pub answers: String,
}

/// A question that applies to the subject but needs something that is not known about it yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deferred {
    /// The question.
    pub question: Question,
    /// What is missing.
    pub why: String,
}

/// The questions to ask, and those that are not asked, with the reason. Saved histories hold this document: its keys stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The company, in the form in which every source is asked about it.
    pub subject: Subject,
    /// The questions to ask now, in the order of the report.
    pub questions: Vec<Question>,
    /// Questions that wait until more is known about the subject.
    #[serde(rename = "wanting")]
    pub deferred: Vec<Deferred>,
    /// One finding of status `not_applicable` for each question that makes no sense for this subject.
    #[serde(rename = "aside")]
    pub not_applicable: Vec<Finding>,
    /// How many rounds may follow this one beyond the second. Plans of histories that an older worker began have none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_rounds: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The progress of one question, as the query `progress` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Name of the source.
    pub source: String,
    /// Name of the operation.
    pub operation: String,
    /// Its outcome; `None` until there is one.
    pub status: Option<Status>,
    /// Why the answer is not complete.
    pub reason: Option<String>,
    /// How long the last attempt took, in milliseconds.
    pub duration_ms: u64,
}

impl Step {
    /// A question without an outcome yet.
    pub(crate) fn asking(question: &Question) -> Self {
        let (source, operation) = (question.source.clone(), question.operation.clone());
        Self { source, operation, status: None, reason: None, duration_ms: 0 }
    }

    /// Records the outcome.
    pub(crate) fn settle(&mut self, finding: &Finding) {
        self.status = Some(finding.status);
        self.reason.clone_from(&finding.reason);
        self.duration_ms = finding.duration_ms;
    }
}

/// Doubts about the numbers of an admitted subject, in sentences for the reader of the report.
#[must_use]
pub fn warnings(subject: &Subject) -> Vec<String> {
    let doubts = subject.clone().normalised().map(|(_, doubts)| doubts).unwrap_or_default();
    doubts.iter().map(|doubt| format!("{doubt}. It was asked about as written; \"not found\" proves nothing")).collect()
}

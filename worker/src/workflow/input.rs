//! What an investigation is started with.

use osint_activities::model::{Finding, Subject};
use serde::{Deserialize, Serialize};

/// The input of the workflow: a subject, and the answers that are taken over instead of asking again. The JSON of a subject
/// alone is an input too, as older starters and saved histories have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvestigationInput {
    /// The company.
    #[serde(flatten)]
    pub subject: Subject,
    /// Answers of an earlier investigation. A pending one brings a job that was paid for: it is collected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Finding>,
}

impl From<Subject> for InvestigationInput {
    fn from(subject: Subject) -> Self {
        Self { subject, earlier: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use osint_activities::model::Status;

    use super::*;

    #[test]
    fn a_subject_alone_is_an_input() {
        let subject = Subject { id: Some("1".into()), ..Subject::new("NO".parse().expect("a country")) };
        let json = serde_json::to_string(&subject).expect("serialisable");
        let read: InvestigationInput = serde_json::from_str(&json).expect("an input");
        assert_eq!(read, InvestigationInput::from(subject.clone()));
        assert_eq!(serde_json::to_string(&read).expect("serialisable"), json);
        let earlier = vec![Finding::new("a", "a.b", Status::Complete)];
        let again = InvestigationInput { subject, earlier };
        let json = serde_json::to_string(&again).expect("serialisable");
        assert_eq!(serde_json::from_str::<InvestigationInput>(&json).expect("an input"), again);
    }
}

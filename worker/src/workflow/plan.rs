//! Which questions an investigation asks. A pure function of the subject and the catalog.

use osint_activities::{
    catalog::{Applies, Entry},
    model::{Finding, Status, Subject, SubjectError},
};
use serde::{Deserialize, Serialize};

/// One operation to ask, with what the report has to know about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Name of the source, such as `gleif`.
    pub source: String,
    /// Name of the operation and of its activity type, such as `gleif.record`.
    pub operation: String,
    /// Name of the breaker that guards it.
    pub breaker: String,
    /// What it answers, for people: a gap is described by what is then not known.
    pub answers: String,
}

/// What is asked, and what is not and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Whom the questions are about, in the form in which every source is asked.
    pub subject: Subject,
    /// The questions, in the order of the report.
    pub questions: Vec<Question>,
    /// One finding of status `not_applicable` for each question that makes no sense for this subject.
    pub aside: Vec<Finding>,
}

/// The subject in the form in which sources are asked about it. Nobody is asked about a number that cannot be right: the
/// answer would be "not found", and would be believed.
///
/// # Errors
/// If the subject is empty, or one of its numbers is malformed or fails its checksum.
pub fn admit(subject: Subject) -> Result<Subject, SubjectError> {
    let (subject, doubts) = subject.normalised()?;
    match doubts.into_iter().next() {
        Some(doubt) => Err(doubt.into()),
        None => Ok(subject),
    }
}

/// Plans an investigation of `subject` over the operations of `catalog`.
#[must_use]
pub fn plan(subject: Subject, catalog: &[Entry]) -> Plan {
    let (mut questions, mut aside) = (Vec::new(), Vec::new());
    for Entry { source, operation } in catalog {
        match operation.applies(&subject) {
            Applies::Yes => questions.push(Question {
                source: source.name.to_owned(),
                operation: operation.name.to_owned(),
                breaker: source.breaker.to_owned(),
                answers: operation.answers.to_owned(),
            }),
            Applies::No(why) => {
                aside.push(Finding::new(source.name, operation.name, Status::NotApplicable).because(why));
            }
        }
    }
    Plan { subject, questions, aside }
}

#[cfg(test)]
mod tests {
    use osint_activities::catalog::operations;

    use super::*;

    fn subject(country: &str) -> Subject {
        Subject::new(country.parse().expect("a country"))
    }

    fn asked(subject: &Subject) -> Vec<String> {
        plan(subject.clone(), operations()).questions.into_iter().map(|question| question.operation).collect()
    }

    #[test]
    fn numbers_that_cannot_be_right_are_refused() {
        let with = |id: &str| admit(Subject { id: Some(id.into()), ..subject("NO") });
        assert_eq!(with("923 609 016").expect("valid").id.as_deref(), Some("923609016"));
        for id in ["923609017", "92360901", "abc", " "] {
            assert!(with(id).is_err(), "{id:?} was accepted");
        }
    }

    #[test]
    fn every_operation_is_either_asked_or_set_aside_with_a_reason() {
        for country in ["NO", "CZ", "FI", "DE", "US"] {
            let subject = Subject { id: Some("1".into()), ..subject(country) };
            let plan = plan(subject, operations());
            assert_eq!(plan.questions.len() + plan.aside.len(), operations().len());
            assert!(
                plan.aside.iter().all(|finding| finding.status == Status::NotApplicable && finding.reason.is_some())
            );
        }
    }

    #[test]
    fn a_register_is_asked_about_its_own_country_only() {
        let norwegian = asked(&Subject { id: Some("923609016".into()), ..subject("NO") });
        assert!(norwegian.iter().any(|name| name == "no_brreg.entity"));
        assert!(!norwegian.iter().any(|name| name.starts_with("cz_ares.") || name.starts_with("vies.")));
    }

    #[test]
    fn what_needs_a_name_waits_for_one() {
        let unnamed = Subject { id: Some("923609016".into()), ..subject("NO") };
        let named = Subject { name: Some("Equinor ASA".into()), ..unnamed.clone() };
        assert!(!asked(&unnamed).iter().any(|name| name == "opensanctions.match"));
        assert!(asked(&named).iter().any(|name| name == "opensanctions.match"));
    }
}

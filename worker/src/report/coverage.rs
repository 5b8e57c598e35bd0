//! What a report may conclude. A question without an answer is a gap, and the report must name it: a name that was not
//! screened is not a clear name.

use osint_activities::model::{Finding, Status};
use serde::{Deserialize, Serialize};

use super::{Deferred, Plan};

/// Which questions were asked, and which were answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Questions that applied to the subject.
    pub asked: usize,
    /// Those that were answered in full, "not found" included.
    pub answered: usize,
    /// Those that were not answered in full, and what that means.
    pub gaps: Vec<Gap>,
    /// Questions that apply but need something that is not known about the subject.
    pub not_asked: Vec<Gap>,
    /// Questions of the catalog that do not apply to the subject.
    pub not_applicable: usize,
    /// The same in a sentence.
    pub statement: String,
}

/// A question without a full answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Name of the source.
    pub source: String,
    /// Name of the operation.
    pub operation: String,
    /// How far it got.
    pub status: Status,
    /// What it means for the conclusions.
    pub means: String,
}

impl Coverage {
    /// The coverage of a plan. `findings` are in the order of the plan's questions.
    #[must_use]
    pub fn of(plan: &Plan, findings: &[Finding]) -> Self {
        let asked = plan.questions.len();
        let pairs = plan.questions.iter().zip(findings);
        let gaps: Vec<Gap> = pairs
            .filter(|(_, finding)| finding.status.is_gap())
            .map(|(question, finding)| Gap {
                source: finding.source.clone(),
                operation: finding.operation.clone(),
                status: finding.status,
                means: format!("{}: {}", meaning(finding.status), question.answers),
            })
            .collect();
        let answered = asked - gaps.len();
        let not_asked: Vec<Gap> = plan
            .deferred
            .iter()
            .map(|Deferred { question, why }| Gap {
                source: question.source.clone(),
                operation: question.operation.clone(),
                status: Status::NotApplicable,
                means: format!("not asked, because {why}: {}", question.answers),
            })
            .collect();
        let statement = statement(asked, &gaps, &not_asked);
        Self { asked, answered, gaps, not_asked, not_applicable: plan.not_applicable.len(), statement }
    }
}

fn meaning(status: Status) -> &'static str {
    match status {
        Status::Partial => "known only in part",
        Status::Cached => "known only as of an earlier date",
        Status::Pending => "not known yet",
        Status::NeedsReview => "known only after a person has looked at it",
        _ => "not known",
    }
}

fn statement(asked: usize, gaps: &[Gap], not_asked: &[Gap]) -> String {
    let is_dated = |gap: &&Gap| gap.status == Status::Cached;
    let dated: Vec<&str> = gaps.iter().filter(is_dated).map(|gap| gap.operation.as_str()).collect();
    let open = gaps.iter().filter(|gap| !is_dated(gap)).chain(not_asked);
    let open: Vec<&str> = open.map(|gap| gap.operation.as_str()).collect();
    let first = match (asked, gaps.len()) {
        (0, _) => "No source had a question for this subject.".to_owned(),
        (1, 0) => "The one question that applies was answered.".to_owned(),
        (_, 0) => format!("All {asked} questions that apply were answered."),
        (_, open) => format!("{} of the {asked} questions that apply were answered in full.", asked - open),
    };
    let first = match dated.as_slice() {
        [] => first,
        names => {
            format!("{first} An earlier answer stands in for {}: it is true as of its date only.", names.join(", "))
        }
    };
    match (asked, open.is_empty()) {
        (0, true) => format!("{first} This report supports no conclusion."),
        (_, true) => first,
        _ => format!(
            "{first} About {} this report supports no conclusion, neither that something was found nor that nothing was.",
            open.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use osint_activities::{catalog::operations, model::Subject};

    use super::*;
    use crate::workflow::plan;

    fn planned() -> Plan {
        let subject = Subject::new("NO".parse().expect("a country"));
        plan(Subject { id: Some("923609016".into()), name: Some("Equinor ASA".into()), ..subject }, operations())
    }

    fn answered(plan: &Plan, status: Status) -> Vec<Finding> {
        plan.questions.iter().map(|question| Finding::new(&question.source, &question.operation, status)).collect()
    }

    #[test]
    fn full_answers_leave_no_gap_and_not_found_is_an_answer() {
        let plan = planned();
        for status in [Status::Complete, Status::NotFound] {
            let coverage = Coverage::of(&plan, &answered(&plan, status));
            assert_eq!((coverage.answered, coverage.gaps.len()), (plan.questions.len(), 0));
        }
    }

    #[test]
    fn a_gap_names_what_is_unknown_and_never_says_clear() {
        let plan = planned();
        for status in Status::ALL.into_iter().filter(|status| status.is_gap()) {
            let mut findings = answered(&plan, Status::Complete);
            let last = findings.len() - 1;
            findings[last].status = status;
            let coverage = Coverage::of(&plan, &findings);
            assert_eq!(coverage.answered, last);
            assert_eq!(coverage.gaps[0].operation, findings[last].operation);
            assert!(coverage.gaps[0].means.ends_with(&plan.questions[last].answers));
            let text = format!("{} {}", coverage.statement, coverage.gaps[0].means).to_lowercase();
            let dated = coverage.statement.contains("as of its date") && !coverage.statement.contains("no conclusion");
            assert!(coverage.statement.contains("no conclusion") || (status == Status::Cached && dated));
            assert!(!["clean", "clear", "no hits"].iter().any(|word| text.contains(word)), "{text}");
        }
    }

    #[test]
    fn a_deferred_question_is_named_with_what_it_needs() {
        let plan = planned();
        let deferred = &plan.deferred[0];
        let coverage = Coverage::of(&plan, &answered(&plan, Status::Complete));
        assert_eq!(coverage.not_asked[0].operation, deferred.question.operation);
        assert!(coverage.not_asked[0].means.contains(&deferred.why));
        assert!(
            coverage.statement.contains(&deferred.question.operation) && coverage.statement.contains("no conclusion")
        );
    }

    #[test]
    fn a_subject_that_no_source_covers_gets_no_conclusion() {
        let empty = Plan { questions: Vec::new(), deferred: Vec::new(), ..planned() };
        assert!(Coverage::of(&empty, &[]).statement.contains("no conclusion"));
    }
}

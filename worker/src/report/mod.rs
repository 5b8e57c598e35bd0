//! The result of an investigation as one document, and as a page for people.

pub mod again;
mod coverage;
pub mod export;
pub mod insight;
pub mod neutral;
pub mod page;
mod plan;
mod render;

use std::time::Duration;

use circuit_registry::BreakerView;
use jiff::Timestamp;
use osint_activities::model::{Finding, Status, Subject};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use insight::{Insight, Verdict, VerdictWord};

pub use coverage::{Coverage, Gap};
pub use plan::{Deferred, Plan, Question, Step, warnings};
pub use render::{Paint, Table, breakers, step};

/// Version of the report's document. It rises when a reader of the earlier version would misread the new one.
pub const VERSION: u32 = 2;

/// Reports without a version are of the first.
const fn first_version() -> u32 {
    1
}

/// How complete an investigation is as a whole, in the three words that programs have always read. People read the finer
/// [`insight::Verdict`], and the two never contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overall {
    /// Every question that can be asked about the subject was answered in full.
    Complete,
    /// Some were not answered in full. The coverage names them.
    Partial,
    /// None was answered, or there was none to ask.
    Degraded,
}

/// The result of an investigation: the workflow's output and the document of `--json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The id of the workflow that made it.
    pub investigation_id: String,
    /// The company: as given, with the fields that the first round filled in.
    pub subject: Subject,
    /// How complete it is.
    pub status: Overall,
    /// Which questions were asked and answered, and what each gap means.
    pub coverage: Coverage,
    /// Doubts about the subject's numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// One per operation of the catalog: first those that were asked, in the order of the plan, then those that were not.
    pub findings: Vec<Finding>,
    /// The breakers of the sources that were asked, as they were at the end.
    pub breakers: Vec<BreakerStatus>,
    /// Version of this document: [`VERSION`] when it was made.
    #[serde(default = "first_version")]
    pub version: u32,
}

impl Overall {
    /// The spelling of JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Degraded => "degraded",
        }
    }
}

impl Report {
    /// Builds a report. `findings` are in the order of the plan's questions. Pure, because the workflow calls it.
    #[must_use]
    pub fn new(id: &str, plan: Plan, mut findings: Vec<Finding>, breakers: Vec<BreakerStatus>) -> Self {
        let coverage = Coverage::of(&plan, &findings);
        let status = match (Verdict::of(&coverage).word, coverage.answered) {
            // Without an answered question the report is degraded, even if there are no gaps.
            (_, 0) => Overall::Degraded,
            (VerdictWord::Complete | VerdictWord::CompleteAsFarAsItApplies, _) => Overall::Complete,
            (VerdictWord::Partial, _) => Overall::Partial,
        };
        findings.extend(plan.deferred.into_iter().map(|Deferred { question, why }| {
            Finding::new(&question.source, &question.operation, Status::NotApplicable).because(why)
        }));
        findings.extend(plan.not_applicable);
        let (investigation_id, subject) = (id.to_owned(), plan.subject);
        let warnings = warnings(&subject);
        Self { investigation_id, subject, status, coverage, warnings, findings, breakers, version: VERSION }
    }

    /// The report as the document of `--json`: the report, grown by what [`Insight`] reads from it. Every finding has the
    /// same keys; an empty one is `null`.
    ///
    /// # Errors
    /// Never for a report that was read from JSON or made by a workflow.
    pub fn document(&self) -> serde_json::Result<Value> {
        let mut document = serde_json::to_value(self)?;
        if let (Some(document), Value::Object(insight)) =
            (document.as_object_mut(), serde_json::to_value(Insight::of(self))?)
        {
            document.extend(insight);
        }
        let findings = document.get_mut("findings").and_then(Value::as_array_mut).into_iter().flatten();
        for finding in findings.filter_map(Value::as_object_mut) {
            for key in ["reason", "started_at", "data"] {
                finding.entry(key).or_insert(Value::Null);
            }
        }
        Ok(document)
    }

    /// When the last question was answered; `None` if nothing was asked.
    #[must_use]
    pub fn ended(&self) -> Option<Timestamp> {
        let end = |finding: &Finding| finding.started_at?.checked_add(Duration::from_millis(finding.duration_ms)).ok();
        self.findings.iter().filter_map(end).max()
    }

    /// The findings of questions that applied.
    pub fn asked(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.status != Status::NotApplicable)
    }
}

/// One breaker in the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerStatus {
    /// The service it guards.
    pub service: String,
    /// `closed`, `open` or `half_open`.
    pub state: String,
    /// Milliseconds until an open breaker lets a probe through; `null` when it is not open.
    pub retry_in_ms: Option<u64>,
}

impl From<&BreakerView> for BreakerStatus {
    fn from(view: &BreakerView) -> Self {
        Self {
            service: view.service.to_string(),
            state: view.state.as_str().to_owned(),
            retry_in_ms: view.retry_in.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use osint_activities::catalog::operations;

    use super::*;
    use crate::workflow::plan;

    fn planned() -> Plan {
        let subject = Subject {
            id: Some("923609016".into()),
            name: Some("Equinor ASA".into()),
            address: Some("Forusbeen 50, 4035 Stavanger".into()),
            website: Some("https://www.equinor.com".into()),
            persons: vec!["Ola Eksempel".into()],
            lei: Some("OW6OFBNCKXC4US5C7523".into()),
            ..Subject::new("NO".parse().expect("a country"))
        };
        plan(subject, operations())
    }

    fn report(status: Status) -> Report {
        let plan = planned();
        let findings =
            plan.questions.iter().map(|question| Finding::new(&question.source, &question.operation, status));
        let findings = findings.collect();
        let breaker = BreakerStatus { service: "gleif".into(), state: "half_open".into(), retry_in_ms: None };
        Report::new("investigation-1", plan, findings, vec![breaker])
    }

    #[test]
    fn the_document_has_every_promised_key() {
        let document = report(Status::Complete).document().expect("serialisable");
        let grown = ["verdict", "facts", "attention", "people", "signals", "version"];
        for key in ["investigation_id", "subject", "status", "coverage", "findings", "breakers"].iter().chain(&grown) {
            assert!(document.get(key).is_some(), "{key} is missing");
        }
        for finding in document["findings"].as_array().expect("a list") {
            let keys = ["source", "operation", "status", "reason", "attempts", "started_at", "duration_ms", "data"];
            for key in keys {
                assert!(finding.get(key).is_some(), "{key} is missing in {finding}");
            }
        }
        assert_eq!(document["breakers"][0]["state"], "half_open");
        assert_eq!(document["breakers"][0]["retry_in_ms"], Value::Null);
    }

    #[test]
    fn the_overall_status_follows_the_findings() {
        assert_eq!(report(Status::Complete).status, Overall::Complete);
        assert_eq!(report(Status::NotFound).status, Overall::Complete);
        assert_eq!(report(Status::Degraded).status, Overall::Degraded);
        let mut mixed = report(Status::Complete).findings;
        mixed[0].status = Status::Degraded;
        assert_eq!(Report::new("x", planned(), mixed, Vec::new()).status, Overall::Partial);
    }

    #[test]
    fn a_deferred_question_makes_the_report_partial() {
        let unnamed = plan(Subject { name: None, persons: Vec::new(), ..planned().subject }, operations());
        let answers =
            unnamed.questions.iter().map(|asked| Finding::new(&asked.source, &asked.operation, Status::Complete));
        let findings = answers.collect();
        let report = Report::new("x", unnamed, findings, Vec::new());
        assert_eq!(report.status, Overall::Partial);
        assert!(report.coverage.not_asked.iter().any(|gap| gap.operation == "opensanctions.match"));
        assert!(report.findings.iter().any(|finding| finding.operation == "opensanctions.match"));
        assert_eq!(report.findings.len(), operations().len());
    }
}

//! What a report says beyond its findings: the verdict, the facts with their sources, what matters, who was screened.
//!
//! All of it is a pure function of the report, computed when a report is read. So reports of older versions gain it too, and
//! the result of a workflow stays small.

mod attention;
mod identity;
mod people;
mod signals;
mod verdict;

use jiff::Timestamp;
use osint_activities::model::{Facts, Finding, Screening, Status};
use serde::Serialize;

use super::Report;

pub use attention::{Attention, Concern, Level};
pub use identity::{Fact, Stated};
pub use people::{Person, Relation, Screened};
pub use signals::{Presence, Signal};
pub use verdict::{Verdict, VerdictWord};

/// What a report says, ready to be shown in any format.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Insight {
    /// How complete the report is, and why.
    pub verdict: Verdict,
    /// What watch lists say about the company's own name.
    pub subject_screening: Screened,
    /// The subject as its registers describe it.
    pub facts: Vec<Fact>,
    /// What a reader must not miss, most serious first.
    pub attention: Vec<Attention>,
    /// Who acts for the company and who owns it.
    pub people: Vec<Person>,
    /// The rules of risk, each with its outcome.
    pub signals: Vec<Signal>,
}

impl Insight {
    /// Reads a report.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let facts = identity::facts(report);
        let attention = attention::attention(report);
        let people = people::people(report);
        let subject_screening = people::subject(report);
        let signals = signals::signals(report, &attention, &facts);
        Self { verdict: Verdict::of(&report.coverage), subject_screening, facts, attention, people, signals }
    }

    /// True if a watch list names the subject or one of its people.
    #[must_use]
    pub fn has_hit(&self) -> bool {
        self.attention.iter().any(|each| each.concern == Concern::WatchList)
    }
}

/// Who says so, and as of when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// Name of the operation, such as `gleif.record`.
    pub operation: String,
    /// The fallback that answered in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The date of the data: the source's own, else that of the question.
    pub as_of: Option<Timestamp>,
}

impl Origin {
    /// The origin of what a finding says.
    #[must_use]
    pub fn of(finding: &Finding) -> Self {
        let as_of = finding.as_of.or(finding.started_at);
        Self { operation: finding.operation.clone(), via: finding.via.clone(), as_of }
    }

    /// `gleif.record, 2026-11-29`.
    #[must_use]
    pub fn label(&self) -> String {
        let via = self.via.as_deref().map(|via| format!(" via {via}")).unwrap_or_default();
        let date = self.as_of.map(|at| format!(", {}", day(at))).unwrap_or_default();
        format!("{}{via}{date}", self.operation)
    }
}

/// Sources named beside one fact. More of them are counted.
const NAMED: usize = 2;

/// Who says so, for people: each source once, with the date of its data.
#[must_use]
pub fn sources(origins: &[Origin]) -> String {
    let mut labels: Vec<String> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for origin in origins {
        let name = origin.operation.split('.').next().unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
            let via = origin.via.as_deref().map(|via| format!(" via {via}")).unwrap_or_default();
            let date = origin.as_of.map(|at| format!(" {}", day(at))).unwrap_or_default();
            labels.push(format!("{name}{via}{date}"));
        }
    }
    let more = labels.len().saturating_sub(NAMED);
    labels.truncate(NAMED);
    if more > 0 {
        labels.push(format!("{more} more"));
    }
    labels.join(", ")
}

/// The day of a time, as `2026-11-29`.
pub(super) fn day(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d").to_string()
}

/// Findings with the facts in them.
fn with_facts(report: &Report) -> impl Iterator<Item = (&Finding, &Facts)> {
    report.findings.iter().filter_map(|finding| Some((finding, finding.data.as_ref()?)))
}

/// Screenings that took place, with the findings that hold them. A finding without an answer holds none.
fn screenings(report: &Report) -> impl Iterator<Item = (&Finding, &Screening)> {
    with_facts(report).filter_map(|(finding, facts)| Some((finding, facts.screening.as_ref()?)))
}

/// True if the answer is whole and of today.
fn whole(finding: &Finding) -> bool {
    matches!(finding.status, Status::Complete | Status::NotFound)
}

/// A name or an address in the form in which two spellings are compared.
fn folded(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

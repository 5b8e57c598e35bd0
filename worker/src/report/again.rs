//! Asking again only for what is missing, and what changed since.

use std::time::Duration;

use jiff::Timestamp;
use osint_activities::model::{Finding, Status};
use serde::Serialize;

use super::{
    Report,
    insight::Insight,
    page::{Block, Cell, Page, Section, Tone},
};

/// The answers of an earlier report that need not be asked for again: whole answers that are not older than `most`, every
/// answer that was paid for, and pending jobs, which are collected.
#[must_use]
pub fn carried(report: &Report, most: Duration, now: Timestamp, billed: impl Fn(&str) -> bool) -> Vec<Finding> {
    let keep = |finding: &&Finding| {
        let whole = matches!(finding.status, Status::Complete | Status::NotFound | Status::NeedsReview);
        let paid =
            billed(&finding.operation) && (whole || (finding.status == Status::Partial && finding.data.is_some()));
        let asked = finding.as_of.max(finding.started_at);
        let fresh = asked.is_some_and(|at| now.duration_since(at).unsigned_abs() <= most);
        paid || (whole && fresh) || (finding.status == Status::Pending && finding.job.is_some())
    };
    report.findings.iter().filter(keep).cloned().collect()
}

/// Something that differs between two reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What it is, such as `gleif.record` or `address`.
    pub what: String,
    /// As the earlier report has it.
    pub before: Option<String>,
    /// As the later report has it.
    pub after: Option<String>,
}

/// What differs between two reports: answers, facts, what matters, people.
#[must_use]
pub fn changes(before: &Report, after: &Report) -> Vec<Change> {
    let (old, new) = (Insight::of(before), Insight::of(after));
    let mut all = compared(&lists(&old), &lists(&new));
    all.extend(compared(&answers(before), &answers(after)));
    all
}

type Entries = Vec<(String, String)>;

fn answers(report: &Report) -> Entries {
    let asked = report.asked();
    asked.map(|finding| (finding.operation.clone(), finding.status.as_str().to_owned())).collect()
}

/// Everything else as `what: value`.
fn lists(insight: &Insight) -> Entries {
    let mut all = vec![
        ("verdict".to_owned(), insight.verdict.sentence()),
        ("watch lists".to_owned(), outcome(&insight.subject_screening.label())),
    ];
    all.extend(insight.attention.iter().map(|each| ("finding that matters".to_owned(), each.text.clone())));
    for fact in &insight.facts {
        all.extend(fact.values.iter().map(|value| (fact.label.to_owned(), value.value.clone())));
    }
    for person in &insight.people {
        let detail = person.detail.as_deref().unwrap_or(person.relation.label());
        let screened = outcome(&person.screened.label());
        all.push((person.relation.label().to_owned(), format!("{}, {detail}, {screened}", person.name)));
    }
    all
}

/// A label without its origin, whose date differs with every run.
fn outcome(label: &str) -> String {
    label.split(" (").next().unwrap_or_default().to_owned()
}

fn compared(before: &Entries, after: &Entries) -> Vec<Change> {
    let mut gone: Vec<&(String, String)> = before.iter().filter(|entry| !after.contains(entry)).collect();
    let mut all = Vec::new();
    for (what, value) in after.iter().filter(|entry| !before.contains(entry)) {
        let earlier = gone.iter().position(|(name, _)| name == what).map(|n| gone.remove(n).1.clone());
        all.push(Change { what: what.clone(), before: earlier, after: Some(value.clone()) });
    }
    all.extend(gone.into_iter().map(|(what, value)| Change {
        what: what.clone(),
        before: Some(value.clone()),
        after: None,
    }));
    all
}

/// The changes as a page.
#[must_use]
pub fn page(before: &Report, after: &Report) -> Page {
    let changes = changes(before, after);
    let cell = |text: &Option<String>| Cell::plain(text.as_deref().unwrap_or("–"));
    let row = |change: &Change| vec![Cell::plain(&change.what), cell(&change.before), cell(&change.after)];
    let block = if changes.is_empty() {
        Block::Text(Cell::plain("Nothing differs."))
    } else {
        Block::Table { head: vec!["WHAT", "BEFORE", "AFTER"], rows: changes.iter().map(row).collect() }
    };
    let name = after.subject.name.as_deref().unwrap_or("company");
    Page {
        title: Cell::plain(format!("What changed: {name}")),
        subtitle: Cell::new(Tone::Dim, format!("{} → {}", before.investigation_id, after.investigation_id)),
        summary: Vec::new(),
        sections: vec![Section { title: "Changes", blocks: vec![block] }],
    }
}

#[cfg(test)]
mod tests {
    use osint_activities::model::{Facts, Job, Subject};

    use super::*;
    use crate::report::Plan;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + 3600 * hours).expect("a time")
    }

    fn report(findings: Vec<Finding>) -> Report {
        let subject = Subject::new("NO".parse().expect("a country"));
        let plan =
            Plan { subject, questions: Vec::new(), deferred: Vec::new(), not_applicable: Vec::new(), more_rounds: 0 };
        Report { findings, ..Report::new("investigation-1", plan, Vec::new(), Vec::new()) }
    }

    fn finding(operation: &str, status: Status, hours: i64) -> Finding {
        Finding { started_at: Some(at(hours)), ..Finding::new("s", operation, status) }
    }

    #[test]
    fn only_missing_or_old_answers_are_asked_for_again() {
        let job = Job { id: "s_1".into(), started_at: at(0), polls: 1 };
        let findings = vec![
            finding("fresh", Status::Complete, 0),
            finding("old", Status::Complete, -48),
            finding("paid", Status::NotFound, -48),
            finding("paid.failed", Status::Degraded, 0),
            finding("failed", Status::Degraded, 0),
            finding("cached", Status::Cached, 0),
            Finding { data: Some(Facts::default()), ..finding("paid.part", Status::Partial, 0) },
            Finding { job: Some(job), ..finding("job", Status::Pending, 0) },
        ];
        let billed = |operation: &str| operation.starts_with("paid");
        let kept = carried(&report(findings), Duration::from_secs(86_400), at(1), billed);
        let names: Vec<&str> = kept.iter().map(|finding| finding.operation.as_str()).collect();
        assert_eq!(names, ["fresh", "paid", "paid.part", "job"]);
    }

    #[test]
    fn a_change_names_both_sides() {
        let before = report(vec![finding("a.b", Status::Degraded, 0), finding("c.d", Status::Complete, 0)]);
        let after = report(vec![finding("a.b", Status::Complete, 0), finding("c.d", Status::Complete, 0)]);
        let expected = Change { what: "a.b".into(), before: Some("degraded".into()), after: Some("complete".into()) };
        assert_eq!(changes(&before, &after), [expected]);
        assert!(changes(&after, &after).is_empty());
    }
}

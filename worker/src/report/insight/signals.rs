//! Risk signals: a small table of rules. A rule is absent only if every question that it rests on was answered in full.
//! There is no overall score, because a score would hide the gaps.

use osint_activities::model::{Facts, Finding, Status};
use serde::Serialize;

use super::{Attention, Concern, Fact, identity, verdict::is_screening, whole};
use crate::report::Report;

/// The outcome of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// A finding shows it.
    Present,
    /// Every question that it rests on was answered, and none shows it.
    Absent,
    /// A question that it rests on has no full answer, or was not asked.
    NotAssessed,
}

/// A rule with its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signal {
    /// What it is, for programs.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// Its outcome.
    pub presence: Presence,
    /// The operations that it rests on.
    pub rests_on: Vec<String>,
    /// Those of them without a full answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

impl Presence {
    /// In words.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Absent => "absent",
            Self::NotAssessed => "not assessed",
        }
    }
}

/// A rule: the concerns that show it, the operations that could, and what an answer must hold to count.
struct Rule {
    name: &'static str,
    title: &'static str,
    shown_by: &'static [Concern],
    rests_on: fn(&str) -> bool,
    counts: fn(&Facts) -> bool,
}

const RULES: &[Rule] = &[
    Rule {
        name: "watch_list",
        title: "Named on a watch list",
        shown_by: &[Concern::WatchList],
        rests_on: is_screening,
        counts: |facts| facts.screening.as_ref().is_some_and(|screening| !screening.names.is_empty()),
    },
    Rule {
        name: "vat_not_valid",
        title: "VAT number not valid",
        shown_by: &[Concern::Vat],
        rests_on: |operation| matches!(operation, "vies.check" | "ro_anaf.vat"),
        counts: |facts| facts.vat.is_some(),
    },
    Rule {
        name: "lei_lapsed",
        title: "LEI lapsed",
        shown_by: &[Concern::Lei],
        rests_on: |operation| operation == "gleif.record",
        counts: |facts| !facts.companies.is_empty(),
    },
    Rule {
        name: "adverse_media",
        title: "Adverse press",
        shown_by: &[Concern::AdverseMedia],
        rests_on: |operation| operation.ends_with(".adverse_media"),
        counts: |_| true,
    },
    Rule {
        name: "licence_inactive",
        title: "No payment licence, or not in force",
        shown_by: &[Concern::Licence],
        rests_on: |operation| operation == "eba_register.licence",
        counts: |_| true,
    },
];

/// The outcome of every rule.
pub(super) fn signals(report: &Report, attention: &[Attention], facts: &[Fact]) -> Vec<Signal> {
    let mut all: Vec<Signal> = RULES.iter().map(|rule| apply(rule, report, attention)).collect();
    let standing = standing_signals(report, attention);
    all.splice(1..1, standing);
    all.push(contradiction(report, facts));
    all
}

fn apply(rule: &Rule, report: &Report, attention: &[Attention]) -> Signal {
    let shown: Vec<String> = shown_by(attention, rule.shown_by);
    let asked: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|finding| (rule.rests_on)(&finding.operation) && applies(report, finding))
        .collect();
    let answered = |finding: &Finding| {
        let holds = finding.data.as_ref().is_some_and(rule.counts);
        whole(finding) && (finding.status == Status::NotFound || holds)
    };
    let missing: Vec<String> =
        asked.iter().filter(|finding| !answered(finding)).map(|finding| finding.operation.clone()).collect();
    let rests_on = asked.iter().map(|finding| finding.operation.clone());
    outcome(rule.name, rule.title, shown, rests_on.collect(), missing)
}

/// True if the question applies to the subject, asked or not.
fn applies(report: &Report, finding: &Finding) -> bool {
    let deferred = report.coverage.not_asked.iter().any(|gap| gap.operation == finding.operation);
    finding.status != Status::NotApplicable || deferred
}

fn shown_by(attention: &[Attention], concerns: &[Concern]) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    let concerned = attention.iter().filter(|each| concerns.contains(&each.concern));
    for origin in concerned.flat_map(|each| &each.origins) {
        if !shown.contains(&origin.operation) {
            shown.push(origin.operation.clone());
        }
    }
    shown
}

fn outcome(
    name: &'static str,
    title: &'static str,
    shown: Vec<String>,
    rests_on: Vec<String>,
    missing: Vec<String>,
) -> Signal {
    let (presence, rests_on) = match (shown.is_empty(), rests_on.is_empty() || !missing.is_empty()) {
        (false, _) => (Presence::Present, shown),
        (true, true) => (Presence::NotAssessed, rests_on),
        (true, false) => (Presence::Absent, rests_on),
    };
    Signal { name, title, presence, rests_on, missing }
}

/// Insolvency and deletion rest on every source that states a standing of this company, and on insolvency registers.
fn standing_signals(report: &Report, attention: &[Attention]) -> [Signal; 2] {
    let stated: Vec<&Finding> = identity::records(report)
        .into_iter()
        .filter(|(finding, company)| whole(finding) && identity::standing(company.standing).is_some())
        .map(|(finding, _)| finding)
        .collect();
    let mut rests_on: Vec<String> = stated.iter().map(|finding| finding.operation.clone()).collect();
    rests_on.dedup();
    let registers = ["cz_isir.", "fr_bodacc."];
    let insolvency: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|finding| registers.iter().any(|name| finding.operation.starts_with(name)) && applies(report, finding))
        .collect();
    let names = |findings: &[&Finding]| findings.iter().map(|finding| finding.operation.clone()).collect::<Vec<_>>();
    let failed: Vec<&Finding> = insolvency.iter().copied().filter(|finding| !whole(finding)).collect();
    let no_register = if rests_on.is_empty() { vec!["a register that states the standing".to_owned()] } else { vec![] };
    let ceased = outcome(
        "dissolved",
        "Dissolved or being wound up",
        shown_by(attention, &[Concern::Dissolved]),
        rests_on.clone(),
        no_register.clone(),
    );
    let missing = [no_register, names(&failed)].concat();
    let all = [rests_on, names(&insolvency)].concat();
    let insolvent = outcome("insolvency", "Insolvent", shown_by(attention, &[Concern::Insolvency]), all, missing);
    [insolvent, ceased]
}

/// Sources that contradict each other about who the company is. It takes two of them.
fn contradiction(report: &Report, facts: &[Fact]) -> Signal {
    let operations = |facts: &mut dyn Iterator<Item = &Fact>| {
        let mut names: Vec<String> = facts
            .flat_map(|fact| {
                fact.values.iter().flat_map(|value| value.origins.iter().map(|origin| origin.operation.clone()))
            })
            .collect();
        names.sort();
        names.dedup();
        names
    };
    let shown = operations(&mut facts.iter().filter(|fact| fact.conflict));
    let all = operations(&mut facts.iter());
    let sources: std::collections::BTreeSet<&str> =
        identity::records(report).iter().map(|(finding, _)| finding.source.as_str()).collect();
    let missing = if sources.len() < 2 { vec!["a second source".to_owned()] } else { vec![] };
    outcome("contradiction", "Sources contradict each other", shown, all, missing)
}

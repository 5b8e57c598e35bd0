//! What a reader must not miss.

use osint_activities::model::{Facts, Finding, Hit, Standing, Status};
use serde::Serialize;

use super::{Origin, identity, screenings, with_facts};
use crate::report::Report;

/// How serious it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Stop and read.
    Alert,
    /// Look into it.
    Warning,
    /// Matters for some companies only.
    Note,
}

/// What it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Concern {
    /// A watch list names the subject or one of its people.
    WatchList,
    /// A watch list names somebody whose name resembles theirs.
    PossibleWatchList,
    /// Bankrupt, insolvent or being restructured.
    Insolvency,
    /// Deleted, dissolved or being wound up.
    Dissolved,
    /// The VAT number is not registered.
    Vat,
    /// The LEI was not renewed.
    Lei,
    /// Articles that name the company together with words of trouble.
    AdverseMedia,
    /// A licence is missing, withdrawn or inactive.
    Licence,
}

/// Something that matters, and the findings that it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attention {
    /// How serious it is.
    pub level: Level,
    /// What it is about.
    pub concern: Concern,
    /// A sentence for people.
    pub text: String,
    /// Who says so.
    pub origins: Vec<Origin>,
}

/// Everything in the findings that matters, most serious first.
pub(super) fn attention(report: &Report) -> Vec<Attention> {
    let mut all: Vec<Attention> = Vec::new();
    for (finding, screening) in screenings(report) {
        all.extend(screening.hits.iter().map(|hit| listed(finding, hit)));
    }
    for (finding, company) in identity::records(report) {
        all.extend(wound_up(finding, company.standing, company.dissolved.as_deref()));
        if let Some(status) = company.status.as_deref().filter(|status| is_lapsed_lei(status)) {
            let text = format!("the LEI is not in good standing: {status}");
            all.push(found(finding, Level::Warning, Concern::Lei, text));
        }
        let withdrawn = company.registrations.iter().filter(|text| text.starts_with("withdrawn"));
        all.extend(
            withdrawn.map(|text| found(finding, Level::Warning, Concern::Licence, format!("a licence is {text}"))),
        );
    }
    for (finding, facts) in with_facts(report) {
        all.extend(vat(finding, facts));
        all.extend(articles(finding, facts));
        all.extend(insolvency_notices(finding, facts));
    }
    all.extend(report.findings.iter().filter_map(unlicensed));
    all.sort_by_key(|each| each.level);
    merged(all)
}

/// The same with one entry for each text, and all that say so.
fn merged(all: Vec<Attention>) -> Vec<Attention> {
    let mut merged: Vec<Attention> = Vec::new();
    for each in all {
        match merged.iter_mut().find(|known| known.text == each.text) {
            Some(known) => {
                let known_origins = known.origins.clone();
                known.origins.extend(each.origins.into_iter().filter(|origin| !known_origins.contains(origin)));
            }
            None => merged.push(each),
        }
    }
    merged
}

fn found(finding: &Finding, level: Level, concern: Concern, text: String) -> Attention {
    Attention { level, concern, text, origins: vec![Origin::of(finding)] }
}

/// What the lists' own words for a reason mean.
const TOPICS: &[(&str, &str)] = &[
    ("sanction", "sanctioned"),
    ("sanction.linked", "linked to a sanctioned entity"),
    ("sanction.counter", "under counter-sanctions"),
    ("debarment", "excluded from public contracts"),
    ("export.control", "under export controls"),
    ("crime", "crime"),
    ("crime.fin", "financial crime"),
    ("crime.fraud", "fraud"),
    ("wanted", "wanted"),
    ("role.pep", "politically exposed person"),
    ("role.rca", "close to a politically exposed person"),
    ("gov.soe", "state-owned company"),
    ("reg.action", "action of a regulator"),
    ("reg.warn", "warning of a regulator"),
    ("poi", "person of interest"),
];

fn listed(finding: &Finding, hit: &Hit) -> Attention {
    let topic = |topic: &String| match TOPICS.iter().find(|(name, _)| name == topic) {
        Some((_, meaning)) => format!("{meaning} ({topic})"),
        None => topic.clone(),
    };
    let topics: Vec<String> = hit.topics.iter().map(topic).collect();
    let topics = if topics.is_empty() { "without a stated reason".to_owned() } else { topics.join(", ") };
    let lists = if hit.datasets.is_empty() { String::new() } else { format!("; lists: {}", hit.datasets.join(", ")) };
    let verb = if hit.matched { "names" } else { "has an entry that resembles the name, perhaps another one:" };
    let text = format!("a watch list {verb} {}: {topics}{lists}; score {:.2}, entry {}", hit.name, hit.score, hit.id);
    let serious = |topic: &String| {
        ["sanction", "debarment", "crime", "wanted", "export"].iter().any(|word| topic.starts_with(word))
    };
    match (hit.matched, hit.topics.is_empty() || hit.topics.iter().any(serious)) {
        (true, true) => found(finding, Level::Alert, Concern::WatchList, text),
        (true, false) => found(finding, Level::Warning, Concern::WatchList, text),
        (false, _) => found(finding, Level::Warning, Concern::PossibleWatchList, text),
    }
}

fn wound_up(finding: &Finding, standing: Standing, dissolved: Option<&str>) -> Option<Attention> {
    let (concern, what) = match standing {
        Standing::Insolvent => (Concern::Insolvency, "the company is insolvent"),
        Standing::Restructuring => (Concern::Insolvency, "the company is being restructured"),
        Standing::Liquidation => (Concern::Dissolved, "the company is being wound up"),
        Standing::Ceased => (Concern::Dissolved, "the company has ceased to exist"),
        Standing::Active | Standing::Unknown if dissolved.is_some() => (Concern::Dissolved, "the company is dissolved"),
        Standing::Active | Standing::Unknown => return None,
    };
    let since = dissolved.map(|date| format!(" ({date})")).unwrap_or_default();
    Some(found(finding, Level::Alert, concern, format!("{what}{since}")))
}

/// True for the status of an LEI registration other than those in force.
fn is_lapsed_lei(status: &str) -> bool {
    let of_lei = status.strip_prefix("LEI ").map(str::trim);
    of_lei.is_some_and(|word| !matches!(word, "ISSUED" | "PENDING_TRANSFER" | "PENDING_ARCHIVAL"))
}

fn vat(finding: &Finding, facts: &Facts) -> Option<Attention> {
    let check = facts.vat.as_ref().filter(|check| !check.valid)?;
    let (level, text) = if check.derived {
        let text =
            format!("{} is not registered for VAT; the number was derived from the register number", check.number);
        (Level::Note, text)
    } else {
        (Level::Warning, format!("the VAT number {} is not valid", check.number))
    };
    Some(found(finding, level, Concern::Vat, text))
}

fn articles(finding: &Finding, facts: &Facts) -> Option<Attention> {
    let first = facts.articles.first().filter(|_| finding.operation.ends_with("adverse_media"))?;
    let count = facts.articles.len();
    let text = format!(
        "{count} press article{} to read, first: {} <{}>",
        if count == 1 { "" } else { "s" },
        first.title,
        first.url
    );
    Some(found(finding, Level::Warning, Concern::AdverseMedia, text))
}

/// Notices of an insolvency register, or of a gazette's insolvency section.
fn insolvency_notices(finding: &Finding, facts: &Facts) -> Option<Attention> {
    const WORDS: [&str; 6] = ["insolv", "bankrupt", "collective", "konkurs", "redressement", "liquidation"];
    let is_insolvency = |text: &Option<String>| {
        text.as_deref().is_some_and(|text| WORDS.iter().any(|word| text.to_lowercase().contains(word)))
    };
    let notice = facts
        .notices
        .iter()
        .find(|notice| finding.source == "cz_isir" || is_insolvency(&notice.kind) || is_insolvency(&notice.text))?;
    let parts = [&notice.date, &notice.kind, &notice.text];
    let text = parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(", ");
    Some(found(finding, Level::Alert, Concern::Insolvency, format!("an insolvency notice: {text}")))
}

fn unlicensed(finding: &Finding) -> Option<Attention> {
    let asked = finding.operation == "eba_register.licence" && finding.status == Status::NotFound;
    let text = "no licence for payment services or e-money; matters only if the company offers them";
    asked.then(|| found(finding, Level::Note, Concern::Licence, text.to_owned()))
}

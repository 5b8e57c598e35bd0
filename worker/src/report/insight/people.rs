//! Who acts for the company and who owns it, and whether a watch list was asked about them.

use osint_activities::model::Finding;
use serde::Serialize;

use super::{Origin, folded, screenings, with_facts};
use crate::report::Report;

/// What somebody is to the company.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Acts for it.
    Officer,
    /// Owns a share.
    Owner,
    /// Consolidates it in its accounts.
    Parent,
    /// Named by the user.
    Given,
}

/// What is known from watch lists about a name. No answer is never "no hit".
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "screening")]
pub enum Screened {
    /// A list names somebody of this name.
    Hit {
        /// Who says so.
        origin: Origin,
    },
    /// Lists were asked about this name and name nobody.
    NoHit {
        /// Who says so.
        origin: Origin,
    },
    /// No list answered about this name. Nothing is known, in either direction.
    NotScreened,
}

/// A person or company around the subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Person {
    /// The name.
    pub name: String,
    /// What they are to the company.
    pub relation: Relation,
    /// The role or the share, in the source's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Register number, if it is a company.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub company_id: Option<String>,
    /// Country, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// Year of birth, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub birth_year: Option<u16>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What watch lists say.
    #[serde(flatten)]
    pub screened: Screened,
    /// Who names them.
    pub origins: Vec<Origin>,
}

impl Screened {
    /// In words.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Hit { origin } => format!("HIT ({})", origin.label()),
            Self::NoHit { origin } => format!("no hit ({})", origin.label()),
            Self::NotScreened => "not screened".to_owned(),
        }
    }
}

impl Relation {
    /// In words.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Officer => "officer",
            Self::Owner => "owner",
            Self::Parent => "parent",
            Self::Given => "named by the user",
        }
    }
}

/// What watch lists say about a name.
pub(super) fn screened(report: &Report, name: &str) -> Screened {
    let wanted = folded(name);
    let mut asked = None;
    for (finding, screening) in screenings(report) {
        if !screening.names.iter().any(|asked| folded(asked) == wanted) {
            continue;
        }
        let named = |hit: &osint_activities::model::Hit| {
            hit.matched && (screening.names.len() == 1 || folded(&hit.name) == wanted)
        };
        if screening.hits.iter().any(named) {
            return Screened::Hit { origin: Origin::of(finding) };
        }
        // A list of changes names only what changed: it clears nobody. Neither does an answer that is not whole.
        if super::whole(finding) && !screening.dataset.contains("changes") {
            asked = asked.or(Some(finding));
        }
    }
    asked.map_or(Screened::NotScreened, |finding| Screened::NoHit { origin: Origin::of(finding) })
}

/// What watch lists say about the company itself. Without a name, no list can be asked.
pub(super) fn subject(report: &Report) -> Screened {
    report.subject.name.as_deref().map_or(Screened::NotScreened, |name| screened(report, name))
}

/// Everybody whom the findings name around the company.
pub(super) fn people(report: &Report) -> Vec<Person> {
    let mut all = Vec::new();
    for (finding, facts) in with_facts(report) {
        for officer in &facts.officers {
            let Some(name) = &officer.name else { continue };
            let base = blank(report, finding, name, Relation::Officer);
            let (detail, company_id) = (officer.role.clone(), officer.company_id.clone());
            add(
                &mut all,
                Person { detail, company_id, birth_year: officer.birth_year, since: officer.since.clone(), ..base },
            );
        }
        for owner in &facts.owners {
            let Some(name) = &owner.name else { continue };
            let base = blank(report, finding, name, Relation::Owner);
            let (detail, company_id, country) = (owner.share.clone(), owner.company_id.clone(), owner.country.clone());
            add(&mut all, Person { detail, company_id, country, since: owner.since.clone(), ..base });
        }
        for parent in &facts.parents {
            let Some(company) = &parent.company else { continue };
            let Some(name) = &company.name else { continue };
            let base = blank(report, finding, name, Relation::Parent);
            let (detail, company_id, country) =
                (Some(parent.level.clone()), company.id.clone(), company.country.clone());
            add(&mut all, Person { detail, company_id, country, ..base });
        }
    }
    for name in &report.subject.persons {
        if all.iter().all(|known: &Person| folded(&known.name) != folded(name)) {
            let (name, screened) = (name.clone(), screened(report, name));
            let (detail, company_id, country, birth_year, since) = (None, None, None, None, None);
            let (relation, origins) = (Relation::Given, Vec::new());
            all.push(Person { name, relation, detail, company_id, country, birth_year, since, screened, origins });
        }
    }
    all
}

fn blank(report: &Report, finding: &Finding, name: &str, relation: Relation) -> Person {
    Person {
        name: name.to_owned(),
        relation,
        detail: None,
        company_id: None,
        country: None,
        birth_year: None,
        since: None,
        screened: screened(report, name),
        origins: vec![Origin::of(finding)],
    }
}

/// Adds somebody, or another source that names them.
fn add(all: &mut Vec<Person>, person: Person) {
    let same_year = |known: &Person| match (known.birth_year, person.birth_year) {
        (Some(known), Some(year)) => known == year,
        _ => true,
    };
    let same = |known: &&mut Person| {
        same_year(known)
            && folded(&known.name) == folded(&person.name)
            && known.relation == person.relation
            && known.detail == person.detail
    };
    match all.iter_mut().find(same) {
        Some(known) => {
            let new = person.origins.into_iter().filter(|origin| !known.origins.contains(origin)).collect::<Vec<_>>();
            known.origins.extend(new);
        }
        None => all.push(person),
    }
}

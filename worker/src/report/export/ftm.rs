//! The report as `FollowTheMoney` entities, one JSON document a line: the company, its people, and how they are connected.

use serde_json::{Value, json};

use super::{date, percent, values};
use crate::report::{
    Report,
    insight::{Insight, Person, Relation, sources},
    neutral::neutral,
};

/// Properties of an entity. Empty ones are left out.
type Properties = Vec<(&'static str, Vec<String>)>;

/// Sets the report as entities, one a line.
#[must_use]
pub fn ftm(report: &Report) -> String {
    let insight = Insight::of(report);
    let subject = format!("{}-subject", report.investigation_id);
    let mut lines = vec![company(report, &insight, &subject)];
    for (n, person) in insight.people.iter().enumerate() {
        let id = format!("{}-{n}", report.investigation_id);
        lines.push(somebody(person, &id));
        lines.push(connection(person, &id, &subject));
    }
    lines.iter().map(|line| crate::report::neutral::escaped_json(&line.to_string()) + "\n").collect()
}

fn entity(id: &str, schema: &str, properties: Properties) -> Value {
    let filled = properties.into_iter().filter_map(|(name, values)| {
        let values: Vec<String> = values.iter().map(|value| neutral(value)).filter(|value| !value.is_empty()).collect();
        (!values.is_empty()).then(|| (name.to_owned(), Value::from(values)))
    });
    json!({ "id": id, "schema": schema, "properties": filled.collect::<serde_json::Map<_, _>>() })
}

fn company(report: &Report, insight: &Insight, id: &str) -> Value {
    let subject = &report.subject;
    let all = |label: &str| values(insight, label).map(str::to_owned).collect::<Vec<_>>();
    let or = |label: &str, given: &Option<String>| {
        let stated = all(label);
        if stated.is_empty() { given.iter().cloned().collect() } else { stated }
    };
    let dates = |label: &str| values(insight, label).filter_map(date).collect::<Vec<_>>();
    let mut notes = vec![
        format!("Report: {}", insight.verdict.sentence()),
        format!("Watch lists, about the company: {}", insight.subject_screening.label()),
        report.coverage.statement.clone(),
    ];
    notes.extend(insight.attention.iter().map(|each| format!("{} [{}]", each.text, sources(&each.origins))));
    // Without a name an entity is of no use to anybody: its number stands in.
    let mut names = or("name", &subject.name);
    if names.is_empty() {
        names = [&subject.id, &subject.lei, &subject.vat].into_iter().flatten().take(1).cloned().collect();
    }
    let compact = |numbers: Vec<String>| numbers.iter().map(|number| number.replace(' ', "")).collect::<Vec<_>>();
    let website = or("website", &subject.website).into_iter().filter(|url| is_url(url)).collect();
    entity(
        id,
        "Company",
        vec![
            ("name", names),
            ("registrationNumber", compact(or("register number", &subject.id))),
            ("leiCode", compact(or("LEI", &subject.lei))),
            ("vatCode", compact(or("VAT number", &subject.vat))),
            ("jurisdiction", vec![subject.country.as_str().to_lowercase()]),
            ("status", all("standing")),
            ("legalForm", all("legal form")),
            ("address", or("address", &subject.address)),
            ("incorporationDate", dates("founded")),
            ("dissolutionDate", dates("dissolved")),
            ("previousName", all("former name")),
            ("website", website),
            ("notes", notes),
        ],
    )
}

fn is_url(text: &str) -> bool {
    text.parse::<reqwest::Url>().is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.as_str() == text)
}

fn somebody(person: &Person, id: &str) -> Value {
    let schema = match (person.relation, &person.company_id) {
        (Relation::Parent, _) => "Company",
        (_, Some(_)) => "LegalEntity",
        (Relation::Owner, None) => "LegalEntity", // a person or a company: the sources do not always say
        (Relation::Officer | Relation::Given, None) => "Person",
    };
    let country = person.country.iter().map(|code| code.to_lowercase()).filter(|code| code.len() == 2);
    let notes = vec![format!("Watch lists: {}", person.screened.label())];
    let mut properties: Properties =
        vec![("name", vec![person.name.clone()]), ("country", country.collect()), ("notes", notes)];
    if schema == "Person" {
        properties.push(("birthDate", person.birth_year.iter().map(u16::to_string).collect()));
    } else {
        let number = person.company_id.iter().map(|number| number.replace(' ', ""));
        properties.push(("registrationNumber", number.collect()));
    }
    entity(id, schema, properties)
}

fn connection(person: &Person, id: &str, subject: &str) -> Value {
    let (from, to) = (vec![id.to_owned()], vec![subject.to_owned()]);
    let since = person.since.as_deref().and_then(date).into_iter().collect();
    let stated = person.origins.iter().map(|origin| format!("Stated by {}", origin.label())).collect();
    let detail: Vec<String> = person.detail.iter().cloned().collect();
    let id = format!("{id}-link");
    match person.relation {
        Relation::Officer | Relation::Given => {
            let properties = vec![
                ("director", from),
                ("organization", to),
                ("role", detail),
                ("startDate", since),
                ("summary", stated),
            ];
            entity(&id, "Directorship", properties)
        }
        Relation::Owner => {
            let share = person.detail.as_deref().and_then(percent).map(|percent| percent.to_string());
            let properties = vec![
                ("owner", from),
                ("asset", to),
                ("percentage", share.into_iter().collect()),
                ("role", detail),
                ("startDate", since),
                ("summary", stated),
            ];
            entity(&id, "Ownership", properties)
        }
        Relation::Parent => {
            let role = detail.iter().map(|level| format!("{level} parent in consolidated accounts")).collect();
            let properties =
                vec![("owner", from), ("asset", to), ("role", role), ("startDate", since), ("summary", stated)];
            entity(&id, "Ownership", properties)
        }
    }
}

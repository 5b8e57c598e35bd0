//! The report as statements of the Beneficial Ownership Data Standard, version 0.4.
//!
//! The standard has words for what is unknown. Where no source named an owner, the statement says that the publisher does
//! not know; it never says that there is none, because no source of ours can say that.

use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use super::{date, percent, values};
use crate::report::{
    Report,
    insight::{Insight, Origin, Person, Relation},
    neutral::{escaped_json, neutral},
};

/// Makes the statements of one report.
struct Publisher<'a> {
    report: &'a Report,
    day: String,
}

/// Sets the report as one JSON array of statements.
#[must_use]
pub fn bods(report: &Report) -> String {
    let insight = Insight::of(report);
    let day = report.ended().unwrap_or(Timestamp::UNIX_EPOCH).strftime("%Y-%m-%d").to_string();
    let publisher = Publisher { report, day };
    let connected = insight.people.iter().filter(|person| person.relation != Relation::Given);
    let people: Vec<(usize, &Person)> = connected.enumerate().collect();
    let mut statements = vec![publisher.subject(&insight)];
    statements.extend(people.iter().map(|(n, person)| publisher.party(*n, person)));
    statements.extend(people.iter().map(|(n, person)| publisher.relationship(*n, person)));
    if !people.iter().any(|(_, person)| person.relation == Relation::Owner) {
        statements.push(publisher.no_owner_known());
    }
    escaped_json(&format!("{:#}", Value::Array(statements)))
}

impl Publisher<'_> {
    fn record(&self, name: &str) -> String {
        format!("{}-{name}", self.report.investigation_id)
    }

    /// A statement. Its id is a digest of the record's, as long as the standard wants it.
    fn statement(&self, name: &str, kind: &str, details: Value, origins: &[Origin], remark: Option<String>) -> Value {
        let record = self.record(name);
        let id: String =
            digest(&SHA256, record.as_bytes()).as_ref().iter().take(20).map(|byte| format!("{byte:02x}")).collect();
        let mut statement = json!({
            "statementId": id,
            "declarationSubject": self.record("subject"),
            "statementDate": self.day,
            "publicationDetails": {
                "publicationDate": self.day,
                "bodsVersion": "0.4",
                "publisher": { "name": "osint" },
            },
            "recordId": record,
            "recordStatus": "new",
            "recordType": kind,
            "recordDetails": details,
        });
        if !origins.is_empty() {
            let labels: Vec<String> = origins.iter().map(|origin| neutral(&origin.label())).collect();
            statement["source"] = json!({ "type": ["thirdParty"], "description": labels.join("; ") });
        }
        if let Some(remark) = remark {
            statement["annotations"] = json!([{
                "statementPointerTarget": "",
                "creationDate": self.day,
                "motivation": "commenting",
                "description": neutral(&remark),
            }]);
        }
        statement
    }

    fn subject(&self, insight: &Insight) -> Value {
        let subject = &self.report.subject;
        let name = values(insight, "name").next().or(subject.name.as_deref());
        let country = subject.country.as_str();
        let number = values(insight, "register number").next().or(subject.id.as_deref());
        let lei = values(insight, "LEI").next().or(subject.lei.as_deref());
        let vat = values(insight, "VAT number").next().or(subject.vat.as_deref());
        let register = format!("register of companies, {country}");
        let identifiers = [(number, None, register.as_str()), (lei, Some("XI-LEI"), "LEI"), (vat, None, "VAT number")];
        let identifier = |(id, scheme, name): (Option<&str>, Option<&str>, &str)| {
            let mut identifier = json!({ "id": neutral(id?), "schemeName": name });
            if let Some(scheme) = scheme {
                identifier["scheme"] = scheme.into();
            }
            Some(identifier)
        };
        let mut details = json!({
            "isComponent": false,
            "entityType": { "type": "registeredEntity" },
            "jurisdiction": { "name": country, "code": country },
            "identifiers": identifiers.into_iter().filter_map(identifier).collect::<Vec<_>>(),
        });
        let mut set = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                details[key] = value.into();
            }
        };
        let day = |label: &str| values(insight, label).filter_map(full_date).next();
        set("name", name.map(neutral));
        set("foundingDate", day("founded"));
        set("dissolutionDate", day("dissolved"));
        let address = values(insight, "address").next().or(subject.address.as_deref());
        if let Some(address) = address {
            details["addresses"] = json!([{ "type": "registered", "address": neutral(address) }]);
        }
        let origins: Vec<Origin> = insight
            .facts
            .iter()
            .filter(|fact| fact.label == "name")
            .flat_map(|fact| fact.values.iter().flat_map(|value| value.origins.clone()))
            .collect();
        let screening = insight.subject_screening.label();
        let remark = format!("Report: {}. Watch lists: {screening}", insight.verdict.sentence());
        self.statement("subject", "entity", details, &origins, Some(remark))
    }

    fn party(&self, n: usize, person: &Person) -> Value {
        let name = neutral(&person.name);
        let remark = Some(format!("Watch lists: {}", person.screened.label()));
        let is_person = person.relation == Relation::Officer && person.company_id.is_none();
        let (kind, details) = if is_person {
            let mut details = json!({
                "isComponent": false,
                "personType": "knownPerson",
                "names": [{ "type": "legal", "fullName": name }],
            });
            if let Some(year) = person.birth_year {
                details["birthDate"] = format!("{year:04}").into();
            }
            ("person", details)
        } else {
            ("entity", entity(person, &name))
        };
        self.statement(&format!("party-{n}"), kind, details, &person.origins, remark)
    }

    fn relationship(&self, n: usize, person: &Person) -> Value {
        let mut interest = Map::new();
        let (kind, directness) = match (person.relation, person.detail.as_deref()) {
            (Relation::Owner, _) => ("shareholding", "unknown"),
            (Relation::Parent, Some("direct")) => ("otherInfluenceOrControl", "direct"),
            (Relation::Parent, _) => ("otherInfluenceOrControl", "indirect"),
            (Relation::Officer | Relation::Given, _) => ("otherInfluenceOrControl", "direct"),
        };
        interest.insert("type".to_owned(), kind.into());
        interest.insert("directOrIndirect".to_owned(), directness.into());
        if let Some(detail) = &person.detail {
            interest.insert("details".to_owned(), neutral(detail).into());
        }
        if let Some(share) = person.detail.as_deref().filter(|_| person.relation == Relation::Owner).and_then(percent) {
            interest.insert("share".to_owned(), json!({ "exact": share }));
        }
        if let Some(since) = person.since.as_deref().and_then(full_date) {
            interest.insert("startDate".to_owned(), since.into());
        }
        let details = json!({
            "isComponent": false,
            "subject": self.record("subject"),
            "interestedParty": self.record(&format!("party-{n}")),
            "interests": [interest],
        });
        self.statement(&format!("link-{n}"), "relationship", details, &person.origins, None)
    }

    /// No source that answered names an owner, or none was asked.
    fn no_owner_known(&self) -> Value {
        let party = json!({
            "reason": "informationUnknownToPublisher",
            "description": "No source that answered names an owner. That does not mean that there is none.",
        });
        let details = json!({
            "isComponent": false,
            "subject": self.record("subject"),
            "interestedParty": party,
            "interests": [{ "type": "unknownInterest", "directOrIndirect": "unknown" }],
        });
        self.statement("no-owner-known", "relationship", details, &[], None)
    }
}

/// A company, or somebody of whom the source does not say whether it is one.
fn entity(person: &Person, name: &str) -> Value {
    let known = person.company_id.is_some() || person.relation == Relation::Parent;
    let mut details = json!({
        "isComponent": false,
        "entityType": { "type": if known { "registeredEntity" } else { "unknownEntity" } },
        "name": name,
    });
    if !known {
        details["entityType"]["details"] = "a person or a company: the source does not say".into();
    }
    if let Some(number) = &person.company_id {
        details["identifiers"] =
            json!([{ "id": neutral(number), "schemeName": "number in the register of companies" }]);
    }
    if let Some(country) = person.country.as_deref().filter(|country| country.len() == 2) {
        details["jurisdiction"] = json!({ "name": neutral(country), "code": neutral(country) });
    }
    details
}

/// A whole day: the standard knows nothing less precise here.
fn full_date(text: &str) -> Option<String> {
    date(text).filter(|date| date.len() == 10)
}

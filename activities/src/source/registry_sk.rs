//! ORSR: the Slovak commercial register, by the JSON behind its site.
//!
//! A company that moved to another court has a file at each: the newest one, by the register's own counter, is the one in
//! force. Fields are lists of everything that ever was, with a mark on what still is.

use circuit_registry::CallError;
use std::time::Duration;

use futures::future::BoxFuture;

use super::{
    registry_sk_html, registry_sk_rpo,
    slovak::{BARRED, standing, town},
};
use crate::{
    model::{Address, Company, Facts, Officer, Owner},
    parse::date::iso,
    parse::json::{self, Node, lacks},
    spec::{
        Answer, Base, Class, Countries, Fallback, Flow, Need, Operation, Probe, Request, Session, Source, SourceError,
        on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "registry_sk",
    title: "ORSR, Slovak commercial register",
    breaker: "registry_sk",
    base: Base { env: "REGISTRY_SK_BASE_URL", default: "https://sluzby.orsr.sk/api" },
    rules: &[on(400).with("\"errors\"").means(Class::Business, "does not accept the question"), BARRED],
    probe: Some(Probe::json(|| search("31333532").query("Take", "1"))),
    limits: "none published; its authors advise about one request a minute to those who read its pages",
    terms: "public register; informative extracts only",
    operations: &[
        Operation {
            name: "registry_sk.search",
            answers: "companies with that name",
            needs: &[Need::Name],
            flow: Flow::Single {
                request: |subject| Some(search(subject.name.as_deref()?).query("Take", "10")),
                parse: found,
            },
            fallbacks: &[
                Fallback {
                    via: "registry_sk_html",
                    proves: "the register's older site answered instead",
                    source: &registry_sk_html::SOURCE,
                    flow: Flow::Steps(registry_sk_html::found),
                },
                Fallback {
                    via: "registry_sk_rpo",
                    proves: "the statistical office's copy answered instead: names and addresses",
                    source: &registry_sk_rpo::SOURCE,
                    flow: Flow::Single { request: registry_sk_rpo::by_name, parse: registry_sk_rpo::companies },
                },
            ],
            ..SLOVAK
        },
        Operation {
            name: "registry_sk.entity",
            answers: "the extract: court file, officers and partners",
            needs: &[Need::Id],
            flow: Flow::Steps(entity),
            fallbacks: &[
                Fallback {
                    via: "registry_sk_html",
                    proves: "the register's older site answered instead",
                    source: &registry_sk_html::SOURCE,
                    flow: Flow::Steps(registry_sk_html::entity),
                },
                Fallback {
                    via: "registry_sk_rpo",
                    proves: "the statistical office's copy answered instead: name and address, no officers",
                    source: &registry_sk_rpo::SOURCE,
                    flow: Flow::Single { request: registry_sk_rpo::by_number, parse: registry_sk_rpo::companies },
                },
            ],
            ..SLOVAK
        },
    ],
    ..Source::BLANK
};

const SLOVAK: Operation = Operation {
    countries: Countries::Only(&["SK"]),
    fresh: Some(Duration::from_secs(86_400)), // those who read it advise to keep what one got
    ..Operation::BLANK
};

fn search(query: &str) -> Request {
    Request::get("/legal-person")
        .query("Filter.IncludeTerminated", "true")
        .query("Filter.CorporateBodyFullNameOrRegistrationNumber", query)
}

/// Reads the hits of a search by name.
fn found(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let companies = rows(Node::root(&document))?.into_iter().map(hit).collect::<Result<Vec<_>, _>>()?;
    Ok(Facts { companies, ..Facts::default() }.into())
}

fn rows(document: Node<'_>) -> Result<Vec<Node<'_>>, SourceError> {
    let rows = document.require_list("data")?;
    if rows.is_empty() { Err(SourceError::not_found("knows no such company")) } else { Ok(rows) }
}

fn hit(row: Node<'_>) -> Result<Company, SourceError> {
    let (postal_code, city) = row.get("physicalAddressLine2").text().map_or((None, None), |line| town(&line));
    let address = Address { street: row.get("physicalAddressLine1").text(), postal_code, city, country: None };
    Ok(Company {
        name: Some(row.require_text("corporateBodyFullName").or_else(|_| row.require_text("physicalPersonName"))?),
        id: row.get("registrationNumber").text(),
        country: Some("SK".to_owned()),
        address: (address != Address::default()).then_some(address),
        registrations: row
            .at("fileReference.formattedValueSpaced")
            .text()
            .map(|file| format!("court file: {file}"))
            .into_iter()
            .collect(),
        ..Company::default()
    })
}

/// Section, number and court of a file.
type File = [String; 3];

/// The newest file of a number.
fn newest(body: &[u8], number: &str) -> Result<File, SourceError> {
    let document = json::parse(body)?;
    let rows = rows(Node::root(&document))?;
    // The search is for names as well, and a name may contain the number of somebody else.
    let of = |row: &Node<'_>| row.get("registrationNumber").text();
    let own = rows.iter().filter(|row| of(row).as_deref() == Some(number));
    let row =
        own.max_by_key(|row| row.get("id").count()).ok_or_else(|| match rows.iter().all(|row| of(row).is_some()) {
            true => SourceError::not_found("knows no such number"),
            false => lacks("registrationNumber"),
        })?;
    let file = row.require("fileReference")?;
    Ok([file.require_text("section")?, file.require_text("insertNumber")?, file.require_text("court")?])
}

fn entity<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let number = session.subject().id.as_deref().unwrap_or_default();
        let by_number = search(number).query("Take", "50");
        let [section, insert, court] = session.ask(by_number, |reply| newest(&reply.body, number)).await?;
        let request = Request::get("/legal-person/extract").query("oddiel", section).query("vlozka", insert);
        session.ask(request.query("sud", court), |reply| extract(&reply.body)).await
    })
}

/// The entries of a list that are in force.
fn current(list: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    list.items().filter(|item| item.get("current").flag() != Some(false))
}

fn day(node: Node<'_>) -> Option<String> {
    // The register writes "never" as the first day of the calendar.
    node.text().filter(|text| !text.starts_with("0001")).and_then(|text| iso(&text))
}

fn extract(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let root = Node::root(&document);
    let person = root.require("legalPerson")?;
    let corporate = person.require("corporateBody")?;
    let value = |list: &str, path: &str| current(corporate.get(list)).find_map(|item| item.at(path).text());
    let name = value("corporateBodyFullName", "value").ok_or_else(|| lacks("corporateBodyFullName"))?;
    let dissolved = day(corporate.get("termination"));
    let former =
        corporate.get("corporateBodyFullName").items().filter(|item| item.get("current").flag() == Some(false));
    let file = root.get("fileReference");
    let part = |name: &str| file.get(name).text();
    let file = part("section").zip(part("insertNumber")).map(|(section, insert)| {
        let court = root.get("courtName").text().or_else(|| part("court")).unwrap_or_default();
        format!("court file: {section} {insert}, {court}")
    });
    let capital = current(corporate.get("equity")).find_map(|equity| {
        let currency = equity.at("currency.itemCode").text().unwrap_or_default();
        Some(format!("share capital: {} {currency}", equity.get("equityValue").text()?).trim_end().to_owned())
    });
    let company = Company {
        standing: standing(&name, dissolved.is_some()),
        name: Some(name),
        id: current(person.get("id")).find_map(|id| id.get("identifierValue").text()),
        country: Some("SK".to_owned()),
        legal_form: value("legalForm", "item.codelistItem.itemName").or_else(|| root.get("legalForm").text()),
        address: current(person.get("physicalAddress")).next().map(address),
        founded: day(corporate.get("establishment")),
        dissolved,
        former_names: former.filter_map(|item| item.get("value").text()).collect(),
        registrations: file.into_iter().chain(capital).collect(),
        ..Company::default()
    };
    let officers = current(corporate.get("statutoryBody")).filter_map(|member| {
        let (name, company_id) = holder(member.get("personData"))?;
        let role = member.get("function").text();
        Some(Officer { name: Some(name), company_id, role, birth_year: None, since: day(member.get("effectiveFrom")) })
    });
    let owners = current(corporate.get("stakeholder")).filter_map(|partner| {
        let (name, company_id) = holder(partner.get("personData"))?;
        Some(Owner { name: Some(name), company_id, since: day(partner.get("effectiveFrom")), ..Owner::default() })
    });
    let facts =
        Facts { officers: officers.collect(), owners: owners.collect(), companies: vec![company], ..Facts::default() };
    Ok(Answer::from(facts).dated(root.get("dataSyncDate").time()))
}

/// Name of the person or company, and the number of the company.
fn holder(data: Node<'_>) -> Option<(String, Option<String>)> {
    if let Some(name) = data.at("physicalPerson.personName.formattedName").text() {
        return Some((name, None));
    }
    let company = data.get("corporateBody").get("corporateBodyFullName");
    let name = company.text().or_else(|| current(company).find_map(|item| item.get("value").text()))?;
    Some((name, data.get("id").items().find_map(|id| id.get("identifierValue").text())))
}

fn address(address: Node<'_>) -> Address {
    let text = |path: &str| address.at(path).text();
    let street: Vec<_> = [text("streetName"), text("buildingNumber")].into_iter().flatten().collect();
    Address {
        street: Some(street.join(" ")).filter(|street| !street.is_empty()),
        postal_code: text("deliveryAddress.postalCode"),
        city: text("municipality.codelistItem.itemName").or_else(|| text("municipality")),
        country: None, // in a code of its own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::Standing, parse::corruption::assert_survives_corruption};

    const ESET: &[u8] = include_bytes!("../../../simulator/fixtures/registry_sk/extracts/Sro-3586-B.json");
    const HITS: &[u8] = include_bytes!("../../../simulator/fixtures/registry_sk/persons/35757442.json");

    fn hits() -> Vec<u8> {
        format!(r#"{{"filteredCount":2,"data":{}}}"#, String::from_utf8_lossy(HITS)).into_bytes()
    }

    #[test]
    fn an_extract_is_read_whole_without_what_has_ended() {
        let answer = extract(ESET).expect("an extract");
        let company = &answer.facts.companies[0];
        assert_eq!((company.name.as_deref(), company.id.as_deref()), (Some("ESET, spol. s r.o."), Some("31333532")));
        assert_eq!((company.founded.as_deref(), company.standing), (Some("1992-09-17"), Standing::Active));
        assert_eq!(company.legal_form.as_deref(), Some("Spoločnosť s ručením obmedzeným"));
        let address = company.address.clone().and_then(Address::line);
        assert_eq!(address.as_deref(), Some("Einsteinova 24, 85101 Bratislava"));
        assert!(company.registrations.contains(&"court file: Sro 3586, Mestský súd Bratislava III".to_owned()));
        let officer = &answer.facts.officers[0];
        assert_eq!((officer.name.as_deref(), officer.role.as_deref()), (Some("Ing. Ján Vzor"), Some("konateľ")));
        assert_eq!((answer.facts.officers.len(), answer.facts.owners.len()), (1, 1));
        assert!(answer.as_of.is_some());
        assert_survives_corruption("registry_sk.entity", extract, ESET);
        let companies = extract(include_bytes!("../../../simulator/fixtures/registry_sk/extracts/Sa-1973-B.json"))
            .expect("an extract");
        assert_eq!(companies.facts.owners[0].name.as_deref(), Some("VOLKSWAGEN FINANCE LUXEMBURG S.A."));
    }

    #[test]
    fn of_two_files_the_newest_is_in_force() {
        assert_eq!(newest(&hits(), "35757442"), Ok(["Sa", "1973", "B"].map(str::to_owned)));
        assert_eq!(newest(&hits(), "31333532").expect_err("somebody else").class, Class::NotFound);
        assert_eq!(newest(br#"{"filteredCount":0,"data":[]}"#, "1").expect_err("unknown").class, Class::NotFound);
        let nameless = String::from_utf8(hits()).expect("a text").replace("registrationNumber", "x");
        assert_eq!(newest(nameless.as_bytes(), "35757442").expect_err("whose?").class, Class::BadShape);
        assert_eq!(newest(br#"{"filteredCount":0}"#, "1").expect_err("no list").class, Class::BadShape);
    }

    #[test]
    fn a_search_lists_companies() {
        let companies = found(&hits()).expect("hits").facts.companies;
        assert_eq!((companies.len(), companies[0].id.as_deref()), (2, Some("35757442")));
        assert_eq!(companies[1].registrations, ["court file: Sa 1973/B"]);
        assert_eq!(found(br#"{"filteredCount":0,"data":[]}"#).expect_err("none").class, Class::NotFound);
        assert_survives_corruption("registry_sk.search", found, &hits());
    }

    #[test]
    fn the_name_shows_insolvency_and_liquidation() {
        for (name, dissolved, wanted) in [
            ("Príklad, s.r.o.", false, Standing::Active),
            ("Príklad, s.r.o. \"v likvidácii\"", false, Standing::Liquidation),
            ("Príklad, a.s. v konkurze", false, Standing::Insolvent),
            ("Príklad, a.s. V REŠTRUKTURALIZÁCII", false, Standing::Restructuring),
            ("Príklad, s.r.o. v likvidácii", true, Standing::Ceased),
        ] {
            assert_eq!(standing(name, dissolved), wanted, "{name}");
        }
    }

    #[test]
    fn towns_and_postal_codes_are_split() {
        let split = |line: &str| town(line);
        let both = (Some("85101".to_owned()), Some("Bratislava".to_owned()));
        assert_eq!((split("851 01 Bratislava"), split("Bratislava 851 01")), (both.clone(), both));
        assert_eq!(split("Bratislava 1"), (None, Some("Bratislava 1".to_owned())));
        assert_eq!((split(""), split("85101").0), ((None, None), Some("85101".to_owned())));
    }
}

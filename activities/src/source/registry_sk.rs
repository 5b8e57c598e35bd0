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
    model::{Address, Company, Facts, Officer, Owner, RoleWords, Standing, role},
    parse::date::iso,
    parse::json::{self, Node, lacks},
    spec::{
        Answer, Base, Class, Confidence, Countries, Fallback, Flow, Need, Operation, Probe, Request, Session, Source,
        SourceError, on, sift,
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
    confidence: Confidence::A,
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
    let root = Node::root(&document);
    let hits = sift("hits", rows(root)?, hit)?;
    let answer = Answer::from(Facts { companies: hits.read, ..Facts::default() });
    Ok(answer.of_total(hits.listed, root.get("filteredCount").count()).noting(hits.note))
}

fn rows(document: Node<'_>) -> Result<Vec<Node<'_>>, SourceError> {
    // The list may be left out where nothing was found.
    let nothing = !document.get("data").exists() && document.get("filteredCount").count() == Some(0);
    let rows = if nothing { Vec::new() } else { document.require_list("data")? };
    if rows.is_empty() { Err(SourceError::not_found("knows no such company")) } else { Ok(rows) }
}

fn hit(row: Node<'_>) -> Result<Company, SourceError> {
    let (postal_code, city) = row.get("physicalAddressLine2").text().map_or((None, None), |line| town(&line));
    let address = Address { street: row.get("physicalAddressLine1").text(), postal_code, city, country: None };
    let name = row.require_any(&["corporateBodyFullName", "physicalPersonName"])?;
    // The list does not say which of them have ended. A name without a word of the law says nothing about that.
    let standing = match standing(&name, false) {
        Standing::Active => Standing::Unknown,
        known => known,
    };
    Ok(Company {
        standing,
        name: Some(name),
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

/// The entry of a list that is in force. Nothing is in force in the extract of a company that has ended; the newest entry
/// stands first there.
fn newest_entry(list: Node<'_>) -> Option<Node<'_>> {
    current(list).next().or_else(|| list.items().next())
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
    let value = |list: &str, path: &str| newest_entry(corporate.get(list))?.at(path).text();
    let texts = |list: &str, name: &str| -> Vec<String> {
        current(corporate.get(list)).filter_map(|item| item.get(name).text()).collect()
    };
    let name = value("corporateBodyFullName", "value").ok_or_else(|| lacks("corporateBodyFullName"))?;
    let dissolved = day(corporate.get("termination"));
    let names = corporate.get("corporateBodyFullName").items().filter_map(|item| item.get("value").text());
    let mut former: Vec<_> = names.filter(|earlier| *earlier != name).collect();
    former.dedup();
    let file = root.get("fileReference");
    let part = |name: &str| file.get(name).text();
    let file = part("section").zip(part("insertNumber")).map(|(section, insert)| {
        let court = root.get("courtName").text().or_else(|| part("court")).unwrap_or_default();
        format!("court file: {section} {insert}, {court}")
    });
    let capital = newest_entry(corporate.get("equity")).and_then(|equity| amount(equity, "equityValue"));
    let (stated, events) = (standing(&name, dissolved.is_some()), unknown_events(corporate));
    let company = Company {
        standing: if events.is_empty() { stated } else { stated.and(Standing::Unknown) },
        status: (!events.is_empty()).then(|| events.join("; ")),
        capital: capital.clone(),
        signing: Some(texts("authorizationToExecute", "value").join(" ")).filter(|text| !text.is_empty()),
        activities: texts("activities", "economicActivityDescription"),
        name: Some(name),
        id: newest_entry(person.get("id")).and_then(|id| id.get("identifierValue").text()),
        country: Some("SK".to_owned()),
        legal_form: value("legalForm", "item.codelistItem.itemName").or_else(|| root.get("legalForm").text()),
        address: newest_entry(person.get("physicalAddress")).map(address),
        founded: day(corporate.get("establishment")),
        dissolved,
        former_names: former,
        registrations: file.into_iter().chain(capital.map(|capital| format!("share capital: {capital}"))).collect(),
        ..Company::default()
    };
    let mut facts = Facts { companies: vec![company], ..Facts::default() };
    let body = value("statutoryBodyType", "value");
    facts.officers.extend(current(corporate.get("statutoryBody")).filter_map(|member| {
        let role = ["function", "statutoryBodyType"].iter().find_map(|name| member.get(name).text());
        officer(member, role.or_else(|| body.clone()), None)
    }));
    current(corporate.get("stakeholder")).for_each(|holder| stakeholder(holder, corporate, &mut facts));
    Ok(Answer::from(facts).dated(root.get("dataSyncDate").time()))
}

/// The codes by which the list of stakeholders tells owners from others.
const OWNERS: &RoleWords = &[
    ("Spolocnik", "partner"),
    ("Akcionar", "shareholder"),
    ("Komanditista", "limited partner"),
    ("Komplementar", "general partner"),
];

/// The codes of those who act for the company or watch over it, or did something else for it.
const OFFICES: &RoleWords = &[
    ("Prokurista", "holder of procuration"),
    ("ClenDozornehoOrganu", "member of the supervisory board"),
    ("ClenSpravnejRady", "member of the board of directors"),
    ("Likvidator", "liquidator"),
    ("VeduciOrganizacnejZlozky", "head of the branch"),
    ("Zakladatel", "founder"),
];

/// The code of a company that this one came from.
const PREDECESSOR: &str = "Predchodca";

/// Puts an entry of the mixed list of stakeholders where its own code says. One without a code, or with a code that is not
/// known, is no owner.
fn stakeholder(entry: Node<'_>, corporate: Node<'_>, facts: &mut Facts) {
    let code = entry.at("stakeholderType.item.codelistItem.itemCode").text();
    let Some((name, company_id)) = holder(entry.get("personData")) else { return };
    let code = code.unwrap_or_else(|| "no code".to_owned());
    if code == PREDECESSOR {
        let country = company_id.as_ref().map(|_| "SK".to_owned());
        facts.predecessors.push(Company { name: Some(name), id: company_id, country, ..Company::default() });
    } else if OWNERS.iter().any(|(known, _)| *known == code) {
        facts.owners.push(Owner {
            share: deposit(corporate, &name),
            name: Some(name),
            company_id,
            role: Some(role(&code, None, OWNERS)),
            since: day(entry.get("functionCreationDate")),
            entered: day(entry.get("effectiveFrom")),
            role_code: Some(code),
            ..Owner::default()
        });
    } else {
        let title = role(&code, entry.get("function").text().as_deref(), OFFICES);
        facts.officers.extend(officer(entry, Some(title), Some(code)));
    }
}

/// Someone with a role. The date of office is not the date on which the register entered it.
fn officer(entry: Node<'_>, role: Option<String>, role_code: Option<String>) -> Option<Officer> {
    let (name, company_id) = holder(entry.get("personData"))?;
    let (since, entered) = (day(entry.get("functionCreationDate")), day(entry.get("effectiveFrom")));
    Some(Officer { name: Some(name), company_id, role, role_code, since, entered, ..Officer::default() })
}

/// What a stakeholder has paid in. The register ties a deposit to a stakeholder by the name alone.
fn deposit(corporate: Node<'_>, name: &str) -> Option<String> {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let of = |deposit: &Node<'_>| {
        current(deposit.get("stakeholder"))
            .any(|holder| holder.get("value").text().is_some_and(|value| squeezed(&value) == squeezed(name)))
    };
    let own: Vec<_> =
        current(corporate.get("deposits")).filter(of).filter_map(|own| amount(own, "depositValue")).collect();
    (!own.is_empty()).then(|| format!("deposit {}", own.join(" + ")))
}

/// An amount with its currency, which the register writes as a text, a code or an entry of a code list.
fn amount(record: Node<'_>, name: &'static str) -> Option<String> {
    let value = record.get(name).text()?;
    let places = ["currency.item", "currency.item.codelistItem.itemName", "currency.itemCode"];
    let currency = places.iter().find_map(|place| record.at(place).text()).unwrap_or_default();
    Some(format!("{value} {currency}").trim_end().to_owned())
}

/// The legal events in force whose meaning is not known. A company that took over others goes on as it was.
fn unknown_events(corporate: Node<'_>) -> Vec<String> {
    let known = |event: &Node<'_>| event.get("type").text().as_deref() == Some("PremenyNastupca");
    let worded = |event: Node<'_>| event.get("text").text().or_else(|| event.get("type").text());
    current(corporate.get("legalStatusEvents")).filter(|event| !known(event)).filter_map(worded).collect()
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
        city: ["municipality.item", "municipality.item.codelistItem.itemName", "municipality.codelistItem.itemName"]
            .iter()
            .find_map(|path| text(path))
            .or_else(|| text("municipality")),
        country: None, // in a code of its own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::Status, parse::corruption::assert_survives_corruption};

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
        assert_eq!((officer.since.as_deref(), officer.entered.as_deref()), (Some("1992-09-17"), Some("2010-01-01")));
        assert_eq!((answer.facts.officers.len(), answer.facts.owners.len()), (2, 1));
        assert_eq!(answer.facts.officers[1].role.as_deref(), Some("other role (Vymysleny)"));
        assert_eq!(answer.facts.predecessors[0].name.as_deref(), Some("COMDOM Software, s.r.o."));
        let owner = &answer.facts.owners[0];
        assert_eq!((owner.share.as_deref(), owner.role.as_deref()), (Some("deposit 140000 EUR"), Some("partner")));
        assert_eq!(company.capital.as_deref(), Some("140000 EUR"));
        assert_eq!(company.signing.as_deref(), Some("Za spoločnosť koná konateľ samostatne."));
        assert_eq!(company.activities, ["vývoj softvéru"]);
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
        assert_eq!(newest(br#"{"filteredCount":0}"#, "1").expect_err("left out").class, Class::NotFound);
        assert_eq!(newest(br#"{"filteredCount":2}"#, "1").expect_err("no list").class, Class::BadShape);
        assert_eq!(newest(br#"{}"#, "1").expect_err("nothing").class, Class::BadShape);
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
    fn an_ended_company_is_read_from_its_newest_entries() {
        let ended = String::from_utf8_lossy(ESET)
            .replace(r#""current": true"#, r#""current": false"#)
            .replace(r#""termination": null"#, r#""termination": "2024-05-06T00:00:00""#);
        let facts = extract(ended.as_bytes()).expect("an extract").facts;
        let company = &facts.companies[0];
        assert_eq!((company.name.as_deref(), company.standing), (Some("ESET, spol. s r.o."), Standing::Ceased));
        assert_eq!((company.dissolved.as_deref(), facts.owners.len()), (Some("2024-05-06"), 0));
    }

    #[test]
    fn an_unknown_event_makes_the_standing_unknown() {
        let with = |kind: &str| {
            let events = format!(r#""termination": null, "legalStatusEvents": [{{"type":"{kind}","text":"Niečo"}}]"#);
            let body = String::from_utf8_lossy(ESET).replace(r#""termination": null"#, &events);
            extract(body.as_bytes()).expect("an extract").facts.companies.remove(0)
        };
        assert_eq!(with("PremenyNastupca").standing, Standing::Active);
        let company = with("Vymyslene");
        assert_eq!((company.standing, company.status.as_deref()), (Standing::Unknown, Some("Niečo")));
    }

    #[test]
    fn a_search_says_what_it_left_out() {
        let nameless = String::from_utf8(hits()).expect("a text").replacen("corporateBodyFullName\"", "x\"", 1);
        let answer = found(nameless.replace(r#"Count":2"#, r#"Count":18"#).as_bytes()).expect("hits");
        assert_eq!((answer.status, answer.facts.companies.len()), (Status::Partial, 1));
        assert_eq!(answer.reason.as_deref(), Some("2 of 18 were read"));
        assert_eq!(answer.facts.notes.len(), 1);
        let wound_up = String::from_utf8(hits()).expect("a text").replace(", a.s.", r#", a.s. \"v likvidácii\""#);
        let companies = found(wound_up.as_bytes()).expect("hits").facts.companies;
        assert_eq!(companies[0].standing, Standing::Liquidation);
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

//! North Data: companies of Europe from their registers and gazettes, as a paid service.
//!
//! Each company that comes back costs a credit, so the search and the probe use the suggestions, which are free, and a call
//! that may have been charged is not repeated. One and the same answer comes bare, as a list or under `items`, and what a
//! plan does not include is left out of a 200 with a flag: a hidden result is not a company that does not exist.

use circuit_registry::CallError;
use std::{collections::HashSet, time::Duration};

use futures::future::BoxFuture;

use crate::{
    identifiers::Kind,
    model::{Accounts, Address, Company, Facts, Officer, Owner, Standing, Status, Subject},
    parse::json::{self, Node, lacks},
    parse::text::{squeezed, words},
    spec::{
        Answer, Auth, Base, Class, Countries, Credential, Flow, Need, Operation, Probe, Request, Session, Source,
        SourceError, on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "northdata",
    title: "North Data, company information",
    breaker: "northdata",
    base: Base { env: "NORTHDATA_BASE_URL", default: "https://www.northdata.com/_api" },
    credentials: &[Credential {
        any_of: &["NORTHDATA_API_KEY"],
        obtain: "order access to the API at https://www.northdata.com",
    }],
    auth: Auth::Header { name: "x-api-key", prefix: "", env: "NORTHDATA_API_KEY" },
    timeout: Duration::from_secs(15),
    rules: &[on(404).json().means(Class::NotFound, "knows no such company")],
    probe: Some(Probe::json(|| Request::get("/search/v1/suggest").query("query", "a").query("limit", "1"))),
    limits: "none published; one call every 2 seconds is known to be tolerated; a credit for each company returned",
    terms: "commercial contract; answers may be kept",
    operations: &[
        Operation {
            name: "northdata.company",
            answers: "the company with its representatives, owners and key figures",
            countries: Countries::Only(COVERED),
            needs: &[Need::Id, Need::Name],
            flow: Flow::Steps(look_up),
            billed: true,
            fresh: Some(Duration::from_secs(86_400)), // the contract lets answers be kept, and each costs a credit
            ..Operation::BLANK
        },
        Operation {
            name: "northdata.search",
            answers: "companies that are called alike, without cost",
            countries: Countries::Only(COVERED),
            needs: &[Need::Name],
            flow: Flow::Single { request: suggest, parse: suggestions },
            ..Operation::BLANK
        },
    ],
    ..Source::BLANK
};

/// Europe, as the vendor names it.
const COVERED: &[&str] = &[
    "AT", "BE", "BG", "CH", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GB", "GR", "HR", "HU", "IE", "IS", "IT",
    "LI", "LT", "LU", "LV", "MT", "NL", "NO", "PL", "PT", "RO", "SE", "SI", "SK",
];

/// A number of the German register the way the interface wants it: `HRB6684/Muenchen`. Others stay as they are.
fn register(subject: &Subject) -> Option<String> {
    let id = subject.id.as_deref()?;
    if subject.country.as_str() != "DE" {
        return Some(id.to_owned());
    }
    // Berlin puts a letter behind the number.
    let mut words = id.split_whitespace();
    let (kind, number) = (words.next()?, words.next().unwrap_or_default());
    let (letters, court): (Vec<_>, Vec<_>) = words.partition(|word| word.len() == 1);
    let slash = if court.is_empty() { "" } else { "/" };
    Some(format!("{kind}{number}{}{slash}{}", letters.concat(), court.join(" ")))
}

fn company_request(subject: &Subject) -> Option<Request> {
    let base = Request::get("/company/v1/company");
    // The register's number decides in Germany, where names recur; elsewhere the vendor documents names alone.
    let german = subject.country.as_str() == "DE";
    let request = match (register(subject), &subject.name) {
        (Some(register), name) if german || name.is_none() => base.query("register", register),
        (_, Some(name)) => match &subject.address {
            Some(address) => base.query("name", name).query("address", address),
            None => base.query("name", name),
        },
        _ => return None,
    };
    Some(["owners", "representatives", "financials"].into_iter().fold(request, |r, part| r.query(part, "true")))
}

fn suggest(subject: &Subject) -> Option<Request> {
    let search = Request::get("/search/v1/suggest").query("query", subject.name.as_deref()?);
    Some(search.query("countries", subject.country.as_str()).query("limit", "10"))
}

fn look_up<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let subject = session.subject();
        let answer = session.ask_if(company_request(subject), |reply| companies(&reply.body)).await?;
        Ok(doubted(subject, answer))
    })
}

/// A company that was found by its name and has another number than the subject is for a person to judge.
fn doubted(subject: &Subject, answer: Answer) -> Answer {
    let words = |text: &str| HashSet::<String>::from_iter(words(text));
    let same = |known: &str| {
        subject.id.as_deref().is_none_or(|asked| {
            let (a, b) = (words(asked), words(known)); // one of them may lack the court
            a.is_subset(&b) || b.is_subset(&a) || squeezed(asked) == squeezed(known)
        })
    };
    let ids: Vec<_> = answer.facts.companies.iter().filter_map(|company| company.id.as_deref()).collect();
    if ids.is_empty() || ids.into_iter().any(same) {
        return answer;
    }
    let reason = "found a company of this name under another register number".to_owned();
    Answer { status: Status::NeedsReview, reason: Some(reason), ..answer }
}

/// The items of an answer in any of its three shapes, and whether the plan hides some.
fn items(document: &serde_json::Value) -> Result<(Vec<Node<'_>>, bool), SourceError> {
    let root = Node::root(document);
    let items = if root.get("items").exists() || root.get("censored").flag() == Some(true) {
        root.require_list("items")?
    } else {
        root.items().collect()
    };
    if !items.iter().all(|item| item.is_object()) {
        return Err(lacks("items"));
    }
    let hidden =
        root.get("censored").flag() == Some(true) || items.iter().any(|item| item.get("censored").flag() == Some(true));
    if items.is_empty() {
        return Err(if hidden {
            SourceError::business("hides its results: the plan does not include them")
        } else {
            SourceError::not_found("knows no such company")
        });
    }
    Ok((items, hidden))
}

fn answer(facts: Facts, hidden: bool) -> Answer {
    let answer = Answer::from(facts);
    if !hidden {
        return answer;
    }
    let reason = "shows a part only: the plan does not include the rest".to_owned();
    Answer { status: Status::Partial, reason: Some(reason), ..answer }
}

fn suggestions(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let (items, hidden) = items(&document)?;
    let companies = items.into_iter().map(company).collect::<Result<Vec<_>, _>>()?;
    Ok(answer(Facts { companies, ..Facts::default() }, hidden))
}

fn companies(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let (items, hidden) = items(&document)?;
    let mut facts = Facts::default();
    for item in items {
        facts.companies.push(company(item)?);
        facts.officers.extend(relations(item.get("representatives")).filter_map(officer));
        facts.owners.extend(relations(item.get("owners")).filter_map(owner));
        facts.accounts.extend(relations(item.get("financials")).filter_map(accounts));
    }
    facts.accounts.sort_by(|a, b| b.to.cmp(&a.to));
    Ok(answer(facts, hidden))
}

/// A list, bare or under `items`.
fn relations(list: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let inner = list.get("items");
    if inner.exists() { inner } else { list }.items().filter(|item| item.is_object())
}

/// A name, bare or inside an object of that name.
fn name(holder: Node<'_>) -> Option<String> {
    let name = holder.get("name");
    name.text().or_else(|| name.get("name").text())
}

fn company(item: Node<'_>) -> Result<Company, SourceError> {
    let inner = item.get("company");
    let item = if inner.is_object() { inner } else { item };
    let text = |path: &str| item.at(path).text();
    let country = text("register.country").or_else(|| text("address.country"));
    let status = text("status");
    let has = |words: &[&str]| {
        status.as_deref().is_some_and(|status| words.iter().any(|word| status.eq_ignore_ascii_case(word)))
    };
    let standing = match () {
        () if has(&["active"]) => Standing::Active,
        () if has(&["liquidation"]) => Standing::Liquidation,
        () if has(&["insolvency", "insolvent"]) => Standing::Insolvent,
        () if has(&["terminated", "ceased", "deleted", "dissolved"]) => Standing::Ceased,
        () => Standing::Unknown,
    };
    let address = item.get("address");
    Ok(Company {
        name: Some(name(item).ok_or_else(|| lacks("name"))?),
        id: text("register.id").map(|id| number(&id, text("register.court"), country.as_deref())),
        vat: text("vatId"),
        euid: text("euId"),
        standing,
        status,
        legal_form: text("name.legalForm").or_else(|| text("legalForm")),
        address: address.is_object().then(|| Address {
            street: address.get("street").text(),
            postal_code: address.get("postalCode").text(),
            city: address.get("city").text(),
            country: address.get("country").text(),
        }),
        registrations: text("register.court").map(|court| format!("register court: {court}")).into_iter().collect(),
        country,
        ..Company::default()
    })
}

/// A register number in our own form, court included where the country's numbers have one.
fn number(id: &str, court: Option<String>, country: Option<&str>) -> String {
    if country != Some("DE") {
        return id.to_owned();
    }
    let whole = format!("{id} {}", court.unwrap_or_default());
    Kind::DeRegister.read(&whole).map_or_else(|_| id.to_owned(), |number| number.as_str().to_owned())
}

/// The person or company that a relation is about.
fn holder(relation: Node<'_>) -> Option<String> {
    let about = ["person", "company"].map(|kind| relation.get(kind)).into_iter().find(|node| node.is_object());
    name(about.unwrap_or(relation))
}

fn officer(relation: Node<'_>) -> Option<Officer> {
    let role = relation.get("role").text();
    Some(Officer { name: Some(holder(relation)?), role, ..Officer::default() })
}

fn owner(relation: Node<'_>) -> Option<Owner> {
    let percent = relation.get("sharesPercent").number();
    Some(Owner { name: Some(holder(relation)?), share: percent.map(|n| format!("{n} %")), ..Owner::default() })
}

/// A key figure. Only those that the model has a place for.
fn accounts(figure: Node<'_>) -> Option<Accounts> {
    let blank = Accounts { to: figure.get("date").text(), currency: figure.get("unit").text(), ..Accounts::default() };
    let value = Some(figure.get("value").number()?);
    match figure.get("id").text()?.as_str() {
        "revenue" => Some(Accounts { revenue: value, ..blank }),
        "earnings" => Some(Accounts { result: value, ..blank }),
        "equity" => Some(Accounts { equity: value, ..blank }),
        "totalAssets" => Some(Accounts { assets: value, ..blank }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const SIEMENS: &str = include_str!("../../../simulator/fixtures/northdata/companies/siemens.json");
    const ZALANDO: &str = include_str!("../../../simulator/fixtures/northdata/companies/zalando.json");

    fn subject(id: &str, name: &str) -> Subject {
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let subject = Subject::new("DE".parse().expect("a country"));
        Subject { id: known(id), name: known(name), ..subject }.normalised().expect("a subject").0
    }

    #[test]
    fn one_answer_in_three_shapes_reads_alike() {
        let bare = companies(SIEMENS.as_bytes()).expect("a company");
        let company = &bare.facts.companies[0];
        assert_eq!((company.name.as_deref(), company.standing), (Some("Siemens AG"), Standing::Active));
        assert_eq!(company.id, subject("HRB 6684, Amtsgericht Muenchen", "").id, "as the user's number is written");
        assert_eq!((bare.facts.officers.len(), bare.facts.accounts[0].currency.as_deref()), (2, Some("EUR")));
        assert_eq!(companies(format!("[{SIEMENS}]").as_bytes()), Ok(bare.clone()));
        assert_eq!(companies(format!(r#"{{"items":[{SIEMENS}]}}"#).as_bytes()), Ok(bare));
        assert_survives_corruption("northdata.company", companies, SIEMENS.as_bytes());
        let list = format!(r#"{{"items":[{SIEMENS},{ZALANDO}]}}"#);
        assert_survives_corruption("northdata.search", suggestions, list.as_bytes());
    }

    #[test]
    fn names_and_relations_may_be_nested() {
        let facts = companies(ZALANDO.as_bytes()).expect("a company").facts;
        assert_eq!(
            (facts.companies[0].name.as_deref(), facts.companies[0].legal_form.as_deref()),
            (Some("Zalando SE"), Some("SE"))
        );
        assert_eq!(facts.officers[0].name.as_deref(), Some("Kim Beispiel"));
        let owned =
            br#"{"name":"X","owners":{"items":[{"company":{"name":{"name":"Holding AG"}},"sharesPercent":"51.5"}]}}"#;
        let owner = companies(owned).expect("a company").facts.owners.remove(0);
        assert_eq!((owner.name.as_deref(), owner.share.as_deref()), (Some("Holding AG"), Some("51.5 %")));
    }

    #[test]
    fn what_the_plan_hides_is_not_what_does_not_exist() {
        assert_eq!(suggestions(br#"{"items":[]}"#).expect_err("no company").class, Class::NotFound);
        assert_eq!(suggestions(b"[]").expect_err("no company").class, Class::NotFound);
        assert_eq!(suggestions(br#"{"censored":true,"items":[]}"#).expect_err("hidden").class, Class::Business);
        assert_eq!(suggestions(br#"{"censored":true}"#).expect_err("no list").class, Class::BadShape);
        let some = suggestions(br#"{"censored":true,"items":[{"name":"X"}]}"#).expect("one");
        assert_eq!((some.status, some.facts.companies.len()), (Status::Partial, 1));
        for body in [&b"{}"[..], b"[7]", b"7", br#"{"items":null}"#, br#"{"items":[{}]}"#, b"null"] {
            assert_eq!(suggestions(body).expect_err("no answer").class, Class::BadShape);
        }
    }

    #[test]
    fn german_numbers_are_asked_for_with_their_court() {
        for (id, asked) in [
            ("HRB 6684 Muenchen", "HRB6684/MUENCHEN"),
            ("Amtsgericht Charlottenburg HRB 158855 B", "HRB158855B/CHARLOTTENBURG"),
            ("HRB 719915", "HRB719915"),
        ] {
            assert_eq!(register(&subject(id, "")).as_deref(), Some(asked), "{id}");
        }
    }

    #[test]
    fn a_namesake_is_for_a_person_to_judge() {
        let answer = companies(SIEMENS.as_bytes()).expect("a company");
        assert_eq!(doubted(&subject("HRB 6684", "Siemens AG"), answer.clone()).status, Status::Complete);
        assert_eq!(doubted(&subject("", "Siemens AG"), answer.clone()).status, Status::Complete);
        assert_eq!(doubted(&subject("HRB 1", "Siemens AG"), answer).status, Status::NeedsReview);
    }
}

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
    model::{Accounts, Address, Company, Facts, Officer, Owner, Standing, Status, Subject, role},
    parse::json::{self, Node, lacks},
    parse::text::{squeezed, words},
    spec::{
        Answer, Auth, Base, Class, Confidence, Countries, Credential, Flow, Need, Operation, Probe, Request, Session,
        Source, SourceError, on, sift,
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
    confidence: Confidence::B,
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
    let items = if root.get("results").exists() {
        root.require_list("results")?
    } else if root.get("items").exists() || root.get("censored").flag() == Some(true) {
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
    let hits = sift("hits", items, company)?;
    let answer = answer(Facts { companies: hits.read, ..Facts::default() }, hidden).noting(hits.note);
    // The position of a next page is the only sign that there is one; a total is usually not given.
    let root = Node::root(&document);
    let more = ["nextOffset", "nextPos"].iter().any(|name| root.get(name).exists());
    Ok(if more { answer.partly(format!("{} were read, and there are more", hits.listed)) } else { answer })
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
        relations(item.get("relatedPersons")).for_each(|related| relation(related, "person", &mut facts));
        relations(item.get("relatedCompanies")).for_each(|related| relation(related, "company", &mut facts));
    }
    facts.accounts.sort_by(|a, b| b.to.cmp(&a.to));
    Ok(answer(facts, hidden))
}

/// A list, bare or under `items`.
fn relations(list: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let inner = list.get("items");
    if inner.exists() { inner } else { list }.items().filter(|item| item.is_object())
}

/// Puts a related person or company where the group and direction of each of its roles say. A role that ended is left out.
fn relation(related: Node<'_>, kind: &str, facts: &mut Facts) {
    let about = related.get(kind);
    if about.get("blocked").flag() == Some(true) {
        return; // which must not be shown
    }
    let Some(holder) = related_name(about) else { return };
    let company = || Company {
        name: Some(holder.clone()),
        id: about.at("register.id").text(),
        country: about.at("address.country").text(),
        ..Company::default()
    };
    for held in related.get("roles").items().filter(|held| held.get("demotion").flag() != Some(true)) {
        let (code, wording, entered) = (held.get("type").text(), held.get("name").text(), held.get("date").date());
        let place = [held.get("group").text(), held.get("dir").text()].map(Option::unwrap_or_default);
        match (place[0].as_str(), place[1].as_str()) {
            ("Interest", "Target") => facts.owners.push(Owner {
                name: Some(holder.clone()),
                share: held.get("sharesPercent").number().map(|n| format!("{n} %")),
                role: wording,
                role_code: code,
                entered,
                ..Owner::default()
            }),
            ("Interest", "Source") => facts.children.push(company()),
            ("Succession", "Source") => facts.predecessors.push(company()),
            (group, _) => {
                let stated = code.as_deref().unwrap_or("no code");
                let other = || role(stated, wording.as_deref(), &[]);
                let title = if group == "Personal" { wording.clone().unwrap_or_else(other) } else { other() };
                let name = Some(holder.clone());
                facts.officers.push(Officer {
                    name,
                    role: Some(title),
                    role_code: code,
                    entered,
                    ..Officer::default()
                });
            }
        }
    }
}

/// The name of a company, or the first and last name of a person.
fn related_name(about: Node<'_>) -> Option<String> {
    name(about).or_else(|| about.get("name").joined(&["firstName", "lastName"], " "))
}

/// Whether the latest event of that kind says that a company is insolvent. Its status says `liquidation` then, or nothing.
fn insolvent(item: Node<'_>) -> bool {
    let known = |kind: &str| kind.starts_with("Insolvency") || kind == "Continuation";
    let events = item.at("events.items").items();
    let kinds = events.filter_map(|event| Some((event.get("date").date(), event.get("type").text()?)));
    let latest = kinds.filter(|(_, kind)| known(kind)).max_by(|a, b| a.0.cmp(&b.0));
    latest.is_some_and(|(_, kind)| kind != "Continuation")
}

/// An entry of the extras, such as the VAT number.
fn extra(item: Node<'_>, id: &str) -> Option<String> {
    let of = |entry: &Node<'_>| entry.get("id").text().as_deref() == Some(id);
    item.get("extras").items().flat_map(|part| part.get("items").items()).find(of)?.get("value").text()
}

/// A name, bare or inside an object of that name.
fn name(holder: Node<'_>) -> Option<String> {
    let name = holder.get("name");
    name.text().or_else(|| name.get("name").text())
}

/// The vendor's words: three by its specification, and those of older answers.
const STANDINGS: &[(&str, Standing)] = &[
    ("active", Standing::Active),
    ("liquidation", Standing::Liquidation),
    ("insolvency", Standing::Insolvent),
    ("insolvent", Standing::Insolvent),
    ("terminated", Standing::Ceased),
    ("ceased", Standing::Ceased),
    ("deleted", Standing::Ceased),
    ("dissolved", Standing::Ceased),
];

fn company(item: Node<'_>) -> Result<Company, SourceError> {
    let inner = item.get("company");
    let item = if inner.is_object() { inner } else { item };
    let text = |path: &str| item.at(path).text();
    let country = text("register.country").or_else(|| text("address.country"));
    let status = text("status");
    let stated = status.as_deref().map_or(Standing::Unknown, |word| Standing::of(word, STANDINGS));
    let standing = match (item.get("terminated").flag(), insolvent(item)) {
        (Some(true), _) => Standing::Ceased,
        (_, true) => stated.and(Standing::Insolvent),
        (_, false) => stated,
    };
    let address = item.get("address");
    let court = text("register.court").or_else(|| text("register.city"));
    Ok(Company {
        name: Some(name(item).ok_or_else(|| lacks("name"))?),
        id: text("register.id").map(|id| number(&id, court.clone(), country.as_deref())),
        lei: text("lei"),
        vat: text("vatId").or_else(|| extra(item, "vatId")),
        website: extra(item, "url"),
        purpose: text("subject"),
        signing: text("proxyPolicy"),
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
        registrations: court.map(|court| format!("register court: {court}")).into_iter().collect(),
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

    #[test]
    fn the_official_shape_is_read_by_group_and_direction() {
        let body = br#"{"name":{"name":"X GmbH","legalForm":"GmbH"},"status":"liquidation",
            "register":{"id":"HRB 103038","city":"Hamburg","country":"DE"},"subject":"Handel","proxyPolicy":"Einzelvertretung",
            "events":{"items":[{"type":"Liquidation"},{"type":"Insolvency"}]},
            "extras":[{"items":[{"id":"vatId","value":"DE136695976"}]}],
            "relatedPersons":{"items":[{"person":{"name":{"firstName":"Max","lastName":"Muster"}},"roles":[
                {"type":"ManagingDirector","name":"Gesch\u00e4ftsf\u00fchrer","group":"Personal","dir":"Target","date":"2020-01-02"},
                {"type":"Invented","group":"Other"}]}]},
            "relatedCompanies":{"items":[
                {"company":{"name":{"name":"Holding AG"}},"roles":[
                    {"type":"Shareholder","group":"Interest","dir":"Target","sharesPercent":60}]},
                {"company":{"name":{"name":"Ended AG"}},"roles":[
                    {"type":"Shareholder","group":"Interest","dir":"Target","demotion":true}]},
                {"company":{"name":{"name":"Daughter GmbH"}},"roles":[{"type":"Shareholder","group":"Interest","dir":"Source"}]},
                {"company":{"name":{"name":"Old KG"}},"roles":[{"type":"Transformation","group":"Succession","dir":"Source"}]}]}}"#;
        let facts = companies(body).expect("a company").facts;
        let company = &facts.companies[0];
        assert_eq!((company.standing, company.vat.as_deref()), (Standing::Insolvent, Some("DE136695976")));
        assert_eq!(
            (company.purpose.as_deref(), company.signing.as_deref()),
            (Some("Handel"), Some("Einzelvertretung"))
        );
        let roles: Vec<_> = facts.officers.iter().filter_map(|officer| officer.role.as_deref()).collect();
        assert_eq!(roles, ["Geschäftsführer", "other role (Invented)"]);
        assert_eq!(
            (facts.officers[0].since.as_deref(), facts.officers[0].entered.as_deref()),
            (None, Some("2020-01-02"))
        );
        let owners: Vec<_> = facts.owners.iter().map(|o| (o.name.as_deref(), o.share.as_deref())).collect();
        assert_eq!(owners, [(Some("Holding AG"), Some("60 %"))]);
        assert_eq!(facts.children[0].name.as_deref(), Some("Daughter GmbH"));
        assert_eq!(facts.predecessors[0].name.as_deref(), Some("Old KG"));
    }

    #[test]
    fn a_search_with_a_next_page_is_partial_and_a_new_word_unknown() {
        let list = |next: &str| {
            let hit = r#"{"company":{"name":{"name":"X"},"status":"dormant"}}"#;
            suggestions(format!(r#"{{"results":[{hit},{{"company":{{}}}}]{next}}}"#).as_bytes()).expect("a hit")
        };
        let answer = list(r#","nextOffset":15"#);
        assert_eq!((answer.status, answer.facts.notes.len()), (Status::Partial, 1));
        assert_eq!((list("").status, list("").facts.companies[0].standing), (Status::Complete, Standing::Unknown));
    }
}

//! The French national register of companies, kept by INPI, behind a log-in whose tokens wear out.
//!
//! A company may have asked that its record is not passed on. Such a record arrives whole, with a letter in it that says so; it
//! goes no further than this file. Beneficial owners are for those with a legitimate interest and are left out as well.

use circuit_registry::CallError;
use futures::future::BoxFuture;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::french;
use crate::{
    model::{Accounts, Address, Company, Facts, Notice, Officer, Standing},
    parse::json::{self as reader, Node},
    spec::{
        Answer, Base, Class, Countries, Credential, Flow, LogIn, Need, Operation, Probe, Request, Session, Settings,
        Source, SourceError, on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "fr_inpi",
    title: "RNE, French national register of companies",
    breaker: "fr_inpi",
    base: Base { env: "FR_INPI_BASE_URL", default: "https://registre-national-entreprises.inpi.fr/api" },
    credentials: &[
        Credential { any_of: &["INPI_USERNAME"], obtain: ACCOUNT },
        Credential { any_of: &["INPI_PASSWORD"], obtain: ACCOUNT },
    ],
    rules: &[
        on(401).means(Class::Ok, "says that the token has worn out, which the log-in knows what to do about"),
        on(403)
            .with("connection_type_not_allowed")
            .means(Class::Denied, "has an account of ours that is not of the type for programs: change it at INPI"),
        on(404).json().means(Class::NotFound, "knows no such company"),
    ],
    // Without a token: a refusal in JSON is a sign of life, and costs nothing of the day's requests.
    probe: Some(Probe::json(|| Request::get("/companies/552032534"))),
    limits: "10 000 requests and 10 GB a day; accounts that exceed them are banned",
    terms: "open licence 2.0; records marked as not to be disclosed must not be passed on",
    operations: &[
        Operation {
            name: "fr_inpi.company",
            answers: "the register entry and who acts for the company",
            needs: &[Need::Id],
            flow: Flow::Steps(company),
            ..FRENCH
        },
        Operation {
            name: "fr_inpi.documents",
            answers: "deeds and annual accounts on file",
            needs: &[Need::Id],
            flow: Flow::Steps(documents),
            ..FRENCH
        },
        Operation {
            name: "fr_inpi.search",
            answers: "companies of that name",
            needs: &[Need::Name],
            flow: Flow::Steps(search),
            ..FRENCH
        },
    ],
    ..Source::BLANK
};

const ACCOUNT: &str = "create an account for the API at https://data.inpi.fr";

const FRENCH: Operation = Operation { countries: Countries::Only(&["FR"]), ..Operation::BLANK };

static LOG_IN: LogIn = LogIn { request: log_in, token };

fn log_in(settings: &Settings) -> Request {
    let value = |env| settings.credential(env).map(|secret| secret.expose_secret().to_owned());
    let document = json!({"username": value("INPI_USERNAME"), "password": value("INPI_PASSWORD")});
    Request::post("/sso/login", &document)
}

fn token(body: &[u8]) -> Result<SecretString, SourceError> {
    let document = reader::parse(body)?;
    Node::root(&document).require_text("token").map(SecretString::from)
}

fn company<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let siren = session.subject().id.as_deref().unwrap_or_default();
        session.ask_as(&LOG_IN, Request::get("/companies").segment(siren), |reply| record(&reply.body)).await
    })
}

fn documents<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let siren = session.subject().id.as_deref().unwrap_or_default();
        // The list does not say whether it may be passed on; the record does.
        session.ask_as(&LOG_IN, Request::get("/companies").segment(siren), |reply| record(&reply.body)).await?;
        let request = Request::get("/companies").segment(siren).segment("attachments");
        session.ask_as(&LOG_IN, request, |reply| attachments(&reply.body)).await
    })
}

fn search<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let name = session.subject().name.as_deref().unwrap_or_default();
        let request = Request::get("/companies").query("companyName", name).query("pageSize", "20");
        session.ask_as(&LOG_IN, request, |reply| hits(&reply.body)).await
    })
}

fn record(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    let record = Node::root(&document);
    let mut answer = french::answer(vec![entry(record)?])?.dated(record.get("updatedAt").time());
    let roles = record.at("formality.content.personneMorale.composition.pouvoirs");
    answer.facts.officers = roles.items().filter_map(officer).collect();
    Ok(answer)
}

fn hits(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    if !document.is_array() {
        return Err(reader::lacks("list of companies"));
    }
    french::answer(Node::root(&document).items().map(entry).collect::<Result<_, _>>()?)
}

/// Reads a record that may be passed on; only one that says so may.
fn entry(record: Node<'_>) -> Result<Option<Company>, SourceError> {
    if record.require_text("diffusionINSEE")? != "O" {
        return Ok(None);
    }
    let content = record.at("formality.content");
    let trader = content.at("personnePhysique.identite.entrepreneur.descriptionPersonne");
    let body = content.get("personneMorale");
    let named = record.at("identite.entreprise");
    let address = body.at("adresseEntreprise.adresse");
    let ended = content.at("natureCessation.dateCessation").text();
    let code = named.get("formeJuridique").text();
    let name = named.get("denomination").text().or_else(|| french::person(trader.get("prenoms"), trader.get("nom")));
    let name = name.ok_or_else(|| reader::lacks("denomination"))?;
    Ok(Some(Company {
        standing: if ended.is_some() { Standing::Ceased } else { Standing::Unknown },
        legal_form: code.map(|code| french::legal_form(&code)),
        address: address.exists().then(|| Address {
            street: address.joined(&["numVoie", "typeVoie", "voie"], " "),
            postal_code: address.get("codePostal").text(),
            city: address.get("commune").text(),
            country: Some("FR".to_owned()),
        }),
        founded: content.at("natureCreation.dateCreation").text(),
        dissolved: ended,
        activities: body.at("identite.entreprise.codeApe").text().into_iter().collect(),
        ..french::company(record.require_text("siren")?, name)
    }))
}

/// Reads a role. Roles that ended and beneficial owners are left out.
fn officer(role: Node<'_>) -> Option<Officer> {
    if role.get("actif").flag() == Some(false) || role.get("beneficiaireEffectif").flag() == Some(true) {
        return None;
    }
    let (person, company) = (role.at("individu.descriptionPersonne"), role.get("entreprise"));
    let name = company.get("denomination").text().or_else(|| french::person(person.get("prenoms"), person.get("nom")));
    let code = person.get("roleEntreprise").text().or_else(|| company.get("roleEntreprise").text());
    let officer = french::officer(name, company.get("siren").text(), code.map(|code| role_name(&code)))?;
    let birth_year = person.get("dateDeNaissance").text().and_then(|date| date.get(..4)?.parse().ok());
    Some(Officer { birth_year, since: person.get("dateEffetRoleDeclarant").text(), ..officer })
}

/// A role by its code in the register's list, where it is a common one.
fn role_name(code: &str) -> String {
    let name = match code {
        "30" => "gérant",
        "51" => "président du conseil d'administration",
        "53" => "directeur général",
        "65" => "administrateur",
        "71" => "commissaire aux comptes titulaire",
        "72" => "commissaire aux comptes suppléant",
        "73" => "président de SAS",
        _ => return format!("role {code}"),
    };
    name.to_owned()
}

fn attachments(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    let answer = Node::root(&document);
    let mut notices = answer.require_list("actes")?.into_iter().map(deed).collect::<Result<Vec<_>, _>>()?;
    let mut accounts = answer.require_list("bilans")?.into_iter().map(filing).collect::<Result<Vec<_>, _>>()?;
    if notices.is_empty() && accounts.is_empty() {
        return Err(SourceError::not_found("has no documents of this company on file"));
    }
    notices.sort_by(|a, b| b.date.cmp(&a.date));
    accounts.sort_by(|a, b| b.to.cmp(&a.to));
    Ok(Facts { notices, accounts, ..Facts::default() }.into())
}

fn deed(deed: Node<'_>) -> Result<Notice, SourceError> {
    let kinds: Vec<_> = deed.get("typeRdd").items().filter_map(|kind| kind.get("typeActe").text()).collect();
    Ok(Notice {
        date: Some(deed.require_text("dateDepot")?),
        kind: Some(kinds.join(", ")).filter(|kinds| !kinds.is_empty()),
        publisher: Some("RNE".to_owned()),
        ..Notice::default()
    })
}

fn filing(filing: Node<'_>) -> Result<Accounts, SourceError> {
    let filed = filing.get("dateDepot").text().map(|date| format!("filed {date}"));
    Ok(Accounts { to: Some(filing.require_text("dateCloture")?), filing: filed, ..Accounts::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const RECORD: &[u8] = include_bytes!("../../../simulator/fixtures/fr_inpi/552032534.json");
    const HIDDEN: &[u8] = include_bytes!("../../../simulator/fixtures/fr_inpi/999000300.json");
    const ATTACHMENTS: &[u8] = include_bytes!("../../../simulator/fixtures/fr_inpi/attachments/552032534.json");

    #[test]
    fn a_record_is_read_with_those_who_act() {
        let answer = record(RECORD).expect("a record");
        let company = &answer.facts.companies[0];
        assert_eq!((company.name.as_deref(), company.id.as_deref()), (Some("DANONE"), Some("552032534")));
        assert!(answer.as_of.is_some() && company.address.is_some());
        let officers = &answer.facts.officers;
        assert_eq!(
            (officers[0].name.as_deref(), officers[0].role.as_deref()),
            (Some("MARIE EXEMPLE"), Some("directeur général"))
        );
        assert_survives_corruption("fr_inpi.company", record, RECORD);
    }

    #[test]
    fn a_record_that_must_not_be_passed_on_goes_no_further() {
        assert_eq!(record(HIDDEN).expect_err("hidden").class, Class::Business);
        let list = |records: &[&[u8]]| [b"[", records.join(&b","[..]).as_slice(), b"]"].concat();
        let answer = hits(&list(&[RECORD, HIDDEN])).expect("one hit");
        assert_eq!((answer.facts.companies.len(), answer.facts.notes.len()), (1, 1));
        assert!(!format!("{answer:?}").contains("999000300"));
        assert_eq!(hits(&list(&[HIDDEN])).expect_err("hidden").class, Class::Business);
        assert_eq!(hits(b"[]").expect_err("none").class, Class::NotFound);
        let trader = br#"[{"siren":"1","diffusionINSEE":"O","formality":{"content":{"personnePhysique":{"identite":{"entrepreneur":
            {"descriptionPersonne":{"nom":"EXEMPLE","prenoms":["ANNE"]}}}}}}}]"#;
        assert_eq!(hits(trader).expect("a hit").facts.companies[0].name.as_deref(), Some("ANNE EXEMPLE"));
        assert_eq!(record(br#"{"siren":"1"}"#).expect_err("does not say").class, Class::BadShape);
        assert_survives_corruption("fr_inpi.search", hits, &list(&[RECORD]));
    }

    #[test]
    fn former_holders_and_beneficial_owners_are_left_out() {
        let body = br#"{"siren":"1","diffusionINSEE":"O","identite":{"entreprise":{"denomination":"X"}},"formality":{"content":
            {"natureCessation":{"dateCessation":"2025-01-31"},"personneMorale":{"composition":{"pouvoirs":[
            {"actif":false,"individu":{"descriptionPersonne":{"nom":"ANCIEN"}}},
            {"beneficiaireEffectif":true,"individu":{"descriptionPersonne":{"nom":"CACHE"}}},
            {"entreprise":{"denomination":"AUDIT SA","siren":"2","roleEntreprise":"71"}},
            {"individu":{"descriptionPersonne":{"prenoms":"PAUL","nom":"MODELE","dateDeNaissance":"1960-02","roleEntreprise":7}}}
            ]}}}}}"#;
        let facts = record(body).expect("a record").facts;
        let held: Vec<_> = facts.officers.iter().map(|o| (o.name.as_deref(), o.role.as_deref())).collect();
        let auditor = (Some("AUDIT SA"), Some("commissaire aux comptes titulaire"));
        assert_eq!(held, [auditor, (Some("PAUL MODELE"), Some("role 7"))]);
        assert_eq!((facts.officers[1].birth_year, facts.companies[0].standing), (Some(1960), Standing::Ceased));
    }

    #[test]
    fn documents_are_read_newest_first() {
        let facts = attachments(ATTACHMENTS).expect("documents").facts;
        assert!(facts.notices.is_sorted_by(|a, b| a.date >= b.date) && facts.notices[0].kind.is_some());
        assert!(facts.accounts.is_sorted_by(|a, b| a.to >= b.to) && facts.accounts.len() > 1);
        assert_eq!(attachments(br#"{"actes":[],"bilans":[]}"#).expect_err("none").class, Class::NotFound);
        assert_survives_corruption("fr_inpi.documents", attachments, ATTACHMENTS);
    }

    #[test]
    fn a_log_in_gives_a_token_or_an_error() {
        assert_eq!(token(br#"{"token":"t","user":{}}"#).expect("a token").expose_secret(), "t");
        assert_eq!(token(br#"{"user":{}}"#).expect_err("none").class, Class::BadShape);
    }
}

//! Sirene: the French register of units and establishments, kept by the statistical office.
//!
//! A search without a hit is a 404, and a 403 is mostly no refusal of ours: the unit has asked not to be shown. A key that is
//! not accepted is a 401.

use circuit_registry::CallError;
use futures::future::BoxFuture;

use super::{french, recherche_entreprises};
use crate::{
    model::{Address, Company, Standing, Subject},
    parse::json::{self, Node},
    spec::{
        Answer, Auth, Base, Class, Countries, Credential, Fallback, Flow, Need, Operation, Probe, Request, Session,
        Source, SourceError, on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "fr_insee",
    title: "Sirene, French register of companies",
    breaker: "fr_insee",
    base: Base { env: "FR_INSEE_BASE_URL", default: "https://api.insee.fr/api-sirene/3.11" },
    credentials: &[Credential {
        any_of: &["INSEE_API_KEY"],
        obtain: "subscribe to Sirene at https://portail-api.insee.fr",
    }],
    auth: Auth::Header { name: "x-insee-api-key-integration", prefix: "", env: "INSEE_API_KEY" },
    rules: &[
        on(404).with("Aucun").means(Class::NotFound, "knows no such company"),
        on(403).with("non diffus").means(Class::Business, "may not show this unit: it has asked not to be disclosed"),
        on(400).with("statut").means(Class::Business, "does not accept the query"),
    ],
    probe: Some(Probe::json(|| Request::get("/siren/552032534"))),
    limits: "30 requests a minute for each key, over all environments that use it",
    terms: "open licence 2.0",
    operations: &[
        Operation {
            name: "fr_insee.unit",
            answers: "the register entry",
            needs: &[Need::Id],
            flow: Flow::Single { request: |s| Some(Request::get("/siren").segment(s.id.as_deref()?)), parse: unit },
            fallbacks: OPEN_BY_NUMBER,
            ..FRENCH
        },
        Operation {
            name: "fr_insee.head_office",
            answers: "the establishment that is the head office, with its address",
            needs: &[Need::Id],
            flow: Flow::Steps(head_office),
            fallbacks: OPEN_BY_NUMBER,
            ..FRENCH
        },
        Operation {
            name: "fr_insee.search",
            answers: "companies of that name",
            needs: &[Need::Name],
            flow: Flow::Single { request: by_name, parse: hits },
            fallbacks: &[Fallback {
                flow: Flow::Single { request: recherche_entreprises::search, parse: recherche_entreprises::hits },
                ..OPEN
            }],
            ..FRENCH
        },
    ],
    ..Source::BLANK
};

const FRENCH: Operation = Operation { countries: Countries::Only(&["FR"]), ..Operation::BLANK };

const OPEN: Fallback = Fallback {
    via: "recherche_entreprises",
    proves: "the open search of French companies answered instead",
    source: &recherche_entreprises::SOURCE,
    flow: Flow::Steps(recherche_entreprises::unit),
};

static OPEN_BY_NUMBER: &[Fallback] = &[OPEN];

/// The query language knows quotes and backslashes; a name needs neither.
fn by_name(subject: &Subject) -> Option<Request> {
    let plain = subject.name.as_deref()?.replace(['"', '\\'], " ");
    let query = format!("denominationUniteLegale:\"{}\"", plain.trim());
    Some(Request::get("/siren").query("q", query).query("nombre", "20"))
}

fn head_office<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let siren = session.subject().id.as_deref().unwrap_or_default();
        let number = session.ask(Request::get("/siren").segment(siren), |reply| seat(&reply.body, siren)).await?;
        session.ask(Request::get("/siret").segment(number), |reply| establishment(&reply.body)).await
    })
}

/// The period that has not ended; periods are listed newest first.
fn current<'a>(periods: Node<'a>) -> Option<Node<'a>> {
    periods.items().find(|period| !period.get("dateFin").exists())
}

fn seat(body: &[u8], siren: &str) -> Result<String, SourceError> {
    let document = json::parse(body)?;
    let unit = Node::root(&document).require("uniteLegale")?;
    let period = current(unit.get("periodesUniteLegale")).ok_or_else(|| json::lacks("periodesUniteLegale"))?;
    Ok(format!("{siren}{}", period.require_text("nicSiegeUniteLegale")?))
}

fn unit(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let unit = Node::root(&document).require("uniteLegale")?;
    Ok(french::answer(vec![company(unit)?])?
        .dated(unit.get("dateDernierTraitementUniteLegale").local_time("Europe/Paris")))
}

fn hits(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let units = Node::root(&document).require_list("unitesLegales")?;
    french::answer(units.into_iter().map(company).collect::<Result<_, _>>()?)
}

/// Whether a record without a name has none because its subject has asked for that.
fn hidden(record: Node<'_>, field: &str) -> bool {
    matches!(record.get(field).text().as_deref(), Some("P" | "N"))
}

/// A unit; `None` if it is one that must not be shown.
fn company(unit: Node<'_>) -> Result<Option<Company>, SourceError> {
    let siren = unit.require_text("siren")?;
    let periods = unit.get("periodesUniteLegale");
    let period = current(periods).ok_or_else(|| json::lacks("periodesUniteLegale"))?;
    let text = |name: &str| period.get(name).text();
    let label = |period: Node<'_>| {
        let names = ["denominationUniteLegale", "denominationUsuelle1UniteLegale"];
        names.iter().find_map(|name| french::shown(period.get(name)))
    };
    let owner = || french::person(unit.get("prenomUsuelUniteLegale"), period.get("nomUniteLegale"));
    let Some(name) = label(period).or_else(owner) else {
        let hidden = hidden(unit, "statutDiffusionUniteLegale");
        return if hidden { Ok(None) } else { Err(json::lacks("denominationUniteLegale")) };
    };
    let mut former: Vec<_> = periods.items().filter_map(label).filter(|earlier| *earlier != name).collect();
    former.dedup();
    let state = text("etatAdministratifUniteLegale");
    let standing = match state.as_deref() {
        Some("A") => Standing::Active,
        Some("C") => Standing::Ceased,
        _ => Standing::Unknown,
    };
    Ok(Some(Company {
        standing,
        status: state,
        legal_form: text("categorieJuridiqueUniteLegale").map(|code| french::legal_form(&code)),
        founded: unit.get("dateCreationUniteLegale").text(),
        dissolved: text("dateDebut").filter(|_| standing == Standing::Ceased),
        former_names: former,
        activities: text("activitePrincipaleUniteLegale").into_iter().collect(),
        ..french::company(siren, name)
    }))
}

fn establishment(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let place = Node::root(&document).require("etablissement")?;
    let unit = place.require("uniteLegale")?;
    let owner = || french::person(unit.get("prenomUsuelUniteLegale"), unit.get("nomUniteLegale"));
    let Some(name) = french::shown(unit.get("denominationUniteLegale")).or_else(owner) else {
        let hidden = hidden(place, "statutDiffusionEtablissement");
        return if hidden { french::answer(vec![None]) } else { Err(json::lacks("denominationUniteLegale")) };
    };
    let address = Some(place.get("adresseEtablissement"))
        .filter(|address| french::shown(address.get("libelleVoieEtablissement")).is_some());
    let state =
        current(place.get("periodesEtablissement")).and_then(|p| p.get("etatAdministratifEtablissement").text());
    let open = match state.as_deref() {
        Some("A") => "open",
        Some("F") => "closed",
        _ => "state not given",
    };
    let company = Company {
        address: address.map(|address| Address {
            street: address
                .joined(&["numeroVoieEtablissement", "typeVoieEtablissement", "libelleVoieEtablissement"], " "),
            postal_code: address.get("codePostalEtablissement").text(),
            city: address.get("libelleCommuneEtablissement").text(),
            country: Some("FR".to_owned()),
        }),
        registrations: vec![format!("head office {}: {open}", place.require_text("siret")?)],
        ..french::company(place.require_text("siren")?, name)
    };
    french::answer(vec![Some(company)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    fn wrapped(name: &str, record: &str) -> Vec<u8> {
        format!(r#"{{"header":{{"statut":200,"message":"OK"}},"{name}":{record}}}"#).into_bytes()
    }

    #[test]
    fn a_unit_is_read_whole() {
        let body = wrapped("uniteLegale", include_str!("../../../simulator/fixtures/fr_insee/units/552032534.json"));
        let answer = unit(&body).expect("a unit");
        let company = &answer.facts.companies[0];
        assert_eq!((company.name.as_deref(), company.id.as_deref()), (Some("DANONE"), Some("552032534")));
        assert_eq!((company.standing, company.founded.as_deref()), (Standing::Active, Some("1955-01-01")));
        assert!(answer.as_of.is_some() && company.legal_form.as_deref() == Some("SA (5599)"));
        assert_eq!(seat(&body, "552032534").as_deref(), Ok("55203253400646"));
        assert_survives_corruption("fr_insee.unit", unit, &body);
    }

    #[test]
    fn what_ended_is_history() {
        let record = r#"{"siren":"1","periodesUniteLegale":[
            {"dateFin":null,"dateDebut":"2020-05-01","etatAdministratifUniteLegale":"C","denominationUniteLegale":"NEW"},
            {"dateFin":"2020-04-30","denominationUniteLegale":"OLD","etatAdministratifUniteLegale":"A"}]}"#;
        let company = unit(&wrapped("uniteLegale", record)).expect("a unit").facts.companies.remove(0);
        assert_eq!((company.name.as_deref(), company.standing), (Some("NEW"), Standing::Ceased));
        assert_eq!((company.dissolved.as_deref(), company.former_names), (Some("2020-05-01"), vec!["OLD".to_owned()]));
        let sole =
            r#"{"siren":"1","prenomUsuelUniteLegale":"ANNE","periodesUniteLegale":[{"nomUniteLegale":"EXEMPLE"}]}"#;
        let company = unit(&wrapped("uniteLegale", sole)).expect("a unit").facts.companies.remove(0);
        assert_eq!(company.name.as_deref(), Some("ANNE EXEMPLE"));
    }

    #[test]
    fn hits_and_establishments_are_read() {
        let list = format!("[{}]", include_str!("../../../simulator/fixtures/fr_insee/units/055804124.json"));
        assert_eq!(hits(&wrapped("unitesLegales", &list)).expect("hits").facts.companies.len(), 1);
        assert_survives_corruption("fr_insee.search", hits, &wrapped("unitesLegales", &list));
        let place = include_str!("../../../simulator/fixtures/fr_insee/establishments/55203253400646.json");
        let company =
            establishment(&wrapped("etablissement", place)).expect("an establishment").facts.companies.remove(0);
        let address = company.address.and_then(Address::line);
        assert_eq!(address.as_deref(), Some("17 BD HAUSSMANN, 75009 PARIS 9"));
        assert_eq!(company.registrations, ["head office 55203253400646: open"]);
        assert_survives_corruption("fr_insee.head_office", establishment, &wrapped("etablissement", place));
    }

    #[test]
    fn who_asked_not_to_be_shown_is_not() {
        let unit_of = |status: &str| {
            format!(
                r#"{{"siren":"1","statutDiffusionUniteLegale":"{status}","prenomUsuelUniteLegale":"[ND]",
                "periodesUniteLegale":[{{"denominationUniteLegale":null,"nomUniteLegale":"[ND]"}}]}}"#
            )
        };
        let class = |status: &str| unit(&wrapped("uniteLegale", &unit_of(status))).expect_err("no name").class;
        assert_eq!((class("P"), class("O")), (Class::Business, Class::BadShape));
        let danone = include_str!("../../../simulator/fixtures/fr_insee/units/552032534.json");
        let list = format!("[{danone},{}]", unit_of("P"));
        let facts = hits(&wrapped("unitesLegales", &list)).expect("one hit").facts;
        assert_eq!((facts.companies.len(), facts.notes.len()), (1, 1));
        let place =
            r#"{"siren":"1","siret":"2","statutDiffusionEtablissement":"P","uniteLegale":{"nomUniteLegale":"[ND]"}}"#;
        let hidden = establishment(&wrapped("etablissement", place)).expect_err("no name");
        assert_eq!(hidden.class, Class::Business);
    }

    #[test]
    fn a_name_cannot_leave_its_quotes() {
        let french = Subject { name: Some("L'\"OR\" \\".into()), ..Subject::new("FR".parse().expect("a country")) };
        let request = by_name(&french).expect("a request");
        assert!(format!("{request:?}").contains(r#"denominationUniteLegale:\"L' OR\""#), "{request:?}");
    }
}

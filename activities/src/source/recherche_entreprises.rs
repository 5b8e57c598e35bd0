//! The open search of French companies, the fallback for Sirene: no key, and the same register underneath.

use circuit_registry::CallError;
use futures::future::BoxFuture;

use super::french;
use crate::{
    model::{Accounts, Address, Company, Officer, Standing, Subject},
    parse::json::{self, Node},
    spec::{Answer, Base, Class, Confidence, Probe, Request, Session, Source, SourceError, on, sift},
};

/// The row.
pub static SOURCE: Source = Source {
    name: "recherche_entreprises",
    title: "Recherche d'entreprises, open search of French companies",
    breaker: "recherche_entreprises",
    base: Base { env: "RECHERCHE_ENTREPRISES_BASE_URL", default: "https://recherche-entreprises.api.gouv.fr" },
    rules: &[on(400).with("erreur").means(Class::Business, "does not accept the query")],
    probe: Some(Probe::json(|| asking("552032534"))),
    limits: "seven requests a second; a client that goes on during an outage is blocked",
    terms: "open licence 2.0",
    confidence: Confidence::A,
    ..Source::BLANK
};

/// Pages of a search that are read for a number.
const PAGES: u64 = 5;

fn asking(text: &str) -> Request {
    Request::get("/search").query("q", text).query("per_page", "20")
}

/// Asks for companies of the subject's name.
pub(super) fn search(subject: &Subject) -> Option<Request> {
    subject.name.as_deref().map(asking)
}

/// Finds the subject by its number. The search is one of words, so only the number itself is believed.
pub(super) fn unit<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let siren = session.subject().id.as_deref().unwrap_or_default();
        for page in 1..=PAGES {
            let request = asking(siren).query("page", page.to_string());
            if let Some(answer) = session.ask(request, |reply| with_number(&reply.body, siren, page)).await? {
                return Ok(answer);
            }
        }
        let reason = "lists more records for this number than were read, and none of those read is its own";
        Err(CallError::Upstream(SourceError::business(reason)))
    })
}

/// Reads hits.
pub(super) fn hits(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let root = Node::root(&document);
    let list = root.require_list("results")?;
    let read = list.len();
    Ok(found(list)?.of_total(read, root.get("total_results").count()))
}

/// The company of that number on a page of hits; `None` if it may be on a later page.
fn with_number(body: &[u8], siren: &str, page: u64) -> Result<Option<Answer>, SourceError> {
    let document = json::parse(body)?;
    let root = Node::root(&document);
    let list = root.require_list("results")?;
    let later = !list.is_empty() && root.get("total_pages").count().is_some_and(|pages| pages > page);
    let numbers = list.iter().map(|entry| entry.require_text("siren")).collect::<Result<Vec<_>, _>>()?;
    let own = list.into_iter().zip(numbers).filter(|(_, number)| number == siren).map(|(entry, _)| entry);
    match found(own.collect()) {
        Err(error) if error.class == Class::NotFound && later => Ok(None),
        answer => answer.map(Some),
    }
}

/// A company, who acts for it and its figures; the name is absent where it must not be shown.
type Entry = (Company, Vec<Officer>, Vec<Accounts>);

fn found(list: Vec<Node<'_>>) -> Result<Answer, SourceError> {
    let mut sifted = sift("hits", list, entry)?;
    let (officers, accounts) = match &mut sifted.read[..] {
        [(_, officers, accounts)] => (std::mem::take(officers), std::mem::take(accounts)),
        _ => Default::default(), // of several companies the facts could not say whose they are
    };
    let shown = sifted.read.into_iter().map(|(company, ..)| Some(company).filter(|company| company.name.is_some()));
    let mut answer = french::answer(shown.collect())?.noting(sifted.note);
    (answer.facts.officers, answer.facts.accounts) = (officers, accounts);
    Ok(answer)
}

/// The key figures of each year.
fn accounts(finances: Node<'_>) -> Vec<Accounts> {
    let year = |(year, figures): (&str, Node<'_>)| {
        let (revenue, result) = (figures.get("ca").number(), figures.get("resultat_net").number());
        let year = year.parse::<u16>().ok().filter(|_| revenue.is_some() || result.is_some())?;
        let filing = Some(format!("year {year}"));
        Some(Accounts { currency: Some("EUR".to_owned()), revenue, result, filing, ..Accounts::default() })
    };
    finances.members().filter_map(year).collect()
}

/// Address of the seat, which may be abroad.
fn address(seat: Node<'_>) -> Address {
    let abroad = seat.get("libelle_pays_etranger").text();
    let town = match &abroad {
        Some(country) => Some(french::town_abroad(seat.get("libelle_commune_etranger").text(), country)),
        None => french::shown(seat.get("libelle_commune")),
    };
    Address {
        street: french::shown(seat.get("adresse")),
        postal_code: french::shown(seat.get("code_postal")),
        city: town,
        country: french::country(abroad.as_deref()),
    }
}

fn entry(entry: Node<'_>) -> Result<Entry, SourceError> {
    let text = |path: &str| entry.at(path).text();
    let seat = entry.get("siege");
    let siren = entry.require_text("siren")?;
    let stated = entry.require_any(&["nom_raison_sociale", "nom_complet"]);
    let stated = stated.map_err(|_| SourceError::business("gives it no name"))?;
    let address = seat.exists().then(|| address(seat));
    let name = ["nom_raison_sociale", "nom_complet"].iter().find_map(|name| french::shown(entry.get(name)));
    let company = Company {
        standing: text("etat_administratif").map_or(Standing::Unknown, |word| Standing::of(&word, french::STANDINGS)),
        status: text("etat_administratif"),
        legal_form: text("nature_juridique").map(|code| french::legal_form(&code)),
        country: address.as_ref().map_or_else(|| french::country(None), |address| address.country.clone()),
        address,
        seat_id: seat.get("siret").text(),
        open_establishments: entry.get("nombre_etablissements_ouverts").count(),
        headcount: text("tranche_effectif_salarie").and_then(|code| french::headcount(&code)),
        founded: text("date_creation"),
        dissolved: text("date_fermeture"),
        activities: text("activite_principale").into_iter().collect(),
        name,
        ..french::company(siren, stated)
    };
    let officers = entry.get("dirigeants").items().filter_map(officer).collect();
    Ok((company, officers, accounts(entry.get("finances"))))
}

fn officer(role: Node<'_>) -> Option<Officer> {
    let name = role.get("denomination").text().or_else(|| french::person(role.get("prenoms"), role.get("nom")));
    let officer = french::officer(name, role.get("siren").text(), role.get("qualite").text())?;
    let birth_year = role.get("annee_de_naissance").count().and_then(|year| year.try_into().ok());
    Some(Officer { birth_year, ..officer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Status;
    use crate::parse::corruption::assert_survives_corruption;

    fn body() -> String {
        let record = include_str!("../../../simulator/fixtures/recherche_entreprises/552032534.json");
        format!(r#"{{"results":[{record}],"total_results":1,"page":1,"per_page":10,"total_pages":1}}"#)
    }

    #[test]
    fn a_company_and_who_acts_for_it_are_read() {
        let facts = hits(body().as_bytes()).expect("a hit").facts;
        let company = &facts.companies[0];
        assert_eq!((company.name.as_deref(), company.id.as_deref()), (Some("DANONE"), Some("552032534")));
        assert_eq!((company.standing, company.legal_form.as_deref()), (Standing::Active, Some("SA (5599)")));
        assert_eq!(facts.officers[0].name.as_deref(), Some("MARIE EXEMPLE"));
        assert_eq!(facts.officers[0].birth_year, Some(1972));
        assert_survives_corruption("recherche_entreprises", hits, body().as_bytes());
    }

    #[test]
    fn a_number_believes_only_itself() {
        let own = |body: &str, siren, page| with_number(body.as_bytes(), siren, page);
        assert!(own(&body(), "552032534", 1).is_ok_and(|answer| answer.is_some()));
        assert_eq!(own(&body(), "055804124", 1).expect_err("another").class, Class::NotFound);
        let long = body().replace(r#""total_pages":1"#, r#""total_pages":2"#);
        assert_eq!(own(&long, "055804124", 1), Ok(None), "it may be on the next page");
        assert_eq!(own(&long, "055804124", 2).expect_err("read to the end").class, Class::NotFound);
        assert_eq!(hits(br#"{"results":[]}"#).expect_err("none").class, Class::NotFound);
        assert_eq!(hits(br#"{"erreur":"x"}"#).expect_err("no list").class, Class::BadShape);
        let nameless = br#"{"results":[{"siren":"1","nom_complet":null,"nom_raison_sociale":null}],"total_results":1}"#;
        assert_eq!(hits(nameless).expect_err("nameless").class, Class::Business);
        let hidden = br#"{"results":[{"siren":"1","nom_complet":"[NON-DIFFUSIBLE]"}]}"#;
        assert_eq!(hits(hidden).expect_err("must not be shown").class, Class::Business);
    }

    #[test]
    fn a_page_of_many_is_partial_and_a_nameless_hit_is_noted() {
        let record = include_str!("../../../simulator/fixtures/recherche_entreprises/552032534.json");
        let nameless = r#"{"siren":"1","nom_complet":null,"nom_raison_sociale":null}"#;
        let body = format!(r#"{{"results":[{record},{nameless}],"total_results":10000,"total_pages":500}}"#);
        let answer = hits(body.as_bytes()).expect("a hit");
        assert_eq!((answer.status, answer.facts.companies.len()), (Status::Partial, 1));
        assert_eq!(answer.reason.as_deref(), Some("2 of 10000 were read"));
        assert_eq!(answer.facts.notes, ["1 of 2 hits left out: the source gives it no name"]);
    }

    #[test]
    fn a_seat_abroad_is_not_in_france() {
        let read = |country: &str, state: &str| {
            let body = format!(
                r#"{{"results":[{{"siren":"1","nom_complet":"X","etat_administratif":"{state}","siege":{{"siret":"10001",
                "libelle_pays_etranger":"{country}","libelle_commune_etranger":"BERLIN"}},
                "tranche_effectif_salarie":"42","nombre_etablissements_ouverts":3,
                "finances":{{"2024":{{"ca":5,"resultat_net":-1}}}}}}]}}"#
            );
            hits(body.as_bytes()).expect("a hit").facts
        };
        let facts = read("ALLEMAGNE", "A");
        let company = &facts.companies[0];
        let address = company.address.as_ref().expect("an address");
        assert_eq!((company.country.as_deref(), address.country.as_deref()), (Some("DE"), Some("DE")));
        assert_eq!(address.city.as_deref(), Some("BERLIN (ALLEMAGNE)"));
        assert_eq!((company.seat_id.as_deref(), company.headcount.as_deref()), (Some("10001"), Some("1000-1999")));
        assert_eq!((company.open_establishments, company.standing), (Some(3), Standing::Active));
        assert_eq!((facts.accounts[0].revenue, facts.accounts[0].result), (Some(5.0), Some(-1.0)));
        let company = read("ATLANTIDE", "X").companies.remove(0);
        assert_eq!((company.country, company.standing), (None, Standing::Unknown));
        assert_eq!(company.status.as_deref(), Some("X"));
    }
}

//! The open search of French companies, the fallback for Sirene: no key, and the same register underneath.

use circuit_registry::CallError;
use futures::future::BoxFuture;

use super::french;
use crate::{
    model::{Address, Company, Officer, Standing, Subject},
    parse::json::{self, Node},
    spec::{Answer, Base, Class, Probe, Request, Session, Source, SourceError, on},
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
    ..Source::BLANK
};

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
        let ours = |company: &Company| company.id.as_deref() == Some(siren);
        session.ask(asking(siren), |reply| found(list(&reply.body)?, ours)).await
    })
}

/// Reads hits.
pub(super) fn hits(body: &[u8]) -> Result<Answer, SourceError> {
    found(list(body)?, |_| true)
}

/// A company and who acts for it; the name is absent where it must not be shown.
type Entry = (Company, Vec<Officer>);

fn found(list: Vec<Entry>, wanted: impl Fn(&Company) -> bool) -> Result<Answer, SourceError> {
    let (companies, officers): (Vec<_>, Vec<_>) = list.into_iter().filter(|(company, _)| wanted(company)).unzip();
    let shown = companies.into_iter().map(|company| Some(company).filter(|company| company.name.is_some()));
    let mut answer = french::answer(shown.collect())?;
    if let [officers] = &officers[..] {
        answer.facts.officers.clone_from(officers); // of several companies the facts could not say whose they are
    }
    Ok(answer)
}

fn list(body: &[u8]) -> Result<Vec<Entry>, SourceError> {
    let document = json::parse(body)?;
    Node::root(&document).require_list("results")?.into_iter().map(entry).collect()
}

fn entry(entry: Node<'_>) -> Result<Entry, SourceError> {
    let text = |path: &str| entry.at(path).text();
    let seat = entry.get("siege");
    let stated = entry.require_any(&["nom_raison_sociale", "nom_complet"])?;
    let name = ["nom_raison_sociale", "nom_complet"].iter().find_map(|name| french::shown(entry.get(name)));
    let company = Company {
        standing: match text("etat_administratif").as_deref() {
            Some("A") => Standing::Active,
            Some("C") => Standing::Ceased,
            _ => Standing::Unknown,
        },
        legal_form: text("nature_juridique").map(|code| french::legal_form(&code)),
        address: seat.exists().then(|| Address {
            street: french::shown(seat.get("adresse")),
            postal_code: seat.get("code_postal").text(),
            city: seat.get("libelle_commune").text(),
            country: Some("FR".to_owned()),
        }),
        founded: text("date_creation"),
        dissolved: text("date_fermeture"),
        activities: text("activite_principale").into_iter().collect(),
        name,
        ..french::company(entry.require_text("siren")?, stated)
    };
    Ok((company, entry.get("dirigeants").items().filter_map(officer).collect()))
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
        let wanted = |siren: &'static str| move |company: &Company| company.id.as_deref() == Some(siren);
        let entries = || list(body().as_bytes()).expect("a list");
        assert!(found(entries(), wanted("552032534")).is_ok());
        assert_eq!(found(entries(), wanted("055804124")).expect_err("another").class, Class::NotFound);
        assert_eq!(hits(br#"{"results":[]}"#).expect_err("none").class, Class::NotFound);
        assert_eq!(hits(br#"{"erreur":"x"}"#).expect_err("no list").class, Class::BadShape);
        let hidden = br#"{"results":[{"siren":"1","nom_complet":"[NON-DIFFUSIBLE]"}]}"#;
        assert_eq!(hits(hidden).expect_err("must not be shown").class, Class::Business);
    }
}

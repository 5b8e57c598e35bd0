//! RPO: the Slovak statistical office's copy of the registers of legal persons. The fallback for the commercial register with
//! names and addresses; it is slow and asks to be asked rarely.

use std::time::Duration;

use crate::{
    model::{Address, Company, Status, Subject},
    parse::json::{self, Node, lacks},
    spec::{Answer, Base, Probe, Request, Source, SourceError},
};

use super::slovak::{number, standing};

/// The row.
pub static SOURCE: Source = Source {
    name: "registry_sk_rpo",
    title: "RPO, Slovak register of legal persons",
    breaker: "registry_sk_rpo",
    base: Base { env: "REGISTRY_SK_RPO_BASE_URL", default: "https://api.statistics.sk/rpo/v1" },
    timeout: Duration::from_secs(20), // eleven seconds have been seen
    probe: Some(Probe::json(|| search().query("identifier", "31333532"))),
    limits: "undisclosed; its users are asked to keep what they got",
    terms: "CC BY 4.0",
    ..Source::BLANK
};

fn search() -> Request {
    Request::get("/search")
}

/// The company of that number.
pub(super) fn by_number(subject: &Subject) -> Option<Request> {
    Some(search().query("identifier", number(subject)?))
}

/// Companies of that name.
pub(super) fn by_name(subject: &Subject) -> Option<Request> {
    Some(search().query("fullName", subject.name.as_deref()?))
}

/// Reads a search. It is only part of what the commercial register knows.
pub(super) fn companies(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let results = Node::root(&document).require_list("results")?;
    let as_of = results.iter().filter_map(|result| result.get("dbModificationDate").time()).max();
    let companies = results.into_iter().map(company).collect::<Result<Vec<_>, _>>()?;
    Ok(Answer { status: Status::Partial, ..Answer::listing(companies)?.dated(as_of) })
}

/// The entries of a list that are in force.
fn current(list: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    list.items().filter(|item| !item.get("validTo").exists())
}

fn company(result: Node<'_>) -> Result<Company, SourceError> {
    let value = |list: &str, path: &str| current(result.get(list)).find_map(|item| item.at(path).text());
    let name = value("fullNames", "value").ok_or_else(|| lacks("fullNames"))?;
    let dissolved = result.get("termination").text();
    let former = result.get("fullNames").items().filter(|item| item.get("validTo").exists());
    Ok(Company {
        standing: standing(&name, dissolved.is_some()),
        name: Some(name),
        id: value("identifiers", "value"),
        country: Some("SK".to_owned()),
        legal_form: value("legalForms", "value.value"),
        address: current(result.get("addresses")).next().map(address),
        founded: result.get("establishment").text(),
        dissolved,
        former_names: former.filter_map(|item| item.get("value").text()).collect(),
        ..Company::default()
    })
}

fn address(address: Node<'_>) -> Address {
    let text = |path: &str| address.at(path).text();
    let street: Vec<_> = [text("street"), text("buildingNumber")].into_iter().flatten().collect();
    Address {
        street: Some(street.join(" ")).filter(|street| !street.is_empty()),
        postal_code: address.get("postalCodes").texts().into_iter().next(),
        city: text("municipality.value"),
        country: text("country.value").filter(|country| country == "Slovenská republika").map(|_| "SK".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::Standing, parse::corruption::assert_survives_corruption, spec::Class};

    const ESET: &[u8] = include_bytes!("../../../simulator/fixtures/registry_sk_rpo/31333532.json");

    #[test]
    fn names_and_addresses_are_a_part_of_the_answer() {
        let body = format!(r#"{{"results":[{}],"license":"CC BY 4.0"}}"#, String::from_utf8_lossy(ESET));
        let answer = companies(body.as_bytes()).expect("a company");
        let company = &answer.facts.companies[0];
        assert_eq!((company.name.as_deref(), company.id.as_deref()), (Some("ESET, spol. s r.o."), Some("31333532")));
        let address = company.address.clone().and_then(Address::line);
        assert_eq!(address.as_deref(), Some("Einsteinova 24, 85101 Bratislava"));
        assert_eq!((answer.status, company.standing), (Status::Partial, Standing::Active));
        assert!(answer.as_of.is_some());
        assert_survives_corruption("registry_sk_rpo", companies, body.as_bytes());
    }

    #[test]
    fn no_results_differ_from_no_list() {
        assert_eq!(companies(br#"{"results":[]}"#).expect_err("none").class, Class::NotFound);
        assert_eq!(companies(br#"{"license":"x"}"#).expect_err("no list").class, Class::BadShape);
    }
}

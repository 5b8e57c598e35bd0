//! YTJ: the Finnish business information system, as open data of the patent and registration office.

use circuit_registry::CallError;
use futures::future::BoxFuture;

use super::vies;
use crate::{
    model::{Address, Company, Standing, Subject, VatCheck},
    parse::json::{self, Node},
    spec::{Answer, Base, Class, Countries, Flow, Need, Operation, Probe, Request, Session, Source, SourceError, on},
};

/// The row.
pub static SOURCE: Source = Source {
    name: "fi_ytj",
    title: "YTJ, Finnish business information system",
    breaker: "fi_ytj",
    base: Base { env: "FI_YTJ_BASE_URL", default: "https://avoindata.prh.fi/opendata-ytj-api/v3" },
    rules: &[on(400).with("errorcode").means(Class::Business, "does not accept the question")],
    probe: Some(Probe::json(|| Request::get("/companies").query("businessId", "0112038-9"))),
    limits: "none published; 429 when asked too fast",
    terms: "CC BY 4.0",
    operations: &[Operation {
        name: "fi_ytj.company",
        answers: "the register entry",
        countries: Countries::Only(&["FI"]),
        needs: &[Need::Id, Need::Name],
        flow: Flow::Single { request, parse: companies },
        ..Operation::BLANK
    }],
    ..Source::BLANK
};

fn request(subject: &Subject) -> Option<Request> {
    let search = Request::get("/companies");
    match (&subject.id, &subject.name) {
        (Some(id), _) => Some(search.query("businessId", id)),
        (None, Some(name)) => Some(search.query("name", name)),
        (None, None) => None,
    }
}

fn companies(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let list = Node::root(&document).require_list("companies")?;
    let companies = list.into_iter().map(company).collect::<Result<Vec<_>, _>>()?;
    Answer::listing(companies)
}

/// Whether the Finnish VAT register knows the number, in the place of VIES.
pub(super) fn vat_check<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    let request = |number: &str| {
        let (serial, check) = number.strip_prefix("FI")?.split_at_checked(7)?;
        Some(Request::get("/companies").query("businessId", format!("{serial}-{check}")))
    };
    vies::nationally(session, request, vat)
}

fn vat(body: &[u8], number: &str) -> Result<VatCheck, SourceError> {
    let document = json::parse(body)?;
    let list = Node::root(&document).require_list("companies")?;
    let entry = *list.first().ok_or_else(|| SourceError::not_found("knows no company of that number"))?;
    let company = company(entry)?;
    if company.vat.as_deref() != Some(number) {
        return Err(json::lacks("businessId"));
    }
    // That there is no entry is the answer here, so each one must be readable.
    let mut valid = false;
    for item in entry.require_list("registeredEntries")? {
        let ended = item.get("endDate").exists();
        valid |= item.require_text("register")? == "6" && !ended;
    }
    Ok(VatCheck { valid, name: company.name, address: company.address.and_then(Address::line), ..VatCheck::default() })
}

/// Without an end: in force.
fn current<'a>(list: Node<'a>) -> impl Iterator<Item = Node<'a>> {
    list.items().filter(|item| !item.get("endDate").exists())
}

/// The English wording of a coded thing, else any.
fn wording(coded: Node<'_>) -> Option<String> {
    let descriptions = coded.get("descriptions");
    let english = descriptions.items().find(|d| d.get("languageCode").text().as_deref() == Some("3"));
    english.or_else(|| descriptions.items().next()).and_then(|d| d.get("description").text())
}

/// A situation in force outweighs the state in the trade register.
fn standing(entry: Node<'_>, situations: &[String]) -> Standing {
    let has = |code: &str| situations.iter().any(|situation| situation == code);
    if has("KONK") {
        Standing::Insolvent
    } else if has("SANE") {
        Standing::Restructuring
    } else if has("SELTILA") {
        Standing::Liquidation
    } else {
        match entry.get("tradeRegisterStatus").text().as_deref() {
            _ if entry.get("endDate").exists() => Standing::Ceased,
            Some("1") => Standing::Active,
            Some("2" | "4") => Standing::Ceased,
            _ => Standing::Unknown,
        }
    }
}

/// An entry in one of the registers that a report shows, with its state.
fn registration(item: Node<'_>) -> Option<String> {
    let name = match item.get("register").text()?.as_str() {
        "1" => "trade register",
        "5" => "prepayment register",
        "6" => "VAT register",
        "7" => "employer register",
        _ => return None,
    };
    Some(format!("{name}: {}", wording(item)?))
}

fn company(entry: Node<'_>) -> Result<Company, SourceError> {
    let text = |path: &str| entry.at(path).text();
    let id = entry.require("businessId")?.require_text("value")?;
    let is_name = |item: &Node<'_>| item.get("type").text().as_deref() == Some("1");
    let name = current(entry.get("names")).find(is_name).and_then(|item| item.get("name").text());
    let former = entry.get("names").items().filter(|item| is_name(item) && item.get("endDate").exists());
    let situations: Vec<_> =
        current(entry.get("companySituations")).filter_map(|item| item.get("type").text()).collect();
    let address = current(entry.get("addresses")).find(|item| item.get("type").text().as_deref() == Some("1"));
    let activity = entry.get("mainBusinessLine");
    Ok(Company {
        name: Some(name.ok_or_else(|| json::lacks("names"))?),
        vat: Some(format!("FI{}", id.replace('-', ""))),
        id: Some(id),
        country: Some("FI".to_owned()),
        euid: text("euId.value"),
        standing: standing(entry, &situations),
        status: (!situations.is_empty()).then(|| situations.join(", ")),
        legal_form: current(entry.get("companyForms")).find_map(wording),
        address: address.map(|address| Address {
            street: address.joined(&["street", "buildingNumber", "entrance", "apartmentNumber"], " "),
            postal_code: address.get("postCode").text(),
            city: address.get("postOffices").items().find_map(|office| office.get("city").text()),
            country: address.get("country").text().or_else(|| Some("FI".to_owned())),
        }),
        founded: text("registrationDate"),
        dissolved: text("endDate"),
        former_names: former.filter_map(|item| item.get("name").text()).collect(),
        activities: activity
            .get("type")
            .text()
            .map(|code| format!("{code} {}", wording(activity).unwrap_or_default()).trim().to_owned())
            .into_iter()
            .collect(),
        website: text("website.url"),
        registrations: current(entry.get("registeredEntries")).filter_map(registration).collect(),
        ..Company::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::Facts, parse::corruption::assert_survives_corruption};

    fn body() -> Vec<u8> {
        let record = include_str!("../../../simulator/fixtures/fi_ytj/0112038-9.json");
        format!(r#"{{"totalResults":1,"companies":[{record}]}}"#).into_bytes()
    }

    #[test]
    fn an_entry_is_read_whole() {
        let company = companies(&body()).expect("an entry").facts.companies.remove(0);
        assert_eq!((company.name.as_deref(), company.id.as_deref()), (Some("Nokia Oyj"), Some("0112038-9")));
        assert_eq!((company.standing, company.euid.as_deref()), (Standing::Active, Some("FIFPRO.0112038-9")));
        assert_eq!(company.legal_form.as_deref(), Some("Public limited company"));
        assert!(company.address.is_some_and(|address| address.city.as_deref() == Some("ESPOO")));
        assert_survives_corruption("fi_ytj.company", companies, &body());
    }

    #[test]
    fn a_vat_number_is_registered_by_an_entry_in_force() {
        let number = "FI01120389";
        let check = |body: &str| vat(body.as_bytes(), number).map(|check| check.valid);
        let body = String::from_utf8(body()).expect("UTF-8");
        assert_eq!(check(&body), Ok(true));
        assert_eq!(check(&body.replace(r#""register": "6""#, r#""register": "7""#)), Ok(false));
        assert_eq!(
            check(&body.replace(r#""register": "6""#, r#""endDate": "2020-01-01", "register": "6""#)),
            Ok(false)
        );
        assert!(check(&body.replace("registeredEntries", "x")).is_err());
        assert!(vat(body.as_bytes(), "FI99999999").is_err(), "somebody else's");
        let parse =
            |body: &[u8]| vat(body, "FI01120389").map(|check| Facts { vat: Some(check), ..Facts::default() }.into());
        assert_survives_corruption("vies.check", parse, body.as_bytes());
    }

    #[test]
    fn nothing_found_is_an_empty_list_and_nothing_else() {
        assert_eq!(companies(br#"{"totalResults":0,"companies":[]}"#).expect_err("none").class, Class::NotFound);
        assert_eq!(companies(br#"{"totalResults":0}"#).expect_err("no list").class, Class::BadShape);
    }

    #[test]
    fn situations_come_before_the_register_status() {
        let standing = |situation: &str| {
            let body = format!(
                r#"{{"companies":[{{"businessId":{{"value":"1"}},"names":{{"name":"X","type":1}},"tradeRegisterStatus":"1",
                "companySituations":[{{"type":"{situation}"}}]}}]}}"#
            );
            companies(body.as_bytes()).expect("an entry").facts.companies[0].standing
        };
        assert_eq!(standing("KONK"), Standing::Insolvent);
        assert_eq!(standing("SANE"), Standing::Restructuring);
        assert_eq!(standing("SELTILA"), Standing::Liquidation);
        assert_eq!(standing("OTHER"), Standing::Active);
    }
}

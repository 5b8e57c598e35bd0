//! KBO: the Belgian register of enterprises, by its public search pages.
//!
//! It answers with a page and a 200 whatever happens, in the language it likes. "No data included in CBE" is its word for an
//! unknown number and, in the pages of known ones, for every field that is empty. So an entry is known by its number, and
//! the words for "not found" are believed only on a page that has none and asks for another.

use circuit_registry::CallError;
use std::time::Duration;

use encoding_rs::UTF_8;
use futures::future::BoxFuture;

use super::{gleif, nbb, peppol_directory};
use crate::{
    identifiers::Kind,
    model::{Address, Company, Establishment, Facts, Officer, Standing, Status, Subject},
    parse::date::iso,
    parse::html::{Element, Page, Row},
    parse::json::lacks,
    spec::{
        Answer, Base, Class, Countries, Fallback, Flow, Need, Operation, Probe, Request, Session, Source, SourceError,
        Stay, on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "kbo",
    title: "KBO/BCE, Belgian Crossroads Bank for Enterprises",
    breaker: "kbo",
    base: Base { env: "KBO_BASE_URL", default: "https://kbopub.economie.fgov.be/kbopub" },
    rules: &[
        // Addresses that ask too often are barred for hours.
        on(403)
            .means(Class::Throttled, "has barred us, as it does with those who ask too often")
            .stay(Stay::Seconds(6 * 3600)),
    ],
    probe: Some(Probe { request: || page("/zoeknummerform.html"), read: form }),
    limits: "none published; users are barred beyond about one request a minute",
    terms: "public search; reuse of the data by the KBO's open-data licence",
    operations: &[
        Operation {
            name: "kbo.entity",
            answers: "the register entry and who acts for it",
            flow: Flow::Single {
                request: |subject| Some(page("/toonondernemingps.html").query("ondernemingsnummer", number(subject)?)),
                parse: entity,
            },
            // They give name, form and address, and no officers.
            fallbacks: &[
                Fallback {
                    via: "nbb",
                    proves: "the balance sheet office's record of the company replaces the entry",
                    source: &nbb::SOURCE,
                    flow: Flow::Steps(|session| partly(session, &nbb::COMPANY)),
                },
                Fallback {
                    via: "gleif",
                    proves: "the LEI record of this number replaces the entry",
                    source: &gleif::SOURCE,
                    flow: Flow::Steps(|session| partly(session, &gleif::RECORD)),
                },
                Fallback {
                    via: "peppol_directory",
                    proves: "only the name in the Peppol directory is known",
                    source: &peppol_directory::SOURCE,
                    flow: Flow::Steps(|session| partly(session, &peppol_directory::PARTICIPANT)),
                },
            ],
            ..BELGIAN
        },
        Operation {
            name: "kbo.establishments",
            answers: "the establishment units",
            flow: Flow::Single {
                request: |subject| Some(page("/vestiginglijst.html").query("ondernemingsnummer", number(subject)?)),
                parse: establishments,
            },
            ..BELGIAN
        },
    ],
    ..Source::BLANK
};

const BELGIAN: Operation = Operation {
    countries: Countries::Only(&["BE"]),
    needs: &[Need::Id],
    fresh: Some(Duration::from_secs(86_400)), // it changes overnight, and bars those who ask often
    ..Operation::BLANK
};

/// The labels of an entry, in the languages that its pages come in.
const NUMBER: &[&str] = &["Enterprise number", "Numéro d'entreprise", "Numéro"];
const STATUS: &[&str] = &["Status", "Statut"];
const SITUATION: &[&str] = &["Legal situation", "Situation juridique"];
const START: &[&str] = &["Start date", "Date de début"];
const NAME: &[&str] = &["Name", "Dénomination"];
const SEAT: &[&str] = &["Registered seat's address", "Adresse du siège"];
const WEB: &[&str] = &["Web Address", "Adresse web"];
const FORM: &[&str] = &["Legal form", "Forme légale"];
const UNITS: &[&str] = &["Number of establishment units (EU)", "Nombre d'unités d'établissement (UE)"];
const FUNCTIONS: &[&str] = &["Functions", "Fonctions"];
const QUALITIES: &[&str] = &["Qualities", "Qualités"];

/// How it says that it has nothing, of a company or in a field.
const NOTHING: [&str; 2] = ["No data included in CBE", "Pas de données reprises dans la BCE"];
/// How it says that a number cannot be one.
const INVALID: [&str; 2] = ["is not valid", "n'est pas valide"];
/// The class of the words "since …" beside a value.
const SINCE: &str = "upd";

fn page(path: &'static str) -> Request {
    Request::get(path).query("lang", "en").accept("text/html")
}

fn number(subject: &Subject) -> Option<&str> {
    subject.id.as_deref()
}

/// The answer of somebody who knows less.
fn partly<'a>(session: &'a Session<'_>, flow: &'static Flow) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let answer = session.follow(flow).await?;
        Ok(Answer { status: Status::Partial, ..answer })
    })
}

/// The search form is there: so is the register.
fn form(body: &[u8]) -> Result<(), SourceError> {
    let page = Page::read(body, None, UTF_8)?;
    if asks(&page) { Ok(()) } else { Err(strange()) }
}

/// Whether the page asks for a number.
fn asks(page: &Page) -> bool {
    page.root().all("input").any(|input| input.attribute("name").is_some_and(|name| name.contains("nummer")))
}

fn strange() -> SourceError {
    SourceError::unavailable("answered a page that is none of the register's: maintenance or a block")
}

/// What a page without the expected rows is.
fn instead(page: &Page, wanted: &'static str) -> SourceError {
    let text = page.root().text().replace('\u{2019}', "'");
    let says = |words: [&str; 2]| words.iter().any(|words| text.contains(words));
    if asks(page) && says(INVALID) {
        SourceError::business("does not accept the number")
    } else if asks(page) && says(NOTHING) {
        SourceError::not_found("knows no such number")
    } else if page.root().rows().next().is_none() {
        strange()
    } else {
        lacks(wanted)
    }
}

/// The lines of a cell, without "since" and unless it is empty in the register's words.
fn lines(cell: Element<'_>) -> Vec<String> {
    let lines = cell.lines_without(SINCE);
    let nothing = |line: &String| NOTHING.iter().any(|words| line.starts_with(words));
    if lines.iter().any(nothing) { Vec::new() } else { lines }
}

fn entity(body: &[u8]) -> Result<Answer, SourceError> {
    let page = Page::read(body, None, UTF_8)?;
    let root = page.root();
    let value = |labels: &[&str]| root.labelled(labels).map(lines).unwrap_or_default();
    let first = |labels: &[&str]| value(labels).into_iter().next();
    let id = first(NUMBER).and_then(|text| enterprise(&text)).ok_or_else(|| instead(&page, "Enterprise number"))?;
    let name = first(NAME).ok_or_else(|| lacks("Name"))?;
    let status = first(STATUS).ok_or_else(|| lacks("Status"))?;
    let situation = first(SITUATION);
    let standing = standing(&status, situation.as_deref().unwrap_or_default());
    let qualities: Vec<_> =
        root.section(QUALITIES).iter().filter_map(|row| lines(*row.cells().first()?).into_iter().next()).collect();
    let vat = qualities.iter().any(|quality| ["VAT", "TVA"].iter().any(|tax| quality.ends_with(tax)));
    let units =
        first(UNITS).and_then(|text| text.split(' ').next().map(|count| format!("establishment units: {count}")));
    let company = Company {
        name: Some(name),
        country: Some("BE".to_owned()),
        vat: vat.then(|| format!("BE{id}")),
        id: Some(id),
        standing,
        status: Some([Some(status), situation].into_iter().flatten().collect::<Vec<_>>().join(", ")),
        legal_form: first(FORM),
        address: address(&value(SEAT)),
        founded: first(START).and_then(|text| iso(&text)),
        activities: activities(root),
        website: first(WEB),
        registrations: qualities.into_iter().map(|quality| format!("quality: {quality}")).chain(units).collect(),
        ..Company::default()
    };
    let officers = root.section(FUNCTIONS).iter().filter_map(officer).collect();
    Ok(Facts { companies: vec![company], officers, ..Facts::default() }.into())
}

/// A number in its normal form, anywhere in a text. The check digits are the register's own business.
fn enterprise(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    match Kind::BeKbo.read(&digits) {
        Ok(number) | Err(crate::identifiers::IdentifierError::Checksum { identifier: number, .. }) => {
            Some(number.as_str().to_owned())
        }
        Err(_) => None,
    }
}

/// Whether it may act, by its status and its legal situation.
fn standing(status: &str, situation: &str) -> Standing {
    let situation = situation.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| situation.contains(word));
    if !["active", "actif"].contains(&status.to_lowercase().as_str()) {
        Standing::Ceased
    } else if says(&["bankruptcy", "faillite"]) {
        Standing::Insolvent
    } else if says(&["dissolution", "liquidation"]) {
        Standing::Liquidation
    } else if says(&["reorgani", "réorganisation", "composition", "concordat"]) {
        Standing::Restructuring
    } else if says(&["normal"]) {
        Standing::Active
    } else {
        Standing::Unknown
    }
}

/// Street, then postal code and town.
fn address(lines: &[String]) -> Option<Address> {
    let (town, street) = lines.split_last()?;
    let (postal_code, city) = match town.split_once(' ') {
        Some((code, city)) if code.chars().all(|c| c.is_ascii_digit()) => (Some(code.to_owned()), city.to_owned()),
        _ => (None, town.clone()),
    };
    let street = Some(street.join(", ")).filter(|street| !street.is_empty());
    Some(Address { street, postal_code, city: Some(city), country: Some("BE".to_owned()) })
}

/// Activities are listed once per version of the nomenclature: the newest one will do.
fn activities(root: Element<'_>) -> Vec<String> {
    let coded = root.rows().filter_map(|row| {
        let cell = row.cells().first()?;
        let code = cell.links().find(|link| link.target.contains("nace.code"))?;
        let version: u16 = code.parameter("nace.version")?.parse().ok()?;
        let line = lines(*cell).into_iter().next()?;
        let label = line.split_once(&code.text)?.1.trim_start_matches([' ', '-']).to_owned();
        Some((version, format!("{} {label}", code.text)))
    });
    let coded: Vec<_> = coded.collect();
    let newest = coded.iter().map(|(version, _)| *version).max();
    let mut activities: Vec<String> = Vec::new();
    for (version, activity) in coded {
        if Some(version) == newest && !activities.contains(&activity) {
            activities.push(activity);
        }
    }
    activities
}

/// A row of the functions: what, who, since when. A holder that is a company is named by its number.
fn officer(row: &Row<'_>) -> Option<Officer> {
    let holder = row.text(1)?;
    let company_id = enterprise(&holder);
    let name = match holder.split_once(" , ") {
        Some((family, given)) => format!("{given} {family}"),
        None => holder,
    };
    Some(Officer {
        name: Some(name),
        company_id,
        role: row.text(0),
        birth_year: None,
        since: row.cells().iter().find_map(|cell| cell.of_class(SINCE)).and_then(|since| iso(&since.text())),
    })
}

/// The parameter that tells an establishment from an enterprise.
const UNIT: &str = "vestigingsnummer";
/// The headings of a list, which may be empty.
const LIST: [&str; 2] = ["List of establishment units", "Liste des unités d'établissement"];

fn establishments(body: &[u8]) -> Result<Answer, SourceError> {
    let page = Page::read(body, None, UTF_8)?;
    let root = page.root();
    let is_unit =
        |row: &Row<'_>| row.cells().iter().any(|cell| cell.links().any(|link| link.parameter(UNIT).is_some()));
    let rows: Vec<_> = root.rows().filter(is_unit).collect();
    if rows.is_empty() {
        let text = root.text().replace('\u{2019}', "'");
        let says = |words: [&str; 2]| words.iter().any(|words| text.contains(words));
        // A unit outside of any row is not none.
        let stray = root.links().any(|link| link.parameter(UNIT).is_some());
        let empty = !stray && says(LIST) && (says(NOTHING) || root.all("td").next().is_none());
        return Err(if empty {
            SourceError::not_found("lists no establishment unit of this company")
        } else {
            instead(&page, "list of establishment units")
        });
    }
    let establishments = rows.iter().map(unit).collect::<Result<_, _>>()?;
    let more = root.links().any(|link| link.target.contains("vestiginglijst") && link.parameter("page").is_some());
    let answer = Answer::from(Facts { establishments, ..Facts::default() });
    Ok(if more {
        Answer {
            status: Status::Partial,
            reason: Some("lists more establishment units than are on its first page".into()),
            ..answer
        }
    } else {
        answer
    })
}

/// A row of the list. The cells around the number are known by their place beside it.
fn unit(row: &Row<'_>) -> Result<Establishment, SourceError> {
    let linked = |cell: &Element<'_>| cell.links().find_map(|link| link.parameter(UNIT).map(str::to_owned));
    let place = row.cells().iter().position(|cell| linked(cell).is_some()).ok_or_else(|| lacks(UNIT))?;
    let id = linked(&row.cells()[place]).filter(|id| id.len() == 10).ok_or_else(|| lacks(UNIT))?;
    Ok(Establishment {
        id,
        status: place.checked_sub(1).and_then(|before| row.text(before)),
        since: row.text(place + 1).and_then(|text| iso(&text)),
        name: row.cells().get(place + 2).and_then(|cell| lines(*cell).into_iter().next()),
        address: row.cells().get(place + 3).and_then(|cell| address(&lines(*cell))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const PROXIMUS: [&[u8]; 2] = [
        include_bytes!("../../../simulator/fixtures/kbo/entities/0202239951.en.html"),
        include_bytes!("../../../simulator/fixtures/kbo/entities/0202239951.fr.html"),
    ];
    const BANKRUPT: [&[u8]; 2] = [
        include_bytes!("../../../simulator/fixtures/kbo/entities/0999000129.en.html"),
        include_bytes!("../../../simulator/fixtures/kbo/entities/0999000129.fr.html"),
    ];
    const UNITS: [&[u8]; 2] = [
        include_bytes!("../../../simulator/fixtures/kbo/establishments/0202239951.en.html"),
        include_bytes!("../../../simulator/fixtures/kbo/establishments/0202239951.fr.html"),
    ];

    #[test]
    fn an_entry_is_read_alike_in_both_languages() {
        for body in PROXIMUS {
            let facts = entity(body).expect("an entry").facts;
            let company = &facts.companies[0];
            assert_eq!((company.id.as_deref(), company.name.as_deref()), (Some("0202239951"), Some("PROXIMUS")));
            assert_eq!((company.standing, company.vat.as_deref()), (Standing::Active, Some("BE0202239951")));
            assert_eq!(company.founded.as_deref(), Some("1992-09-19"));
            assert_eq!(company.website.as_deref(), Some("www.proximus.com"));
            let address = company.address.clone().and_then(Address::line);
            assert_eq!(address.as_deref(), Some("Koning Albert II-laan 27, 1030 Schaarbeek"));
            assert!(company.activities[0].starts_with("61.100 ") && company.activities.len() == 1);
            assert!(company.registrations.contains(&"establishment units: 2".to_owned()));
            let officer = &facts.officers[0];
            assert_eq!(
                (officer.name.as_deref(), officer.since.as_deref()),
                (Some("Jan Voorbeeld"), Some("2020-12-01"))
            );
            assert_eq!(facts.officers.len(), 3);
        }
        assert_survives_corruption("kbo.entity", entity, PROXIMUS[0]);
    }

    #[test]
    fn an_empty_field_is_no_unknown_company() {
        for body in BANKRUPT {
            let facts = entity(body).expect("an entry").facts;
            assert_eq!((facts.companies[0].standing, facts.officers.len()), (Standing::Insolvent, 0));
            assert_eq!(facts.companies[0].website, None);
        }
    }

    #[test]
    fn its_words_for_no_differ_from_foreign_pages() {
        for parse in [entity, establishments] {
            for body in [
                &include_bytes!("../../../simulator/fixtures/kbo/notfound.en.html")[..],
                include_bytes!("../../../simulator/fixtures/kbo/notfound.fr.html"),
            ] {
                assert_eq!(parse(body).expect_err("unknown").class, Class::NotFound);
                assert!(form(body).is_ok());
            }
            for body in [
                &include_bytes!("../../../simulator/fixtures/kbo/invalid.en.html")[..],
                include_bytes!("../../../simulator/fixtures/kbo/invalid.fr.html"),
            ] {
                assert_eq!(parse(body).expect_err("no number").class, Class::Business);
            }
            let maintenance = include_bytes!("../../../simulator/fixtures/html/maintenance.html");
            assert_eq!(parse(maintenance).expect_err("an outage").class, Class::Unavailable);
            assert!(form(maintenance).is_err());
            let renamed = b"<html><table><tr><td>Nummer</td><td>No data included in CBE.</td></tr></table></html>";
            assert_eq!(parse(renamed).expect_err("another layout").class, Class::BadShape);
        }
    }

    #[test]
    fn situations_have_a_standing() {
        for (status, situation, standing) in [
            ("Active", "Normal situation", Standing::Active),
            ("Actif", "Situation normale", Standing::Active),
            ("Active", "Opening of bankruptcy procedure", Standing::Insolvent),
            ("Actif", "Ouverture de faillite", Standing::Insolvent),
            ("Active", "Voluntary dissolution - liquidation", Standing::Liquidation),
            ("Actif", "Ouverture de réorganisation judiciaire", Standing::Restructuring),
            ("Stopped", "Closing of bankruptcy procedure", Standing::Ceased),
            ("Arrêté", "", Standing::Ceased),
            ("Active", "Something new", Standing::Unknown),
        ] {
            assert_eq!(super::standing(status, situation), standing, "{status}, {situation}");
        }
    }

    #[test]
    fn establishments_are_listed_or_there_are_none() {
        for body in UNITS {
            let answer = establishments(body).expect("a list");
            let units = &answer.facts.establishments;
            assert_eq!((units.len(), units[0].id.as_str()), (2, "2123456791"));
            assert_eq!(
                (units[0].since.as_deref(), units[0].name.as_deref()),
                (Some("1993-01-01"), Some("PROXIMUS CENTER"))
            );
            let address = units[1].address.clone().and_then(Address::line);
            assert_eq!((answer.status, address.as_deref()), (Status::Complete, Some("Meir 10, 2000 Antwerpen")));
        }
        assert_survives_corruption("kbo.establishments", establishments, UNITS[0]);
        let none = include_bytes!("../../../simulator/fixtures/kbo/establishments/0403199702.en.html");
        assert_eq!(establishments(none).expect_err("none").class, Class::NotFound);
        let paged =
            String::from_utf8_lossy(UNITS[0]).replace("</body>", "<a href='vestiginglijst.html?page=2'>2</a></body>");
        assert_eq!(establishments(paged.as_bytes()).expect("a list").status, Status::Partial);
    }
}

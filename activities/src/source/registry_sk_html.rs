//! ORSR's older site: the fallback for its JSON, in pages of windows-1250 whose header does not say so.
//!
//! A number may have several files; those handed over to another court say so in the list of hits.

use circuit_registry::CallError;
use encoding_rs::WINDOWS_1250;
use futures::future::BoxFuture;

use super::slovak::{BARRED, number, standing, town};
use crate::{
    model::{Address, Company, Facts, Officer, Owner},
    parse::date::iso,
    parse::html::{Element, Page},
    parse::json::lacks,
    spec::{Answer, Base, Probe, Reply, Request, Session, Source, SourceError},
};

/// The row.
pub static SOURCE: Source = Source {
    name: "registry_sk_html",
    title: "ORSR, Slovak commercial register (older site)",
    breaker: "registry_sk_html",
    base: Base { env: "REGISTRY_SK_HTML_BASE_URL", default: "https://www.orsr.sk" },
    rules: &[BARRED],
    probe: Some(Probe { request: || by_number("00000000"), read: alive }),
    limits: "one request a minute, as advised by those who read it",
    terms: "public register; informative extracts only",
    ..Source::BLANK
};

fn by_number(number: &str) -> Request {
    Request::get("/hladaj_ico.asp").query("ICO", number).query("SID", "0").accept("text/html")
}

/// Companies of that name.
pub(super) fn found<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let name = session.subject().name.clone().unwrap_or_default();
        let request = Request::get("/hladaj_subjekt.asp").query("OBMENO", name).query("PF", "0").query("R", "on");
        let request = request.encoded(WINDOWS_1250).accept("text/html");
        session.ask(request, |reply| page(reply).and_then(|page| listed(&page))).await
    })
}

/// The extract of the number's file.
pub(super) fn entity<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let request = by_number(number(session.subject()).unwrap_or_default());
        let file = session.ask(request, |reply| newest(hits(&page(reply)?)?)).await?;
        let request =
            Request::get("/vypis.asp").query("ID", file.id.to_string()).query("SID", file.court).query("P", "0");
        session.ask(request.accept("text/html"), |reply| extract(&page(reply)?)).await
    })
}

fn page(reply: &Reply) -> Result<Page, SourceError> {
    Page::read(&reply.body, reply.header("content-type"), WINDOWS_1250)
}

fn alive(body: &[u8]) -> Result<(), SourceError> {
    match hits(&Page::read(body, None, WINDOWS_1250)?) {
        Err(error) if error.class != crate::spec::Class::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A file in a list of hits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    /// The site's counter of files.
    id: u64,
    /// The site's number of the court.
    court: String,
    name: String,
    /// It went to another court.
    handed_over: bool,
}

/// The files that a list of hits links to, each once.
fn hits(page: &Page) -> Result<Vec<File>, SourceError> {
    let mut files: Vec<File> = Vec::new();
    for row in page.root().rows() {
        let texts: String = row.cells().iter().map(|cell| cell.text().to_lowercase()).collect();
        let links = row.cells().iter().flat_map(|cell| cell.links());
        for link in links.filter(|link| link.target.contains("vypis.asp")) {
            let id = link.parameter("ID").and_then(|id| id.parse().ok()).ok_or_else(|| lacks("ID"))?;
            if files.iter().all(|file| file.id != id) {
                let court = link.parameter("SID").ok_or_else(|| lacks("SID"))?.to_owned();
                files.push(File { id, court, name: link.text, handed_over: texts.contains("odstúpený") });
            }
        }
    }
    let text = page.root().text().to_lowercase();
    if !files.is_empty() {
        Ok(files)
    } else if NOTHING.iter().any(|words| text.contains(words)) {
        Err(SourceError::not_found("knows no such company"))
    } else {
        Err(SourceError::unavailable("answered a page that is none of the register's: maintenance or a block"))
    }
}

/// How it says that it has found nothing.
const NOTHING: [&str; 3] = ["nenachádza", "nenájden", "nebol nájden"];

fn newest(files: Vec<File>) -> Result<File, SourceError> {
    let newest = files.into_iter().max_by_key(|file| (!file.handed_over, file.id));
    newest.ok_or_else(|| SourceError::not_found("knows no such company"))
}

fn listed(page: &Page) -> Result<Answer, SourceError> {
    let companies = hits(page)?.into_iter().filter(|file| !file.handed_over).map(|file| Company {
        standing: standing(&file.name, false),
        name: Some(file.name),
        country: Some("SK".to_owned()),
        ..Company::default()
    });
    Ok(Facts { companies: companies.collect(), ..Facts::default() }.into())
}

/// The entries beside a label: what each says, line by line, and since when it does.
fn entries(root: Element<'_>, labels: &[&str]) -> Vec<(Vec<String>, Option<String>)> {
    let Some(cell) = root.labelled(labels) else { return Vec::new() };
    let entry = |row: &crate::parse::html::Row<'_>| {
        let lines = row.cells().first()?.lines();
        let since = row.text(1).filter(|text| text.starts_with("(od")).and_then(|text| iso(&text));
        (!lines.is_empty()).then_some((lines, since))
    };
    cell.rows().filter_map(|row| entry(&row)).collect()
}

fn extract(page: &Page) -> Result<Answer, SourceError> {
    let root = page.root();
    let first = |label: &str| {
        let lines = entries(root, &[label]).into_iter().next().map(|(lines, _)| lines);
        lines.or_else(|| root.labelled(&[label]).map(Element::lines)).filter(|lines| !lines.is_empty())
    };
    let line = |label: &str| first(label).map(|lines| lines.join(" "));
    let Some(name) = line("Obchodné meno") else {
        return Err(match root.rows().next() {
            Some(_) => lacks("Obchodné meno"),
            None => SourceError::unavailable("answered a page that is none of the register's: maintenance or a block"),
        });
    };
    let id: String = line("IČO").ok_or_else(|| lacks("IČO"))?.chars().filter(char::is_ascii_digit).collect();
    let dissolved = line("Deň výmazu").and_then(|text| iso(&text));
    // The court file is in two cells, each with its label inside.
    let inside = |label: &str| {
        let texts = root.rows().flat_map(|row| row.cells().iter().map(|cell| cell.text()).collect::<Vec<_>>());
        texts.into_iter().find_map(|text| text.strip_prefix(label).map(|rest| rest.trim().to_owned()))
    };
    let file = inside("Oddiel:").zip(inside("Vložka číslo:"));
    let company = Company {
        standing: standing(&name, dissolved.is_some()),
        name: Some(name),
        id: Some(id),
        country: Some("SK".to_owned()),
        legal_form: line("Právna forma"),
        address: first("Sídlo").and_then(|lines| address(&lines)),
        founded: line("Deň zápisu").and_then(|text| iso(&text)),
        dissolved,
        activities: entries(root, &["Predmet činnosti"]).into_iter().map(|(lines, _)| lines.join(" ")).collect(),
        registrations: file
            .map(|(section, insert)| format!("court file: {section} {insert}"))
            .into_iter()
            .chain(line("Základné imanie").map(|capital| format!("share capital: {capital}")))
            .collect(),
        ..Company::default()
    };
    let owners =
        entries(root, &["Spoločníci", "Jediný akcionár", "Akcionár"]).into_iter().map(|(lines, since)| Owner {
            name: lines.into_iter().next(), // the lines below are where the person lives
            since,
            ..Owner::default()
        });
    let facts =
        Facts { owners: owners.collect(), officers: officers(root), companies: vec![company], ..Facts::default() };
    let as_of = line("Dátum aktualizácie údajov").and_then(|text| iso(&text)?.parse::<jiff::civil::Date>().ok());
    let midnight = as_of.and_then(|date| date.to_zoned(jiff::tz::TimeZone::UTC).ok()).map(|zoned| zoned.timestamp());
    Ok(Answer::from(facts).dated(midnight))
}

/// The statutory body: the kind of body in small letters, then its members, some with an office of their own.
fn officers(root: Element<'_>) -> Vec<Officer> {
    let mut officers = Vec::new();
    let mut body = None;
    for (lines, since) in entries(root, &["Štatutárny orgán"]) {
        let Some(head) = lines.first() else { continue };
        if lines.len() == 1 && head.starts_with(char::is_lowercase) {
            body = Some(head.clone());
            continue;
        }
        let (name, office) = match head.split_once(" - ") {
            Some((name, office)) => (name.to_owned(), Some(office.to_owned())),
            None => (head.clone(), body.clone()),
        };
        let began = lines.iter().find_map(|line| iso(line.strip_prefix("Vznik funkcie:")?));
        officers.push(Officer { name: Some(name), role: office, since: began.or(since), ..Officer::default() });
    }
    officers
}

fn address(lines: &[String]) -> Option<Address> {
    let (last, street) = lines.split_last()?;
    let (postal_code, city) = town(last);
    let street = Some(street.join(", ")).filter(|street| !street.is_empty());
    Some(Address { street, postal_code, city, country: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::Standing, parse::corruption::assert_survives_corruption, spec::Class};

    /// The fixtures are kept in UTF-8; the site is not.
    fn sent(page: &str) -> Vec<u8> {
        WINDOWS_1250.encode(page).0.into_owned()
    }

    const EXTRACT: &str = include_str!("../../../simulator/fixtures/registry_sk_html/extracts/1319.html");
    const HITS: &str = include_str!("../../../simulator/fixtures/registry_sk_html/search/31333532.html");
    const NOTHING: &str = include_str!("../../../simulator/fixtures/registry_sk_html/nothing.html");

    fn read<T>(body: &[u8], read: impl Fn(&Page) -> Result<T, SourceError>) -> Result<T, SourceError> {
        read(&Page::read(body, Some("text/html"), WINDOWS_1250)?)
    }

    #[test]
    fn an_extract_is_read_from_its_own_encoding() {
        for page in [EXTRACT.to_owned(), EXTRACT.replace("windows-1250", "")] {
            let answer = read(&sent(&page), extract).expect("an extract");
            let company = &answer.facts.companies[0];
            assert_eq!(
                (company.name.as_deref(), company.id.as_deref()),
                (Some("ESET, spol. s r.o."), Some("31333532"))
            );
            assert_eq!(company.legal_form.as_deref(), Some("Spoločnosť s ručením obmedzeným"));
            assert_eq!((company.standing, company.founded.as_deref()), (Standing::Active, Some("1992-09-17")));
            let address = company.address.clone().and_then(Address::line);
            assert_eq!(address.as_deref(), Some("Einsteinova 24, 85101 Bratislava"));
            assert_eq!(company.registrations[0], "court file: Sro 3586/B");
            assert_eq!(company.activities.len(), 2);
            let officer = &answer.facts.officers[0];
            assert_eq!((officer.name.as_deref(), officer.role.as_deref()), (Some("Ing. Ján Vzor"), Some("konatelia")));
            assert_eq!((answer.facts.officers.len(), answer.facts.owners.len()), (1, 1));
            assert_eq!(answer.as_of.map(|at| at.to_string()).as_deref(), Some("2026-11-29T00:00:00Z"));
        }
        assert_survives_corruption("registry_sk_html", |body| read(body, extract), &sent(EXTRACT));
    }

    #[test]
    fn of_a_person_only_the_name_is_read() {
        let body =
            "<html><table><tr><td>Obchodné meno:</td><td>X, a.s.</td></tr><tr><td>IČO:</td><td>31 333 532</td></tr>
            <tr><td>Štatutárny orgán:</td><td><table><tr><td>predstavenstvo</td><td>(od: 01.01.2020)</td></tr></table>
            <table><tr><td>Jana Vzorová - predseda<br>Tichá 1<br>Bratislava 811 02<br>Vznik funkcie: 02.03.2021</td>
            <td>(od: 05.03.2021)</td></tr></table></td></tr></table></html>";
        let facts = read(&sent(body), extract).expect("an extract").facts;
        let officer = Officer {
            name: Some("Jana Vzorová".into()),
            role: Some("predseda".into()),
            since: Some("2021-03-02".into()),
            ..Officer::default()
        };
        assert_eq!((facts.companies[0].name.as_deref(), facts.officers), (Some("X, a.s."), vec![officer]));
    }

    #[test]
    fn hits_are_files_and_the_one_in_force_is_taken() {
        let files = read(&sent(HITS), hits).expect("hits");
        assert_eq!((files.len(), files[0].id, files[0].court.as_str()), (1, 1319, "2"));
        let row = |id: u64, state: &str| {
            format!("<tr><td><a href='vypis.asp?ID={id}&SID=2&P=0'>X</a></td><td>{state}</td></tr>")
        };
        let two = format!("<html><table>{}{}</table></html>", row(7, ""), row(9, "Spis odstúpený inému súdu"));
        assert_eq!(read(&sent(&two), |page| newest(hits(page)?)).map(|file| file.id), Ok(7));
        let two = format!("<html><table>{}{}</table></html>", row(7, ""), row(9, ""));
        assert_eq!(read(&sent(&two), |page| newest(hits(page)?)).map(|file| file.id), Ok(9));
        assert_survives_corruption("registry_sk_html, hits", |body| read(body, listed), &sent(HITS));
    }

    #[test]
    fn nothing_found_differs_from_no_register() {
        assert_eq!(read(&sent(NOTHING), hits).expect_err("none").class, Class::NotFound);
        assert!(alive(&sent(NOTHING)).is_ok());
        let maintenance = include_bytes!("../../../simulator/fixtures/html/maintenance.html");
        assert_eq!(read(maintenance, hits).expect_err("an outage").class, Class::Unavailable);
        assert_eq!(read(maintenance, extract).expect_err("an outage").class, Class::Unavailable);
        assert!(alive(maintenance).is_err());
    }
}

//! What the records of a job say. An input that failed is a record as well, and a name is shared by many: only records that
//! are about the subject are kept, and of persons no more than a role.

use serde_json::Value;

use crate::{
    model::{Address, Company, Facts, Officer, Standing, Status, Subject},
    parse::json::{self, Node, lacks},
    parse::text::words,
    spec::{Answer, Scope, SourceError},
};

/// Crunchbase.
pub(super) fn organisations(body: &[u8], subject: &Subject) -> Result<Answer, SourceError> {
    companies(body, subject, |record| {
        let closed = record.get("operating_status").text();
        let company = Company {
            name: record.get("legal_name").text().or_else(|| record.get("name").text()),
            standing: match closed.as_deref() {
                Some("active") => Standing::Active,
                Some("closed") => Standing::Ceased,
                _ => Standing::Unknown,
            },
            status: closed,
            legal_form: record.get("company_type").text(),
            founded: record.get("founded_date").text(),
            activities: labels(record.get("industries")),
            address: town(record.get("address").text()),
            website: record.get("website").text(),
            ..Company::default()
        };
        let size = record.get("num_employees").text().map(|size| format!("employees: {size}"));
        let listed = record.get("ipo_status").text().map(|status| format!("stock exchange: {status}"));
        let acquirer = record.get("acquired_by");
        let acquirer = acquirer.get("name").text().or_else(|| acquirer.text());
        let acquirer = acquirer.map(|name| format!("acquired by {name}"));
        (company, [size, listed, acquirer])
    })
}

/// LinkedIn, companies.
pub(super) fn employers(body: &[u8], subject: &Subject) -> Result<Answer, SourceError> {
    companies(body, subject, |record| {
        let company = Company {
            name: record.get("name").text(),
            legal_form: record.get("organization_type").text(),
            founded: record.get("founded").text(),
            activities: labels(record.get("industries")),
            address: town(record.get("headquarters").text()),
            website: record.get("website").text(),
            ..Company::default()
        };
        let size = record.get("company_size").text().map(|size| format!("size by its own account: {size}"));
        let members = record.get("employees_in_linkedin").count();
        let members = members.map(|count| format!("{count} members name it as their employer"));
        let followers = record.get("followers").count().map(|count| format!("{count} followers"));
        (company, [size, members, followers])
    })
}

/// LinkedIn, persons: those who name the subject as their employer. Contacts, education and everything else stays there.
pub(super) fn persons(body: &[u8], subject: &Subject) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let Records { found, failed } = records(&document)?;
    let mut officers = Vec::new();
    for record in &found {
        let name = record.require_text("name")?;
        let here = |job: &Node<'_>| {
            let employer = job.get("company").text().or_else(|| job.get("name").text());
            employer.is_some_and(|employer| resembles(subject, &employer))
        };
        let current = record.get("current_company");
        let job = record.get("experience").items().find(here);
        if job.is_none() && !here(&current) {
            continue;
        }
        let of_job = |field: &str| job.and_then(|job| job.get(field).text());
        officers.push(Officer {
            name: Some(name),
            role: of_job("title").or_else(|| record.get("position").text()),
            since: of_job("start_date"),
            ..Officer::default()
        });
    }
    let mut notes = remarks(failed);
    let strangers = found.len() - officers.len();
    if strangers > 0 {
        notes.push(format!("{strangers} profiles of the same names do not mention the company"));
    }
    if officers.is_empty() {
        return Err(SourceError::not_found("has no profile of these persons that mentions the company"));
    }
    Ok(answer(Facts { officers, notes, ..Facts::default() }, failed))
}

/// The companies among the records that may be the subject.
fn companies(
    body: &[u8],
    subject: &Subject,
    read: impl Fn(Node<'_>) -> (Company, [Option<String>; 3]),
) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let Records { found, failed } = records(&document)?;
    let (mut companies, mut notes) = (Vec::new(), remarks(failed));
    for record in found {
        let (company, remarks) = read(record);
        let name = company.name.as_deref().ok_or_else(|| lacks("name"))?;
        let known = [subject.website.as_deref(), company.website.as_deref()].map(|address| address.and_then(host));
        let same_website = known[0].is_some() && known[0] == known[1];
        let names = [Some(name.to_owned()), record.get("name").text()];
        if !same_website && !names.iter().flatten().any(|name| resembles(subject, name)) {
            continue;
        }
        if !same_website {
            notes.push(format!("{name} was found by its name alone and may be a namesake"));
        }
        notes.extend(remarks.into_iter().flatten().map(|remark| format!("{name}: {remark}")));
        companies.push(company);
    }
    if companies.is_empty() {
        return Err(SourceError::not_found("has no profile of the company"));
    }
    Ok(answer(Facts { companies, notes, ..Facts::default() }, failed))
}

/// The records of a job, and how many of its inputs failed.
struct Records<'a> {
    found: Vec<Node<'a>>,
    failed: usize,
}

fn records(document: &Value) -> Result<Records<'_>, SourceError> {
    let records = document.as_array().ok_or_else(|| lacks("list of records"))?;
    let (mut found, mut failed, mut missing) = (Vec::new(), 0, 0);
    for record in records {
        let node = Node::root(record);
        match node.get("error_code").text().or_else(|| node.get("error").text()) {
            _ if !node.is_object() => return Err(lacks("record")),
            None => found.push(node),
            Some(code) if code == "dead_page" => missing += 1,
            Some(_) => failed += 1,
        }
    }
    match (found.is_empty(), failed) {
        (true, 0) if missing > 0 || records.is_empty() => Err(SourceError::not_found("has no such profile")),
        // Its own pages are fine: it could not read those of the site it was sent to.
        (true, _) => Err(SourceError::unavailable("could not read the profile").of(Scope::Subject)),
        (false, _) => Ok(Records { found, failed }),
    }
}

fn answer(facts: Facts, failed: usize) -> Answer {
    let status = if failed > 0 { Status::Partial } else { Status::Complete };
    let reason = (failed > 0).then(|| "some profiles could not be read".to_owned());
    Answer { status, reason, facts, ..Answer::default() }
}

fn remarks(failed: usize) -> Vec<String> {
    (failed > 0).then(|| format!("{failed} profiles could not be read")).into_iter().collect()
}

/// Names of industries: objects on one site, a text on the other.
fn labels(list: Node<'_>) -> Vec<String> {
    list.items().filter_map(|item| item.get("value").text().or_else(|| item.text())).collect()
}

fn town(text: Option<String>) -> Option<Address> {
    text.map(|city| Address { city: Some(city), ..Address::default() })
}

/// Whether a name may be the subject's: the same words, but for short ones at the end, which are legal forms.
fn resembles(subject: &Subject, name: &str) -> bool {
    let Some(own) = subject.name.as_deref().map(words) else { return false };
    let other = words(name);
    let (short, long) = if own.len() < other.len() { (&own, &other) } else { (&other, &own) };
    let form = |word: &String| word.chars().count() <= 4;
    !short.is_empty() && long.starts_with(short) && long[short.len()..].iter().all(form)
}

/// The host of a website, however much of its address is written.
fn host(website: &str) -> Option<String> {
    let rest = website.split_once("://").map_or(website, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#', ':']).next()?.trim().to_lowercase();
    let host = host.strip_prefix("www.").unwrap_or(&host);
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse::corruption::assert_survives_corruption, spec::Class};

    fn subject() -> Subject {
        let website = Some("www.equinor.com".to_owned());
        Subject { name: Some("EQUINOR ASA".into()), website, ..Subject::new("NO".parse().expect("a country")) }
    }

    fn list(records: &[&str]) -> Vec<u8> {
        format!("[{}]", records.join(",")).into_bytes()
    }

    const CRUNCHBASE: &str =
        include_str!("../../../../simulator/fixtures/brightdata/gd_l1vijqt9jfj7olije/equinor.json");
    const LINKEDIN: &str = include_str!("../../../../simulator/fixtures/brightdata/gd_l1vikfnt1wgvvqz95w/equinor.json");
    const PERSON: &str =
        include_str!("../../../../simulator/fixtures/brightdata/gd_l1viktl72bvl7bjuj0/ola-eksempel.json");
    const DEAD: &str = r#"{"input":{"url":"x"},"error":"Page does not exist","error_code":"dead_page"}"#;
    const BROKEN: &str = r#"{"input":{"url":"x"},"error":"Crawl failed","error_code":"crawl_failed"}"#;

    #[test]
    fn a_company_is_read_without_the_people_in_it() {
        let facts = organisations(&list(&[CRUNCHBASE]), &subject()).expect("a profile").facts;
        let company = &facts.companies[0];
        assert_eq!((company.name.as_deref(), company.standing), (Some("Equinor ASA"), Standing::Active));
        assert_eq!(
            (company.founded.as_deref(), company.activities.as_slice()),
            (Some("1972-09-18"), &["Energy".into()][..])
        );
        assert!(facts.notes.iter().any(|note| note.contains("10001+")), "{:?}", facts.notes);
        assert!(!serde_json::to_string(&facts).expect("serialises").contains("Eksempel"));

        let facts = employers(&list(&[LINKEDIN]), &subject()).expect("a profile").facts;
        assert!(facts.notes.iter().any(|note| note.contains("23000 members")), "{:?}", facts.notes);
        assert!(!facts.notes.iter().any(|note| note.contains("namesake")));
        assert_survives_corruption(
            "brightdata_enrichment.company",
            |body| organisations(body, &subject()),
            &list(&[CRUNCHBASE]),
        );
        assert_survives_corruption("brightdata_social.company", |body| employers(body, &subject()), &list(&[LINKEDIN]));
    }

    #[test]
    fn of_a_person_only_the_role_is_kept() {
        let facts = persons(&list(&[PERSON]), &subject()).expect("a profile").facts;
        let officer = &facts.officers[0];
        assert_eq!(officer.name.as_deref(), Some("Ola Eksempel"));
        assert_eq!((officer.role.as_deref(), officer.since.as_deref()), (Some("CEO"), Some("Nov 2020")));
        let text = serde_json::to_string(&facts).expect("serialises");
        assert!(!text.contains("University") && !text.contains("linkedin.com"), "{text}");
        assert_survives_corruption("brightdata_person.profiles", |body| persons(body, &subject()), &list(&[PERSON]));

        let stranger = r#"{"name":"Ola Eksempel","current_company":{"name":"Fjord Fiske AS"},"experience":[]}"#;
        let facts = persons(&list(&[PERSON, stranger]), &subject()).expect("a profile").facts;
        assert_eq!((facts.officers.len(), facts.notes.len()), (1, 1));
        assert_eq!(persons(&list(&[stranger]), &subject()).expect_err("a stranger").class, Class::NotFound);
    }

    #[test]
    fn inputs_that_failed_are_records_too() {
        let read = |records: &[&str]| organisations(&list(records), &subject());
        assert_eq!(read(&[DEAD]).expect_err("no page").class, Class::NotFound);
        assert_eq!(read(&[]).expect_err("nothing").class, Class::NotFound);
        for records in [&[BROKEN][..], &[DEAD, BROKEN]] {
            let error = read(records).expect_err("nothing read");
            assert_eq!((error.class, error.scope), (Class::Unavailable, Scope::Subject));
        }
        let some = read(&[CRUNCHBASE, BROKEN]).expect("a profile");
        assert_eq!((some.status, some.facts.companies.len()), (Status::Partial, 1));
        for body in [&b"{}"[..], b"null", b"[1]", br#"[{}]"#, br#"[{"name":7.5e300}, []]"#, br#"{"error":"x"}"#] {
            assert_eq!(organisations(body, &subject()).expect_err("no records").class, Class::BadShape);
        }
    }

    #[test]
    fn names_are_compared_without_their_legal_forms() {
        let known = |own: &str, other: &str| resembles(&Subject { name: Some(own.into()), ..subject() }, other);
        for (own, other) in
            [("EQUINOR ASA", "Equinor"), ("Alza.cz a.s.", "Alza.cz"), ("Nokia", "Nokia Oyj"), ("A B", "a b")]
        {
            assert!(known(own, other), "{own} {other}");
        }
        for (own, other) in
            [("Siemens AG", "Siemens Energy AG"), ("Equinor", "Equine"), ("Equinor", ""), ("", "Equinor")]
        {
            assert!(!known(own, other), "{own} {other}");
        }
        let stranger = CRUNCHBASE.replace("Equinor", "Equine").replace("equinor", "equine");
        assert_eq!(organisations(&list(&[&stranger]), &subject()).expect_err("another").class, Class::NotFound);
        let elsewhere = CRUNCHBASE.replace("https://www.equinor.com", "https://equinor.example");
        let facts = organisations(&list(&[&elsewhere]), &subject()).expect("perhaps").facts;
        assert!(facts.notes.iter().any(|note| note.contains("namesake")));
    }
}

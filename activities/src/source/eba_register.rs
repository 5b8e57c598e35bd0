//! The register of the European Banking Authority: who may provide payment services or issue electronic money.
//!
//! It is published as one file a night. The metadata name the file and its checksum; a file that does not match is not
//! believed, and the last good copy answers in its place, with its date. The file has 300 000 records and ten times the
//! size of its archive, so it is read a record at a time and the copy stays packed.

use circuit_registry::CallError;
use std::{io::Cursor, time::Duration};

use futures::future::BoxFuture;
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde_json::json;
use zip::ZipArchive;

use crate::{
    editions::{Edition, sha256},
    model::{Address, Company, Facts, Status, Subject},
    parse::date::day,
    parse::json::{self as reader, Node, lacks},
    parse::stream,
    parse::text::squeezed,
    spec::{
        Answer, Base, Class, Confidence, Countries, Fallback, Flow, Need, Operation, Probe, Request, Session, Source,
        SourceError, on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "eba_register",
    title: "EBA register of payment and e-money institutions",
    breaker: "eba_register",
    base: Base { env: "EBA_REGISTER_BASE_URL", default: "https://euclid.eba.europa.eu/register" },
    timeout: Duration::from_secs(15),
    rules: &[on(304).means(Class::Ok, "")], // asked whether there is a newer edition
    probe: Some(Probe::json(metadata_request)),
    limits: "none published; the file changes once a night, and is fetched once an edition",
    terms: "free; the EBA takes no responsibility for what national authorities report",
    operations: &[
        Operation {
            name: "eba_register.metadata",
            answers: "the edition of the register that is in force",
            countries: Countries::Only(EEA),
            flow: Flow::Single { request: |_| Some(metadata_request()), parse: metadata },
            ..Operation::BLANK
        },
        Operation {
            name: "eba_register.licence",
            answers: "licences to provide payment services or to issue electronic money",
            countries: Countries::Only(EEA),
            needs: &[Need::Id, Need::Name],
            flow: Flow::Steps(licence),
            fallbacks: &[Fallback {
                via: "last_good_copy",
                proves: "the last good copy of the register answered instead",
                source: &SOURCE,
                flow: Flow::Steps(licence_by_copy),
            }],
            ..Operation::BLANK
        },
        Operation {
            name: "eba_register.credit_institution",
            answers: "licences as a bank",
            countries: Countries::Only(EEA),
            needs: &[Need::Id, Need::Name],
            flow: Flow::Steps(credit_institution),
            ..Operation::BLANK
        },
    ],
    confidence: Confidence::B,
    ..Source::BLANK
};

/// The European Economic Area.
const EEA: &[&str] = &[
    "AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU", "IE", "IS", "IT", "LI", "LT",
    "LU", "LV", "MT", "NL", "NO", "PL", "PT", "RO", "SE", "SI", "SK",
];

/// Name of the copy.
const FILE: &str = "eba_register.zip";

/// For how long the newest edition is taken for the newest.
const CHECK: Duration = Duration::from_secs(6 * 3600);

/// The archive has 18 MB, what is in it 200.
const ARCHIVE: usize = 64_000_000;
const UNPACKED: u64 = 1_000_000_000;

/// More hits than that say that the name is none.
const HITS: usize = 50;

/// An edition, as the metadata announce it.
#[derive(Debug, PartialEq)]
struct Announcement {
    link: String,
    sha256: String,
    date: Timestamp,
}

fn metadata_request() -> Request {
    Request::get("/api/filemetadata")
}

fn announcement(body: &[u8]) -> Result<Announcement, SourceError> {
    let document = reader::parse(body)?;
    let root = Node::root(&document);
    let path = root.require_text("latest_version_relative_zip_path")?;
    let sha256 = root.require_text("sha256_hash")?.to_lowercase();
    if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(lacks("sha256_hash"));
    }
    // The folder is named after the day.
    let day = path.split('/').find_map(|part| Date::strptime("%Y%m%d", part).ok());
    let date = day.and_then(|day| day.to_zoned(TimeZone::UTC).ok()).map(|zoned| zoned.timestamp());
    let date = date.ok_or_else(|| lacks("latest_version_relative_zip_path"))?;
    let context = root.require_text("golden_copy_path_context")?;
    let link = format!("{}/{}", context.trim_end_matches('/'), path.trim_start_matches('/'));
    Ok(Announcement { link, sha256, date })
}

fn metadata(body: &[u8]) -> Result<Answer, SourceError> {
    let announced = announcement(body)?;
    let notes = vec![format!("edition of {}, SHA-256 {}", day(announced.date), announced.sha256)];
    Ok(Answer::from(Facts { notes, ..Facts::default() }).dated(Some(announced.date)))
}

/// Makes sure of the newest edition, then looks into it. One session fetches, the others wait for it.
fn licence<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let subject = session.subject();
        let mut slot = session.editions().slot(FILE).await;
        if !slot.checked_within(CHECK, Timestamp::now()) {
            let newest = session.ask_since(metadata_request(), slot.etag(), |reply| announcement(&reply.body)).await?;
            let fetched =
                newest.filter(|(newest, _)| slot.edition().is_none_or(|edition| edition.version != newest.sha256));
            if let Some((newest, etag)) = fetched {
                let request = Request::follow(newest.link).accept("application/zip, application/octet-stream");
                let request = request.limit(ARCHIVE).within(Duration::from_secs(45));
                let bytes = session.ask(request, |reply| matching(&reply.body, &newest.sha256)).await?;
                let edition = Edition { version: newest.sha256, date: newest.date, bytes: bytes.into() };
                // What does not unpack is not believed either.
                let found = look_up(edition.clone(), subject).await?;
                slot.replace(edition, Timestamp::now()).await;
                slot.confirmed_as(etag);
                return answer(found, newest.date).map_err(CallError::Upstream);
            }
            slot.confirm(Timestamp::now());
        }
        let edition = slot.last().map_err(CallError::Upstream)?;
        drop(slot);
        let date = edition.date;
        answer(look_up(edition, subject).await?, date).map_err(CallError::Upstream)
    })
}

fn licence_by_copy<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let edition = session.editions().slot(FILE).await.last().map_err(CallError::Upstream)?;
        let date = edition.date;
        let companies = look_up(edition, session.subject()).await?;
        let notes = if companies.is_empty() { vec![not_listed(date)] } else { vec![] };
        let answer = Answer::from(Facts { companies, notes, ..Facts::default() }).dated(Some(date));
        Ok(Answer { status: Status::Cached, reason: Some(format!("as of {}", day(date))), ..answer })
    })
}

fn not_listed(date: Timestamp) -> String {
    format!("names no such institution in its edition of {}", day(date))
}

fn answer(companies: Vec<Company>, date: Timestamp) -> Result<Answer, SourceError> {
    if companies.is_empty() {
        return Err(SourceError::not_found(not_listed(date)));
    }
    Ok(Answer::from(Facts { companies, ..Facts::default() }).dated(Some(date)))
}

fn matching(archive: &[u8], announced: &str) -> Result<Vec<u8>, SourceError> {
    if sha256(archive) != announced {
        return Err(SourceError::bad_shape("sent a file that does not match its checksum"));
    }
    Ok(archive.to_vec())
}

/// Reading 200 MB takes a second, so it does not hold up those who wait for answers.
async fn look_up(edition: Edition, subject: &Subject) -> Result<Vec<Company>, CallError<SourceError>> {
    let subject = subject.clone();
    let work = tokio::task::spawn_blocking(move || unpack(&edition.bytes, UNPACKED, &subject));
    let found = work.await.unwrap_or_else(|_| Err(SourceError::bad_shape("sent a file that cannot be read")));
    found.map_err(CallError::Upstream)
}

fn unpack(archive: &[u8], most: u64, subject: &Subject) -> Result<Vec<Company>, SourceError> {
    let broken = |_| SourceError::bad_shape("sent a file that does not unpack");
    let mut archive = ZipArchive::new(Cursor::new(archive)).map_err(broken)?;
    let is_json = |n: &usize| {
        archive.name_for_index(*n).and_then(Result::ok).is_some_and(|name| name.to_lowercase().ends_with(".json"))
    };
    let nth = (0..archive.len()).find(is_json).ok_or_else(|| lacks("JSON file"))?;
    institutions(archive.by_index(nth).map_err(broken)?, most, subject)
}

fn credit_institution<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let query = json!({"$and": [{"_messagetype": "EUCLIDMD"}, {"_payload.EntityType": "CRD_CRE_INS"}]});
        let request = Request::post("/api/search/entities", &query).limit(ARCHIVE).within(Duration::from_secs(45));
        session.ask(request, |reply| banks(&reply.body, session.subject())).await
    })
}

fn banks(body: &[u8], subject: &Subject) -> Result<Answer, SourceError> {
    reader::begins_as_data(body)?;
    let companies = institutions(body, ARCHIVE as u64, subject)?;
    if companies.is_empty() {
        return Err(SourceError::not_found("names no such credit institution"));
    }
    Ok(Facts { companies, ..Facts::default() }.into())
}

/// The institutions in a list that may be the subject. A record without a name or code is passed over; if all are, it is
/// another list.
fn institutions(text: impl std::io::Read, most: u64, subject: &Subject) -> Result<Vec<Company>, SourceError> {
    let (mut found, mut readable, mut strange) = (Vec::new(), 0_u64, 0_u64);
    stream::records(text, most, &mut |record| {
        let record = Node::root(&record);
        let payload = record.get("_payload");
        let entity = if payload.exists() { payload } else { record };
        let (Some(name), Some(code)) = (property(entity, "ENT_NAM").next(), entity.get("EntityCode").text()) else {
            strange += u64::from(!record.get("disclaimer").exists());
            return;
        };
        readable += 1;
        if found.len() < HITS && is(entity, &name, &code, subject) {
            found.push(company(entity, name, &code));
        }
    })?;
    if strange > 0 && readable == 0 { Err(lacks("EntityCode")) } else { Ok(found) }
}

/// The values of a property: a list of objects with one member each, whose value is a text or a list of them.
fn property<'a>(entity: Node<'a>, name: &'a str) -> impl Iterator<Item = String> + use<'a> {
    entity.get("Properties").items().flat_map(move |property| property.get(name).items().filter_map(Node::text))
}

/// The country of the authority in a code: `IE_CBI!C58301`, or `PSD_AG!FR_ACPR!1376!50208` of an agent.
fn authority_country(code: &str) -> Option<&str> {
    code.split('!').find_map(|part| part.split_once('_').map(|(country, _)| country).filter(|text| text.len() == 2))
}

/// The number that the authority gave to an institution. The last part of an agent's code is a count of the register.
fn number(code: &str) -> &str {
    match code.split('!').collect::<Vec<_>>()[..] {
        [_, number] => number,
        _ => code,
    }
}

fn is(entity: Node<'_>, name: &str, code: &str, subject: &Subject) -> bool {
    let country = subject.country.as_str();
    let home = property(entity, "ENT_COU_RES").any(|home| home == country);
    if !(home || authority_country(code) == Some(country)) {
        return false;
    }
    let bare = |text: &str| squeezed(text).trim_start_matches('0').to_owned();
    let same = |known: &Option<String>, text: &str| {
        known.as_deref().is_some_and(|known| bare(known) == bare(text) && !bare(text).is_empty())
    };
    let number = number(code);
    property(entity, "ENT_NAT_REF_COD").any(|number| same(&subject.id, &number))
        || same(&subject.id, number)
        || same(&subject.name, name)
}

/// What the codes of kinds stand for.
const KINDS: [(&str, &str); 10] = [
    ("PSD_PI", "payment institution"),
    ("PSD_EPI", "exempted payment institution"),
    ("PSD_EMI", "electronic money institution"),
    ("PSD_EEMI", "exempted electronic money institution"),
    ("PSD_AISP", "account information service provider"),
    ("PSD_AG", "agent of a payment institution"),
    ("PSD_BR", "branch of a payment institution"),
    ("PSD_EXC", "provider of excluded services"),
    ("PSD_ENL", "institution entitled under national law"),
    ("CRD_CRE_INS", "credit institution"),
];

/// What is said about a licence that is in force.
const IN_FORCE: &str = "in force";

/// Whether a licence is in force. An institution has the dates on which it was given and withdrawn, in turn. An agent or a
/// branch has a word of its own instead. `None` if the record says neither.
fn licence_state(entity: Node<'_>, dates: usize) -> Option<String> {
    let own = property(entity, "DER_CHI_ENT_AUT").next().or_else(|| entity.get("DER_CHI_ENT_AUT").text());
    let own = own.map(|word| match word.to_lowercase().as_str() {
        "active" | "yes" => IN_FORCE.to_owned(),
        "inactive" | "no" => "inactive".to_owned(),
        _ => format!("unknown ({word})"),
    });
    match dates {
        0 => own,
        even if even.is_multiple_of(2) => Some("withdrawn".to_owned()),
        _ => own.or_else(|| Some(IN_FORCE.to_owned())),
    }
}

fn company(entity: Node<'_>, name: String, code: &str) -> Company {
    let text = |name| property(entity, name).collect::<Vec<_>>().join(", ");
    let some = |text: String| (!text.is_empty()).then_some(text);
    let kind = entity.get("EntityType").text().unwrap_or_default();
    let kind = KINDS.iter().find(|(known, _)| *known == kind).map_or(kind.as_str(), |(_, kind)| *kind).to_owned();
    let dates: Vec<_> = property(entity, "ENT_AUT").collect();
    let licence = licence_state(entity, dates.len());
    let mut registrations = vec![format!("{kind} {code}")];
    let changes = ["authorised", "withdrawn"].iter().cycle();
    registrations.extend(dates.iter().zip(changes).map(|(date, change)| format!("{change}: {date}")));
    registrations.extend(licence.iter().map(|licence| format!("licence: {licence}")));
    let kept = if licence.as_deref().is_none_or(|licence| licence == IN_FORCE) { "" } else { "not in force: " };
    for (country, services) in entity.get("Services").items().flat_map(Node::members) {
        registrations.push(format!("{kept}services in {country}: {}", services.texts().join(", ")));
    }
    Company {
        status: licence.map(|licence| format!("licence {licence}")),
        name: Some(name),
        id: some(text("ENT_NAT_REF_COD")),
        country: property(entity, "ENT_COU_RES").next().or_else(|| authority_country(code).map(str::to_owned)),
        address: Some(Address {
            street: some(text("ENT_ADD")),
            postal_code: some(text("ENT_POS_COD")),
            city: some(text("ENT_TOW_CIT_RES")),
            country: property(entity, "ENT_COU_RES").next(),
        })
        .filter(|address| address.street.is_some() || address.city.is_some()),
        registrations,
        ..Company::default()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const BANKS: &[u8] = include_bytes!("../../../simulator/fixtures/eba_register/credit_institutions.json");
    const ARCHIVED: &[u8] =
        include_bytes!("../../../simulator/fixtures/eba_register/files/download-PSDMD-202611290000.zip");

    fn subject(country: &str, id: &str, name: &str) -> Subject {
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Subject { id: known(id), name: known(name), ..Subject::new(country.parse().expect("a country")) }
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        archive.start_file("register.json", zip::write::SimpleFileOptions::default()).expect("a file");
        archive.write_all(text).expect("written");
        archive.finish().expect("an archive").into_inner()
    }

    #[test]
    fn the_metadata_name_the_file_its_checksum_and_its_day() {
        let body = include_bytes!("../../../simulator/fixtures/eba_register/filemetadata.json");
        let announced = announcement(body).expect("an edition");
        assert!(announced.link.ends_with("/register/downloads/PSDMD/20261129/download-PSDMD-202611290000.zip"));
        assert_eq!((day(announced.date).to_string(), sha256(ARCHIVED)), ("2026-11-29".to_owned(), announced.sha256));
        assert_survives_corruption("eba_register.metadata", metadata, body);
    }

    #[test]
    fn licences_are_found_by_number_or_by_name_in_the_right_country() {
        let found = |country, id, name| unpack(ARCHIVED, UNPACKED, &subject(country, id, name)).expect("readable");
        let company = found("EE", "12417834", "").remove(0);
        assert_eq!(company.name.as_deref(), Some("Bolt Technology OÜ"));
        assert!(company.registrations.contains(&"withdrawn: 2024-03-01".to_owned()), "{:?}", company.registrations);
        let company = found("IE", "", "EXAMPLE Payments Limited").remove(0);
        assert_eq!(company.registrations[0], "payment institution IE_CBI!C58301");
        assert!(company.registrations.contains(&"services in AT: PS_03A, PS_05A".to_owned()));
        assert!(found("DE", "12417834", "Example Payments Limited").is_empty(), "a namesake elsewhere");
        assert!(found("NO", "923609016", "EQUINOR ASA").is_empty());
    }

    #[test]
    fn each_part_has_a_status_of_its_own() {
        let read = |kind: &str, code: &str, property: &str| {
            let body = format!(
                r#"[{{"EntityType":"{kind}","EntityCode":"{code}","Properties":[{{"ENT_NAM":"X Pay"}},{{"ENT_COU_RES":"FR"}},
                {property}],"Services":[{{"FR":["PS_010"]}}]}}]"#
            );
            institutions(body.as_bytes(), 10_000, &subject("FR", "", "X Pay")).expect("a list").remove(0)
        };
        let agent =
            |word: &str| read("PSD_AG", "PSD_PI!FR_ACPR!1376!50208", &format!(r#"{{"DER_CHI_ENT_AUT":"{word}"}}"#));
        assert_eq!(agent("Active").status.as_deref(), Some("licence in force"));
        assert!(agent("Active").registrations.contains(&"services in FR: PS_010".to_owned()));
        let inactive = agent("Inactive");
        assert_eq!(inactive.status.as_deref(), Some("licence inactive"));
        assert!(inactive.registrations.contains(&"not in force: services in FR: PS_010".to_owned()));
        assert_eq!(agent("Invented").status.as_deref(), Some("licence unknown (Invented)"));
        let again = r#"{"ENT_AUT":["2018-01-01","2019-01-01","2020-01-01"]}"#;
        assert_eq!(read("PSD_PI", "FR_ACPR!1376", again).status.as_deref(), Some("licence in force"));
        let gone = r#"{"ENT_AUT":["2018-01-01","2019-01-01"]}"#;
        assert_eq!(read("PSD_PI", "FR_ACPR!1376", gone).status.as_deref(), Some("licence withdrawn"));
    }

    #[test]
    fn the_code_of_an_agent_names_its_authority() {
        assert_eq!(authority_country("PSD_PI!FR_ACPR!1376!50208"), Some("FR"));
        assert_eq!((authority_country("IE_CBI!C58301"), number("IE_CBI!C58301")), (Some("IE"), "C58301"));
        assert_eq!(number("PSD_PI!FR_ACPR!1376!50208"), "PSD_PI!FR_ACPR!1376!50208", "no number of an authority");
    }

    #[test]
    fn a_mangled_list_is_not_a_list_without_us() {
        let fortis = subject("BE", "0403199702", "BNP Paribas Fortis");
        assert_survives_corruption(
            "eba_register.credit_institution",
            |body| banks(body, &subject("BE", "0403.199.702", "BNP PARIBAS FORTIS")),
            BANKS,
        );
        assert_eq!(banks(BANKS, &subject("NO", "923609016", "")).expect_err("no bank").class, Class::NotFound);
        assert_eq!(banks(br#"[{"a":1}]"#, &fortis).expect_err("another list").class, Class::BadShape);
        assert_eq!(banks(b"[]", &fortis).expect_err("an empty one").class, Class::NotFound);
    }

    #[test]
    fn half_archives_and_bombs_are_refused() {
        let equinor = subject("NO", "923609016", "");
        for length in [0, 1, 100, ARCHIVED.len() / 2, ARCHIVED.len() - 1] {
            let half = &ARCHIVED[..length];
            assert_eq!(unpack(half, UNPACKED, &equinor).expect_err("half").class, Class::BadShape, "{length}");
            assert!(matching(half, &sha256(ARCHIVED)).is_err());
        }
        let bomb = packed(format!("[{}]", vec![r#"{"a":1}"#; 100_000].join(",")).as_bytes());
        assert!(bomb.len() < 10_000, "a small archive");
        assert_eq!(unpack(&bomb, 500_000, &equinor).expect_err("a bomb").class, Class::BadShape);
        let one = packed(format!(r#"[{{"a":"{}"}}]"#, "x".repeat(3_000_000)).as_bytes());
        assert_eq!(unpack(&one, UNPACKED, &equinor).expect_err("one endless record").class, Class::BadShape);
        assert_eq!(unpack(&packed(b""), UNPACKED, &equinor).expect_err("empty").class, Class::Unavailable);
    }
}

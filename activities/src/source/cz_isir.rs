//! ISIR: the Czech insolvency register, over SOAP.
//!
//! Every answer is a 200 with a code in it. One code means "nothing found", which is the good news a report is after;
//! others mean that the database behind the service is gone. An unknown code is an outage: read as "nothing
//! found" it would call a bankrupt company sound.

use super::cz_ares;
use crate::{
    model::{Facts, Notice},
    parse::xml::Node,
    parse::{soap, xml},
    spec::{Answer, Base, Class, Countries, Fallback, Flow, Need, Operation, Probe, Request, Source, SourceError, on},
};

/// The row.
pub static SOURCE: Source = Source {
    name: "cz_isir",
    title: "ISIR, Czech insolvency register",
    breaker: "cz_isir",
    base: Base { env: "CZ_ISIR_BASE_URL", default: "https://isir.justice.cz:8443/isir_cuzk_ws" },
    // It has no refusals of its own in HTTP: whatever is no 200 comes from the machines before it.
    rules: &[
        on(400).means(Class::Unavailable, "is out of order (HTTP 400)"),
        on(403).means(Class::Unavailable, "or a firewall before it turns us away (HTTP 403)"),
        on(404).means(Class::Unavailable, "is out of order (HTTP 404)"),
    ],
    probe: Some(Probe { request: || search("27082440"), read: alive }),
    limits: "50 requests a minute and 3000 a day",
    terms: "free; data of the Ministry of Justice, as of its last synchronisation",
    operations: &[Operation {
        name: "cz_isir.insolvency",
        answers: "insolvency proceedings, past and present",
        countries: Countries::Only(&["CZ"]),
        needs: &[Need::Id],
        flow: Flow::Single { request: |subject| Some(search(subject.id.as_deref()?)), parse: proceedings },
        fallbacks: &[Fallback {
            via: "cz_ares",
            proves: "ARES tells only whether there is a record, and nothing of what it says",
            source: &cz_ares::SOURCE,
            flow: cz_ares::INSOLVENCY,
        }],
        ..Operation::BLANK
    }],
    ..Source::BLANK
};

/// What a code means for the question. Whatever is not here is an outage, as `SERVER1` and `SQL1` are.
const CODES: [(&str, Class, &str); 3] = [
    ("WS1", Class::Business, "does not accept the question (WS1)"),
    ("WS2", Class::NotFound, "has no insolvency proceedings of this number"),
    ("WS3", Class::Business, "does not accept the question (WS3)"),
];

fn search(number: &str) -> Request {
    let asked = [("ic", number), ("maxPocetVysledku", "50"), ("filtrAktualniRizeni", "F")];
    let envelope = soap::request("http://isirws.cca.cz/types/", "getIsirWsCuzkDataRequest", false, &asked);
    Request::post_xml("/IsirWsCuzkService", envelope).header("SOAPAction", "\"\"")
}

fn proceedings(body: &[u8]) -> Result<Answer, SourceError> {
    let envelope = xml::parse(body)?;
    let answer = soap::answer(&envelope, "getIsirWsCuzkDataResponse", |_| outage("a fault"))?;
    let state = answer.require("stav")?;
    let as_of = state.get("casSynchronizace");
    if let Some(code) = state.get("kodChyby").text() {
        return Err(match CODES.iter().find(|(known, ..)| *known == code) {
            Some((_, Class::NotFound, reason)) => match as_of.text() {
                Some(time) => SourceError::not_found(format!("{reason}, as of {time}")),
                None => SourceError::not_found(*reason),
            },
            Some((_, class, reason)) => SourceError::new(*class, *reason),
            None => outage("a code that means a failure of its own"),
        });
    }
    let notices: Vec<_> = answer.all("data").map(proceeding).collect::<Result<_, _>>()?;
    if notices.is_empty() {
        // It says so with a code. Without one, and without data, something is missing.
        return Err(SourceError::bad_shape("answered neither with proceedings nor with a code for none"));
    }
    Ok(Answer::from(Facts { notices, ..Facts::default() }).dated(as_of.time()))
}

fn outage(what: &str) -> SourceError {
    SourceError::unavailable(format!("answered with {what}"))
}

/// One case. The debtor may be a person, of whom it gives birth number and address: neither is taken.
fn proceeding(case: Node<'_>) -> Result<Notice, SourceError> {
    let text = |name: &str| case.get(name).text().map(str::to_owned);
    let day = |name: &str| text(name).map(|date| date.get(..10).unwrap_or(&date).to_owned()); // without the zone
    let number = case.require("bcVec")?.text().unwrap_or_default();
    let senate = case.get("cisloSenatu").text().unwrap_or_default();
    let (kind, year) = (case.get("druhVec").text().unwrap_or("INS"), case.get("rocnik").text().unwrap_or_default());
    let parts = [
        Some(format!("{senate} {kind} {number}/{year}").trim().to_owned()),
        text("druhStavKonkursu"),
        day("datumPmUkonceniUpadku").map(|day| format!("ended {day}")),
    ];
    Ok(Notice {
        date: day("datumPmZahajeniUpadku"),
        kind: Some("insolvency".to_owned()),
        text: Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", ")),
        publisher: text("nazevOrganizace"),
        url: text("urlDetailRizeni"),
    })
}

/// A probe asks about a company whose answer is beside the point, as long as it is one.
fn alive(body: &[u8]) -> Result<(), SourceError> {
    match proceedings(body) {
        Err(error) if !matches!(error.class, Class::NotFound | Class::Business) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    fn body(content: &str) -> Vec<u8> {
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?><e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Header/>
            <e:Body><n:getIsirWsCuzkDataResponse xmlns:n="http://isirws.cca.cz/types/">{content}
            </n:getIsirWsCuzkDataResponse></e:Body></e:Envelope>"#
        )
        .into_bytes()
    }

    fn coded(code: &str) -> Vec<u8> {
        body(&format!(
            "<stav><pocetVysledku>0</pocetVysledku><casSynchronizace>2026-11-30T07:55:00.000+01:00</casSynchronizace><kodChyby>{code}</kodChyby></stav>"
        ))
    }

    const CASE: &str = "<data><ic>99000105</ic><rc>8001011234</rc><cisloSenatu>41</cisloSenatu><druhVec>INS</druhVec><bcVec>1234</bcVec>\
        <rocnik>2026</rocnik><nazevOrganizace>Městský soud v Praze</nazevOrganizace><nazevOsoby>Vzorová</nazevOsoby>\
        <druhStavKonkursu>KONKURS</druhStavKonkursu><datumPmZahajeniUpadku>2026-02-05+01:00</datumPmZahajeniUpadku></data>";
    const STATE: &str = "<stav><pocetVysledku>2</pocetVysledku><casSynchronizace>2026-11-30T07:55:00.000+01:00</casSynchronizace></stav>";

    #[test]
    fn cases_are_read_without_the_debtors_personal_data() {
        let answer = proceedings(&body(&format!("{CASE}{CASE}{STATE}"))).expect("cases");
        assert_eq!(
            (answer.facts.notices.len(), answer.as_of.map(jiff::Timestamp::as_second)),
            (2, Some(1_796_021_700))
        );
        let case = &answer.facts.notices[0];
        assert_eq!(case.text.as_deref(), Some("41 INS 1234/2026, KONKURS"));
        assert_eq!(
            (case.date.as_deref(), case.publisher.as_deref()),
            (Some("2026-02-05"), Some("Městský soud v Praze"))
        );
        let facts = serde_json::to_string(&answer.facts).expect("JSON");
        assert!(!facts.contains("8001011234") && !facts.contains("Vzorová"), "{facts}");
        assert_survives_corruption("cz_isir.insolvency", proceedings, &body(&format!("{CASE}{STATE}")));
    }

    #[test]
    fn one_code_means_nothing_found_and_unknown_ones_are_outages() {
        for (code, class) in [
            ("WS1", Class::Business),
            ("WS2", Class::NotFound),
            ("WS3", Class::Business),
            ("WS4", Class::Unavailable),
            ("SQL1", Class::Unavailable),
            ("SERVER1", Class::Unavailable),
            ("NEW", Class::Unavailable),
        ] {
            let error = proceedings(&coded(code)).expect_err(code);
            assert_eq!(error.class, class, "{code}");
            assert_eq!(alive(&coded(code)).is_ok(), class != Class::Unavailable, "{code} as a sign of life");
        }
        assert!(proceedings(&coded("WS2")).expect_err("none").reason.contains("as of 2026-11-30T07:55"));
        assert_eq!(proceedings(&body(STATE)).expect_err("neither").class, Class::BadShape);
        assert_eq!(proceedings(&body("")).expect_err("no state").class, Class::BadShape);
        assert_eq!(proceedings(b"<html>blocked</html>").expect_err("a page").class, Class::Unavailable);
        let fault =
            br#"<e:Envelope xmlns:e="x"><e:Body><e:Fault><faultstring>x</faultstring></e:Fault></e:Body></e:Envelope>"#;
        assert_eq!(proceedings(fault).expect_err("a fault").class, Class::Unavailable);
    }
}

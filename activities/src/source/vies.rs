//! VIES: whether a VAT number is registered. The Commission's service relays to one service per member state.
//!
//! Nearly every failure arrives with status 200, and "the member state does not answer" lies one field away from "the
//! number is not registered". So `valid: false` is concluded from one code only, and an unknown code is an
//! outage. An error of a member state counts for its own breaker (`vies:DE`), a failure on the way there for `vies`.

use circuit_registry::CallError;
use futures::future::BoxFuture;

use super::{cz_ares, fi_ytj, ro_anaf, vatsense, vies_soap};
use crate::{
    model::{Availability, Facts, Subject, VatCheck},
    parse::json::{self, Node, lacks},
    spec::{
        Answer, Base, Class, Countries, Fallback, Flow, Need, Operation, Probe, Request, Rule, Scope, Session, Source,
        SourceError, Stay, on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "vies",
    title: "VIES, VAT numbers of the EU",
    breaker: "vies",
    base: Base { env: "VIES_BASE_URL", default: "https://ec.europa.eu/taxation_customs/vies/rest-api" },
    timeout: std::time::Duration::from_secs(15), // member states take up to half a minute; the slow ones are given up
    // An error envelope comes with any status; what counts is the code in it.
    rules: &[on(0).with("errorWrappers").means(Class::Ok, "")],
    probe: Some(Probe { request: || Request::get("/check-status"), read: available }),
    account: ACCOUNT,
    limits: "undisclosed; concurrency per member state, shared by all users",
    terms: "free; no service level",
    operations: &[
        Operation {
            name: "vies.check",
            answers: "whether the VAT number is registered, and to whom",
            countries: Countries::EuVat,
            needs: &[Need::Vat],
            flow: Flow::Steps(check),
            part: Some(|subject| Some(number(subject)?.0)),
            fallbacks: &[
                Fallback {
                    via: "vies_soap",
                    proves: "the older interface of VIES answered instead",
                    source: &vies_soap::SOURCE,
                    flow: Flow::Steps(vies_soap::check),
                },
                Fallback {
                    via: "vatsense",
                    proves: "VATSense answered instead, possibly from its cache",
                    source: &vatsense::SOURCE,
                    flow: Flow::Steps(vatsense::check),
                },
                Fallback {
                    via: "cz_ares",
                    proves: "the Czech VAT register answered instead, which says nothing about trade within the EU",
                    source: &cz_ares::SOURCE,
                    flow: Flow::Steps(cz_ares::vat_check),
                },
                Fallback {
                    via: "fi_ytj",
                    proves: "the Finnish VAT register answered instead, which says nothing about trade within the EU",
                    source: &fi_ytj::SOURCE,
                    flow: Flow::Steps(fi_ytj::vat_check),
                },
                Fallback {
                    via: "ro_anaf",
                    proves: "the Romanian VAT register answered instead, which says nothing about trade within the EU",
                    source: &ro_anaf::SOURCE,
                    flow: Flow::Steps(ro_anaf::vat_check),
                },
            ],
            ..Operation::BLANK
        },
        Operation {
            name: "vies.status",
            answers: "which member states can answer at the moment",
            countries: Countries::EuVat,
            flow: Flow::Single { request: |_| Some(Request::get("/check-status")), parse: status },
            ..Operation::BLANK
        },
    ],
    ..Source::BLANK
};

/// A blocked address is blocked on both interfaces.
pub(super) const ACCOUNT: &[&str] = &["vies", "vies_soap"];

/// What the codes of VIES mean.
#[rustfmt::skip]
static CODES: [(&str, Rule); 11] = [
    ("INVALID_INPUT", on(0).means(Class::Business, "does not accept the form of this number")),
    ("INVALID_REQUESTER_INFO", on(0).means(Class::Business, "does not accept the requester")),
    ("SERVICE_UNAVAILABLE", on(0).means(Class::Unavailable, "is unavailable (SERVICE_UNAVAILABLE)")),
    ("SERVER_BUSY", on(0).means(Class::Unavailable, "is busy (SERVER_BUSY)")),
    ("GLOBAL_MAX_CONCURRENT_REQ", on(0).means(Class::Unavailable, "has too many users at once (GLOBAL_MAX_CONCURRENT_REQ)")),
    ("GLOBAL_MAX_CONCURRENT_REQ_TIME", on(0).means(Class::Unavailable, "has too many users at once (GLOBAL_MAX_CONCURRENT_REQ_TIME)")),
    ("MS_UNAVAILABLE", on(0).means(Class::Unavailable, "cannot reach the member state (MS_UNAVAILABLE)").of(Scope::Part)),
    ("MS_MAX_CONCURRENT_REQ", on(0).means(Class::Unavailable, "finds the member state busy (MS_MAX_CONCURRENT_REQ)").of(Scope::Part)),
    ("MS_MAX_CONCURRENT_REQ_TIME", on(0).means(Class::Unavailable, "finds the member state busy (MS_MAX_CONCURRENT_REQ_TIME)").of(Scope::Part)),
    ("TIMEOUT", on(0).means(Class::Timeout, "waited for the member state in vain (TIMEOUT)").of(Scope::Part)),
    ("IP_BLOCKED", on(0).means(Class::Throttled, "has blocked our address (IP_BLOCKED)").of(Scope::Account).stay(Stay::Seconds(3600))),
];

/// The error that a code means. A code that is not in the table is an outage: read as "invalid", it would tell somebody
/// that their business partner's VAT number is dead.
pub(super) fn source_error(code: &str) -> SourceError {
    if code == "VAT_BLOCKED" {
        return SourceError::new(Class::Denied, "refuses to answer about this number (VAT_BLOCKED)").of(Scope::Subject);
    }
    match CODES.iter().find(|(known, _)| *known == code) {
        Some((_, rule)) => {
            let wait =
                rule.stay.length(None, b"", jiff::Timestamp::UNIX_EPOCH).filter(|_| rule.class == Class::Throttled);
            SourceError::new(rule.class, rule.reason).after(wait).of(rule.scope)
        }
        None => SourceError::unavailable("gave a code that it does not document").of(Scope::Part),
    }
}

/// Country prefix and national part of the subject's number.
pub(super) fn number(subject: &Subject) -> Option<(String, String)> {
    let (vat, _) = subject.vat_number()?;
    let (prefix, national) = vat.split_at_checked(2)?;
    (!national.is_empty()).then(|| (prefix.to_owned(), national.to_owned()))
}

/// The checked number with what the question knew and the answer does not.
pub(super) fn about(subject: &Subject, check: VatCheck) -> Answer {
    let (number, derived) = subject.vat_number().unwrap_or_default();
    let mut notes = Vec::new();
    if derived && !check.valid {
        notes.push(
            "the number was derived from the register number; the company may use another one, or none".to_owned(),
        );
    }
    Facts { vat: Some(VatCheck { number, derived, ..check }), notes, ..Facts::default() }.into()
}

fn check<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let subject = session.subject();
        let (prefix, national) = number(subject).unwrap_or_default();
        let request = Request::get("/ms").segment(prefix).segment("vat").segment(national);
        session.ask(request, |reply| read(&reply.body)).await.map(|check| about(subject, check))
    })
}

/// Asks the register of one country in the place of VIES. `request` answers `None` to the numbers of other countries.
pub(super) fn nationally<'a>(
    session: &'a Session<'_>,
    request: fn(&str) -> Option<Request>,
    read: fn(&[u8], &str) -> Result<VatCheck, SourceError>,
) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let subject = session.subject();
        let number = subject.vat_number().map(|(number, _)| number).unwrap_or_default();
        let Some(request) = request(&number) else {
            return Err(CallError::Upstream(SourceError::business("knows no numbers of this kind")));
        };
        session.ask(request, |reply| read(&reply.body, &number)).await.map(|check| about(subject, check))
    })
}

fn available(body: &[u8]) -> Result<(), SourceError> {
    status(body).map(drop)
}

/// Reads which member states are available. It is about them, and never about a number.
fn status(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let answer = Node::root(&document);
    match answer.at("vow.available").flag() {
        Some(false) => return Err(source_error("SERVICE_UNAVAILABLE")),
        Some(true) => {}
        None => return Err(lacks("vow.available")),
    }
    let state = |country: Node<'_>| {
        let available = match country.require_text("availability")?.as_str() {
            "Available" => true,
            "Unavailable" | "Monitoring Disabled" => false,
            _ => return Err(lacks("availability")),
        };
        Ok(Availability { part: country.require_text("countryCode")?, available })
    };
    let countries = answer.require_list("countries")?;
    let availability: Vec<_> = countries.into_iter().map(state).collect::<Result<_, _>>()?;
    if availability.is_empty() {
        return Err(lacks("countries"));
    }
    Ok(Facts { availability, ..Facts::default() }.into())
}

/// Reads a check, by either of the two envelopes.
fn read(body: &[u8]) -> Result<VatCheck, SourceError> {
    let document = json::parse(body)?;
    let answer = Node::root(&document);
    if answer.get("actionSucceed").flag() == Some(false) || answer.get("errorWrappers").exists() {
        let code = answer.get("errorWrappers").items().find_map(|wrapper| wrapper.get("error").text());
        return Err(source_error(code.as_deref().unwrap_or_default()));
    }
    let code = answer.require_text("userError")?;
    let valid = match (code.as_str(), answer.get("isValid").flag()) {
        ("VALID", Some(true)) => true,
        ("INVALID", Some(false)) => false,
        ("VALID" | "INVALID", _) => return Err(lacks("isValid")),
        (other, _) => return Err(source_error(other)),
    };
    let text = |name: &str| disclosed(answer.get(name).text().as_deref());
    Ok(VatCheck { valid, name: text("name"), address: text("address"), ..VatCheck::default() })
}

/// A text on one line, unless the member state withholds it.
pub(super) fn disclosed(text: Option<&str>) -> Option<String> {
    let words: Vec<_> = text.filter(|text| *text != "---")?.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use circuit_registry::{Classify, Verdict};

    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    fn body(valid: &str, code: &str) -> String {
        format!(
            r#"{{"isValid":{valid},"requestDate":"2026-05-31T07:43:04.734Z","userError":"{code}","name":"GOOGLE IRELAND LIMITED",
            "address":"3RD FLOOR, GORDON HOUSE,\nBARROW STREET","requestIdentifier":"","vatNumber":"6388047V"}}"#
        )
    }

    fn wrapper(code: &str) -> String {
        format!(r#"{{"actionSucceed":false,"errorWrappers":[{{"error":"{code}","message":"x"}}]}}"#)
    }

    #[test]
    fn only_one_code_means_invalid() {
        let valid = read(body("true", "VALID").as_bytes()).expect("an answer");
        assert!(valid.valid && valid.name.as_deref() == Some("GOOGLE IRELAND LIMITED"));
        assert_eq!(valid.address.as_deref(), Some("3RD FLOOR, GORDON HOUSE, BARROW STREET"));
        assert!(!read(body("false", "INVALID").as_bytes()).expect("an answer").valid);
        for (flag, code) in [("true", "INVALID"), ("false", "VALID"), ("null", "INVALID"), ("\"no\"", "INVALID")] {
            assert_eq!(read(body(flag, code).as_bytes()).expect_err("contradicts itself").class, Class::BadShape);
        }
        let silent = br#"{"isValid":false,"name":"---"}"#;
        assert_eq!(read(silent).expect_err("says nothing").class, Class::BadShape);
    }

    #[test]
    fn every_code_counts_where_it_belongs() {
        use Verdict::{Failure, Neutral, Success};
        let hour = Verdict::Throttled { retry_after: Some(std::time::Duration::from_secs(3600)) };
        // Code, class, verdict on `vies`, verdict on `vies:XX`.
        let table = [
            ("INVALID_INPUT", Class::Business, Success, Success),
            ("INVALID_REQUESTER_INFO", Class::Business, Success, Success),
            ("SERVICE_UNAVAILABLE", Class::Unavailable, Failure, Neutral),
            ("SERVER_BUSY", Class::Unavailable, Failure, Neutral),
            ("GLOBAL_MAX_CONCURRENT_REQ", Class::Unavailable, Failure, Neutral),
            ("GLOBAL_MAX_CONCURRENT_REQ_TIME", Class::Unavailable, Failure, Neutral),
            ("MS_UNAVAILABLE", Class::Unavailable, Success, Failure),
            ("MS_MAX_CONCURRENT_REQ", Class::Unavailable, Success, Failure),
            ("MS_MAX_CONCURRENT_REQ_TIME", Class::Unavailable, Success, Failure),
            ("TIMEOUT", Class::Timeout, Success, Failure),
            ("VAT_BLOCKED", Class::Denied, Neutral, Neutral),
            ("IP_BLOCKED", Class::Throttled, hour, Neutral),
            ("NEVER_HEARD_OF", Class::Unavailable, Success, Failure),
            ("", Class::Unavailable, Success, Failure),
        ];
        for (code, class, service, part) in table {
            let in_wrapper = read(wrapper(code).as_bytes()).expect_err(code);
            assert_eq!(
                (in_wrapper.class, in_wrapper.verdict(), in_wrapper.verdict_on_part()),
                (class, service, part),
                "{code}"
            );
            if !code.is_empty() {
                assert_eq!(
                    read(body("false", code).as_bytes()).expect_err(code),
                    in_wrapper,
                    "{code} in either envelope"
                );
            }
        }
    }

    #[test]
    fn withheld_names_are_absent() {
        let withheld = br#"{"isValid":true,"userError":"VALID","name":"---","address":"---"}"#;
        let check = read(withheld).expect("an answer");
        assert!(check.valid && check.name.is_none() && check.address.is_none());
    }

    #[test]
    fn states_of_member_states_are_no_states_of_numbers() {
        let body = br#"{"vow":{"available":true},"countries":[{"countryCode":"AT","availability":"Available"},
            {"countryCode":"DE","availability":"Unavailable"}]}"#;
        let facts = status(body).expect("states").facts;
        assert!(facts.vat.is_none());
        assert_eq!(
            facts.availability.iter().map(|a| (a.part.as_str(), a.available)).collect::<Vec<_>>(),
            [("AT", true), ("DE", false)]
        );
        let class = |body: &[u8]| status(body).expect_err("no states").class;
        assert_eq!(class(br#"{"vow":{"available":false},"countries":[]}"#), Class::Unavailable);
        assert_eq!(class(br#"{"vow":{"available":true},"countries":[]}"#), Class::BadShape);
        assert_survives_corruption("vies.status", status, body);
    }

    #[test]
    fn mangled_answers_never_become_invalid_numbers() {
        let parse = |body: &[u8]| read(body).map(|check| Facts { vat: Some(check), ..Facts::default() }.into());
        assert_survives_corruption("vies.check", parse, body("true", "VALID").as_bytes());
        assert_eq!(read(b"<html>maintenance</html>").expect_err("a page").class, Class::Unavailable);
    }
}

//! VIES over SOAP: the older interface to the same member states. It can be up while the newer one is down, which is all it
//! is asked for: a failure of a member state is the same on both interfaces, and counts for the same breaker (`vies:DE`).

use circuit_registry::CallError;
use futures::future::BoxFuture;

use super::vies;
use crate::{
    model::VatCheck,
    parse::json::lacks,
    parse::{soap, xml},
    spec::{Answer, Base, Class, Request, Session, Source, SourceError, on},
};

/// The row.
pub static SOURCE: Source = Source {
    name: "vies_soap",
    title: "VIES over SOAP (fallback for its newer interface)",
    breaker: "vies_soap",
    base: Base { env: "VIES_SOAP_BASE_URL", default: "https://ec.europa.eu/taxation_customs/vies/services" },
    timeout: vies::SOURCE.timeout,
    // A fault comes with 200 and with 500; what counts is the code in it.
    rules: &[on(500).with("faultstring").means(Class::Ok, "")],
    account: vies::ACCOUNT,
    limits: "undisclosed; concurrency per member state, shared by all users",
    terms: "free; no service level",
    parts_of: Some("vies"),
    ..Source::BLANK
};

const TYPES: &str = "urn:ec.europa.eu:taxud:vies:services:checkVat:types";

/// The check, in the place of the newer interface.
pub(super) fn check<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let subject = session.subject();
        let (prefix, national) = vies::number(subject).unwrap_or_default();
        let asked = [("countryCode", prefix.as_str()), ("vatNumber", national.as_str())];
        let request = Request::post_xml("/checkVatService", soap::request(TYPES, "checkVat", true, &asked));
        let answer = session.ask(request.header("SOAPAction", "\"\""), |reply| read(&reply.body)).await;
        answer.map(|check| vies::about(subject, check))
    })
}

fn read(body: &[u8]) -> Result<VatCheck, SourceError> {
    let envelope = xml::parse(body)?;
    let answer = soap::answer(&envelope, "checkVatResponse", vies::source_error)?;
    let text = |name: &str| vies::disclosed(answer.get(name).text());
    Ok(VatCheck {
        valid: answer.get("valid").flag().ok_or_else(|| lacks("valid"))?,
        name: text("name"),
        address: text("address"),
        ..VatCheck::default()
    })
}

#[cfg(test)]
mod tests {
    use circuit_registry::{Classify, Verdict};

    use super::*;
    use crate::{model::Facts, parse::corruption::assert_survives_corruption};

    fn envelope(content: &str) -> Vec<u8> {
        format!(
            r#"<env:Envelope xmlns:env="http://schemas.xmlsoap.org/soap/envelope/"><env:Body>{content}</env:Body></env:Envelope>"#
        )
        .into_bytes()
    }

    fn response(valid: &str) -> Vec<u8> {
        envelope(&format!(
            "<n:checkVatResponse xmlns:n=\"{TYPES}\"><n:countryCode>CZ</n:countryCode><n:vatNumber>27082440</n:vatNumber>\
             <n:requestDate>2026-11-30+01:00</n:requestDate>{valid}<n:name>Alza.cz a.s.</n:name>\
             <n:address>Jankovcova 1522/53\nPRAHA 7</n:address></n:checkVatResponse>"
        ))
    }

    #[test]
    fn only_a_stated_truth_value_is_an_answer() {
        let check = read(&response("<n:valid>true</n:valid>")).expect("an answer");
        assert!(check.valid && check.name.as_deref() == Some("Alza.cz a.s."));
        assert_eq!(check.address.as_deref(), Some("Jankovcova 1522/53 PRAHA 7"));
        assert!(!read(&response("<n:valid>false</n:valid>")).expect("an answer").valid);
        for odd in ["", "<n:valid/>", "<n:valid>no</n:valid>"] {
            assert_eq!(read(&response(odd)).expect_err("no answer").class, Class::BadShape, "{odd}");
        }
        let parse = |body: &[u8]| read(body).map(|check| Facts { vat: Some(check), ..Facts::default() }.into());
        assert_survives_corruption("vies.check", parse, &response("<n:valid>true</n:valid>"));
    }

    #[test]
    fn a_fault_is_judged_by_its_code() {
        for code in ["MS_UNAVAILABLE", "MS_MAX_CONCURRENT_REQ", "INVALID_INPUT", "SERVER_BUSY", "NEVER_HEARD_OF", ""] {
            let fault =
                format!("<env:Fault><faultcode>env:Server</faultcode><faultstring>{code}</faultstring></env:Fault>");
            assert_eq!(read(&envelope(&fault)).expect_err(code), vies::source_error(code), "{code}");
        }
        let unknown = read(&envelope("<env:Fault/>")).expect_err("a fault");
        assert_eq!((unknown.class, unknown.verdict_on_part()), (Class::Unavailable, Verdict::Failure));
        assert_eq!(unknown.verdict(), Verdict::Success);
    }
}

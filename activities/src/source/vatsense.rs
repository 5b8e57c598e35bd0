//! VATSense: the fallback for VIES. It asks VIES itself where its cache has no answer, so its own failures are often those of VIES.

use circuit_registry::CallError;
use futures::future::BoxFuture;

use super::vies;
use crate::{
    model::VatCheck,
    parse::json::{self, Node, lacks},
    spec::{Answer, Auth, Base, Class, Credential, Request, Session, Source, SourceError, on},
};

/// The row.
pub static SOURCE: Source = Source {
    name: "vatsense",
    title: "VATSense, VAT numbers (fallback for VIES)",
    breaker: "vatsense",
    base: Base { env: "VATSENSE_BASE_URL", default: "https://api.vatsense.com/1.0" },
    credentials: &[Credential { any_of: &["VATSENSE_API_KEY"], obtain: "create a key at https://vatsense.com" }],
    auth: Auth::Basic { user: "user", password: "VATSENSE_API_KEY" },
    rules: &[
        on(412).means(Class::Unavailable, "cannot reach the member state either (HTTP 412)"),
        on(400).json().means(Class::Business, "does not accept the form of this number"),
        on(404).json().means(Class::NotFound, "knows no such number"),
    ],
    limits: "300 requests a minute",
    terms: "commercial; answers may come from a cache",
    ..Source::BLANK
};

/// The check, as VIES would answer it.
pub(super) fn check<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let subject = session.subject();
        let (prefix, national) = vies::number(subject).unwrap_or_default();
        let request = Request::get("/validate").query("vat_number", format!("{prefix}{national}"));
        session.ask(request, |reply| read(&reply.body)).await.map(|check| vies::about(subject, check))
    })
}

fn read(body: &[u8]) -> Result<VatCheck, SourceError> {
    let document = json::parse(body)?;
    let answer = Node::root(&document);
    if answer.get("success").flag() != Some(true) {
        return Err(SourceError::unavailable("reports a failure of its own"));
    }
    let data = answer.require("data")?;
    let company = data.get("company");
    Ok(VatCheck {
        valid: data.get("valid").flag().ok_or_else(|| lacks("valid"))?,
        name: company.get("company_name").text().filter(|name| name != "---"),
        address: company.get("company_address").text().filter(|address| address != "---"),
        ..VatCheck::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::Facts, parse::corruption::assert_survives_corruption};

    #[test]
    fn only_a_stated_truth_value_is_an_answer() {
        let body = br#"{"success":true,"code":200,"data":{"valid":true,"company":{"company_name":"Example Ltd","company_address":"1 Quay"}}}"#;
        let check = read(body).expect("an answer");
        assert!(check.valid && check.name.as_deref() == Some("Example Ltd"));
        for body in [
            &br#"{"success":false,"error":{"title":"x"}}"#[..],
            br#"{"success":true,"data":{}}"#,
            br#"{"data":{"valid":false}}"#,
        ] {
            assert!(read(body).is_err());
        }
        assert_survives_corruption(
            "vatsense",
            |body| read(body).map(|check| Facts { vat: Some(check), ..Facts::default() }.into()),
            body,
        );
    }
}

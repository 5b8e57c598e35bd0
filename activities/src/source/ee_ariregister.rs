//! The Estonian e-business register, by the autocomplete of its web site: the only part that is open to all.
//!
//! It says `text/html` and means JSON, so only the body decides what an answer is. It suggests: a number may bring a company
//! that merely has it in its name, so a question by number believes only the company with that number.

use circuit_registry::CallError;
use futures::future::BoxFuture;

use crate::{
    model::{Address, Company, Standing},
    parse::json::{self, Node},
    spec::{
        Answer, Base, Class, Confidence, Countries, Flow, Need, Operation, Probe, Request, Session, Source,
        SourceError, on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "ee_ariregister",
    title: "e-Business Register of Estonia",
    breaker: "ee_ariregister",
    base: Base { env: "EE_ARIREGISTER_BASE_URL", default: "https://ariregister.rik.ee" },
    rules: &[on(403).html().means(Class::Denied, "refuses callers who do not introduce themselves, and some who do")],
    probe: Some(Probe { request: || suggest("12417834"), read: |body| list(body, |_| true).map(drop) }),
    limits: "none published; ten suggestions a request",
    terms: "open data, CC BY",
    operations: &[
        Operation {
            name: "ee_ariregister.company",
            answers: "the register entry",
            needs: &[Need::Id],
            flow: Flow::Steps(company),
            ..ESTONIAN
        },
        Operation {
            name: "ee_ariregister.search",
            answers: "companies of that name, today or earlier",
            needs: &[Need::Name],
            flow: Flow::Single { request: |s| Some(suggest(s.name.as_deref()?)), parse: suggestions },
            ..ESTONIAN
        },
    ],
    confidence: Confidence::A,
    ..Source::BLANK
};

const ESTONIAN: Operation = Operation { countries: Countries::Only(&["EE"]), ..Operation::BLANK };

fn suggest(text: &str) -> Request {
    Request::get("/est/api/autocomplete").query("q", text)
}

fn company<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let code = session.subject().id.as_deref().unwrap_or_default();
        let ours = |company: &Company| company.id.as_deref() == Some(code);
        session.ask(suggest(code), |reply| Answer::listing(list(&reply.body, ours)?)).await
    })
}

/// It suggests ten at most and states no total: ten may be all, or not.
fn suggestions(body: &[u8]) -> Result<Answer, SourceError> {
    let companies = list(body, |_| true)?;
    let full = companies.len() >= 10;
    let answer = Answer::listing(companies)?;
    Ok(if full { answer.partly("10 were read, which is the most it suggests: there may be more") } else { answer })
}

fn list(body: &[u8], wanted: impl Fn(&Company) -> bool) -> Result<Vec<Company>, SourceError> {
    let document = json::parse(body)?;
    let answer = Node::root(&document);
    if answer.require_text("status")? != "OK" {
        return Err(SourceError::unavailable("reports an error of its own inside a 200"));
    }
    let all = answer.require_list("data")?.into_iter().map(entry).collect::<Result<Vec<_>, _>>()?;
    Ok(all.into_iter().filter(wanted).collect())
}

fn entry(entry: Node<'_>) -> Result<Company, SourceError> {
    let text = |name: &str| entry.get(name).text();
    let (state, standing) = match text("status").as_deref() {
        Some("R") => ("registered", Standing::Active),
        Some("L") => ("in liquidation", Standing::Liquidation),
        Some("N") => ("bankrupt", Standing::Insolvent),
        Some("K") => ("deleted", Standing::Ceased),
        _ => ("", Standing::Unknown),
    };
    let form = |code: String| match code.as_str() {
        "4" => "AS, public limited company".to_owned(),
        "5" => "OÜ, private limited company".to_owned(),
        _ => format!("form {code}"),
    };
    Ok(Company {
        id: Some(entry.require_text("reg_code")?),
        name: Some(entry.require_text("name")?),
        country: Some("EE".to_owned()),
        standing,
        status: Some(state.to_owned()).filter(|state| !state.is_empty()).or_else(|| text("status")),
        legal_form: text("legal_form").map(form),
        address: text("legal_address").map(|line| Address {
            street: Some(line),
            postal_code: text("zip_code"),
            city: None,
            country: Some("EE".to_owned()),
        }),
        former_names: entry.get("historical_names").texts(),
        ..Company::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    fn body() -> String {
        let companies = include_str!("../../../simulator/fixtures/ee_ariregister/companies.json");
        format!(r#"{{"status":"OK","data":{companies}}}"#)
    }

    #[test]
    fn entries_are_read_and_a_number_believes_only_itself() {
        let all = list(body().as_bytes(), |_| true).expect("entries");
        assert_eq!((all[0].name.as_deref(), all[0].id.as_deref()), (Some("Bolt Technology OÜ"), Some("12417834")));
        assert_eq!(
            (all[0].standing, all[0].former_names.as_slice()),
            (Standing::Active, &["mTakso OÜ".to_owned()][..])
        );
        assert!(all.iter().any(|company| company.standing == Standing::Insolvent));
        let ours = list(body().as_bytes(), |company| company.id.as_deref() == Some("10137319")).expect("entries");
        assert_eq!((ours.len(), ours[0].name.as_deref()), (1, Some("AS TALLINNA SADAM")));
        assert_survives_corruption("ee_ariregister", |body| Answer::listing(list(body, |_| true)?), body().as_bytes());
    }

    #[test]
    fn nothing_found_is_an_empty_list_and_nothing_else() {
        let class = |body: &str| list(body.as_bytes(), |_| true).and_then(Answer::listing).expect_err("no entry").class;
        assert_eq!(class(r#"{"status":"OK","data":[]}"#), Class::NotFound);
        assert_eq!(class(r#"{"status":"OK"}"#), Class::BadShape);
        assert_eq!(class(r#"{"data":[]}"#), Class::BadShape);
        assert_eq!(class(r#"{"status":"ERROR","data":[]}"#), Class::Unavailable);
        assert_eq!(class("<html>hooldus</html>"), Class::Unavailable);
    }
}

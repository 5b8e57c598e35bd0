//! PEPPOL Verify: one check of a Belgian company that asks the enterprise register, VIES, the Peppol directory and the
//! lists of debtors at once.
//!
//! A composite is as healthy as its parts. Its own failures count for its own breaker and never for theirs, and a
//! flag is believed only if the part that it rests on has spoken: "VAT number invalid" must not come from a VIES that did
//! not answer, nor "inactive" from a register that was silent.

use circuit_registry::CallError;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::json;

use crate::{
    model::{Address, Company, Facts, Job, Standing, Status, Subject, VatCheck},
    parse::json::{self as reader, Node, lacks},
    spec::{
        Answer, Auth, Base, Class, Countries, Credential, Flow, Need, Operation, Request, Session, Source, SourceError,
        on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "peppol_verify",
    title: "PEPPOL Verify, composite check of Belgian companies",
    breaker: "peppol_verify",
    base: Base { env: "PEPPOL_VERIFY_BASE_URL", default: "http://localhost:8080" },
    credentials: &[Credential {
        any_of: &["PEPPOL_VERIFY_API_KEY"],
        obtain: "run PEPPOL Verify yourself, and set PEPPOL_VERIFY_BASE_URL and this key",
    }],
    auth: Auth::Header { name: "x-api-key", prefix: "", env: "PEPPOL_VERIFY_API_KEY" },
    rules: &[
        on(503).json().means(Class::Unavailable, "reports that a source it asks is unavailable (HTTP 503)"),
        on(400).json().means(Class::Business, "does not accept the number"),
        on(422).json().means(Class::Business, "does not accept the question"),
    ],
    limits: "your own installation's; a check takes about 2 s",
    terms: "self-hosted; those of its sources apply",
    operations: &[Operation {
        name: "peppol_verify.check",
        answers: "register entry, VAT, Peppol listing and debts of a Belgian company in one check",
        countries: Countries::Only(&["BE"]),
        needs: &[Need::Id],
        flow: Flow::Steps(check),
        ..Operation::BLANK
    }],
    ..Source::BLANK
};

/// How long an accepted check is left alone.
const PAUSE: Duration = Duration::from_secs(30);

fn request(subject: &Subject) -> Option<Request> {
    let document = json!({
        "enterprise_number": subject.id.as_deref()?, "vat_number": subject.vat, "requestor_id": "osint-activities",
        "callback_url": null, "workflow_id": null,
    });
    Some(Request::post("/v1/peppol/verify", &document))
}

/// Asks, or asks again about a check that was accepted and has not come back: it is free, and knows the answer by then.
fn check<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let id = match session.ask_if(request(session.subject()), |reply| read(&reply.body)).await? {
            Read::Answer(mut answer) => {
                if let Some(vat) = &mut answer.facts.vat {
                    vat.derived = session.subject().vat.is_none();
                }
                return Ok(*answer);
            }
            Read::Accepted(id) => id,
        };
        let now = Timestamp::now();
        let (started_at, polls) = session.job().map_or((now, 0), |job| (job.started_at, job.polls + 1));
        let job = Job { id, started_at, polls };
        session.keep(job.clone()).await;
        let retry_at = now.checked_add(PAUSE).unwrap_or(now);
        Ok(Answer::pending(job, retry_at, "accepted the check and has no result yet"))
    })
}

/// What came back.
#[derive(Debug, PartialEq)]
enum Read {
    /// The result.
    Answer(Box<Answer>),
    /// The promise of one, with its id where it has one.
    Accepted(String),
}

fn read(body: &[u8]) -> Result<Read, SourceError> {
    let document = reader::parse(body)?;
    let root = Node::root(&document);
    if root.get("status").text().as_deref() == Some("accepted") && !root.get("result").exists() {
        return Ok(Read::Accepted(root.get("verification_id").text().unwrap_or_default()));
    }
    let number = root.require("input")?.require_text("enterprise_number")?;
    let (result, checks) = (root.require("result")?, root.require("checks")?);
    let verdict = result.require_text("status")?;
    let flags = result.require("risk_flags")?.texts();
    match (verdict.as_str(), flags.is_empty()) {
        ("PASS", _) | ("FLAG" | "FAIL", false) => {}
        ("FLAG" | "FAIL", true) => return Err(lacks("risk_flags")),
        _ => return Err(lacks("status")),
    }
    let silent: Vec<_> = PARTS.iter().filter(|(part, _)| !checks.get(part).is_object()).map(|(_, who)| *who).collect();
    let (believed, groundless): (Vec<_>, Vec<_>) = flags.into_iter().partition(|flag| grounded(flag, checks));
    let mut gaps = Vec::new();
    if !silent.is_empty() {
        gaps.push(format!("has no answer of {}", silent.join(", ")));
    }
    if !groundless.is_empty() {
        gaps.push(format!("raised {}, which none of its sources confirms: not believed", groundless.join(", ")));
    }
    let mut notes = Vec::new();
    if !believed.is_empty() {
        notes.push(format!("risk flags: {}", believed.join(", ")));
    }
    let debts = checks.get("inhoudingsplicht");
    for (part, kind) in [("debt_free_social", "social security"), ("debt_free_tax", "tax")] {
        match debts.get(part).flag() {
            Some(true) => notes.push(format!("no {kind} debts that oblige customers to withhold")),
            Some(false) => notes.push(format!("{kind} debts: customers have to withhold from its invoices")),
            None => {}
        }
    }
    let facts = Facts {
        vat: vat(&number, checks.get("vies_validation")),
        companies: vec![company(number, checks)],
        notes,
        ..Facts::default()
    };
    let answer = Answer::from(facts).dated(root.get("timestamp").time());
    Ok(Read::Answer(Box::new(if gaps.is_empty() {
        answer
    } else {
        Answer { status: Status::Partial, reason: Some(gaps.join("; ")), ..answer }
    })))
}

/// The parts of a check, and whose answers they are.
const PARTS: [(&str, &str); 5] = [
    ("kbo_registry", "the enterprise register"),
    ("entity_status", "the register's status"),
    ("vies_validation", "VIES"),
    ("peppol_directory", "the Peppol directory"),
    ("inhoudingsplicht", "the lists of debtors"),
];

/// Whether the part that a flag rests on says so itself. Flags that compare two parts, or that are new, stand for themselves.
fn grounded(flag: &str, checks: Node<'_>) -> bool {
    let says = |path: &str, what: bool| checks.at(path).flag() == Some(what);
    match flag {
        "ENTITY_INACTIVE" => says("entity_status.active", false),
        "BANKRUPTCY_DETECTED" => says("entity_status.bankruptcy", true) || says("kbo_registry.bankruptcy", true),
        "DISSOLUTION_PENDING" => says("entity_status.dissolution", true),
        "VAT_INVALID" => valid(checks.get("vies_validation")) == Some(false),
        "SOCIAL_DEBT_DETECTED" => says("inhoudingsplicht.debt_free_social", false),
        "TAX_DEBT_DETECTED" => says("inhoudingsplicht.debt_free_tax", false),
        "NO_PEPPOL_REGISTRATION" => says("peppol_directory.registered", false),
        _ => true,
    }
}

/// The answer of VIES about the number, if there is one: "not valid" beside an error is the error.
fn valid(vies: Node<'_>) -> Option<bool> {
    let failed = ["error", "error_code", "userError"].iter().any(|name| vies.get(name).exists());
    vies.get("valid").flag().filter(|valid| *valid || !failed)
}

fn vat(number: &str, vies: Node<'_>) -> Option<VatCheck> {
    let known = |name: &str| vies.get(name).text().filter(|text| text != "---");
    let (name, address) = (known("name"), known("address"));
    Some(VatCheck { number: format!("BE{number}"), valid: valid(vies)?, name, address, derived: false })
}

fn company(number: String, checks: Node<'_>) -> Company {
    let kbo = checks.get("kbo_registry");
    let status = checks.get("entity_status");
    let standing =
        match (status.get("bankruptcy").flag(), status.get("dissolution").flag(), status.get("active").flag()) {
            (Some(true), ..) => Standing::Insolvent,
            (_, Some(true), _) => Standing::Liquidation,
            (_, _, Some(true)) => Standing::Active,
            (_, _, Some(false)) => Standing::Ceased,
            _ => Standing::Unknown,
        };
    let address = kbo.get("registered_address");
    let activity = |item: Node<'_>| {
        let label = item.get("description").text().unwrap_or_default();
        Some(format!("{} {label}", item.get("code").text()?).trim().to_owned())
    };
    let peppol = checks.get("peppol_directory");
    let listed = peppol.get("registered").flag() == Some(true);
    let participant = peppol.get("peppol_id").text().filter(|_| listed).map(|id| format!("Peppol participant: {id}"));
    Company {
        name: kbo.get("legal_name").text(),
        id: Some(number),
        country: Some("BE".to_owned()),
        standing,
        status: kbo.get("status").text(),
        legal_form: kbo.get("legal_form").text(),
        address: address.is_object().then(|| Address {
            street: address.get("street").text(),
            postal_code: address.get("postal_code").text(),
            city: address.get("city").text(),
            country: address.get("country").text(),
        }),
        founded: kbo.get("start_date").text(),
        activities: kbo.get("activities").items().filter_map(activity).collect(),
        registrations: participant.into_iter().collect(),
        ..Company::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const BODY: &[u8] = include_bytes!("../../../simulator/fixtures/peppol_verify/0202239951.json");

    fn parse(body: &[u8]) -> Result<Answer, SourceError> {
        match read(body)? {
            Read::Answer(answer) => Ok(*answer),
            Read::Accepted(_) => Err(SourceError::unavailable("no result yet")),
        }
    }

    /// The healthy result with these places changed.
    fn with(changes: &[(&str, Value)]) -> Answer {
        let mut document: Value = serde_json::from_slice(BODY).expect("JSON");
        for (pointer, value) in changes {
            *document.pointer_mut(pointer).expect(pointer) = value.clone();
        }
        parse(document.to_string().as_bytes()).expect("a result")
    }

    #[test]
    fn a_result_is_read_whole() {
        let answer = parse(BODY).expect("a result");
        let company = &answer.facts.companies[0];
        assert_eq!((answer.status, company.standing), (Status::Complete, Standing::Active));
        assert_eq!(company.registrations, ["Peppol participant: 0208:0202239951"]);
        assert!(answer.facts.vat.is_some_and(|vat| vat.valid && vat.number == "BE0202239951"));
        assert!(answer.as_of.is_some());
        assert_survives_corruption("peppol_verify.check", parse, BODY);
    }

    #[test]
    fn a_number_is_invalid_only_by_an_answer_of_vies() {
        let flagged = [("/result/status", json!("FAIL")), ("/result/risk_flags", json!(["VAT_INVALID"]))];
        let vies = |value: Value| with(&[flagged[0].clone(), flagged[1].clone(), ("/checks/vies_validation", value)]);
        let answer = vies(json!({"valid": false, "name": "---", "source": "VIES"}));
        assert_eq!(answer.facts.vat.map(|vat| (vat.valid, vat.name)), Some((false, None)));
        assert!(answer.status == Status::Complete && answer.facts.notes[0].contains("VAT_INVALID"));
        for silent in
            [json!(null), json!({}), json!({"valid": null}), json!({"valid": false, "error": "MS_UNAVAILABLE"})]
        {
            let answer = vies(silent.clone());
            assert_eq!((answer.facts.vat, answer.status), (None, Status::Partial), "{silent}");
            assert!(answer.facts.notes.iter().all(|note| !note.contains("VAT_INVALID")), "{silent}");
            assert!(answer.reason.is_some_and(|reason| reason.contains("not believed")), "{silent}");
        }
    }

    #[test]
    fn silence_of_the_register_is_no_statement_about_the_company() {
        let silent = [
            ("/result/status", json!("FAIL")),
            ("/result/risk_flags", json!(["ENTITY_INACTIVE"])),
            ("/checks/kbo_registry", json!(null)),
            ("/checks/entity_status", json!(null)),
        ];
        let answer = with(&silent);
        assert_eq!((answer.status, answer.facts.companies[0].standing), (Status::Partial, Standing::Unknown));
        assert!(answer.reason.is_some_and(|reason| reason.contains("enterprise register")));
        assert_eq!(
            with(&[("/checks/entity_status/active", json!(false))]).facts.companies[0].standing,
            Standing::Ceased
        );
    }

    #[test]
    fn a_promise_is_no_result() {
        let accepted = br#"{"status":"accepted","message":"Result will be delivered via webhook"}"#;
        assert_eq!(read(accepted), Ok(Read::Accepted(String::new())));
        for body in [&b"{}"[..], br#"{"status":"accepted","result":{}}"#, br#"{"status":"done"}"#] {
            assert_eq!(read(body).expect_err("neither").class, Class::BadShape);
        }
    }
}

//! The open data of the Dutch register: no key, no names, and only companies of the forms BV and NV.
//!
//! A 404 is the edge of its coverage, which says nothing about whether the company exists.

use crate::{
    model::{Company, Facts, Standing, Subject},
    parse::json::{self, Node},
    spec::{
        Answer, Base, Class, Confidence, Countries, Flow, Need, Operation, Probe, Request, Source, SourceError, on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "nl_kvk_open",
    title: "KVK open data, Dutch companies without their names",
    breaker: "nl_kvk_open",
    base: Base { env: "NL_KVK_OPEN_BASE_URL", default: "https://opendata.kvk.nl/api/v1/hvds" },
    rules: &[on(404).json().means(Class::NotFound, "does not cover this company: only BV and NV are in it")],
    probe: Some(Probe::json(|| Request::get(COMPANY).segment("17085815"))),
    terms: "CC BY 4.0",
    operations: &[Operation {
        name: "nl_kvk_open.company",
        answers: "legal form, activities and insolvency, without the name",
        countries: Countries::Only(&["NL"]),
        needs: &[Need::Id],
        flow: FLOW,
        ..Operation::BLANK
    }],
    confidence: Confidence::A,
    ..Source::BLANK
};

const COMPANY: &str = "/basisbedrijfsgegevens/kvknummer";

/// Asks about the subject's number.
pub(super) const FLOW: Flow = Flow::Single { request: asking, parse: company };

fn asking(subject: &Subject) -> Option<Request> {
    Some(Request::get(COMPANY).segment(subject.id.as_deref()?))
}

const INSOLVENCIES: &[(&str, Standing)] =
    &[("FAIL", Standing::Insolvent), ("SURS", Standing::Restructuring), ("SSAN", Standing::Restructuring)];
const STATES: &[(&str, Standing)] = &[("J", Standing::Active), ("N", Standing::Ceased)];

/// Reads a company. The answer repeats neither its number nor its name.
fn company(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let entry = Node::root(&document);
    let insolvency = entry.get("insolventieCode").text();
    let active = entry.require_text("actief")?;
    let procedure = insolvency.as_deref().map_or(Standing::Active, |code| Standing::of(code, INSOLVENCIES));
    let company = Company {
        country: Some("NL".to_owned()),
        standing: Standing::of(&active, STATES).and(procedure),
        status: Some(match insolvency {
            Some(code) => format!("actief {active}, insolvency code {code}"),
            None => format!("actief {active}"),
        }),
        legal_form: Some(entry.require_text("rechtsvormCode")?),
        founded: entry.get("datumAanvang").text().map(|day| known_part(&day)),
        activities: entry.get("activiteiten").items().filter_map(|item| item.get("sbiCode").text()).collect(),
        ..Company::default()
    };
    let notes = vec![
        "open data of the register, which leaves out the name and the address".to_owned(),
        "the answer names no number: it belongs to the number that was asked about".to_owned(),
    ];
    Ok(Facts { companies: vec![company], notes, ..Facts::default() }.into())
}

/// A day as `YYYYMMDD`, of which unknown parts are zero: only what is known is given.
fn known_part(day: &str) -> String {
    let parts = (day.get(..4), day.get(4..6), day.get(6..8));
    match parts {
        (Some(year), Some("00") | None, _) => year.to_owned(),
        (Some(year), Some(month), Some("00") | None) => format!("{year}-{month}"),
        (Some(year), Some(month), Some(day)) => format!("{year}-{month}-{day}"),
        _ => day.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const COMPANY: &[u8] = include_bytes!("../../../simulator/fixtures/nl_kvk_open/17085815.json");

    #[test]
    fn a_company_has_everything_but_a_name() {
        let read = company(COMPANY).expect("a company").facts.companies.remove(0);
        assert_eq!((read.id, read.name, read.legal_form.as_deref()), (None, None, Some("NV")));
        assert_eq!((read.standing, read.founded.as_deref()), (Standing::Active, Some("1994-10-03")));
        assert_eq!(read.activities, ["7010"]);
        assert_survives_corruption("nl_kvk_open.company", company, COMPANY);
    }

    #[test]
    fn only_known_words_say_how_it_stands() {
        let read = |active: &str, code: &str| {
            let body = format!(r#"{{"actief":"{active}","rechtsvormCode":"BV","datumAanvang":"19940000"{code}}}"#);
            company(body.as_bytes()).expect("a company").facts.companies.remove(0)
        };
        assert_eq!(read("J", "").standing, Standing::Active);
        assert_eq!(read("J", "").founded.as_deref(), Some("1994"));
        assert_eq!(read("N", "").standing, Standing::Ceased);
        assert_eq!(read("J", r#","insolventieCode":"FAIL""#).standing, Standing::Insolvent);
        assert_eq!(read("J", r#","insolventieCode":"NEW""#).standing, Standing::Unknown);
        assert_eq!(read("?", "").standing, Standing::Unknown);
        assert!(company(br#"{"rechtsvormCode":"BV"}"#).is_err(), "without a state");
    }
}

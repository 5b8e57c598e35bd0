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

fn company(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let entry = Node::root(&document);
    let insolvency = entry.get("insolventieCode").text();
    let company = Company {
        id: Some(entry.require_text("kvkNummer")?),
        country: Some("NL".to_owned()),
        standing: if insolvency.is_some() { Standing::Insolvent } else { Standing::Active },
        status: insolvency.map(|code| format!("insolvency code {code}")),
        legal_form: Some(entry.require_text("rechtsvorm")?),
        founded: entry.get("datumAanvang").date(),
        activities: entry.get("activiteiten").items().filter_map(|item| item.get("sbiCode").text()).collect(),
        ..Company::default()
    };
    let notes = vec!["open data of the register, which leaves out the name and the address".to_owned()];
    Ok(Facts { companies: vec![company], notes, ..Facts::default() }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const COMPANY: &[u8] = include_bytes!("../../../simulator/fixtures/nl_kvk_open/17085815.json");

    #[test]
    fn a_company_has_everything_but_a_name() {
        let read = company(COMPANY).expect("a company").facts.companies.remove(0);
        assert_eq!((read.id.as_deref(), read.name, read.legal_form.as_deref()), (Some("17085815"), None, Some("NV")));
        assert_eq!((read.standing, read.founded.as_deref()), (Standing::Active, Some("1994-10-03")));
        assert_eq!(read.activities, ["7010"]);
        assert_survives_corruption("nl_kvk_open.company", company, COMPANY);
    }

    #[test]
    fn a_code_of_insolvency_is_one() {
        let body =
            br#"{"kvkNummer":17085815,"rechtsvorm":"BV","insolventieCode":"FAIL","activiteiten":{"sbiCode":7010}}"#;
        let read = company(body).expect("a company").facts.companies.remove(0);
        assert_eq!((read.standing, read.activities), (Standing::Insolvent, vec!["7010".to_owned()]));
    }
}

//! BODACC: the French gazette of legal notices about companies, on an open-data platform.
//!
//! The interesting parts of a notice are JSON inside a string, and which of them a notice has depends on its family. A family
//! that does not exist is no error but an empty answer, so a table here lists the families that are asked for.

use crate::{
    model::{Facts, Notice, Subject},
    parse::json::{self, Node},
    spec::{Answer, Base, Class, Countries, Flow, Need, Operation, Probe, Request, Source, SourceError, Stay, on},
};

/// The row.
pub static SOURCE: Source = Source {
    name: "fr_bodacc",
    title: "BODACC, French legal notices",
    breaker: "fr_bodacc",
    base: Base { env: "FR_BODACC_BASE_URL", default: "https://bodacc-datadila.opendatasoft.com/api/explore/v2.1" },
    rules: &[
        on(400).with("error_code").means(Class::Business, "does not accept the query"),
        on(429)
            .with("requests limit")
            .means(Class::Throttled, "has answered as often as it does in a day")
            .stay(Stay::Midnight("UTC")),
    ],
    probe: Some(Probe::json(|| Request::get(RECORDS).query("limit", "1"))),
    limits: "a quota a day for each address; a hundred notices a request",
    terms: "open licence 2.0",
    operations: &[
        Operation {
            name: "fr_bodacc.notices",
            answers: "the newest legal notices of all kinds",
            flow: Flow::Single { request: |s| asking(s, &[]), parse: notices },
            ..FRENCH
        },
        Operation {
            name: "fr_bodacc.insolvency",
            answers: "notices of insolvency and of proceedings that come before it",
            flow: Flow::Single { request: |s| asking(s, INSOLVENCY), parse: notices },
            ..FRENCH
        },
    ],
    ..Source::BLANK
};

const RECORDS: &str = "/catalog/datasets/annonces-commerciales/records";

const FRENCH: Operation = Operation { countries: Countries::Only(&["FR"]), needs: &[Need::Id], ..Operation::BLANK };

/// The most notices that one request brings.
const MOST: usize = 100;

const INSOLVENCY: &[&str] = &["collective", "conciliation", "retablissement_professionnel"];

/// Notices about the subject's SIREN, which is digits and nothing else and so at home in a query.
fn asking(subject: &Subject, families: &[&str]) -> Option<Request> {
    let siren = subject.id.as_deref().filter(|id| id.bytes().all(|b| b.is_ascii_digit()))?;
    let mut query = format!("registre=\"{siren}\"");
    if !families.is_empty() {
        let any: Vec<_> = families.iter().map(|family| format!("familleavis=\"{family}\"")).collect();
        query = format!("{query} and ({})", any.join(" or "));
    }
    let request = Request::get(RECORDS).query("where", query).query("order_by", "dateparution desc");
    Some(request.query("limit", MOST.to_string()))
}

fn notices(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let answer = Node::root(&document);
    let notices = answer.require_list("results")?.into_iter().map(notice).collect::<Result<Vec<_>, _>>()?;
    if notices.is_empty() {
        return Err(SourceError::not_found("has published no such notice about this company"));
    }
    let total = answer.get("total_count").count().and_then(|total| usize::try_from(total).ok()).unwrap_or_default();
    let notes = (total > notices.len()).then(|| format!("these are the newest {} of {total} notices", notices.len()));
    Ok(Facts { notices, notes: notes.into_iter().collect(), ..Facts::default() }.into())
}

fn notice(notice: Node<'_>) -> Result<Notice, SourceError> {
    let text = |name: &str| notice.get(name).text();
    Ok(Notice {
        date: Some(notice.require_text("dateparution")?),
        kind: text("familleavis_lib").or_else(|| text("familleavis")),
        text: summary(notice),
        publisher: text("tribunal"),
        url: text("url_complete"),
    })
}

/// What a notice says, from whichever of its parts it has. The free text of a judgment names persons and is left out.
fn summary(notice: Node<'_>) -> Option<String> {
    const PARTS: [(&str, &[&str]); 4] = [
        ("jugement", &["nature", "date"]),
        ("depot", &["typeDepot", "dateCloture"]),
        ("modificationsgenerales", &["descriptif"]),
        ("radiationaurcs", &["commentaire", "dateCessationActivitePP"]),
    ];
    let part = |(part, fields): (&str, &[&str])| {
        let inner = notice.get(part).unwrapped()?;
        Node::root(&inner).joined(fields, ", ")
    };
    let parts: Vec<_> = PARTS.into_iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    fn body() -> String {
        let notices = include_str!("../../../simulator/fixtures/fr_bodacc/notices.json");
        format!(r#"{{"total_count":3,"results":{notices}}}"#)
    }

    #[test]
    fn the_json_inside_the_strings_is_read() {
        let read = notices(body().as_bytes()).expect("notices").facts.notices;
        assert_eq!(read[0].text.as_deref(), Some("Comptes annuels et rapports, 2024-12-31"));
        assert_eq!(read[1].text.as_deref(), Some("modification survenue sur l'administration."));
        let judgment = read[2].text.as_deref();
        assert_eq!(judgment, Some("Jugement d'ouverture de liquidation judiciaire, 2026-02-26"));
        assert_eq!(read[2].kind.as_deref(), Some("Procédures collectives"));
        assert_survives_corruption("fr_bodacc", notices, body().as_bytes());
    }

    #[test]
    fn a_part_that_is_broken_or_an_object_already_spoils_nothing() {
        let text = |part: &str| {
            let body = format!(r#"{{"total_count":"200","results":[{{"dateparution":"2026-01-01","depot":{part}}}]}}"#);
            let facts = notices(body.as_bytes()).expect("a notice").facts;
            assert_eq!(facts.notes, ["these are the newest 1 of 200 notices"]);
            facts.notices[0].text.clone()
        };
        assert_eq!(text(r#""{\"typeDepot\": \"Comptes annuels\"}""#).as_deref(), Some("Comptes annuels"));
        assert_eq!(text(r#"{"typeDepot":"Comptes annuels"}"#).as_deref(), Some("Comptes annuels"));
        assert_eq!((text(r#""{\"typeDepot\": ""#), text("null"), text("7")), (None, None, None));
    }

    #[test]
    fn what_is_no_number_gets_into_no_query() {
        let french = |id: &str| Subject { id: Some(id.into()), ..Subject::new("FR".parse().expect("a country")) };
        let query = format!("{:?}", asking(&french("552032534"), INSOLVENCY));
        assert!(query.contains(r#"registre=\"552032534\" and (familleavis=\"collective\" or "#), "{query}");
        assert!(asking(&french("1\" or \"1\"=\"1"), &[]).is_none());
    }

    #[test]
    fn no_notice_is_an_empty_list_and_nothing_else() {
        assert_eq!(notices(br#"{"total_count":0,"results":[]}"#).expect_err("none").class, Class::NotFound);
        assert_eq!(notices(br#"{"total_count":0}"#).expect_err("no list").class, Class::BadShape);
    }
}

//! No answer is believed too soon: what every source must do with a word that it does not know, with fewer records than it
//! states, and with one record that cannot be read. A row of a table is a body of one operation.

use crate::{
    catalog,
    model::{Standing, Status},
    spec::{Answer, Flow, SourceError},
};

/// Bodies in which `WORD` stands where the source puts its own word for the standing.
const WORDS: &[(&str, &str)] = &[
    (
        "fi_ytj.company",
        r#"{"totalResults":1,"companies":[{"businessId":{"value":"1"},"names":{"name":"X","type":1},"tradeRegisterStatus":"WORD"}]}"#,
    ),
    (
        "fi_ytj.company",
        r#"{"totalResults":1,"companies":[{"businessId":{"value":"1"},"names":{"name":"X","type":1},"tradeRegisterStatus":"1",
        "companySituations":[{"type":"WORD"}]}]}"#,
    ),
    ("gleif.search", r#"{"data":[{"attributes":{"lei":"X","entity":{"legalName":{"name":"X"},"status":"WORD"}}}]}"#),
    ("cz_ares.entity", r#"{"ico":"1","obchodniJmeno":"X","seznamRegistraci":{"stavZdrojeRes":"WORD"}}"#),
    ("cz_ares.public_register", r#"{"zaznamy":[{"obchodniJmeno":"X","stavSubjektu":"WORD"}]}"#),
    ("ee_ariregister.search", r#"{"status":"OK","data":[{"reg_code":1,"name":"X","status":"WORD"}]}"#),
    ("nl_kvk_open.company", r#"{"actief":"WORD","rechtsvormCode":"BV"}"#),
    ("nl_kvk_open.company", r#"{"actief":"J","insolventieCode":"WORD","rechtsvormCode":"BV"}"#),
    ("nl_kvk.company", r#"{"kvkNummer":"17085815","naam":"X","status":"WORD"}"#),
    ("dk_cvr.company", r#"{"vat":1,"name":"X","creditstatus":"WORD"}"#),
    ("no_brreg.entity", r#"{"organisasjonsnummer":"1","navn":"X","respons_klasse":"WORD"}"#),
];

/// Lists of two records, `GOOD` and one without a name; the source states a total of 9.
const LISTS: &[(&str, &str)] = &[
    (
        "fi_ytj.company",
        r#"{"totalResults":9,"companies":[{"businessId":{"value":"1"},"names":{"name":"GOOD","type":1}},{"businessId":{"value":"2"}}]}"#,
    ),
    (
        "gleif.search",
        r#"{"meta":{"pagination":{"total":9}},"data":[{"attributes":{"lei":"X","entity":{"legalName":{"name":"GOOD"}}}},
        {"attributes":{"lei":"Y","entity":{}}}]}"#,
    ),
    ("cz_ares.search", r#"{"pocetCelkem":9,"ekonomickeSubjekty":[{"ico":"1","obchodniJmeno":"GOOD"},{"ico":"2"}]}"#),
    (
        "no_brreg.search",
        r#"{"_embedded":{"enheter":[{"organisasjonsnummer":"1","navn":"GOOD"},{"organisasjonsnummer":"2"}]},"page":{"totalElements":9}}"#,
    ),
    ("nl_kvk.search", r#"{"totaal":9,"resultaten":[{"kvkNummer":"1","naam":"GOOD"},{"kvkNummer":"2"}]}"#),
];

fn read(operation: &str, body: &str) -> Result<Answer, SourceError> {
    let entry = catalog::operation(operation).unwrap_or_else(|| panic!("no operation {operation}"));
    match entry.operation.flow {
        Flow::Single { parse, .. } => parse(body.as_bytes()),
        Flow::Steps(_) => panic!("{operation} has no parser of its own"),
    }
}

#[test]
fn an_invented_word_is_an_unknown_standing() {
    for (operation, body) in WORDS {
        let answer = read(operation, &body.replace("WORD", "BLORP")).unwrap_or_else(|e| panic!("{operation}: {e}"));
        assert_eq!(answer.facts.companies[0].standing, Standing::Unknown, "{operation}");
    }
}

#[test]
fn a_stated_total_and_a_bad_record_are_both_said() {
    for (operation, body) in LISTS {
        let answer = read(operation, body).unwrap_or_else(|e| panic!("{operation}: {e}"));
        assert_eq!(answer.status, Status::Partial, "{operation}");
        assert_eq!(answer.reason.as_deref(), Some("2 of 9 were read"), "{operation}");
        assert_eq!(answer.facts.companies[0].name.as_deref(), Some("GOOD"), "{operation}");
        assert!(answer.facts.notes.iter().any(|note| note.starts_with("1 of 2 ")), "{operation}");
    }
}

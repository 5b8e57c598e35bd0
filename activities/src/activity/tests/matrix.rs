//! Every operation times every fault that any upstream may have: what the report says, and what the breaker heard.

use tokio::time::Duration;

use super::{
    Bench, equinor,
    observed::{Heard, Outcome, observe},
    subject, with_lei,
};
use crate::{
    catalog,
    model::{Query, Status, Subject},
    spec::Class,
};

use Class::{BadShape, Denied, Throttled, Timeout, Unavailable};
use Heard::{Failure, Nothing, Stay};
use Outcome::{Found, Unanswered};

/// The result of a fault, for every source.
#[rustfmt::skip]
pub(super) const FAULTS: &[(&str, Outcome, Heard)] = &[
    ("slow:20ms", Found(Status::Complete), Nothing),
    ("drip:1ms", Found(Status::Complete), Nothing),
    ("not_found", Found(Status::NotFound), Nothing),
    ("down", Unanswered(Unavailable), Failure),
    ("refused", Unanswered(Unavailable), Failure),
    ("reset", Unanswered(Unavailable), Failure),
    ("hangup", Unanswered(Unavailable), Failure),
    ("hang", Unanswered(Timeout), Failure),
    ("flap:9", Unanswered(Unavailable), Failure),
    ("down_for:60s", Unanswered(Unavailable), Failure),
    ("500", Unanswered(Unavailable), Failure),
    ("502_html", Unanswered(Unavailable), Failure),
    ("503", Unanswered(Unavailable), Failure),
    ("503_retry_after:30", Unanswered(Unavailable), Failure),
    ("504", Unanswered(Unavailable), Failure),
    ("200_html_maintenance", Unanswered(Unavailable), Failure),
    ("200_html_challenge", Unanswered(Unavailable), Failure),
    ("empty_body", Unanswered(Unavailable), Failure),
    ("truncated_json", Unanswered(Unavailable), Failure),
    ("wrong_shape", Unanswered(BadShape), Failure),
    ("deep_json", Unanswered(BadShape), Failure),
    ("huge_body", Unanswered(BadShape), Failure),
    ("gzip_bomb", Unanswered(BadShape), Failure),
    ("429", Unanswered(Throttled), Stay),
    ("429_retry_after:30", Unanswered(Throttled), Stay),
    ("429_http_date:30", Unanswered(Throttled), Stay),
    ("400", Unanswered(BadShape), Nothing),
    ("401", Unanswered(Denied), Nothing),
    ("403", Unanswered(Denied), Nothing),
    ("403_waf_html", Unanswered(Denied), Nothing),
    ("404_html", Unanswered(BadShape), Nothing),
    ("redirect_private", Unanswered(BadShape), Nothing),
];

/// Where an upstream has an idea of its own. The longest name that fits an operation wins.
#[rustfmt::skip]
const OWN: &[(&str, &str, Outcome, Heard)] = &[
    // Screened and searched, with nothing to show: that is an answer.
    ("tavily", "not_found", Found(Status::Complete), Nothing),
    ("opensanctions.match", "not_found", Found(Status::Complete), Nothing),
    ("opensanctions_feed", "not_found", Found(Status::Complete), Nothing),
    // A number that is not registered is an answer as well.
    ("vies", "not_found", Found(Status::Complete), Nothing),
    ("vies_soap", "not_found", Found(Status::Complete), Nothing),
    ("vatsense", "not_found", Found(Status::Complete), Nothing),
    // The query is at fault, not the upstream.
    ("tavily", "400", Found(Status::NeedsReview), Nothing),
    ("opensanctions", "400", Found(Status::NeedsReview), Nothing),
    ("nominatim", "400", Found(Status::NeedsReview), Nothing),
    ("peppol_directory", "400", Found(Status::NeedsReview), Nothing),
    ("peppol_verify", "400", Found(Status::NeedsReview), Nothing),
    // The edition is the same for everybody.
    ("eba_register.metadata", "not_found", Found(Status::Complete), Nothing),
    // A composite has no "not found" of its own, only a register that is silent.
    ("peppol_verify", "not_found", Found(Status::Partial), Nothing),
    // A client that asks too often is blocked.
    ("nominatim", "403", Unanswered(Throttled), Stay),
    ("nominatim", "403_waf_html", Unanswered(Throttled), Stay),
    ("cz_ares", "403", Unanswered(Throttled), Stay),
    ("cz_ares", "403_waf_html", Unanswered(Throttled), Stay),
    // Nothing but a machine before it answers with one of these.
    ("cz_isir", "400", Unanswered(Unavailable), Failure),
    ("cz_isir", "403", Unanswered(Unavailable), Failure),
    ("cz_isir", "403_waf_html", Unanswered(Unavailable), Failure),
    ("cz_isir", "404_html", Unanswered(Unavailable), Failure),
    // Closed to the public, and therefore never asked.
    ("cz_ubo", ANY, Unanswered(Denied), Nothing),
    // A website that cannot be opened is neither unknown nor the crawler's failure.
    ("crawl4ai", "not_found", Unanswered(Unavailable), Nothing),
    // One account stands behind all three, and a refusal means to stay away.
    ("brightdata_enrichment", "401", Unanswered(Throttled), Stay),
    ("brightdata_social", "401", Unanswered(Throttled), Stay),
    ("brightdata_person", "401", Unanswered(Throttled), Stay),
    ("kbo", "403", Unanswered(Throttled), Stay),
    ("kbo", "403_waf_html", Unanswered(Throttled), Stay),
    ("cz_justice", "403", Unanswered(Throttled), Stay),
    ("cz_justice", "403_waf_html", Unanswered(Throttled), Stay),
    ("cz_justice_legacy", "403", Unanswered(Throttled), Stay),
    ("cz_justice_legacy", "403_waf_html", Unanswered(Throttled), Stay),
    ("registry_sk_html", "403", Unanswered(Throttled), Stay),
    ("registry_sk_html", "403_waf_html", Unanswered(Throttled), Stay),
    ("registry_sk", "403", Unanswered(Throttled), Stay),
    ("registry_sk", "403_waf_html", Unanswered(Throttled), Stay),
    // Banks, insurers and foundations have no accounts here, in the form of a 500.
    ("no_brreg.accounts", "500", Found(Status::NeedsReview), Nothing),
];

/// Whatever the fault.
const ANY: &str = "*";

/// Whether a row is about an operation, or about all of its source.
fn is_about(name: &str, operation: &str) -> bool {
    operation == name || operation.split('.').next() == Some(name)
}

pub(super) fn expected(operation: &str, fault: &str) -> (Outcome, Heard) {
    let own = OWN.iter().filter(|(name, own, ..)| [fault, ANY].contains(own) && is_about(name, operation));
    let usual = FAULTS.iter().find(|(name, ..)| *name == fault).map(|(_, outcome, heard)| (*outcome, *heard));
    own.max_by_key(|(name, ..)| name.len())
        .map_or(usual, |(_, _, outcome, heard)| Some((*outcome, *heard)))
        .expect(fault)
}

/// Somebody about whom the healthy upstream has a full answer.
pub(super) fn somebody(operation: &str) -> Subject {
    match operation.split('.').next().unwrap_or_default() {
        "opensanctions" if operation.ends_with(".entity") => with_lei(),
        "northdata" => subject("DE", "HRB 6684 Muenchen", "Siemens AG"),
        "eba_register" if operation.ends_with(".credit_institution") => {
            subject("BE", "0403199702", "BNP Paribas Fortis")
        }
        "eba_register" => subject("CZ", "27082440", "Alza.cz a.s."),
        "ee_ariregister" => subject("EE", "12417834", "Bolt Technology OÜ"),
        "dk_cvr" => subject("DK", "24256790", "NOVO NORDISK A/S"),
        "nl_kvk" | "nl_kvk_open" => subject("NL", "17085815", "ASML Holding N.V."),
        // Only the unfortunate are in that column of the gazette.
        "fr_bodacc" => subject("FR", "999000201", "EXEMPLE EN LIQUIDATION"),
        "fr_insee" | "fr_inpi" => subject("FR", "552032534", "DANONE"),
        "ro_anaf" => subject("RO", "14399840", "DANTE INTERNATIONAL SA"),
        "ch_zefix" => subject("CH", "CHE191546434", "Swiss Re AG"),
        "cz_ares" | "cz_justice" | "cz_ubo" => subject("CZ", "27082440", "Alza.cz a.s."),
        "cz_isir" => subject("CZ", "99000105", "Vzorový úpadce s.r.o."),
        "registry_sk" | "sk_ruz" => subject("SK", "31333532", "ESET, spol. s r.o."),
        "kbo" | "nbb" | "peppol_verify" => subject("BE", "0202239951", "PROXIMUS"),
        "fi_ytj" | "vies" => subject("FI", "0112038-9", "Nokia Oyj"),
        _ => equinor(),
    }
}

#[tokio::test]
async fn every_operation_with_every_fault() {
    let mut bench = Bench::new().await;
    let mut wrong = Vec::new();
    for entry in catalog::operations() {
        let (source, name) = (entry.source.name, entry.operation.name);
        let query = Query::from(somebody(name));
        // The fallbacks have an outage as well, so that nothing hides the result of the source itself.
        for fallback in entry.operation.fallbacks {
            bench.fault(fallback.source.name, "down").await;
        }
        for (fault, ..) in FAULTS {
            // Only for those who hang; the others have their answer long before.
            if *fault == "hang" {
                bench.forget_and_hurry()
            } else {
                bench.forget()
            }
            bench.fault(source, fault).await;
            let patience = Duration::from_secs(60);
            let got = observe(&bench, *entry, &query, patience).await;
            let expected = expected(name, fault);
            if got != expected {
                wrong.push(format!("{name} with {fault}: {got:?}, expected {expected:?}"));
            }
        }
        for faulty in entry.operation.fallbacks.iter().map(|fallback| fallback.source.name).chain([source]) {
            bench.simulator.clear(faulty).await.expect(faulty);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_exception_is_left_over() {
    let lent = |name: &str| catalog::fallbacks().iter().any(|source| source.name == name);
    for (name, fault, outcome, heard) in OWN {
        let asked = catalog::operations().iter().any(|entry| is_about(name, entry.operation.name));
        assert!(asked || lent(name), "{name}");
        let usual = FAULTS.iter().filter(|(known, ..)| known == fault || *fault == ANY).collect::<Vec<_>>();
        assert!(!usual.is_empty(), "{fault}");
        let unusual = usual.iter().any(|(_, usual, hears)| (usual, hears) != (outcome, heard));
        assert!(unusual, "{name} with {fault} is as usual");
    }
}

//! The tables of all sources, row by row: an answer, what it is, and what the breaker hears. A rule that no row here uses
//! fails the suite.

use std::{collections::HashSet, time::Duration};

use circuit_registry::{Classify, Verdict};
use jiff::Timestamp;

use crate::{
    catalog::{self},
    classify::judge,
    spec::{Class, Reply, Rule, Source},
};

use Verdict::{Failure, Neutral, Success};

const NOW: &str = "2026-11-30T12:00:00Z";

const fn stay(seconds: u64) -> Verdict {
    Verdict::Throttled { retry_after: Some(Duration::from_secs(seconds)) }
}

/// Source or operation, status, body, class, verdict on the source's own breaker.
#[rustfmt::skip]
const TABLE: &[(&str, u16, &str, Class, Verdict)] = &[
    ("northdata", 404, r#"{"error":"Company not found"}"#, Class::NotFound, Success),
    ("northdata", 404, "<html>gone</html>", Class::BadShape, Success),
    ("northdata", 401, r#"{"error":"Missing or invalid API key"}"#, Class::Denied, Neutral),
    ("northdata", 429, "", Class::Throttled, Verdict::Throttled { retry_after: None }),
    ("northdata", 200, r#"{"censored":true,"items":[]}"#, Class::Ok, Success),
    ("northdata", 500, "{}", Class::Unavailable, Failure),
    ("gleif", 404, r#"{"errors":[{"status":"404","title":"Not Found"}]}"#, Class::NotFound, Success),
    ("gleif", 404, "<html>gone</html>", Class::BadShape, Success),
    ("gleif", 429, r#"{"errors":[{"status":"429"}]}"#, Class::Throttled, Verdict::Throttled { retry_after: None }),
    ("gleif", 500, "{}", Class::Unavailable, Failure),
    ("vies.check", 200, r#"{"actionSucceed":false,"errorWrappers":[{"error":"MS_UNAVAILABLE"}]}"#, Class::Ok, Success),
    ("vies.check", 500, r#"{"actionSucceed":false,"errorWrappers":[{"error":"MS_UNAVAILABLE"}]}"#, Class::Ok, Success),
    ("vies.check", 503, "<html>maintenance</html>", Class::Unavailable, Failure),
    ("vies.check", 403, "<html>blocked</html>", Class::Denied, Neutral),
    ("vies_soap", 500, "<e:Fault><faultstring>MS_UNAVAILABLE</faultstring></e:Fault>", Class::Ok, Success),
    ("vies_soap", 500, "<html>gateway</html>", Class::Unavailable, Failure),
    ("vatsense", 412, r#"{"success":false}"#, Class::Unavailable, Failure),
    ("vatsense", 400, r#"{"success":false}"#, Class::Business, Success),
    ("vatsense", 404, r#"{"success":false}"#, Class::NotFound, Success),
    ("vatsense", 404, "<html>gone</html>", Class::BadShape, Success),
    ("vatsense", 401, r#"{"success":false}"#, Class::Denied, Neutral),
    ("kbo", 403, "<html><h1>Forbidden</h1></html>", Class::Throttled, stay(6 * 3600)),
    ("cz_justice", 403, "<html>Just a moment</html>", Class::Throttled, stay(3600)),
    ("cz_justice", 200, "<html>Just a moment</html>", Class::Ok, Success),
    ("cz_justice_legacy", 403, "<html>Just a moment</html>", Class::Throttled, stay(3600)),
    ("registry_sk", 400, r#"{"title":"One or more validation errors occurred.","errors":{}}"#, Class::Business, Success),
    ("registry_sk", 403, "<html>Forbidden</html>", Class::Throttled, stay(6 * 3600)),
    ("registry_sk", 404, r#"{"title":"Not Found","errors":{}}"#, Class::BadShape, Success),
    ("registry_sk_html", 403, "<html>Forbidden</html>", Class::Throttled, stay(6 * 3600)),
    ("sk_ruz", 400, r#"{"status":400,"message":"zmenene-od"}"#, Class::BadShape, Success),
    ("sk_ruz", 404, r#"{"status":404}"#, Class::BadShape, Success),
    ("sk_ruz", 503, "<html>ETL</html>", Class::Unavailable, Failure),
    ("kbo", 404, "<html>gone</html>", Class::BadShape, Success),
    ("no_brreg.entity", 404, "", Class::NotFound, Success),
    ("no_brreg.entity", 404, "<html>gone</html>", Class::BadShape, Success),
    ("no_brreg.entity", 410, "", Class::Business, Success),
    ("no_brreg.entity", 400, r#"{"status":400,"feilmelding":"x"}"#, Class::BadShape, Success),
    ("no_brreg.entity", 500, r#"{"status":500,"error":"Internal Server Error"}"#, Class::Unavailable, Failure),
    ("no_brreg.accounts", 500, r#"{"status":500,"error":"Internal Server Error"}"#, Class::Business, Neutral),
    ("no_brreg.accounts", 404, r#"{"status":404}"#, Class::NotFound, Success),
    ("no_brreg.accounts", 503, "<html>Application is not available</html>", Class::Unavailable, Failure),
    ("no_brreg.accounts", 500, "<html>Application is not available</html>", Class::Unavailable, Failure),
    ("cz_ares", 404, r#"{"kod":"NENALEZENO","subKod":"VYSTUP_SUBJEKT_NENALEZEN"}"#, Class::NotFound, Success),
    ("cz_ares", 404, r#"{"status":404,"error":"Not Found","path":"/x"}"#, Class::BadShape, Success),
    ("cz_ares", 400, r#"{"kod":"CHYBA_VSTUPU","subKod":"VYSTUP_PRILIS_MNOHO_VYSLEDKU"}"#, Class::Business, Success),
    ("cz_ares", 400, r#"{"kod":"CHYBA_VSTUPU","subKod":"VSTUP_NEVALIDNI_FORMAT_ICO"}"#, Class::Business, Success),
    ("cz_ares", 403, r#"{"kod":"PRISTUP_ODMITNUT"}"#, Class::Throttled, stay(3600)),
    ("cz_ares", 500, r#"{"kod":"OBECNA_CHYBA"}"#, Class::Unavailable, Failure),
    ("cz_isir", 400, "Bad Request", Class::Unavailable, Failure),
    ("cz_isir", 403, "<html>blocked</html>", Class::Unavailable, Failure),
    ("cz_isir", 404, "<html>gone</html>", Class::Unavailable, Failure),
    ("cz_isir", 500, "", Class::Unavailable, Failure),
    ("nbb", 404, r#"{"status":404,"error":"Not Found"}"#, Class::NotFound, Success),
    ("nbb", 404, "<html>gone</html>", Class::BadShape, Success),
    ("nbb", 403, "<html>blocked</html>", Class::Denied, Neutral),
    ("nbb_official", 404, r#"{"statusCode":404,"message":"No deposits found"}"#, Class::NotFound, Success),
    ("nbb_official", 401, r#"{"statusCode":401}"#, Class::Denied, Neutral),
    ("nbb_official", 415, r#"{"statusCode":415}"#, Class::BadShape, Success),
    ("fi_ytj", 400, r#"{"message":"Parameter businessId is missing","errorcode":1005}"#, Class::Business, Success),
    ("ee_ariregister", 403, "<html><h1>Forbidden</h1></html>", Class::Denied, Neutral),
    ("ee_ariregister", 404, "<html>gone</html>", Class::BadShape, Success),
    ("dk_cvr", 200, r#"{"error":"NOT_FOUND","t":0,"version":6}"#, Class::NotFound, Success),
    ("dk_cvr", 404, r#"{"error":"NOT_FOUND","t":0,"version":6}"#, Class::NotFound, Success),
    ("dk_cvr", 200, r#"{"error":"INVALID_VAT","t":0,"version":6}"#, Class::Business, Success),
    ("dk_cvr", 200, r#"{"error":"QUOTA_EXCEEDED","t":0,"version":6}"#, Class::Throttled, stay(11 * 3600)),
    ("dk_cvr", 200, r#"{"error":"BANNED","t":0,"version":6}"#, Class::Throttled, stay(24 * 3600)),
    ("dk_cvr", 200, r#"{"error":"INVALID_UA","t":0,"version":6}"#, Class::Denied, Neutral),
    ("dk_cvr", 200, r#"{"error":"INTERNAL_ERROR","t":0,"version":6}"#, Class::Unavailable, Failure),
    ("dk_cvr", 404, "<html>gone</html>", Class::BadShape, Success),
    ("dk_cvr_datafordeler", 401, r#"{"message":"Unauthorized"}"#, Class::Denied, Neutral),
    ("nl_kvk", 404, r#"{"fout":[{"code":"IPD5200"}]}"#, Class::NotFound, Success),
    ("nl_kvk", 404, r#"{"fout":[{"code":"IPD0005"}]}"#, Class::Business, Success),
    ("nl_kvk", 404, r#"{"fout":[{"code":"IPD0007"}]}"#, Class::Business, Success),
    ("nl_kvk", 400, r#"{"fout":[{"code":"IPD0004"}]}"#, Class::Business, Success),
    ("nl_kvk", 400, r#"{"fout":[{"code":"IPD0006"}]}"#, Class::Business, Success),
    ("nl_kvk", 400, r#"{"fout":[{"code":"IPD0010"}]}"#, Class::Business, Success),
    ("nl_kvk", 400, r#"{"fout":[{"code":"IPD1998"}]}"#, Class::Business, Success),
    ("nl_kvk", 400, r#"{"fout":[{"code":"IPD1999"}]}"#, Class::Business, Success),
    ("nl_kvk", 500, r#"{"fout":[{"code":"IPD1002"}]}"#, Class::Throttled, stay(300)),
    ("nl_kvk", 500, r#"{"fout":[{"code":"IPD1003"}]}"#, Class::Throttled, stay(300)),
    ("nl_kvk", 500, r#"{"fout":[{"code":"IPD9999"}]}"#, Class::Unavailable, Failure),
    ("nl_kvk", 401, r#"{"fout":[{"code":"401"}]}"#, Class::Denied, Neutral),
    ("nl_kvk", 404, "<html>gone</html>", Class::BadShape, Success),
    ("nl_kvk", 502, "<html>bad gateway</html>", Class::Unavailable, Failure),
    ("nl_kvk_open", 404, r#"{"status":404,"title":"Not Found"}"#, Class::NotFound, Success),
    ("nl_kvk_open", 404, "<html>gone</html>", Class::BadShape, Success),
    ("fr_insee", 404, r#"{"header":{"statut":404,"message":"Aucun élément trouvé pour le siren 999999998"}}"#, Class::NotFound, Success),
    ("fr_insee", 404, "<html>gone</html>", Class::BadShape, Success),
    ("fr_insee", 403, r#"{"header":{"statut":403,"message":"Unité légale non diffusable"}}"#, Class::Business, Success),
    ("fr_insee", 403, "<html>blocked</html>", Class::Denied, Neutral),
    ("fr_insee", 401, r#"{"header":{"statut":401}}"#, Class::Denied, Neutral),
    ("fr_insee.search", 400, r#"{"header":{"statut":400,"message":"Erreur de syntaxe"}}"#, Class::Business, Success),
    ("fr_insee", 503, r#"{"header":{"statut":503,"message":"Service en maintenance"}}"#, Class::Unavailable, Failure),
    ("recherche_entreprises", 400, r#"{"erreur":"3 caractères minimum"}"#, Class::Business, Success),
    ("recherche_entreprises", 429, r#"{"erreur":"Trop de requêtes"}"#, Class::Throttled, Verdict::Throttled { retry_after: None }),
    ("fr_inpi", 401, r#"{"code":401,"message":"Expired JWT Token"}"#, Class::Ok, Success),
    ("fr_inpi", 403, r#"{"code":403,"message":"connection_type_not_allowed"}"#, Class::Denied, Neutral),
    ("fr_inpi", 403, "<html>blocked</html>", Class::Denied, Neutral),
    ("fr_inpi", 404, r#"{"code":404,"message":"Company not found"}"#, Class::NotFound, Success),
    ("fr_inpi", 404, "<html>gone</html>", Class::BadShape, Success),
    ("fr_bodacc", 400, r#"{"message":"ODSQL query is malformed","error_code":"ODSQLError"}"#, Class::Business, Success),
    ("fr_bodacc", 429, r#"{"message":"You have exceeded the requests limit for anonymous users."}"#, Class::Throttled, stay(12 * 3600)),
    ("fr_bodacc", 429, "", Class::Throttled, Verdict::Throttled { retry_after: None }),
    ("ro_anaf.vat", 200, "<html><body>The requested URL was rejected. Your support ID is: 1</body>", Class::Unavailable, Failure),
    ("ro_anaf.vat", 404, "<html>gone</html>", Class::BadShape, Success),
    ("ro_anaf.e_invoice", 404, r#"{"found":[],"notFound":[1]}"#, Class::NotFound, Success),
    ("ro_anaf.accounts", 503, "", Class::Unavailable, Failure),
    ("ch_zefix", 404, r#"{"error":{"code":"API.ZFR.SEARCH.NORESULT","title":"NORESULT"}}"#, Class::NotFound, Success),
    ("ch_zefix", 404, r#"{"status":404,"error":"Not Found"}"#, Class::BadShape, Success),
    ("ch_zefix", 429, "", Class::Throttled, Verdict::Throttled { retry_after: None }),
    ("ch_zefix_official", 404, r#"{"error":{"code":"API.ZFR.SEARCH.NORESULT"}}"#, Class::NotFound, Success),
    ("ch_zefix_official", 401, r#"{"status":401,"error":"Unauthorized"}"#, Class::Denied, Neutral),
    ("fi_ytj", 503, "", Class::Unavailable, Failure),
    ("nominatim", 403, "Usage limit reached", Class::Throttled, stay(3600)),
    ("nominatim", 400, r#"{"error":{"code":400}}"#, Class::Business, Success),
    ("tavily", 432, r#"{"detail":{"error":"plan"}}"#, Class::Throttled, stay(12 * 3600)),
    ("tavily", 433, r#"{"detail":{"error":"pay as you go"}}"#, Class::Throttled, stay(24 * 3600)),
    ("tavily", 429, r#"{"error":{"code":"rate_limited","retry_after_seconds":30}}"#, Class::Throttled, stay(30)),
    ("tavily", 429, r#"{"detail":{"error":"x"}}"#, Class::Throttled, Verdict::Throttled { retry_after: None }),
    ("tavily", 400, r#"{"detail":{"error":"Query is too long."}}"#, Class::Business, Success),
    ("tavily", 401, r#"{"detail":{"error":"Unauthorized"}}"#, Class::Denied, Neutral),
    ("opensanctions", 400, r#"{"detail":"Failed to parse query"}"#, Class::Business, Neutral),
    ("opensanctions", 401, r#"{"detail":"Invalid API key"}"#, Class::Denied, Neutral),
    ("opensanctions", 500, r#"{"detail":"x"}"#, Class::Unavailable, Failure),
    ("opensanctions.entity", 404, r#"{"detail":"No such entity!"}"#, Class::NotFound, Success),
    ("opensanctions.match", 404, r#"{"detail":"No such dataset: x"}"#, Class::BadShape, Success),
    ("opensanctions_feed", 404, "<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", Class::BadShape, Success),
    ("opensanctions_feed", 304, "", Class::Ok, Success),
    ("eba_register", 304, "", Class::Ok, Success),
    ("opensanctions_feed", 403, "", Class::Denied, Neutral),
    ("peppol_directory", 400, "", Class::Business, Success),
    ("peppol_directory", 400, "<html>bad gateway</html>", Class::BadShape, Success),
    ("peppol_directory", 404, "", Class::BadShape, Success),
    ("peppol_directory", 429, "", Class::Throttled, Verdict::Throttled { retry_after: None }),
    ("peppol_directory", 200, r#"{"total-result-count":0,"matches":[]}"#, Class::Ok, Success),
    ("peppol_verify", 503, r#"{"detail":"Upstream source (KBO, VIES, etc.) unavailable"}"#, Class::Unavailable, Failure),
    ("peppol_verify", 503, "Service Unavailable", Class::Unavailable, Failure),
    ("peppol_verify", 400, r#"{"detail":"enterprise_number: 10 digits expected"}"#, Class::Business, Success),
    ("peppol_verify", 422, r#"{"detail":"enterprise_number: field required"}"#, Class::Business, Success),
    ("peppol_verify", 202, r#"{"status":"accepted"}"#, Class::Ok, Success),
    ("peppol_verify", 401, r#"{"detail":"Missing or invalid API key"}"#, Class::Denied, Neutral),
    ("crawl4ai", 413, r#"{"detail":"Response too large"}"#, Class::Business, Success),
    ("crawl4ai", 400, r#"{"detail":"URL is not allowed"}"#, Class::BadShape, Success),
    ("crawl4ai", 500, r#"{"detail":"Crawl request failed"}"#, Class::Unavailable, Failure),
    ("crawl4ai", 503, r#"{"detail":"Server at capacity"}"#, Class::Unavailable, Failure),
    ("brightdata_enrichment", 200, "Account is suspended", Class::Throttled, stay(3600)),
    ("brightdata_social", 403, "Account is suspended", Class::Throttled, stay(3600)),
    ("brightdata_enrichment", 200, r#"[{"about":"Account is suspended, balance due"}]"#, Class::Ok, Success),
    ("brightdata_enrichment", 400, "Not enough balance", Class::Throttled, stay(3600)),
    ("brightdata_person", 401, "Invalid credentials", Class::Throttled, stay(3600)),
    ("brightdata_enrichment", 402, r#"{"error":"Payment required"}"#, Class::Throttled, stay(3600)),
    ("brightdata_enrichment", 429, r#"{"error":"too many running jobs. Running jobs: 9>=9"}"#, Class::Throttled, stay(30)),
    ("brightdata_enrichment", 429, "{}", Class::Throttled, Verdict::Throttled { retry_after: None }),
    ("brightdata_enrichment", 400, r#"{"error":"Snapshot is expired"}"#, Class::Business, Success),
    ("brightdata_enrichment", 400, r#"{"validation_errors":["x"]}"#, Class::BadShape, Success),
    ("brightdata_enrichment", 404, r#"{"error":"Snapshot does not exist"}"#, Class::Business, Success),
    ("brightdata_enrichment", 404, r#"{"error":"dataset does not exist"}"#, Class::BadShape, Success),
    ("brightdata_enrichment", 202, r#"{"status":"running","message":"Snapshot is not ready yet"}"#, Class::Ok, Success),
    ("brightdata_enrichment", 500, r#"{"error":"x"}"#, Class::Unavailable, Failure),
];

fn known() -> impl Iterator<Item = &'static Source> {
    catalog::sources().iter().chain(catalog::fallbacks()).copied()
}

/// The rules in the order in which they are consulted.
fn rules(name: &str) -> Vec<&'static Rule> {
    let source = name.split_once('.').map_or(name, |(source, _)| source);
    let source = known().find(|known| known.name == source).unwrap_or_else(|| panic!("no source {source}"));
    let own = source.operations.iter().filter(|operation| operation.name == name).flat_map(|operation| operation.rules);
    own.chain(source.rules).collect()
}

#[test]
fn every_row_of_every_table() {
    let now: Timestamp = NOW.parse().expect("a time");
    for (name, status, body, class, verdict) in TABLE {
        let reply = Reply::new(*status, *body);
        match judge(rules(name), &reply, now) {
            Ok(()) => assert_eq!(*class, Class::Ok, "{name} {status} {body}"),
            Err(error) => {
                assert_eq!((error.class, error.verdict()), (*class, *verdict), "{name} {status} {body}")
            }
        }
    }
}

#[test]
fn no_rule_is_without_a_row() {
    let now: Timestamp = NOW.parse().expect("a time");
    let mut used = HashSet::new();
    for (name, status, body, ..) in TABLE {
        let reply = Reply::new(*status, *body);
        // The first rule that decides alone as all of them do is the one that fits.
        let whole = judge(rules(name), &reply, now);
        if let Some(rule) = rules(name).into_iter().find(|rule| rule.fits(&reply)) {
            assert_eq!(judge([rule], &reply, now), whole);
            used.insert(std::ptr::from_ref(rule));
        }
    }
    for source in known() {
        let own = source.operations.iter().flat_map(|operation| operation.rules);
        for rule in own.chain(source.rules) {
            assert!(used.contains(&std::ptr::from_ref(rule)), "{}: no row for {rule:?}", source.name);
        }
    }
}

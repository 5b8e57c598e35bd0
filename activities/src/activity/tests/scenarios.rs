//! The faults that only one upstream has, each with the operations it strikes: what the report says, and what the breaker
//! heard. An upstream that a row of the catalog asks has a line here for each of its scenarios.

use std::collections::HashSet;

use tokio::time::Duration;

use super::{
    Bench, equinor, fallbacks,
    observed::{Heard, Outcome, observe},
    subject,
};
use crate::{
    catalog,
    model::{Query, Status, Subject},
    spec::Class,
};

use Class::{BadShape, Denied, Throttled, Unavailable};
use Heard::{Failure, Nothing, PartFailure, Stay};
use Outcome::{Found, Instead, Unanswered};

/// Upstream, scenario, operation, whom it is about, outcome, what the breaker heard.
pub(super) type Row = (&'static str, &'static str, &'static str, About, Outcome, Heard);

/// Country, number, name.
pub(super) type About = (&'static str, &'static str, &'static str);

pub(super) const ALZA: About = ("CZ", "27082440", "Alza.cz a.s.");
pub(super) const DEBTOR: About = ("CZ", "99000105", "Vzorový úpadce s.r.o.");
const EQUINOR: About = ("NO", "923609016", "EQUINOR ASA");
pub(super) const NOKIA: About = ("FI", "0112038-9", "Nokia Oyj");
const SIEMENS: About = ("DE", "HRB 6684 Muenchen", "Siemens AG");
const ASML: About = ("NL", "17085815", "ASML Holding N.V.");
const DANONE: About = ("FR", "552032534", "DANONE");
pub(super) const DANTE: About = ("RO", "14399840", "DANTE INTERNATIONAL SA");
const NOVO: About = ("DK", "24256790", "Novo Nordisk A/S");
pub(super) const PROXIMUS: About = ("BE", "0202239951", "PROXIMUS");

/// Calls above the published rate are prevented by our own limits, which are tested where they are.
const RATE: &str = "enforce_rate";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("northdata", "shape_array", "northdata.company", SIEMENS, Found(Status::Complete), Nothing),
    ("northdata", "shape_items", "northdata.company", SIEMENS, Found(Status::Complete), Nothing),
    // Hidden by the plan is not unknown.
    ("northdata", "censored", "northdata.search", SIEMENS, Found(Status::NeedsReview), Nothing),
    ("vies", "ms_unavailable:BE", "vies.check", PROXIMUS, Unanswered(Unavailable), PartFailure),
    ("vies", "ms_unavailable:DE", "vies.check", NOKIA, Found(Status::Complete), Nothing),
    ("vies", "ms_unavailable:FI", "vies.status", NOKIA, Found(Status::Complete), Nothing),
    ("vies", "user_error:MS_UNAVAILABLE", "vies.check", PROXIMUS, Unanswered(Unavailable), PartFailure),
    ("vies", "user_error:MS_MAX_CONCURRENT_REQ", "vies.check", PROXIMUS, Unanswered(Unavailable), PartFailure),
    // The fallback is the national register where there is one, and the older interface where the newer one is at fault.
    ("vies", "user_error:MS_UNAVAILABLE", "vies.check", NOKIA, Instead("fi_ytj"), PartFailure),
    ("vies", "user_error:MS_UNAVAILABLE", "vies.check", ALZA, Instead("cz_ares"), PartFailure),
    ("vies", "user_error:MS_UNAVAILABLE", "vies.check", DANTE, Instead("ro_anaf"), PartFailure),
    ("vies", "user_error:SERVICE_UNAVAILABLE", "vies.check", PROXIMUS, Instead("vies_soap"), Failure),
    ("vies", "user_error:GLOBAL_MAX_CONCURRENT_REQ", "vies.check", NOKIA, Instead("vies_soap"), Failure),
    ("vies", "user_error:INVALID_INPUT", "vies.check", NOKIA, Found(Status::NeedsReview), Nothing),
    ("vies", "user_error:SOMETHING_NEW", "vies.check", PROXIMUS, Unanswered(Unavailable), PartFailure),
    ("vies", "error_wrapper:MS_UNAVAILABLE", "vies.check", PROXIMUS, Unanswered(Unavailable), PartFailure),
    ("vies", "error_wrapper:IP_BLOCKED", "vies.check", PROXIMUS, Unanswered(Throttled), Stay),
    ("vies", "error_wrapper:SOMETHING_NEW", "vies.check", PROXIMUS, Unanswered(Unavailable), PartFailure),
    // Others know the company too, but none of its establishments.
    ("kbo", "blocked", "kbo.entity", PROXIMUS, Instead("nbb"), Stay),
    ("kbo", "blocked", "kbo.establishments", PROXIMUS, Unanswered(Throttled), Stay),
    ("no_brreg", "deleted", "no_brreg.entity", EQUINOR, Found(Status::Complete), Nothing),
    ("no_brreg", "gone", "no_brreg.entity", EQUINOR, Found(Status::NeedsReview), Nothing),
    ("no_brreg", "accounts_500", "no_brreg.accounts", EQUINOR, Found(Status::NeedsReview), Nothing),
    ("no_brreg", "accounts_500", "no_brreg.entity", EQUINOR, Found(Status::Complete), Nothing),
    ("no_brreg", "app_unavailable", "no_brreg.entity", EQUINOR, Unanswered(Unavailable), Failure),
    ("no_brreg", "app_unavailable", "no_brreg.accounts", EQUINOR, Unanswered(Unavailable), Failure),
    ("cz_ares", "moved", "cz_ares.entity", ALZA, Unanswered(BadShape), Nothing),
    ("cz_ares", "too_many", "cz_ares.search", ALZA, Found(Status::NeedsReview), Nothing),
    ("cz_ares", "vr_down", "cz_ares.public_register", ALZA, Unanswered(Unavailable), Failure),
    ("cz_ares", "vr_down", "cz_ares.entity", ALZA, Found(Status::Complete), Nothing),
    // Before midnight in Copenhagen no request is sent again.
    ("dk_cvr", "quota:0", "dk_cvr.company", NOVO, Unanswered(Throttled), Stay),
    ("dk_cvr", "quota:50", "dk_cvr.company", NOVO, Found(Status::Complete), Nothing),
    ("dk_cvr", "error:BANNED", "dk_cvr.company", NOVO, Unanswered(Throttled), Stay),
    ("dk_cvr", "error:INTERNAL_ERROR", "dk_cvr.search", NOVO, Unanswered(Unavailable), Failure),
    ("dk_cvr", "error:INVALID_UA", "dk_cvr.company", NOVO, Unanswered(Denied), Nothing),
    ("dk_cvr", "error:INVALID_VAT", "dk_cvr.company", NOVO, Found(Status::NeedsReview), Nothing),
    ("dk_cvr", "error:SOMETHING_NEW", "dk_cvr.company", NOVO, Unanswered(Unavailable), Failure),
    ("dk_cvr", "not_found_404", "dk_cvr.company", ("DK", "10000009", ""), Found(Status::NotFound), Nothing),
    ("nl_kvk", "ipd:IPD5200", "nl_kvk.company", ASML, Found(Status::NotFound), Nothing),
    ("nl_kvk", "ipd:IPD0005", "nl_kvk.company", ASML, Found(Status::NeedsReview), Nothing),
    ("nl_kvk", "ipd:IPD1998", "nl_kvk.search", ASML, Found(Status::NeedsReview), Nothing),
    ("nl_kvk", "ipd:IPD1002", "nl_kvk.company", ASML, Instead("nl_kvk_open"), Stay),
    ("nl_kvk", "ipd:IPD1003", "nl_kvk.names", ASML, Unanswered(Throttled), Stay),
    ("nl_kvk", "ipd:IPD9999", "nl_kvk.company", ASML, Instead("nl_kvk_open"), Failure),
    ("fr_insee", "non_diffusible", "fr_insee.unit", DANONE, Found(Status::NeedsReview), Nothing),
    ("fr_insee", "non_diffusible", "fr_insee.head_office", DANONE, Found(Status::NeedsReview), Nothing),
    ("fr_insee", "maintenance", "fr_insee.unit", DANONE, Instead("recherche_entreprises"), Failure),
    ("fr_insee", "maintenance", "fr_insee.head_office", DANONE, Instead("recherche_entreprises"), Failure),
    ("fr_insee", "maintenance", "fr_insee.search", DANONE, Instead("recherche_entreprises"), Failure),
    ("fr_inpi", "token_expires:1", "fr_inpi.company", DANONE, Found(Status::Complete), Nothing),
    ("fr_inpi", "token_expires:1", "fr_inpi.documents", DANONE, Found(Status::Complete), Nothing),
    ("fr_inpi", "connection_type", "fr_inpi.company", DANONE, Unanswered(Denied), Nothing),
    ("fr_bodacc", "quota", "fr_bodacc.notices", DANONE, Unanswered(Throttled), Stay),
    ("fr_bodacc", "quota", "fr_bodacc.insolvency", DANONE, Unanswered(Throttled), Stay),
    ("ro_anaf", "f5_page", "ro_anaf.vat", DANTE, Unanswered(Unavailable), Failure),
    ("ro_anaf", "f5_page", "ro_anaf.accounts", DANTE, Unanswered(Unavailable), Failure),
    ("ro_anaf", "f5_page", "ro_anaf.e_invoice", DANTE, Unanswered(Unavailable), Failure),
    ("ro_anaf", "wrapper", "ro_anaf.vat", DANTE, Found(Status::Complete), Nothing),
    ("ro_anaf", "wrapper_error:500", "ro_anaf.vat", DANTE, Unanswered(Unavailable), Failure),
    ("cz_isir", "code:WS2", "cz_isir.insolvency", DEBTOR, Found(Status::NotFound), Nothing),
    ("cz_isir", "code:WS1", "cz_isir.insolvency", DEBTOR, Found(Status::NeedsReview), Nothing),
    ("cz_isir", "code:SERVER1", "cz_isir.insolvency", DEBTOR, Instead("cz_ares"), Failure),
    ("cz_isir", "code:SQL1", "cz_isir.insolvency", DEBTOR, Instead("cz_ares"), Failure),
    ("cz_isir", "code:SOMETHING_NEW", "cz_isir.insolvency", DEBTOR, Instead("cz_ares"), Failure),
    ("cz_ubo", "login_page", "cz_ubo.owners", ALZA, Unanswered(Denied), Nothing),
    ("cz_ubo", "authenticated", "cz_ubo.owners", ALZA, Unanswered(Denied), Nothing),
    // "None" is believed after three answers.
    ("nbb", "silent_empty:2", "nbb.deposits", PROXIMUS, Found(Status::Complete), Nothing),
    ("nbb", "silent_empty:1000", "nbb.accounts", PROXIMUS, Found(Status::NotFound), Nothing),
    ("nbb", "silent_empty:1000", "nbb.deposits", PROXIMUS, Found(Status::NotFound), Nothing),
    ("nbb", "control_chars", "nbb.deposits", PROXIMUS, Found(Status::Complete), Nothing),
    ("nominatim", "blocked", "nominatim.search", EQUINOR, Unanswered(Throttled), Stay),
    ("nominatim", "database_down", "nominatim.search", EQUINOR, Unanswered(Unavailable), Failure),
    ("tavily", "432", "tavily.adverse_media", EQUINOR, Unanswered(Throttled), Stay),
    ("tavily", "433", "tavily.adverse_media", EQUINOR, Unanswered(Throttled), Stay),
    ("tavily", "429_envelope", "tavily.adverse_media", EQUINOR, Unanswered(Throttled), Stay),
    // What would poison the query is taken out before it is sent.
    ("opensanctions", "poison_500", "opensanctions.match", NOVO, Found(Status::Complete), Nothing),
    ("opensanctions", "stale_index", "opensanctions.match", EQUINOR, Found(Status::Complete), Nothing),
    ("opensanctions_feed", "stale_index", "opensanctions_feed.index", EQUINOR, Found(Status::Partial), Nothing),
    ("opensanctions_feed", "stale_index", "opensanctions_feed.screen", EQUINOR, Found(Status::Partial), Nothing),
    ("opensanctions_feed", "checksum_mismatch", "opensanctions_feed.screen", EQUINOR, Unanswered(BadShape), Failure),
    ("opensanctions_feed", "checksum_mismatch", "opensanctions_feed.index", EQUINOR, Found(Status::Complete), Nothing),
    ("opensanctions_feed", "huge_feed", "opensanctions_feed.screen", EQUINOR, Unanswered(BadShape), Failure),
    ("eba_register", "sha256_mismatch", "eba_register.licence", ALZA, Unanswered(BadShape), Failure),
    ("eba_register", "half_zip", "eba_register.licence", ALZA, Unanswered(BadShape), Failure),
    ("eba_register", "half_zip", "eba_register.metadata", ALZA, Found(Status::Complete), Nothing),
    ("peppol_verify", "upstream_unavailable", "peppol_verify.check", PROXIMUS, Unanswered(Unavailable), Failure),
    ("peppol_verify", "accepted", "peppol_verify.check", PROXIMUS, Found(Status::Pending), Nothing),
    ("peppol_verify", "flag:TAX_DEBT_DETECTED", "peppol_verify.check", PROXIMUS, Found(Status::Complete), Nothing),
    // A flag that no source stands behind is not passed on.
    ("peppol_verify", "vies_silent", "peppol_verify.check", PROXIMUS, Found(Status::Partial), Nothing),
    ("crawl4ai", "target_down", "crawl4ai.website", EQUINOR, Unanswered(Unavailable), Nothing),
    ("crawl4ai", "led_inside", "crawl4ai.website", EQUINOR, Found(Status::NeedsReview), Nothing),
    ("crawl4ai", "queue_full", "crawl4ai.website", EQUINOR, Unanswered(Unavailable), Failure),
    ("crawl4ai", "all_failed", "crawl4ai.website", EQUINOR, Unanswered(Unavailable), Failure),
    ("crawl4ai", "too_large", "crawl4ai.website", EQUINOR, Found(Status::NeedsReview), Nothing),
    ("brightdata_enrichment", "polls:2", "brightdata_enrichment.company", EQUINOR, Found(Status::Pending), Nothing),
    ("brightdata_enrichment", "job_failed", "brightdata_enrichment.company", EQUINOR, Unanswered(Unavailable), Failure),
    ("brightdata_enrichment", "row_errors", "brightdata_enrichment.company", EQUINOR, Found(Status::NotFound), Nothing),
    ("brightdata_enrichment", "too_many_jobs", "brightdata_enrichment.company", EQUINOR, Unanswered(Throttled), Stay),
    ("brightdata_enrichment", "suspended", "brightdata_enrichment.company", EQUINOR, Unanswered(Throttled), Stay),
    ("brightdata_enrichment", "suspended_403", "brightdata_enrichment.company", EQUINOR, Unanswered(Throttled), Stay),
    ("brightdata_enrichment", "expired", "brightdata_enrichment.company", EQUINOR, Found(Status::NeedsReview), Nothing),
    ("brightdata_social", "polls:2", "brightdata_social.company", EQUINOR, Found(Status::Pending), Nothing),
    ("brightdata_social", "job_failed", "brightdata_social.company", EQUINOR, Unanswered(Unavailable), Failure),
    ("brightdata_social", "row_errors", "brightdata_social.company", EQUINOR, Found(Status::NotFound), Nothing),
    ("brightdata_social", "too_many_jobs", "brightdata_social.company", EQUINOR, Unanswered(Throttled), Stay),
    ("brightdata_social", "suspended", "brightdata_social.company", EQUINOR, Unanswered(Throttled), Stay),
    ("brightdata_social", "suspended_403", "brightdata_social.company", EQUINOR, Unanswered(Throttled), Stay),
    ("brightdata_social", "expired", "brightdata_social.company", EQUINOR, Found(Status::NeedsReview), Nothing),
    ("brightdata_person", "polls:2", "brightdata_person.profiles", EQUINOR, Found(Status::Pending), Nothing),
    ("brightdata_person", "job_failed", "brightdata_person.profiles", EQUINOR, Unanswered(Unavailable), Failure),
    ("brightdata_person", "row_errors", "brightdata_person.profiles", EQUINOR, Found(Status::NotFound), Nothing),
    ("brightdata_person", "too_many_jobs", "brightdata_person.profiles", EQUINOR, Unanswered(Throttled), Stay),
    ("brightdata_person", "suspended", "brightdata_person.profiles", EQUINOR, Unanswered(Throttled), Stay),
    ("brightdata_person", "suspended_403", "brightdata_person.profiles", EQUINOR, Unanswered(Throttled), Stay),
    ("brightdata_person", "expired", "brightdata_person.profiles", EQUINOR, Found(Status::NeedsReview), Nothing),
];

pub(super) fn described((country, id, name): About) -> Subject {
    let described = subject(country, id, name);
    if country != "NO" {
        return described;
    }
    Subject { id: described.id, name: described.name, ..equinor() }
}

#[tokio::test]
async fn every_scenario_of_every_upstream() {
    let mut bench = Bench::new().await;
    let mut wrong = Vec::new();
    for (upstream, fault, operation, about, outcome, heard) in ROWS {
        bench.forget();
        bench.fault(upstream, fault).await;
        let entry = catalog::operation(operation).unwrap_or_else(|| panic!("no operation {operation}"));
        let query = Query::from(described(*about));
        let got = observe(&bench, entry, &query, Duration::from_secs(60)).await;
        if got != (*outcome, *heard) {
            wrong.push(format!("{operation}, {upstream} with {fault}: {got:?}, expected {:?}", (outcome, heard)));
        }
        bench.simulator.clear(upstream).await.expect(upstream);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn no_scenario_is_without_a_row() {
    let bench = Bench::new().await;
    let name = |fault: &'static str| fault.split([':', '@']).next().unwrap_or(fault);
    let tried: HashSet<_> =
        ROWS.iter().chain(fallbacks::ROWS).map(|(upstream, fault, ..)| (*upstream, name(fault))).collect();
    let sources = || catalog::sources().iter().chain(catalog::fallbacks());
    let asked = |env: &str| sources().any(|source| source.base.env == env);
    let mut missing = Vec::new();
    for (upstream, (env, _)) in bench.simulator.sources().zip(bench.simulator.env()) {
        if !asked(&env) {
            continue;
        }
        for scenario in bench.simulator.scenarios(upstream).expect(upstream) {
            if scenario != RATE && !tried.contains(&(upstream, scenario)) {
                missing.push(format!("{upstream} with {scenario}"));
            }
        }
    }
    assert!(missing.is_empty(), "no row for {missing:?}");
}

//! The table of upstreams. A new one is a file with a row, its fixtures, and a line here.

mod brightdata;
mod ch_zefix;
mod crawl4ai;
mod cz_ares;
mod cz_isir;
mod cz_justice;
mod cz_ubo;
mod dk_cvr;
mod eba_register;
mod ee_ariregister;
mod fi_ytj;
mod fr_bodacc;
mod fr_inpi;
mod fr_insee;
mod gleif;
mod kbo;
mod nbb;
mod nl_kvk;
mod no_brreg;
mod nominatim;
mod northdata;
mod opensanctions;
mod peppol;
mod registry_sk;
mod ro_anaf;
mod sk_ruz;
mod tavily;
mod vatsense;
mod vies;

use super::upstream::Upstream;

/// Every upstream, in the order of their ports.
pub(super) static UPSTREAMS: &[&Upstream] = &[
    &northdata::ROW,
    &gleif::ROW,
    &nominatim::ROW,
    &tavily::ROW,
    &eba_register::ROW,
    &vies::REST,
    &vies::SOAP,
    &vatsense::ROW,
    &crawl4ai::ROW,
    &opensanctions::API,
    &opensanctions::FEED,
    &brightdata::ENRICHMENT,
    &brightdata::SOCIAL,
    &brightdata::PERSON,
    &kbo::ROW,
    &nbb::CONSULT,
    &nbb::OFFICIAL,
    &peppol::DIRECTORY,
    &peppol::VERIFY,
    &cz_ares::ROW,
    &cz_justice::PORTAL,
    &cz_justice::LEGACY,
    &cz_isir::ROW,
    &cz_ubo::ROW,
    &registry_sk::JSON,
    &registry_sk::HTML,
    &registry_sk::RPO,
    &sk_ruz::ROW,
    &fr_inpi::ROW,
    &fr_insee::SIRENE,
    &fr_insee::OPEN,
    &fr_bodacc::ROW,
    &dk_cvr::CVRAPI,
    &dk_cvr::DATAFORDELER,
    &ee_ariregister::ROW,
    &fi_ytj::ROW,
    &nl_kvk::API,
    &nl_kvk::OPEN,
    &no_brreg::ROW,
    &ro_anaf::ROW,
    &ch_zefix::SITE,
    &ch_zefix::OFFICIAL,
];

//! The table of upstreams. A new one is a file with its spec, its fixtures, and a line here.

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

use crate::spec::UpstreamSpec;

/// Every upstream, in the order of their ports.
pub(crate) static UPSTREAMS: &[&UpstreamSpec] = &[
    &northdata::SPEC,
    &gleif::SPEC,
    &nominatim::SPEC,
    &tavily::SPEC,
    &eba_register::SPEC,
    &vies::REST,
    &vies::SOAP,
    &vatsense::SPEC,
    &crawl4ai::SPEC,
    &opensanctions::API,
    &opensanctions::FEED,
    &brightdata::ENRICHMENT,
    &brightdata::SOCIAL,
    &brightdata::PERSON,
    &kbo::SPEC,
    &nbb::CONSULT,
    &nbb::OFFICIAL,
    &peppol::DIRECTORY,
    &peppol::VERIFY,
    &cz_ares::SPEC,
    &cz_justice::PORTAL,
    &cz_justice::LEGACY,
    &cz_isir::SPEC,
    &cz_ubo::SPEC,
    &registry_sk::JSON,
    &registry_sk::HTML,
    &registry_sk::RPO,
    &sk_ruz::SPEC,
    &fr_inpi::SPEC,
    &fr_insee::SIRENE,
    &fr_insee::OPEN,
    &fr_bodacc::SPEC,
    &dk_cvr::CVRAPI,
    &dk_cvr::DATAFORDELER,
    &ee_ariregister::SPEC,
    &fi_ytj::SPEC,
    &nl_kvk::API,
    &nl_kvk::OPEN,
    &no_brreg::SPEC,
    &ro_anaf::SPEC,
    &ch_zefix::SITE,
    &ch_zefix::OFFICIAL,
];

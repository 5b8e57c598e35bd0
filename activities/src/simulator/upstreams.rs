//! The table of upstreams. A new one is a file with a row, its fixtures, and a line here.

mod brightdata;
mod crawl4ai;
mod cz_ares;
mod eba_register;
mod fi_ytj;
mod gleif;
mod kbo;
mod nbb;
mod no_brreg;
mod nominatim;
mod northdata;
mod opensanctions;
mod peppol;
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
    &fi_ytj::ROW,
    &no_brreg::ROW,
];

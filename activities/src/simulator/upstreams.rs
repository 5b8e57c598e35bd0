//! The table of upstreams. A new one is a file with a row, its fixtures, and a line here.

mod cz_ares;
mod fi_ytj;
mod gleif;
mod no_brreg;
mod nominatim;
mod opensanctions;
mod tavily;
mod vies;

use super::upstream::Upstream;

/// Every upstream, in the order of their ports.
pub(super) static UPSTREAMS: &[&Upstream] = &[
    &gleif::ROW,
    &vies::REST,
    &vies::SOAP,
    &nominatim::ROW,
    &tavily::ROW,
    &opensanctions::API,
    &opensanctions::FEED,
    &cz_ares::ROW,
    &fi_ytj::ROW,
    &no_brreg::ROW,
];

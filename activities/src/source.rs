//! The upstreams, one file each: the row, and what only this upstream needs.

pub mod cz_ares;
pub mod fi_ytj;
pub mod gleif;
pub mod no_brreg;
pub mod nominatim;
pub mod northdata;
pub mod opensanctions;
pub mod peppol_directory;
pub mod peppol_verify;
pub mod tavily;
pub mod vatsense;
pub mod vies;

#[cfg(test)]
mod tests;

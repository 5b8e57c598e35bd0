//! The upstreams, one file each: the row, and what only this upstream needs.

pub mod ch_zefix;
pub mod cz_ares;
pub mod cz_isir;
pub mod cz_ubo;
pub mod ee_ariregister;
pub mod fi_ytj;
pub mod gleif;
pub mod nbb;
pub mod nbb_official;
pub mod no_brreg;
pub mod nominatim;
pub mod northdata;
pub mod opensanctions;
pub mod peppol_directory;
pub mod peppol_verify;
pub mod ro_anaf;
pub mod tavily;
pub mod vatsense;
pub mod vies;
pub mod vies_soap;

#[cfg(test)]
mod tests;

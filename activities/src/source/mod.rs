//! The upstreams, one file each: the row, and what only this upstream needs. A private module holds what several share.

pub mod brightdata;
pub mod ch_zefix;
pub mod crawl4ai;
pub mod cz_ares;
pub mod cz_isir;
pub mod cz_justice;
pub mod cz_justice_legacy;
pub mod cz_ubo;
mod czech_deeds;
pub mod dk_cvr;
pub mod eba_register;
pub mod ee_ariregister;
pub mod fi_ytj;
pub mod fr_bodacc;
pub mod fr_inpi;
pub mod fr_insee;
mod french;
pub mod gleif;
pub mod kbo;
pub mod nbb;
pub mod nbb_official;
pub mod nl_kvk;
pub mod nl_kvk_open;
pub mod no_brreg;
pub mod nominatim;
pub mod northdata;
pub mod opensanctions;
pub mod opensanctions_feed;
pub mod peppol_directory;
pub mod peppol_verify;
pub mod recherche_entreprises;
pub mod registry_sk;
pub mod registry_sk_html;
pub mod registry_sk_rpo;
pub mod ro_anaf;
pub mod sk_ruz;
mod slovak;
pub mod tavily;
pub mod vatsense;
pub mod vies;
pub mod vies_soap;

#[cfg(test)]
mod tests;

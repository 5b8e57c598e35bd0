//! What each upstream answers, as documented: one file of tests for each.

use super::*;

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

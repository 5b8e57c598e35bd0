//! What each upstream says, as documented: one file of tests a row.

use super::*;

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

//! What each upstream says, as documented: one test a row.

use super::*;

mod cz_ares;
mod fi_ytj;
mod gleif;
mod no_brreg;
mod nominatim;
mod opensanctions;
mod tavily;
mod vies;

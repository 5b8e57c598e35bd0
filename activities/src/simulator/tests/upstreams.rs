//! What each upstream says, as documented: one test a row.

use super::*;

mod gleif;
mod no_brreg;

//! The table of upstreams. A new one is a file with a row, its fixtures, and a line here.

mod gleif;
mod no_brreg;

use super::upstream::Upstream;

/// Every upstream, in the order of their ports.
pub(super) static UPSTREAMS: &[&Upstream] = &[&gleif::ROW, &no_brreg::ROW];

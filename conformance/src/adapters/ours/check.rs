//! What our own cases check with.

use std::{fmt::Debug, time::Duration};

/// A case passed, or what was observed instead.
pub(super) type Result = std::result::Result<(), String>;

pub(super) fn same<T: PartialEq + Debug>(what: &str, expected: T, observed: T) -> Result {
    if expected == observed { Ok(()) } else { Err(format!("{what}: expected {expected:?}, observed {observed:?}")) }
}

pub(super) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

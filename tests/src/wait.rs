//! Waiting for something outside this process.
//!
//! A real server takes as long as it takes, so nothing here asserts on time: a wait ends when its condition holds, and the
//! limit only keeps a broken test from hanging.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, sleep};

/// Far beyond what a loaded machine needs.
pub const LIMIT: Duration = Duration::from_secs(90);

/// How often a condition is looked at.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks until there is a value, and returns it.
///
/// # Panics
/// When there is none within [`LIMIT`]; `what` says what was waited for.
pub async fn eventually<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let limit = Instant::now() + LIMIT;
    loop {
        if let Some(value) = look().await {
            return value;
        }
        assert!(Instant::now() < limit, "waited {LIMIT:?} in vain: {what}");
        sleep(PAUSE).await;
    }
}

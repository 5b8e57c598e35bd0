//! Waits for something outside this process.
//!
//! A real server has no fixed speed, so no test asserts on time. A wait ends when its condition holds; the limit only stops a
//! broken test.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, sleep};

/// Much longer than a loaded machine needs.
pub const LIMIT: Duration = Duration::from_secs(240);

/// Pause between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(20);

/// Calls `look` until it returns a value.
///
/// # Panics
/// When there is none within [`LIMIT`]. The text names `what`.
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

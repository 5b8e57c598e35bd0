//! Whether the present runtime keeps time. Without timers a call cannot wait, and its timeout is noticed at the next poll.

use std::{cell::Cell, panic::catch_unwind, time::Duration};

use tokio::runtime::{Handle, Id};

thread_local! {
    /// The runtime that was asked last, and its answer.
    static LAST: Cell<Option<(Id, bool)>> = const { Cell::new(None) };
}

/// Whether tokio's timers work here. A runtime that was built without them cannot be asked; it panics, once.
pub(super) fn available() -> bool {
    let Ok(handle) = Handle::try_current() else { return false };
    let id = handle.id();
    if let Some((known, answer)) = LAST.get()
        && known == id
    {
        return answer;
    }
    let answer = catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_ok();
    if !answer {
        tracing::warn!(
            "this tokio runtime has no timers: a timeout is noticed only when its call is polled, and no call waits"
        );
    }
    LAST.set(Some((id, answer)));
    answer
}

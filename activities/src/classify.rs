//! What an answer means, and what it says about the health of the upstream that gave it.
//!
//! Two questions that look alike are kept apart. A [`Class`] is about the *answer*: is it one, is it a "no", is it an
//! outage in disguise? A verdict is about the *upstream*: only that reaches its breaker.

use serde::{Deserialize, Serialize};

/// What one answer of an upstream turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The answer that was asked for.
    Ok,
    /// The upstream knows no such thing, in its own format.
    NotFound,
    /// An answer about the question: input it refuses, data it may not give, too many hits.
    Business,
    /// It asks to be left alone for a while: rate limit, quota, block.
    Throttled,
    /// Credentials, plan or address refused.
    Denied,
    /// It cannot answer anybody at the moment.
    Unavailable,
    /// It did not answer in time.
    Timeout,
    /// It answered something that its contract does not describe.
    BadShape,
}

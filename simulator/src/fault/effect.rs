//! What happens to one call.

use std::time::Duration;

use crate::answer::Answer;

/// What happens to one call.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Answer as the upstream would.
    Answer,
    /// Answer as the upstream would, this much later.
    Delay(Duration),
    /// Answer in small pieces, this long apart.
    Drip(Duration),
    /// Accept the request and never answer.
    Hang,
    /// Send half of the answer, then reset the connection.
    Reset,
    /// Close the connection before the first byte of an answer.
    DropConnection,
    /// Answer as for a company that the upstream does not know.
    NotFound,
    /// Send this instead of the answer.
    Reply(Answer),
    /// Send the first half of the answer's body in a complete response.
    Truncate,
}

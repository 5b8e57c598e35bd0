//! What common errors say about the service that caused them.

use std::{convert::Infallible, error::Error, io};

use crate::outcome::{Classify, Verdict};

impl Classify for Infallible {
    fn verdict(&self) -> Verdict {
        match *self {}
    }
}

/// Every I/O error is a failure of the other side, except those that we make ourselves.
impl Classify for io::Error {
    fn verdict(&self) -> Verdict {
        match self.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::Interrupted | io::ErrorKind::OutOfMemory => Verdict::Neutral,
            _ => Verdict::Failure,
        }
    }
}

impl Classify for tokio::time::error::Elapsed {
    fn verdict(&self) -> Verdict {
        Verdict::Failure
    }
}

/// An error that nobody knows anything about is a failure; use [`Breaker::call_with`](crate::Breaker::call_with) to know
/// better.
impl Classify for Box<dyn Error + Send + Sync> {
    fn verdict(&self) -> Verdict {
        Verdict::Failure
    }
}

/// An error in words is a failure; use [`Breaker::call_with`](crate::Breaker::call_with) to know better.
impl Classify for String {
    fn verdict(&self) -> Verdict {
        Verdict::Failure
    }
}

/// An error in words is a failure; use [`Breaker::call_with`](crate::Breaker::call_with) to know better.
impl Classify for &str {
    fn verdict(&self) -> Verdict {
        Verdict::Failure
    }
}

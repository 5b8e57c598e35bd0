//! How an operation gets its answer: mostly one request and one parser, sometimes several steps, sometimes a fallback.
//!
//! A flow knows neither breakers nor credentials nor the workflow. It asks through its [`Session`], which does.

use circuit_registry::CallError;
use futures::future::BoxFuture;
use serde::Serialize;

use super::{Answer, Request, Session, Source, SourceError};
use crate::model::Subject;

/// Reads a body. Pure, and prepared for any bytes at all: what it cannot read is [`SourceError`], never a panic and never an
/// empty answer.
pub type Parse = fn(&[u8]) -> Result<Answer, SourceError>;

/// Several steps.
pub type Steps = for<'a, 'b> fn(&'a Session<'b>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>>;

/// How an answer is got.
#[derive(Debug, Clone, Copy)]
pub enum Flow {
    /// One request, one parser. Without a request the operation does not apply to the subject.
    Single {
        /// What to ask about a subject.
        request: fn(&Subject) -> Option<Request>,
        /// How to read the answer.
        parse: Parse,
    },
    /// Whatever it takes.
    Steps(Steps),
}

/// Another source that is asked when the operation's own has no answer.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Fallback {
    /// As the finding's `via` names it.
    pub via: &'static str,
    /// What its answer is worth beside the source's own.
    pub proves: &'static str,
    /// Whose breaker, rules and credentials it uses.
    #[serde(skip)]
    pub source: &'static Source,
    /// How it answers. An operation may serve as its own fallback's flow.
    #[serde(skip)]
    pub flow: Flow,
}

//! How an operation gets its answer: mostly one request and one parser, sometimes several steps, sometimes a stand-in.
//!
//! A flow knows neither breakers nor credentials nor the workflow. It asks through its [`Session`], which does.

mod login;
mod session;

use circuit_registry::CallError;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    catalog::Source,
    classify::Trouble,
    client::Request,
    model::{Company, Facts, Job, Status, Subject},
};

pub use login::{LogIn, Tokens};
pub use session::{Keeper, Session};

/// Why a step has no answer: a breaker did not let it through, it took too long, or the upstream's own trouble.
pub type Stop = CallError<Trouble>;

/// Reads a body. Pure, and prepared for any bytes at all: what it cannot read is [`Trouble`], never a panic and never an
/// empty answer.
pub type Parse = fn(&[u8]) -> Result<Answer, Trouble>;

/// Several steps.
pub type Steps = for<'a, 'b> fn(&'a Session<'b>) -> BoxFuture<'a, Result<Answer, Stop>>;

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

/// Somebody who can stand in when a source has no answer.
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

/// What a flow found out.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// How complete it is.
    pub status: Status,
    /// What was learnt.
    pub facts: Facts,
    /// The date the source gives for its data.
    pub as_of: Option<Timestamp>,
    /// Why it is not simply complete.
    pub reason: Option<String>,
    /// A job that is still running, for [`Status::Pending`].
    pub job: Option<Job>,
    /// When to look at the job again.
    pub retry_at: Option<Timestamp>,
}

impl Default for Answer {
    fn default() -> Self {
        Self { status: Status::Complete, facts: Facts::default(), as_of: None, reason: None, job: None, retry_at: None }
    }
}

impl From<Facts> for Answer {
    fn from(facts: Facts) -> Self {
        Self { facts, ..Self::default() }
    }
}

/// One company, and nothing else.
impl From<Company> for Answer {
    fn from(company: Company) -> Self {
        Facts { companies: vec![company], ..Facts::default() }.into()
    }
}

impl Answer {
    /// The companies of a search, as they were listed.
    ///
    /// # Errors
    /// If there are none: the source knows no such company.
    pub fn listing(companies: Vec<Company>) -> Result<Self, Trouble> {
        if companies.is_empty() {
            return Err(Trouble::not_found("knows no such company"));
        }
        Ok(Facts { companies, ..Facts::default() }.into())
    }

    /// The same, as of a date of the source.
    #[must_use]
    pub const fn dated(mut self, as_of: Option<Timestamp>) -> Self {
        self.as_of = as_of;
        self
    }

    /// A job that is still running.
    #[must_use]
    pub fn pending(job: Job, retry_at: Timestamp, reason: impl Into<String>) -> Self {
        Self {
            status: Status::Pending,
            job: Some(job),
            retry_at: Some(retry_at),
            reason: Some(reason.into()),
            ..Self::default()
        }
    }
}

//! What a flow found out.

use jiff::Timestamp;

use super::SourceError;
use crate::model::{Company, Facts, Job, Status};

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
    pub fn listing(companies: Vec<Company>) -> Result<Self, SourceError> {
        if companies.is_empty() {
            return Err(SourceError::not_found("knows no such company"));
        }
        Ok(Facts { companies, ..Facts::default() }.into())
    }

    /// The same, which holds `read` of the `total` records that the source has. Without a total, or with one that is not
    /// above what was read, it is as it was; else it is [`Status::Partial`] and says "n of m".
    #[must_use]
    pub fn of_total(mut self, read: usize, total: Option<u64>) -> Self {
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        if let Some(total) = total.filter(|total| *total > read) {
            self = self.partly(format!("{read} of {total} were read"));
        }
        self
    }

    /// The same, which is not all that the source has.
    #[must_use]
    pub fn partly(mut self, why: impl Into<String>) -> Self {
        if self.status == Status::Complete {
            self.status = Status::Partial;
        }
        let why = why.into();
        self.reason = Some(self.reason.map_or(why.clone(), |reason| format!("{reason}; {why}")));
        self
    }

    /// The same with remarks that limit it.
    #[must_use]
    pub fn noting(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.facts.notes.extend(notes);
        self
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

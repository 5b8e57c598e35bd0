//! From a question to a finding: what is not asked at all, who is asked, which fallback answers, and what is a failure.

use std::time::Duration;

use circuit_registry::{CallError, temporal::Reason};
use jiff::Timestamp;
use tokio::time::Instant;

use super::Activities;
use crate::{
    cache::{Kept, Key},
    flow::{Guarded, Means, OnJob},
    model::{FailureDetails, Finding, Query, Status},
    spec::{Answer, Applies, Class, Entry, Fallback, Scope, Session, SourceError},
};

/// Where an attempt stands among the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptInfo {
    /// Counts from 1.
    pub attempt: u32,
    /// No further attempt follows.
    pub last: bool,
}

/// An operation without a finding.
#[derive(Debug)]
pub struct Failed {
    /// What the workflow learns about it.
    pub details: Box<FailureDetails>,
    /// The error as it happened.
    pub error: CallError<SourceError>,
}

/// One attempt: what it is about, and when it began.
#[derive(Debug, Clone, Copy)]
struct Attempt<'a> {
    entry: Entry,
    query: &'a Query,
    info: AttemptInfo,
    started_at: Timestamp,
    clock: Instant,
}

impl Activities {
    /// What becomes of an attempt whose predecessor may have been charged and died before it could report.
    #[must_use]
    pub fn not_again(entry: Entry, info: AttemptInfo) -> Failed {
        let error = SourceError::unavailable("an earlier attempt broke off and may have been charged: not asked again");
        let mut details = FailureDetails::new(entry.source.name, entry.operation.name, info.attempt);
        entry.source.breaker.clone_into(&mut details.service);
        details.class = Some(error.class);
        details.text.clone_from(&error.reason);
        Failed { details: Box::new(details), error: CallError::Upstream(error) }
    }

    /// Makes one attempt at an operation. A finding is whatever there is to know, including that there is nothing to know;
    /// what is merely not known yet is a failure.
    ///
    /// # Errors
    /// If neither the source nor a fallback has an answer.
    pub async fn investigate<'a>(
        &'a self,
        entry: Entry,
        query: &'a Query,
        info: AttemptInfo,
        on_job: Option<OnJob<'a>>,
    ) -> Result<Finding, Failed> {
        if let Some(finding) = self.not_asked(entry, query) {
            return Ok(finding);
        }
        let attempt = Attempt { entry, query, info, started_at: Timestamp::now(), clock: Instant::now() };
        if let Some(kept) = self.kept(&attempt, entry.operation.fresh.filter(|_| query.job.is_none())).await {
            let finding =
                Finding { as_of: Some(kept.date()), data: Some(kept.facts), ..attempt.blank(Status::Complete) };
            return Ok(Finding { attempts: 0, ..attempt.measured(finding) });
        }
        let means = Means { registry: &self.registry, client: &self.client, editions: &self.editions, on_job };
        let own = Guarded::new(means, entry.source, entry.operation, query);
        let error = match Session::new(&own).follow(&entry.operation.flow).await {
            Ok(answer) => return Ok(self.answered(&attempt, answer).await),
            Err(CallError::Upstream(error)) if error.class == Class::NotFound => {
                return Ok(attempt.measured(attempt.blank(Status::NotFound).because(error.reason)));
            }
            Err(CallError::Upstream(error)) if error.class == Class::Business => {
                return Ok(attempt.measured(attempt.blank(Status::NeedsReview).because(error.reason)));
            }
            Err(error) => error,
        };
        let details = attempt.details(&own, &error);
        if (info.last || !may_pass(details.reason))
            && let Some(finding) = self.instead(&attempt, means, &details, &error).await
        {
            return Ok(attempt.measured(finding));
        }
        Err(Failed { details: Box::new(details), error })
    }

    /// The finding about a question that does not apply, or lacks a credential.
    fn not_asked(&self, Entry { source, operation }: Entry, query: &Query) -> Option<Finding> {
        let blank = |status| Finding::new(source.name, operation.name, status);
        if let Applies::No(why) = operation.applies(&query.subject) {
            return Some(blank(Status::NotApplicable).because(why));
        }
        let missing = self.client.settings().missing(source)?;
        let names = missing.any_of.join(" or ");
        Some(blank(Status::Skipped).because(format!("{names} is not set: {}", missing.obtain)))
    }

    /// An earlier answer that is not older than that.
    async fn kept(&self, attempt: &Attempt<'_>, max_age: Option<Duration>) -> Option<Kept> {
        let key = Key::of(attempt.entry.operation, &attempt.query.subject);
        self.answers.find(key, max_age?, Timestamp::now()).await
    }

    /// For how long an earlier answer is better than none.
    fn stale(&self, entry: Entry) -> Option<Duration> {
        self.registry.breaker(entry.source.breaker).policy().cache_max_age
    }

    /// The finding with an answer of the source, which is kept where that is of use.
    async fn answered(&self, attempt: &Attempt<'_>, answer: Answer) -> Finding {
        let Entry { operation, .. } = attempt.entry;
        if operation.fresh.or(self.stale(attempt.entry)).is_some() {
            self.answers.keep(Key::of(operation, &attempt.query.subject), &answer, Timestamp::now()).await;
        }
        attempt.measured(filled(attempt.blank(answer.status), answer))
    }

    /// What is known without the source: from the first fallback that answers, else from an earlier answer.
    async fn instead<'a>(
        &self,
        attempt: &Attempt<'a>,
        means: Means<'a>,
        details: &FailureDetails,
        error: &CallError<SourceError>,
    ) -> Option<Finding> {
        let Entry { operation, .. } = attempt.entry;
        let of_the_part = matches!(error, CallError::Upstream(error) if error.scope == Scope::Part);
        let can_help = |fallback: &&Fallback| {
            let configured = self.client.settings().missing(fallback.source).is_none();
            configured && !(of_the_part && fallback.source.parts_of.is_some())
        };
        for fallback in operation.fallbacks.iter().filter(can_help) {
            let guarded = Guarded::new(means, fallback.source, operation, attempt.query);
            if let Ok(answer) = Session::new(&guarded).follow(&fallback.flow).await {
                let reason = format!("{}; {}", details.text, fallback.proves);
                let finding = filled(attempt.blank(answer.status).because(reason), answer);
                return Some(Finding { via: Some(fallback.via.to_owned()), ..finding });
            }
        }
        let kept = self.kept(attempt, self.stale(attempt.entry)).await?;
        let date = kept.date().strftime("%Y-%m-%d");
        let reason = format!("{}; the earlier answer of {date} stands in", details.text);
        let wait = details.retry_in_ms.map(Duration::from_millis);
        let retry_at = wait.and_then(|wait| Timestamp::now().checked_add(wait).ok());
        let finding = attempt.blank(Status::Cached).because(reason);
        Some(Finding { as_of: Some(kept.date()), data: Some(kept.facts), retry_at, ..finding })
    }
}

impl Attempt<'_> {
    fn blank(&self, status: Status) -> Finding {
        Finding::new(self.entry.source.name, self.entry.operation.name, status)
    }

    /// The finding with the attempt's number and duration.
    fn measured(&self, finding: Finding) -> Finding {
        Finding {
            attempts: self.info.attempt,
            started_at: Some(self.started_at),
            duration_ms: millis(self.clock.elapsed()),
            ..finding
        }
    }

    /// What the workflow learns about an attempt without an answer.
    fn details(&self, asked: &Guarded<'_>, error: &CallError<SourceError>) -> FailureDetails {
        let Entry { source, operation } = self.entry;
        let (service, class, retry_in) = match error {
            CallError::Rejected(rejection) => (rejection.service.to_string(), None, rejection.retry_in),
            CallError::TimedOut { service, .. } => (service.to_string(), Some(Class::Timeout), None),
            CallError::Upstream(error) => (asked.breaker_of(error.scope), Some(error.class), error.retry_after),
        };
        FailureDetails {
            service,
            reason: reason(error, operation.billed, self.query.job.is_some()),
            retry_in_ms: retry_in.map(millis),
            class,
            text: match error {
                CallError::Upstream(error) => format!("{} {}", source.name, error.reason),
                other => other.to_string(),
            },
            started_at: Some(self.started_at),
            duration_ms: millis(self.clock.elapsed()),
            ..FailureDetails::new(source.name, operation.name, self.info.attempt)
        }
    }
}

/// The finding with the answer in it. A reason that the finding has already comes before the answer's own.
fn filled(finding: Finding, answer: Answer) -> Finding {
    let reason = match (finding.reason, answer.reason) {
        (Some(first), Some(second)) => Some(format!("{first}; {second}")),
        (first, second) => first.or(second),
    };
    Finding {
        reason,
        data: (answer.status != Status::Pending).then_some(answer.facts),
        as_of: answer.as_of,
        job: answer.job,
        retry_at: answer.retry_at,
        ..finding
    }
}

/// The registry's word for an error, which decides whether the workflow's server tries again. What is billed is not, unless
/// it is merely `collected`.
fn reason(error: &CallError<SourceError>, billed: bool, collected: bool) -> Reason {
    match error {
        CallError::Rejected(rejection) => Reason::from(rejection),
        // An upstream that did not answer in time may well have charged for it.
        CallError::TimedOut { .. } if billed && !collected => Reason::Declined,
        CallError::TimedOut { .. } => Reason::TimedOut,
        CallError::Upstream(SourceError { class: Class::Throttled, .. }) => Reason::Throttled,
        CallError::Upstream(SourceError { class: Class::Unavailable | Class::Timeout, uncharged, .. })
            if *uncharged || !billed =>
        {
            Reason::Failed
        }
        CallError::Upstream(_) => Reason::Declined,
    }
}

/// Whether another attempt could succeed: exactly the reasons that are retried.
fn may_pass(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::TimedOut | Reason::Failed | Reason::BulkheadFull | Reason::RateLimited | Reason::NoTimeLeft
    )
}

/// Whole milliseconds.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

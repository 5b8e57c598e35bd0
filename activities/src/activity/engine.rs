//! From a question to a finding: what is not asked at all, who is asked, who stands in, and what is a failure.

use std::time::Duration;

use circuit_registry::{CallError, temporal::Reason};
use jiff::Timestamp;
use tokio::time::Instant;

use super::Activities;
use crate::{
    cache::Key,
    catalog::{Applies, Entry},
    classify::{Class, Scope, Trouble},
    flow::{Answer, Keeper, Session, Stop},
    model::{Ask, Finding, Lack, Status},
};

/// Where an attempt stands among the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chance {
    /// Counts from 1.
    pub attempt: u32,
    /// Nobody will try again.
    pub last: bool,
}

/// An operation without a finding.
#[derive(Debug)]
pub struct Failed {
    /// What to tell the workflow.
    pub lack: Box<Lack>,
    /// The error as it happened.
    pub error: Stop,
}

impl Activities {
    /// What becomes of an attempt whose predecessor may have been charged and did not live to tell.
    #[must_use]
    pub fn not_again(entry: Entry, chance: Chance) -> Failed {
        let text = "an earlier attempt broke off and may have been charged: not asked again";
        let trouble = Trouble::unavailable(text);
        let lack = Box::new(Lack {
            service: entry.source.breaker.to_owned(),
            reason: Reason::Declined,
            retry_in_ms: None,
            source: entry.source.name.to_owned(),
            operation: entry.operation.name.to_owned(),
            class: Some(trouble.class),
            text: text.to_owned(),
            attempts: chance.attempt,
            started_at: None,
            duration_ms: 0,
        });
        Failed { lack, error: CallError::Upstream(trouble) }
    }

    /// Makes one attempt at an operation. A finding is whatever there is to know, including that there is nothing to know;
    /// what is merely not known yet is a failure.
    ///
    /// # Errors
    /// If neither the source nor a stand-in has an answer.
    pub async fn investigate<'a>(
        &'a self,
        entry: Entry,
        ask: &'a Ask,
        chance: Chance,
        keeper: Option<Keeper<'a>>,
    ) -> Result<Finding, Failed> {
        let Entry { source, operation } = entry;
        let blank = |status| Finding::new(source.name, operation.name, status);
        if let Applies::No(why) = operation.applies(&ask.subject) {
            return Ok(blank(Status::NotApplicable).because(why));
        }
        if let Some(missing) = self.client.settings().missing(source) {
            let names = missing.any_of.join(" or ");
            return Ok(blank(Status::Skipped).because(format!("{names} is not set: {}", missing.obtain)));
        }
        let (started_at, clock) = (Timestamp::now(), Instant::now());
        let measured = |finding: Finding| Finding {
            attempts: chance.attempt,
            started_at: Some(started_at),
            duration_ms: millis(clock),
            ..finding
        };
        let key = Key::of(operation, &ask.subject);
        let kept = |max_age: Option<Duration>| async move { self.answers.find(key, max_age?, Timestamp::now()).await };
        if let Some(kept) = kept(operation.fresh.filter(|_| ask.job.is_none())).await {
            let finding = Finding { as_of: Some(kept.date()), data: Some(kept.facts), ..blank(Status::Complete) };
            return Ok(Finding { attempts: 0, ..measured(finding) });
        }
        let stale = self.registry.breaker(source.breaker).policy().cache_max_age;
        let session = Session::new(&self.registry, &self.client, &self.files, source, operation, ask);
        let session = match keeper {
            Some(keeper) => session.keeping(keeper),
            None => session,
        };
        let error = match session.follow(&operation.flow).await {
            Ok(answer) => {
                if operation.fresh.or(stale).is_some() {
                    self.answers.keep(key, &answer, Timestamp::now()).await;
                }
                return Ok(measured(filled(blank(answer.status), answer)));
            }
            Err(CallError::Upstream(trouble)) if trouble.class == Class::NotFound => {
                return Ok(measured(blank(Status::NotFound).because(trouble.reason)));
            }
            Err(CallError::Upstream(trouble)) if trouble.class == Class::Business => {
                return Ok(measured(blank(Status::NeedsReview).because(trouble.reason)));
            }
            Err(error) => error,
        };
        let reason = reason(&error, operation.billed, ask.job.is_some());
        let text = told(source.name, &error);
        let (service, class, retry_in) = match &error {
            CallError::Rejected(rejection) => (rejection.service.to_string(), None, rejection.retry_in),
            CallError::TimedOut { service, .. } => (service.to_string(), Some(Class::Timeout), None),
            CallError::Upstream(trouble) => {
                (session.breaker_of(trouble.scope), Some(trouble.class), trouble.retry_after)
            }
        };
        if chance.last || !may_pass(reason) {
            let at_the_part = matches!(&error, CallError::Upstream(trouble) if trouble.scope == Scope::Part);
            for fallback in operation.fallbacks {
                let settings = self.client.settings();
                if settings.missing(fallback.source).is_some() || (at_the_part && fallback.source.parts_of.is_some()) {
                    continue;
                }
                if let Ok(answer) = session.with(fallback.source).follow(&fallback.flow).await {
                    let finding = filled(blank(answer.status).because(format!("{text}; {}", fallback.proves)), answer);
                    return Ok(measured(Finding { via: Some(fallback.via.to_owned()), ..finding }));
                }
            }
            if let Some(kept) = kept(stale).await {
                let date = kept.date().strftime("%Y-%m-%d");
                let finding = blank(Status::Cached).because(format!("{text}; the earlier answer of {date} stands in"));
                let retry_at = retry_in.and_then(|wait| Timestamp::now().checked_add(wait).ok());
                return Ok(measured(Finding { as_of: Some(kept.date()), data: Some(kept.facts), retry_at, ..finding }));
            }
        }
        let lack = Box::new(Lack {
            service,
            reason,
            retry_in_ms: retry_in.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            source: source.name.to_owned(),
            operation: operation.name.to_owned(),
            class,
            text,
            attempts: chance.attempt,
            started_at: Some(started_at),
            duration_ms: millis(clock),
        });
        Err(Failed { lack, error })
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
fn reason(error: &Stop, billed: bool, collected: bool) -> Reason {
    match error {
        CallError::Rejected(rejection) => Reason::from(rejection),
        // Whoever did not answer in time may well have charged for it.
        CallError::TimedOut { .. } if billed && !collected => Reason::Declined,
        CallError::TimedOut { .. } => Reason::TimedOut,
        CallError::Upstream(Trouble { class: Class::Throttled, .. }) => Reason::Throttled,
        CallError::Upstream(Trouble { class: Class::Unavailable | Class::Timeout, uncharged, .. })
            if *uncharged || !billed =>
        {
            Reason::Failed
        }
        CallError::Upstream(_) => Reason::Declined,
    }
}

/// Whether another attempt could succeed: exactly the reasons that are retried.
fn may_pass(reason: Reason) -> bool {
    matches!(reason, Reason::TimedOut | Reason::Failed | Reason::BulkheadFull | Reason::RateLimited)
}

fn told(source: &str, error: &Stop) -> String {
    match error {
        CallError::Upstream(trouble) => format!("{source} {}", trouble.reason),
        other => other.to_string(),
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

//! Asking behind the breakers: what a flow's [`Session`] does with its requests.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use circuit_registry::{Breaker, CallError, CircuitRegistry, Classify, RejectReason, Rejection, State, Verdict};
use futures::future::BoxFuture;
use jiff::Timestamp;
use reqwest::Url;

use crate::{
    classify::judge,
    client::Client,
    editions::EditionCache,
    guard,
    model::{Job, Query},
    spec::{Class, Exchange, Operation, Read, Request, Scope, Settings, Source, SourceError, Tokens},
};

/// Most probes made for one call. A policy may want several before it closes.
const PROBES: u32 = 10;

/// How long a flow that has begun waits for its turns under a rate limit. To give up there would be to begin again, and to
/// spend on the first step what the limit allows for the second.
const TURNS: Duration = Duration::from_secs(10);

/// Remembers a job the moment it exists, so that another attempt finds it.
pub type JobKeeper<'a> = &'a (dyn Fn(Job) -> BoxFuture<'a, ()> + Send + Sync);

/// What an attempt asks through, whichever source it asks.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// The breakers.
    pub registry: &'a CircuitRegistry,
    /// The HTTP client.
    pub client: &'a Client,
    /// The last good editions of published files.
    pub editions: &'a EditionCache,
    /// Where started jobs are remembered.
    pub keeper: Option<JobKeeper<'a>>,
}

/// One attempt at one operation, with the source that is asked on its behalf: the operation's own or a fallback.
pub struct Guarded<'a> {
    means: Means<'a>,
    source: &'static Source,
    operation: &'static Operation,
    query: &'a Query,
    /// The source has been asked in this attempt.
    begun: AtomicBool,
}

impl<'a> Guarded<'a> {
    /// An attempt at `operation` that asks `source`.
    #[must_use]
    pub const fn new(
        means: Means<'a>,
        source: &'static Source,
        operation: &'static Operation,
        query: &'a Query,
    ) -> Self {
        Self { means, source, operation, query, begun: AtomicBool::new(false) }
    }

    /// The breaker that an error of this scope is counted on.
    #[must_use]
    pub fn breaker_of(&self, scope: Scope) -> String {
        match scope {
            Scope::Part => self.part().unwrap_or_else(|| self.source.breaker.to_owned()),
            Scope::Service | Scope::Subject | Scope::Account => self.source.breaker.to_owned(),
        }
    }

    /// Sends one request behind the breaker of the part, if it is about one, and that of the source.
    async fn ask(&self, request: Request, read: Read<'_>) -> Result<(), CallError<SourceError>> {
        let part = match self.part() {
            Some(name) => Some(self.means.registry.breaker(&name).acquire().await?),
            None => None,
        };
        let breaker = self.means.registry.breaker(self.source.breaker);
        self.probe(&breaker).await?;
        let outcome = self.call(&breaker, request, read).await;
        self.begun.store(true, Ordering::Relaxed);
        if let Err(CallError::Upstream(error)) = &outcome {
            self.settle_account(error);
        }
        if let Some(permit) = part {
            match &outcome {
                Ok(()) => permit.settle(Verdict::Success),
                Err(CallError::Upstream(error)) => permit.settle_error(&OnPart(error)),
                Err(_) => permit.settle(Verdict::Neutral),
            };
        }
        outcome
    }

    /// The first request of a flow is refused where the rate limit has no room; a later one waits its turn.
    async fn call(&self, breaker: &Breaker, request: Request, read: Read<'_>) -> Result<(), CallError<SourceError>> {
        let mut patience = TURNS;
        loop {
            match breaker.call(self.exchange(request.clone(), read)).await {
                Err(CallError::Rejected(Rejection {
                    reason: RejectReason::RateLimited,
                    retry_in: Some(retry_in),
                    ..
                })) if self.begun.load(Ordering::Relaxed) && retry_in <= patience => {
                    patience = patience.saturating_sub(retry_in.max(Duration::from_millis(1)));
                    tokio::time::sleep(retry_in).await;
                }
                outcome => return outcome,
            }
        }
    }

    async fn exchange(&self, request: Request, read: Read<'_>) -> Result<(), SourceError> {
        let reply = self.means.client.send(self.source, request).await?;
        // The rules of an operation are about its own source's answers, not about those of a fallback.
        let rules = if self.is_own() { self.operation.rules } else { &[] };
        judge(rules.iter().chain(self.source.rules), &reply, Timestamp::now())?;
        read(&reply)
    }

    /// While the breaker is half-open, finds out with the source's cheap call whether it is back, so that a billed one is
    /// never the probe.
    async fn probe(&self, breaker: &Breaker) -> Result<(), CallError<SourceError>> {
        let Some(probe) = self.source.probe else { return Ok(()) };
        for _ in 0..PROBES {
            if breaker.view().state != State::HalfOpen {
                break;
            }
            self.begun.store(true, Ordering::Relaxed);
            breaker
                .call(async {
                    let reply = self.means.client.send(self.source, (probe.request)()).await?;
                    match judge(self.source.rules, &reply, Timestamp::now()) {
                        // A probe asks about nothing, so "not found" is as good an answer as any.
                        Err(error) if matches!(error.class, Class::NotFound | Class::Business) => Ok(()),
                        Err(error) => Err(error),
                        Ok(()) => (probe.read)(&reply.body),
                    }
                })
                .await?;
        }
        Ok(())
    }

    /// Whether the operation's own source is asked, and no fallback.
    fn is_own(&self) -> bool {
        self.operation.name.strip_prefix(self.source.name).is_some_and(|question| question.starts_with('.'))
    }

    fn part(&self) -> Option<String> {
        let whole = self.is_own().then_some(self.source.breaker).or(self.source.parts_of)?;
        Some(format!("{whole}:{}", self.operation.part?(&self.query.subject)?))
    }

    /// An error of the account is counted on the breakers of all sources that share it.
    fn settle_account(&self, error: &SourceError) {
        if error.scope != Scope::Account {
            return;
        }
        for name in self.source.account.iter().filter(|name| **name != self.source.breaker) {
            if let Ok(permit) = self.means.registry.breaker(name).try_acquire() {
                permit.settle_error(error);
            }
        }
    }
}

impl Exchange for Guarded<'_> {
    fn query(&self) -> &Query {
        self.query
    }

    fn source(&self) -> &'static Source {
        self.source
    }

    fn settings(&self) -> &Settings {
        self.means.client.settings()
    }

    fn tokens(&self) -> &Tokens {
        self.means.client.tokens()
    }

    fn editions(&self) -> &EditionCache {
        self.means.editions
    }

    fn send<'a>(&'a self, request: Request, read: Read<'a>) -> BoxFuture<'a, Result<(), CallError<SourceError>>> {
        Box::pin(self.ask(request, read))
    }

    fn vet<'a>(&'a self, address: &'a str) -> BoxFuture<'a, Result<Url, guard::Refusal>> {
        Box::pin(self.means.client.vet(address))
    }

    fn keep(&self, job: Job) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(keeper) = self.means.keeper {
                keeper(job).await;
            }
        })
    }

    /// A script is not worth waiting for. The suite talks to real sockets, so its time cannot be paused; its seconds are
    /// milliseconds instead.
    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if !self.means.client.is_scripted() {
                tokio::time::sleep(if cfg!(test) { wait / 1000 } else { wait }).await;
            }
        })
    }
}

/// An error as the breaker of the part sees it.
struct OnPart<'a>(&'a SourceError);

impl Classify for OnPart<'_> {
    fn verdict(&self) -> Verdict {
        self.0.verdict_on_part()
    }

    fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    fn failure(&self) -> circuit_registry::Failure {
        self.0.failure()
    }
}

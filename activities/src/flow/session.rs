//! What a flow holds on to while it asks.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use circuit_registry::{Breaker, CallError, CircuitRegistry, Classify, RejectReason, Rejection, State, Verdict};
use futures::future::BoxFuture;
use jiff::Timestamp;

use super::{Answer, Flow, Stop};
use crate::{
    cache::Files,
    catalog::{Operation, Source},
    classify::{Class, Scope, Trouble, judge},
    client::{Client, Reply, Request},
    model::{Ask, Job, Subject},
};

/// Most probes made for one call. A policy may want several before it closes.
const PROBES: u32 = 10;

/// How long a flow that has begun waits for its turns under a rate limit. To give up there would be to begin again, and to
/// spend on the first step what the limit allows for the second.
const TURNS: Duration = Duration::from_secs(10);

/// Remembers a job the moment it exists, so that another attempt finds it.
pub type Keeper<'a> = &'a (dyn Fn(Job) -> BoxFuture<'a, ()> + Send + Sync);

/// One attempt at one operation, with a source that is asked on its behalf: the operation's own or a stand-in.
pub struct Session<'a> {
    registry: &'a CircuitRegistry,
    client: &'a Client,
    files: &'a Files,
    source: &'static Source,
    operation: &'static Operation,
    ask: &'a Ask,
    keeper: Option<Keeper<'a>>,
    /// The source has been asked in this session.
    begun: AtomicBool,
}

impl<'a> Session<'a> {
    /// A session with the operation's own source.
    #[must_use]
    pub const fn new(
        registry: &'a CircuitRegistry,
        client: &'a Client,
        files: &'a Files,
        source: &'static Source,
        operation: &'static Operation,
        ask: &'a Ask,
    ) -> Self {
        Self { registry, client, files, source, operation, ask, keeper: None, begun: AtomicBool::new(false) }
    }

    /// The same, with somewhere to keep jobs.
    #[must_use]
    pub const fn keeping(mut self, keeper: Keeper<'a>) -> Self {
        self.keeper = Some(keeper);
        self
    }

    /// The same question to another source.
    #[must_use]
    pub const fn with(&self, source: &'static Source) -> Self {
        Session {
            registry: self.registry,
            client: self.client,
            files: self.files,
            source,
            operation: self.operation,
            ask: self.ask,
            keeper: self.keeper,
            begun: AtomicBool::new(false),
        }
    }

    /// Whom it is about.
    #[must_use]
    pub const fn subject(&self) -> &'a Subject {
        &self.ask.subject
    }

    /// A job to be collected rather than started.
    #[must_use]
    pub const fn job(&self) -> Option<&'a Job> {
        self.ask.job.as_ref()
    }

    /// The client, for its settings.
    #[must_use]
    pub const fn client(&self) -> &'a Client {
        self.client
    }

    /// Waits between two questions of one flow, holding no permit meanwhile. A script is not worth waiting for. The suite talks
    /// to real sockets, so its time cannot be paused; its seconds are milliseconds instead.
    pub async fn pause(&self, wait: Duration) {
        if !self.client.is_scripted() {
            tokio::time::sleep(if cfg!(test) { wait / 1000 } else { wait }).await;
        }
    }

    /// The name of the source that is asked.
    #[must_use]
    pub const fn source_name(&self) -> &'static str {
        self.source.name
    }

    /// The last good copies of files that sources publish as a whole.
    #[must_use]
    pub const fn files(&self) -> &'a Files {
        self.files
    }

    /// Remembers a job that was just started.
    pub async fn keep(&self, job: Job) {
        if let Some(keeper) = self.keeper {
            keeper(job).await;
        }
    }

    /// Goes through a flow.
    ///
    /// # Errors
    /// As its steps.
    pub async fn follow(&self, flow: &Flow) -> Result<Answer, Stop> {
        match flow {
            Flow::Single { request, parse } => self.ask_if(request(self.subject()), |reply| parse(&reply.body)).await,
            Flow::Steps(steps) => steps(self).await,
        }
    }

    /// Sends one request behind the breakers and reads the answer. Reading is part of the call, because some outages can
    /// only be read. The first request of a flow is refused where the rate limit has no room; a later one waits its turn.
    ///
    /// # Errors
    /// A refusal of a breaker, a timeout, or whatever the answer turned out to be instead of one.
    pub async fn ask<T>(&self, request: Request, read: impl Fn(&Reply) -> Result<T, Trouble>) -> Result<T, Stop> {
        let part = match self.part() {
            Some(name) => Some(self.registry.breaker(&name).acquire().await?),
            None => None,
        };
        let breaker = self.registry.breaker(self.source.breaker);
        self.probe(&breaker).await?;
        let mut patience = TURNS;
        let outcome = loop {
            match breaker.call(self.exchange(request.clone(), &read)).await {
                Err(CallError::Rejected(Rejection {
                    reason: RejectReason::RateLimited,
                    retry_in: Some(retry_in),
                    ..
                })) if self.begun.load(Ordering::Relaxed) && retry_in <= patience => {
                    patience = patience.saturating_sub(retry_in.max(Duration::from_millis(1)));
                    tokio::time::sleep(retry_in).await;
                }
                outcome => break outcome,
            }
        };
        self.begun.store(true, Ordering::Relaxed);
        if let Err(CallError::Upstream(trouble)) = &outcome {
            self.tell_account(trouble);
        }
        if let Some(permit) = part {
            match &outcome {
                Ok(_) => permit.settle(Verdict::Success),
                Err(CallError::Upstream(trouble)) => permit.settle_error(&OnPart(trouble)),
                Err(_) => permit.settle(Verdict::Neutral),
            };
        }
        outcome
    }

    /// As [`Session::ask`], if there is anything to ask.
    ///
    /// # Errors
    /// As [`Session::ask`]; without a request, that the source cannot be asked about this subject.
    pub async fn ask_if<T>(
        &self,
        request: Option<Request>,
        read: impl Fn(&Reply) -> Result<T, Trouble>,
    ) -> Result<T, Stop> {
        match request {
            Some(request) => self.ask(request, read).await,
            None => Err(CallError::Upstream(Trouble::business("cannot be asked about this subject"))),
        }
    }

    /// As [`Session::ask`], unless the answer is the one that bore this mark (an `ETag`): then there is nothing to send, and
    /// nothing to read. The source's table hands status 304 to the reader.
    ///
    /// # Errors
    /// As [`Session::ask`].
    pub async fn ask_since<T>(
        &self,
        request: Request,
        mark: Option<&str>,
        read: impl Fn(&Reply) -> Result<T, Trouble>,
    ) -> Result<Option<(T, Option<String>)>, Stop> {
        let request = match mark {
            Some(mark) => request.header("if-none-match", mark),
            None => request,
        };
        let marked = |reply: &Reply| {
            if reply.status == 304 && mark.is_some() {
                return Ok(None);
            }
            Ok(Some((read(reply)?, reply.header("etag").map(str::to_owned))))
        };
        self.ask(request, marked).await
    }

    /// The breaker that trouble of this scope is booked on.
    #[must_use]
    pub fn breaker_of(&self, scope: Scope) -> String {
        match scope {
            Scope::Part => self.part().unwrap_or_else(|| self.source.breaker.to_owned()),
            Scope::Service | Scope::Subject | Scope::Account => self.source.breaker.to_owned(),
        }
    }

    async fn exchange<T>(&self, request: Request, read: impl Fn(&Reply) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let reply = self.client.send(self.source, request).await?;
        // The rules of an operation are about its own source's answers, not about those of a stand-in.
        let rules = if self.is_own() { self.operation.rules } else { &[] };
        judge(rules.iter().chain(self.source.rules), &reply, Timestamp::now())?;
        read(&reply)
    }

    /// While the breaker is half-open, finds out with the source's cheap call whether it is back, so that a billed one is
    /// never the probe.
    async fn probe(&self, breaker: &Breaker) -> Result<(), Stop> {
        let Some(probe) = self.source.probe else { return Ok(()) };
        for _ in 0..PROBES {
            if breaker.view().state != State::HalfOpen {
                break;
            }
            self.begun.store(true, Ordering::Relaxed);
            breaker
                .call(async {
                    let reply = self.client.send(self.source, (probe.request)()).await?;
                    match judge(self.source.rules, &reply, Timestamp::now()) {
                        // A probe asks about nothing, so "not found" is as good an answer as any.
                        Err(trouble) if matches!(trouble.class, Class::NotFound | Class::Business) => Ok(()),
                        Err(trouble) => Err(trouble),
                        Ok(()) => (probe.read)(&reply.body),
                    }
                })
                .await?;
        }
        Ok(())
    }

    /// Whether the operation's own source is asked, and no stand-in.
    fn is_own(&self) -> bool {
        self.operation.name.strip_prefix(self.source.name).is_some_and(|question| question.starts_with('.'))
    }

    fn part(&self) -> Option<String> {
        let whole = self.is_own().then_some(self.source.breaker).or(self.source.parts_of)?;
        Some(format!("{whole}:{}", self.operation.part?(self.subject())?))
    }

    fn tell_account(&self, trouble: &Trouble) {
        if trouble.scope != Scope::Account {
            return;
        }
        for name in self.source.account.iter().filter(|name| **name != self.source.breaker) {
            if let Ok(permit) = self.registry.breaker(name).try_acquire() {
                permit.settle_error(trouble);
            }
        }
    }
}

/// A trouble as the breaker of the part sees it.
struct OnPart<'a>(&'a Trouble);

impl Classify for OnPart<'_> {
    fn verdict(&self) -> Verdict {
        self.0.verdict_on_part()
    }

    fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }
}

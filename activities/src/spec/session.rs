//! What a flow holds on to while it asks: one attempt at one operation, with the source that is asked on its behalf.

use std::time::Duration;

use circuit_registry::CallError;
use futures::future::BoxFuture;
use reqwest::Url;

use super::{Answer, Flow, Reply, Request, Settings, Source, SourceError, Tokens};
use crate::{
    editions::EditionCache,
    guard,
    model::{Job, Query, Subject},
};

/// Reads an answer. It runs behind the breaker, because some outages can only be read.
pub type Read<'a> = &'a mut (dyn FnMut(&Reply) -> Result<(), SourceError> + Send);

/// Who asks for a flow: behind the breakers ([`crate::flow`]), or from a script.
pub trait Exchange: Send + Sync {
    /// The question.
    fn query(&self) -> &Query;
    /// The source that is asked.
    fn source(&self) -> &'static Source;
    /// Addresses and credentials.
    fn settings(&self) -> &Settings;
    /// Tokens of earlier log-ins.
    fn tokens(&self) -> &Tokens;
    /// The last good editions of files that sources publish as a whole.
    fn editions(&self) -> &EditionCache;
    /// Sends one request behind the breakers and reads the answer.
    fn send<'a>(&'a self, request: Request, read: Read<'a>) -> BoxFuture<'a, Result<(), CallError<SourceError>>>;
    /// Checks an address that a third party is to visit for us.
    fn vet<'a>(&'a self, address: &'a str) -> BoxFuture<'a, Result<Url, guard::Refusal>>;
    /// Remembers a job that was just started.
    fn keep(&self, job: Job) -> BoxFuture<'_, ()>;
    /// Waits between two requests.
    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()>;
}

/// One attempt at one operation, as its flow sees it.
#[derive(Clone, Copy)]
pub struct Session<'a>(&'a dyn Exchange);

impl<'a> Session<'a> {
    /// A session that asks through `exchange`.
    #[must_use]
    pub const fn new(exchange: &'a dyn Exchange) -> Self {
        Self(exchange)
    }

    /// Whom it is about.
    #[must_use]
    pub fn subject(&self) -> &'a Subject {
        &self.0.query().subject
    }

    /// A job to be collected rather than started.
    #[must_use]
    pub fn job(&self) -> Option<&'a Job> {
        self.0.query().job.as_ref()
    }

    /// Addresses and credentials.
    #[must_use]
    pub fn settings(&self) -> &'a Settings {
        self.0.settings()
    }

    /// Tokens of earlier log-ins.
    #[must_use]
    pub fn tokens(&self) -> &'a Tokens {
        self.0.tokens()
    }

    /// The name of the source that is asked.
    #[must_use]
    pub fn source_name(&self) -> &'static str {
        self.0.source().name
    }

    /// The last good editions of files that sources publish as a whole.
    #[must_use]
    pub fn editions(&self) -> &'a EditionCache {
        self.0.editions()
    }

    /// Checks an address that an answer has named and a third party, such as the crawler, is to visit for us.
    ///
    /// # Errors
    /// If the address leads to anything but the public internet.
    pub async fn vet(&self, address: &str) -> Result<Url, guard::Refusal> {
        self.0.vet(address).await
    }

    /// Waits between two requests of one flow, holding no permit meanwhile.
    pub async fn pause(&self, wait: Duration) {
        self.0.pause(wait).await;
    }

    /// Remembers a job that was just started, so that another attempt finds it.
    pub async fn keep(&self, job: Job) {
        self.0.keep(job).await;
    }

    /// Goes through a flow.
    ///
    /// # Errors
    /// As its steps.
    pub async fn follow(&self, flow: &Flow) -> Result<Answer, CallError<SourceError>> {
        match flow {
            Flow::Single { request, parse } => self.ask_if(request(self.subject()), |reply| parse(&reply.body)).await,
            Flow::Steps(steps) => steps(self).await,
        }
    }

    /// Sends one request behind the breakers and reads the answer. The first request of a flow is refused where the rate
    /// limit has no room; a later one waits its turn.
    ///
    /// # Errors
    /// A rejection of a breaker, a timeout, or whatever the answer turned out to be instead of one.
    pub async fn ask<T: Send>(
        &self,
        request: Request,
        read: impl Fn(&Reply) -> Result<T, SourceError> + Send + Sync,
    ) -> Result<T, CallError<SourceError>> {
        let mut answer = None;
        self.0
            .send(request, &mut |reply| {
                answer = Some(read(reply)?);
                Ok(())
            })
            .await?;
        answer.ok_or_else(|| CallError::Upstream(SourceError::bad_shape("was asked and its answer was not read")))
    }

    /// As [`Session::ask`], if there is anything to ask.
    ///
    /// # Errors
    /// As [`Session::ask`]; without a request, that the source cannot be asked about this subject.
    pub async fn ask_if<T: Send>(
        &self,
        request: Option<Request>,
        read: impl Fn(&Reply) -> Result<T, SourceError> + Send + Sync,
    ) -> Result<T, CallError<SourceError>> {
        match request {
            Some(request) => self.ask(request, read).await,
            None => Err(CallError::Upstream(SourceError::business("cannot be asked about this subject"))),
        }
    }

    /// As [`Session::ask`], unless the answer still bears this `ETag`: then nothing is sent and nothing is read. The
    /// source's table hands status 304 to the reader.
    ///
    /// # Errors
    /// As [`Session::ask`].
    pub async fn ask_since<T: Send>(
        &self,
        request: Request,
        etag: Option<&str>,
        read: impl Fn(&Reply) -> Result<T, SourceError> + Send + Sync,
    ) -> Result<Option<(T, Option<String>)>, CallError<SourceError>> {
        let request = match etag {
            Some(etag) => request.header("if-none-match", etag),
            None => request,
        };
        let conditional = |reply: &Reply| {
            if reply.status == 304 && etag.is_some() {
                return Ok(None);
            }
            Ok(Some((read(reply)?, reply.header("etag").map(str::to_owned))))
        };
        self.ask(request, conditional).await
    }
}

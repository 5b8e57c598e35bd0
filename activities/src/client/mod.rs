//! The only place that sends a request.
//!
//! [`flow`](crate::flow) gives it a request and gets a reply or an error. It never retries: the workflow does, where retries
//! are visible and budgeted. It trusts no upstream: the limit of a body counts decompressed bytes, redirects stay on their
//! host, and a public name must not lead to an inner address ([`guard`]). Errors never contain the address,
//! which may contain a name or a key.

mod wire;

use std::{sync::Arc, time::Duration};

use reqwest::{Url, header, redirect};
use secrecy::ExposeSecret;

use crate::{
    guard,
    spec::{Auth, Base, Class, Reply, Request, Settings, Source, SourceError, Tokens},
};

pub use wire::Script;
use wire::Wire;

/// Time to reach an upstream at all.
const CONNECT: Duration = Duration::from_secs(5);

/// How many redirects are followed, all on the host they began on.
const REDIRECTS: usize = 3;

/// How long the look-up of a name may take that somebody else will connect to.
const LOOK_UP: Duration = Duration::from_secs(3);

/// Sends requests to upstreams. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    /// For the public internet and nothing else, by the proxy of the environment if there is one.
    outside: reqwest::Client,
    /// For addresses that the operator has chosen, wherever they are.
    chosen: reqwest::Client,
    /// For this machine, where a proxy would look at its own.
    inside: reqwest::Client,
    names: guard::Names,
    settings: Settings,
    tokens: Arc<Tokens>,
    wire: Wire,
}

/// Where a request goes.
struct Target<'a> {
    url: Url,
    client: &'a reqwest::Client,
    /// The source's own address, so that its credentials may travel along.
    own: bool,
}

impl Client {
    /// A client with these settings.
    ///
    /// # Errors
    /// If TLS cannot be set up on this machine.
    pub fn new(settings: Settings) -> Result<Self, reqwest::Error> {
        Self::with_names(settings, guard::Names::of_system())
    }

    /// A client that looks names up elsewhere.
    ///
    /// # Errors
    /// If TLS cannot be set up on this machine.
    pub fn with_names(settings: Settings, names: guard::Names) -> Result<Self, reqwest::Error> {
        let proxies = guard::proxies(|name| std::env::var(name).ok());
        let public = names.clone().public_only(proxies);
        let builder = |names: guard::Names| {
            reqwest::Client::builder()
                .connect_timeout(CONNECT)
                .pool_idle_timeout(Duration::from_secs(30))
                .redirect(redirect::Policy::custom(same_host))
                .referer(false)
                .dns_resolver(names)
        };
        Ok(Self {
            outside: builder(public).build()?,
            chosen: builder(names.clone()).build()?,
            inside: builder(names.clone()).no_proxy().build()?,
            names,
            settings,
            tokens: Arc::default(),
            wire: Wire::Network,
        })
    }

    /// The same, with the answers of a script instead of all upstreams: it sends nothing and holds no token.
    #[must_use]
    pub fn scripted(self, script: Script) -> Self {
        Self { wire: Wire::Script(script), tokens: Arc::default(), ..self }
    }

    /// The same, with a copy of each answer kept. It holds no token.
    #[cfg(test)]
    pub(crate) fn recorded(self, replies: Arc<std::sync::Mutex<Vec<Reply>>>) -> Self {
        Self { wire: Wire::Recorded(replies), tokens: Arc::default(), ..self }
    }

    /// Whether waiting between two questions would make a difference to anybody.
    pub(crate) const fn is_scripted(&self) -> bool {
        matches!(self.wire, Wire::Script(_))
    }

    /// Reads an address that somebody else has written and a third party is to visit for us, such as the crawler. A name
    /// that we cannot look up is left to that third party.
    ///
    /// # Errors
    /// If the address must not be visited.
    pub async fn vet(&self, address: &str) -> Result<Url, guard::Refusal> {
        let url = guard::admit(address)?;
        let inside = self.names.lead_inside(url.host_str().unwrap_or_default());
        match tokio::time::timeout(LOOK_UP, inside).await {
            Ok(true) => Err(guard::Refusal::Private),
            Ok(false) | Err(_) => Ok(url),
        }
    }

    /// What log-ins have brought.
    #[must_use]
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The settings it was made with.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sends one request to a source and reads the whole answer, whatever its status.
    ///
    /// # Errors
    /// If there is no whole answer: no connection, no answer in time, or one that breaks off or exceeds the limit.
    pub async fn send(&self, source: &Source, request: Request) -> Result<Reply, SourceError> {
        if let Wire::Script(script) = &self.wire {
            let reply = script.next(request.limit)?;
            let sink = request.sink.filter(|_| reply.is_success());
            return match sink {
                Some(sink) => sink.take(&reply.body).map(|()| Reply { body: Vec::new(), ..reply }),
                None => Ok(reply),
            };
        }
        let (limit, within) = (request.limit, request.timeout.unwrap_or(source.timeout));
        let sink = request.sink.clone();
        let work = async {
            let mut response = self.prepare(source, request)?.send().await.map_err(|e| lost(&e))?;
            let status = response.status().as_u16();
            let headers = std::mem::take(response.headers_mut());
            let mut reply = Reply { status, headers, body: Vec::new() };
            let sink = sink.filter(|_| reply.is_success());
            #[cfg(test)]
            let mut copy = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(|e| lost(&e))? {
                #[cfg(test)]
                copy.extend_from_slice(&chunk);
                if let Some(sink) = &sink {
                    sink.take(&chunk)?;
                    continue;
                }
                if reply.body.len() + chunk.len() > limit {
                    return Err(too_long(limit));
                }
                reply.body.extend_from_slice(&chunk);
            }
            #[cfg(test)]
            if let Wire::Recorded(replies) = &self.wire {
                replies.lock().expect("no panic while recording").push(Reply { body: copy, ..reply.clone() });
            }
            Ok(reply)
        };
        match tokio::time::timeout(within, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(SourceError::new(Class::Timeout, format!("did not answer within {} s", within.as_secs()))),
        }
    }

    fn prepare(&self, source: &Source, request: Request) -> Result<reqwest::RequestBuilder, SourceError> {
        let Target { mut url, client, own } = self.target(source, &request)?;
        if let Auth::Query { name, env } = source.auth
            && let Some(key) = self.settings.credential(env).filter(|_| own)
        {
            url.query_pairs_mut().append_pair(name, key.expose_secret());
        }
        let mut prepared = client
            .request(request.method, url)
            .header(header::USER_AGENT, self.settings.user_agent(source.user_agent))
            .header(header::ACCEPT, request.accept);
        for (name, value) in request.headers {
            prepared = prepared.header(name, value);
        }
        if let Some((content_type, body)) = request.body {
            prepared = prepared.header(header::CONTENT_TYPE, content_type).body(body);
        }
        Ok(match request.token {
            _ if !own => prepared,
            Some(token) => prepared.bearer_auth(token.expose_secret()),
            None => self.authorise(source, prepared),
        })
    }

    /// A link to one of the source's own addresses is as good as that address, any other must lead to the public internet.
    fn target(&self, source: &Source, request: &Request) -> Result<Target<'_>, SourceError> {
        let (url, base) = match &request.link {
            None => {
                let base = &source.base;
                (request.url(self.settings.base(base)).ok_or_else(|| unusable(base.env))?, base)
            }
            Some(link) => {
                let linked = Url::parse(link).ok();
                let leads_to = |base: &&Base| {
                    let base = Url::parse(self.settings.base(base)).ok();
                    base.zip(linked.as_ref()).is_some_and(|(base, link)| origin(&base) == origin(link))
                };
                match (linked.as_ref(), Some(&source.base).filter(leads_to)) {
                    (Some(url), Some(base)) => (url.clone(), base),
                    _ => {
                        let url = guard::admit(link);
                        let url =
                            url.map_err(|why| SourceError::bad_shape(format!("names an address that {why}")).unsent())?;
                        return Ok(Target { url, client: &self.outside, own: false });
                    }
                }
            }
        };
        let here =
            url.host_str().is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."));
        let client = match (here, self.settings.is_chosen(base)) {
            (true, _) => &self.inside,
            (false, true) => &self.chosen,
            (false, false) => &self.outside,
        };
        Ok(Target { url, client, own: true })
    }

    fn authorise(&self, source: &Source, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let secret = |env| self.settings.credential(env).map(ExposeSecret::expose_secret);
        match source.auth {
            Auth::None | Auth::Query { .. } => request,
            Auth::Bearer(env) => match secret(env) {
                Some(token) => request.bearer_auth(token),
                None => request,
            },
            Auth::Header { name, prefix, env } => match secret(env) {
                Some(key) => request.header(name, format!("{prefix}{key}")),
                None => request,
            },
            Auth::Basic { user, password } => match (secret(user).or(Some(user)), secret(password)) {
                (Some(user), Some(password)) => request.basic_auth(user, Some(password)),
                _ => request,
            },
        }
    }
}

/// Follows a redirect only to the host and scheme it came from: headers with keys travel along.
fn same_host(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let stays = attempt.previous().first().is_some_and(|first| origin(first) == origin(attempt.url()));
    if stays && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
}

fn origin(url: &Url) -> (&str, Option<&str>, Option<u16>) {
    (url.scheme(), url.host_str(), url.port_or_known_default())
}

fn too_long(limit: usize) -> SourceError {
    SourceError::bad_shape(format!("answered more than {} MB", limit / 1_000_000))
}

fn unusable(env: &str) -> SourceError {
    SourceError::bad_shape(format!("has an unusable address: check {env}")).unsent()
}

/// Why there is no whole answer. The error's own text contains the address, so only its innermost cause is shown.
fn lost(error: &reqwest::Error) -> SourceError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let describe = |what: &str| {
        if cause.source().is_none() && !std::ptr::eq(cause, error as &dyn std::error::Error) {
            format!("{what}: {cause}")
        } else {
            what.to_owned()
        }
    };
    if error.is_timeout() && !error.is_connect() {
        SourceError::new(Class::Timeout, "did not answer in time")
    } else if error.is_connect() {
        SourceError::unavailable(describe("cannot be reached")).unsent()
    } else if error.is_builder() {
        SourceError::bad_shape("was asked in a way that HTTP cannot express").unsent()
    } else {
        SourceError::unavailable(describe("broke off its answer"))
    }
}

#[cfg(test)]
mod tests;

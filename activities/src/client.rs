//! The only place that sends a request.
//!
//! It never retries: a retry is the business of the workflow, where it is visible and budgeted. It trusts nothing: the
//! body is cut at a limit that counts what comes *out* of the decompression, redirects stay on their host, and what goes
//! wrong is told without the address, which may contain a name or a key.

mod reply;
mod request;
mod settings;

use std::time::Duration;

use reqwest::{Url, header, redirect};
use secrecy::ExposeSecret;

use crate::{
    catalog::{Auth, Source},
    classify::{Class, Trouble},
};

pub use reply::Reply;
pub use request::Request;
pub use settings::{CONTACT, Settings, SettingsError};

/// Time to reach an upstream at all.
const CONNECT: Duration = Duration::from_secs(5);

/// How many redirects are followed, all on the host they began on.
const REDIRECTS: usize = 3;

/// Sends requests to upstreams. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    /// For the public internet, by the proxy of the environment if there is one.
    outside: reqwest::Client,
    /// For this machine, where a proxy would look at its own.
    inside: reqwest::Client,
    settings: Settings,
}

impl Client {
    /// A client with these settings.
    ///
    /// # Errors
    /// If TLS cannot be set up on this machine.
    pub fn new(settings: Settings) -> Result<Self, reqwest::Error> {
        let builder = || {
            reqwest::Client::builder()
                .connect_timeout(CONNECT)
                .pool_idle_timeout(Duration::from_secs(30))
                .redirect(redirect::Policy::custom(same_host))
                .referer(false)
        };
        Ok(Self { outside: builder().build()?, inside: builder().no_proxy().build()?, settings })
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
    pub async fn send(&self, source: &Source, request: Request) -> Result<Reply, Trouble> {
        let (limit, within) = (request.limit, request.timeout.unwrap_or(source.timeout));
        let work = async {
            let mut response = self.prepare(source, request)?.send().await.map_err(|e| lost(&e))?;
            let status = response.status().as_u16();
            let headers = std::mem::take(response.headers_mut());
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(|e| lost(&e))? {
                if body.len() + chunk.len() > limit {
                    return Err(Trouble::bad_shape(format!("answered more than {} MB", limit / 1_000_000)));
                }
                body.extend_from_slice(&chunk);
            }
            Ok(Reply { status, headers, body })
        };
        match tokio::time::timeout(within, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Trouble::new(Class::Timeout, format!("did not answer within {} s", within.as_secs()))),
        }
    }

    fn prepare(&self, source: &Source, request: Request) -> Result<reqwest::RequestBuilder, Trouble> {
        let base = source.bases.get(request.base).ok_or_else(|| Trouble::bad_shape("has no such base address"))?;
        let url = request.url(self.settings.base(base)).ok_or_else(|| unusable(base.env))?;
        let here =
            url.host_str().is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."));
        let client = if here { &self.inside } else { &self.outside };
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
        prepared = match request.token {
            Some(token) => prepared.bearer_auth(token.expose_secret()),
            None => self.authorise(source, prepared),
        };
        Ok(prepared)
    }

    fn authorise(&self, source: &Source, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let secret = |env| self.settings.credential(env).map(ExposeSecret::expose_secret);
        match source.auth {
            Auth::None => request,
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
    let origin = |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default());
    let stays = attempt.previous().first().is_some_and(|first| origin(first) == origin(attempt.url()));
    if stays && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
}

fn unusable(env: &str) -> Trouble {
    Trouble::bad_shape(format!("has an unusable address: check {env}")).unsent()
}

/// Why there is no whole answer. The error's own text contains the address, so only its innermost cause is told.
fn lost(error: &reqwest::Error) -> Trouble {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let told = |what: &str| {
        if cause.source().is_none() && !std::ptr::eq(cause, error as &dyn std::error::Error) {
            format!("{what}: {cause}")
        } else {
            what.to_owned()
        }
    };
    if error.is_timeout() && !error.is_connect() {
        Trouble::new(Class::Timeout, "did not answer in time")
    } else if error.is_connect() {
        Trouble::unavailable(told("cannot be reached")).unsent()
    } else if error.is_builder() {
        Trouble::bad_shape("was asked in a way that HTTP cannot express").unsent()
    } else {
        Trouble::unavailable(told("broke off its answer"))
    }
}

#[cfg(test)]
mod tests;

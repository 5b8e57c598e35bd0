//! A client of a worker's admin server, for commands.

use std::{net::SocketAddr, time::Duration};

use reqwest::{Method, StatusCode, Url};
use serde::Serialize;
use serde_json::Value;

use super::admin_token;
use crate::{admin::local_token, error::CliError};

/// Time for an answer. A worker waits five seconds for its store before it reports that an override is not stored.
const ANSWER: Duration = Duration::from_secs(10);

/// A worker's admin server.
pub(super) struct AdminClient {
    address: SocketAddr,
    http: reqwest::Client,
    token: Option<String>,
}

impl AdminClient {
    /// The server at `address`. The token comes from the environment, or from the file of a worker of this user on this machine.
    ///
    /// # Errors
    /// When the token of the environment cannot be used.
    pub(super) fn new(address: SocketAddr) -> Result<Self, CliError> {
        let given = admin_token()?;
        let here = || address.ip().is_loopback().then(|| local_token(address.port())).flatten();
        let http = reqwest::Client::builder().no_proxy().timeout(ANSWER).build().map_err(CliError::failure)?;
        Ok(Self { address, http, token: given.or_else(here).map(|token| token.secret().to_owned()) })
    }

    /// Reads a page. Path segments are escaped.
    ///
    /// # Errors
    /// When there is no worker, or what it answers instead.
    pub(super) async fn get(&self, path: &[&str]) -> Result<Value, CliError> {
        match self.send(Method::GET, path, None::<&()>).await? {
            (StatusCode::OK, value) => Ok(value),
            (status, value) => Err(self.refused(status, &value)),
        }
    }

    /// Sends a document. Returns the status and the answer.
    ///
    /// # Errors
    /// When there is no worker.
    pub(super) async fn post(&self, path: &[&str], body: &impl Serialize) -> Result<(StatusCode, Value), CliError> {
        self.send(Method::POST, path, Some(body)).await
    }

    async fn send(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&impl Serialize>,
    ) -> Result<(StatusCode, Value), CliError> {
        let mut url = Url::parse(&format!("http://{}", self.address)).map_err(CliError::failure)?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let mut request = self.http.request(method, url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let no_answer = |error| no_answer(self.address, &error);
        let answer = request.send().await.map_err(no_answer)?;
        let status = answer.status();
        let text = answer.text().await.map_err(no_answer)?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    /// The error for an answer that is none of the expected ones.
    pub(super) fn refused(&self, status: StatusCode, answer: &Value) -> CliError {
        let message = answer["error"].as_str().or(answer.as_str()).unwrap_or_default();
        match status.as_u16() {
            400 | 403 | 404 | 413 | 422 if answer["error"].is_string() || !message.is_empty() => {
                CliError::user(message)
            }
            401 => CliError::user(format!("{} refuses: {message}", self.address))
                .hint("set OSINT_ADMIN_TOKEN to the worker's token, or run this as the worker's user on its machine"),
            code => CliError::failure(format!("{} is no worker of ours: it answers {code}", self.address)),
        }
    }
}

fn no_answer(admin: SocketAddr, error: &reqwest::Error) -> CliError {
    let why = if error.is_connect() { "nothing listens there".to_owned() } else { error.to_string() };
    CliError::failure(format!("no worker answers at {admin}: {why}"))
        .hint("start one with `osint worker` or `osint dev`, or name its admin address with --admin")
}

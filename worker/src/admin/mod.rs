//! The worker's own HTTP server: for Prometheus, for an orchestrator, and for operators.
//!
//! | path | answers |
//! |---|---|
//! | `/` | the dashboard: a page that follows `/events` |
//! | `/metrics` | the breakers' and the SDK's metrics, in Prometheus' text format |
//! | `/live` | 200 while the worker's main task runs, else 503: restart it |
//! | `/ready` | 200 while this worker takes tasks from a server that answers, else 503 with the reasons |
//! | `/breakers` | a list of all breakers as JSON |
//! | `/breakers/NAME` | one breaker with its thresholds and its history |
//! | `/history`, `/history?service=NAME` | what happened to the breakers, oldest first |
//! | `/events` | all of this, live: see `live` |
//! | `/overrides` | the overrides in force |
//! | `/config` | the thresholds in force, and the last reload |
//! | `POST /breakers/NAME` | overrides a breaker: see [`overrides`] |
//!
//! `access` says who may do what. `listener` limits connections and heads, `REQUEST` the time of a request, `BODY` its size.

mod access;
mod dashboard;
mod journal;
mod listener;
mod live;
mod liveness;
pub mod overrides;
mod pages;
mod token;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, header},
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::get,
};
use circuit_registry::CircuitRegistry;
use serde_json::json;
use temporalio_client::Client;
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};

use self::{access::Access, live::Live, token::TokenFile};
pub use self::{
    journal::{Entry, Journal, What},
    liveness::Liveness,
    token::{Token, local as local_token},
};
use crate::{error::CliError, telemetry::Metrics, temporal::describe_namespace};

/// The main task sends a heartbeat once a second. Without one for this long, it is stuck.
const STUCK: Duration = Duration::from_secs(15);

/// How long the Temporal server may take to answer before the worker is not ready.
const SERVER_ANSWER: Duration = Duration::from_secs(2);

/// How long a request may take until its answer begins. An override waits up to five seconds for the store.
const REQUEST: Duration = Duration::from_secs(10);

/// How large the body of a request may be, in bytes.
const BODY: usize = 16 * 1024;

/// What the admin server shows.
#[derive(Clone)]
pub struct AdminState {
    /// The breakers.
    pub registry: CircuitRegistry,
    /// What happened to them. An observer of `registry`, else it stays empty.
    pub journal: Journal,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// A client of the Temporal server.
    pub client: Client,
    /// The heartbeat of the worker's main task.
    pub liveness: Liveness,
}

/// A running admin server; dropping it ends it.
#[derive(Debug)]
pub struct Admin {
    address: SocketAddr,
    task: JoinHandle<()>,
    _token: Option<TokenFile>,
}

impl Admin {
    /// Listens on `address`; port 0 takes a free one. `token` is accepted from everywhere.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn start(address: SocketAddr, token: Option<Token>, state: AdminState) -> Result<Self, CliError> {
        let live = Live::start(state.registry.clone(), state.journal.clone(), Some(state.client.clone()));
        Self::serve(address, token, worker_pages(state).merge(breaker_pages(live))).await
    }

    async fn serve(address: SocketAddr, token: Option<Token>, pages: Router) -> Result<Self, CliError> {
        let unusable = |error: std::io::Error| CliError::port(address.port(), &error);
        let listener = TcpListener::bind(address).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let file = TokenFile::create(address.port())
            .inspect_err(|error| {
                tracing::warn!(%error, "no token file for commands on this machine: overrides need OSINT_ADMIN_TOKEN");
            })
            .ok();
        if token.is_none() && !address.ip().is_loopback() {
            tracing::warn!("without OSINT_ADMIN_TOKEN the admin server shows other machines only /live and /ready");
        }
        let access = Access { configured: token, local: file.as_ref().map(|file| file.token.clone()) };
        let pages = pages.layer(DefaultBodyLimit::max(BODY)).layer(from_fn_with_state(access, access::guard));
        Ok(Self { address, task: tokio::spawn(listener::serve(listener, pages)), _token: file })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The pages about the worker.
fn worker_pages(state: AdminState) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/live", get(live))
        .route("/ready", get(ready))
        .with_state(state)
}

/// The pages about its breakers.
fn breaker_pages(live: Live) -> Router {
    dashboard::router()
        .merge(overrides::router(live.registry.clone()))
        .merge(live::router(live.clone()))
        .merge(pages::router(live))
}

async fn metrics(State(state): State<AdminState>) -> Response {
    match state.metrics.page().await {
        Ok(page) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], page).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error).into_response(),
    }
}

async fn live(State(state): State<AdminState>) -> Response {
    let silent = state.liveness.silent_for();
    let alive = silent < STUCK;
    let status = if alive { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({ "live": alive, "last_turn_ms_ago": u64::try_from(silent.as_millis()).ok() }))).into_response()
}

async fn ready(State(state): State<AdminState>) -> Response {
    let mut reasons = Vec::new();
    if state.liveness.draining() {
        reasons.push("shutting down: no new tasks are taken".to_owned());
    }
    for kind in ["workflow_task", "activity_task"] {
        match state.metrics.polls(kind).await {
            Ok(0) => reasons.push(format!("no poll for a {kind} is under way")),
            Ok(_) => {}
            Err(error) => reasons.push(error),
        }
    }
    if let Err(error) = server_answers(&state.client).await {
        reasons.push(error);
    }
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({ "ready": reasons.is_empty(), "reasons": reasons }))).into_response()
}

/// Whether the Temporal server answers; else why not.
pub(crate) async fn server_answers(client: &Client) -> Result<(), String> {
    match timeout(SERVER_ANSWER, describe_namespace(client)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(status)) => Err(format!("the Temporal server answers: {:?}", status.code())),
        Err(_) => Err(format!("the Temporal server did not answer within {SERVER_ANSWER:?}")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::Ipv4Addr;

    use circuit_registry::BreakersConfig;
    use serde_json::Value;

    use super::*;

    /// The pages about breakers, on a port of their own, without a Temporal server.
    pub(crate) struct Server {
        pub(crate) registry: CircuitRegistry,
        pub(crate) address: SocketAddr,
        _admin: Admin,
    }

    impl Server {
        pub(crate) async fn start(registry: CircuitRegistry, journal: Journal) -> Self {
            let pages = breaker_pages(Live::start(registry.clone(), journal, None));
            let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let admin = Admin::serve(anywhere, None, pages).await.expect("a free port");
            Self { registry, address: admin.address(), _admin: admin }
        }

        /// The token that commands on this machine use.
        pub(crate) fn token(&self) -> String {
            local_token(self.address.port()).expect("a token file").secret().to_owned()
        }

        pub(crate) async fn json(&self, path: &str) -> Value {
            let http = reqwest::Client::builder().no_proxy().build().expect("a client");
            let answer = http.get(format!("http://{}{path}", self.address)).send().await.expect("an answer");
            answer.json().await.expect("JSON")
        }
    }

    #[tokio::test]
    async fn an_absolute_target_is_refused_and_every_answer_is_guarded() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let server = Server::start(CircuitRegistry::new(BreakersConfig::default()), Journal::default()).await;
        for (request, status) in [
            (format!("GET http://{}/breakers HTTP/1.1\r\nhost: {0}\r\n", server.address), "400"),
            (format!("GET /breakers HTTP/1.1\r\nhost: {}\r\n", server.address), "200"),
            ("GET /breakers HTTP/1.1\r\nhost: rebound.example\r\n".to_owned(), "403"),
            ("GET /breakers HTTP/1.1\r\n".to_owned(), "400"),
        ] {
            let mut stream = tokio::net::TcpStream::connect(server.address).await.expect("listening");
            stream.write_all(format!("{request}connection: close\r\n\r\n").as_bytes()).await.expect("sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("text");
            assert_eq!(answer.split(' ').nth(1), Some(status), "{request}: {answer}");
            assert!(answer.contains("content-security-policy: default-src 'none'"), "{answer}");
            assert!(!answer.contains("unsafe-inline"), "{answer}");
        }
    }
}

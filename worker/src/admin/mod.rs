//! The worker's own HTTP server: for Prometheus, for an orchestrator, and for operators.
//!
//! | path | answers |
//! |---|---|
//! | `/metrics` | the breakers' and the SDK's metrics, in Prometheus' text format |
//! | `/live` | 200 while the worker's main task runs, else 503: restart it |
//! | `/ready` | 200 while this worker takes tasks from a server that answers, else 503 with the reasons |
//! | `/breakers` | a list of all breakers as JSON |
//! | `POST /breakers/NAME` | overrides a breaker, from this machine only: see [`overrides`] |

pub mod overrides;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use circuit_registry::{BreakerView, CircuitRegistry};
use serde_json::json;
use temporalio_client::Client;
use tokio::{
    net::TcpListener,
    task::JoinHandle,
    time::{Instant, timeout},
};

use crate::{error::CliError, telemetry::Metrics, temporal::describe_namespace};

/// The main task sends a heartbeat once a second. Without one for this long, it is stuck.
const STUCK: Duration = Duration::from_secs(15);

/// How long the Temporal server may take to answer before the worker is not ready.
const SERVER_ANSWER: Duration = Duration::from_secs(2);

/// What the worker's main task reports to the admin server.
#[derive(Debug, Clone)]
pub struct Liveness {
    inner: Arc<LivenessInner>,
}

#[derive(Debug)]
struct LivenessInner {
    start: Instant,
    beat_ms: AtomicU64,
    draining: AtomicBool,
}

impl Default for Liveness {
    fn default() -> Self {
        let (beat_ms, draining) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { inner: Arc::new(LivenessInner { start: Instant::now(), beat_ms, draining }) }
    }
}

impl Liveness {
    /// The heartbeat: the main task is running.
    pub fn beat(&self) {
        let now = u64::try_from(self.inner.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.inner.beat_ms.store(now, Ordering::Relaxed);
    }

    /// The worker takes no more tasks.
    pub fn drain(&self) {
        self.inner.draining.store(true, Ordering::Relaxed);
    }

    fn silent_for(&self) -> Duration {
        self.inner.start.elapsed().saturating_sub(Duration::from_millis(self.inner.beat_ms.load(Ordering::Relaxed)))
    }

    fn draining(&self) -> bool {
        self.inner.draining.load(Ordering::Relaxed)
    }
}

/// What the admin server shows.
#[derive(Clone)]
pub struct AdminState {
    /// The breakers.
    pub registry: CircuitRegistry,
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
}

impl Admin {
    /// Listens on `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn start(address: SocketAddr, state: AdminState) -> Result<Self, CliError> {
        let unusable = |error: std::io::Error| CliError::port(address.port(), &error);
        let listener = TcpListener::bind(address).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let router = router(state).into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the admin server has ended");
            }
        });
        Ok(Self { address, task })
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

fn router(state: AdminState) -> Router {
    let overrides = overrides::router(state.registry.clone());
    Router::new()
        .route("/metrics", get(metrics))
        .route("/live", get(live))
        .route("/ready", get(ready))
        .route("/breakers", get(breakers))
        .with_state(state)
        .merge(overrides)
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

async fn server_answers(client: &Client) -> Result<(), String> {
    match timeout(SERVER_ANSWER, describe_namespace(client)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(status)) => Err(format!("the Temporal server answers: {:?}", status.code())),
        Err(_) => Err(format!("the Temporal server did not answer within {SERVER_ANSWER:?}")),
    }
}

async fn breakers(State(state): State<AdminState>) -> Json<Vec<BreakerView>> {
    let mut views = state.registry.views();
    views.sort_by(|a, b| a.service.cmp(&b.service));
    Json(views)
}

//! The control API: the simulator's own HTTP interface, for other processes.
//!
//! | request | does |
//! |---|---|
//! | `GET /_control` | every upstream: base URL, environment name, fault, faults it can have |
//! | `GET /_control/calls` | the calls each upstream received |
//! | `DELETE /_control/calls` | counts from zero, forgets what upstreams remember |
//! | `GET /_control/faults` | the faults that are set |
//! | `PUT /_control/faults/{upstream}` | sets one: text (`slow:500ms`), a JSON string, or `{"fault": "slow:500ms"}` |
//! | `DELETE /_control/faults/{upstream}` | clears it |
//! | `DELETE /_control/faults` | clears all |
//!
//! An unknown upstream is answered 404, an unknown fault 400, with `{"error"}`. The error lists the valid names.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::call_log::Calls;
use crate::fault::FaultError;
use crate::servers::{Servers, SetFaultError};
use crate::simulated_upstream::SimulatedUpstream;

pub(crate) fn router(servers: Arc<Servers>) -> Router {
    Router::new()
        .route("/_control", get(overview))
        .route("/_control/calls", get(calls).delete(forget))
        .route("/_control/faults", get(faults).delete(clear_all))
        .route("/_control/faults/{upstream}", put(set).delete(clear))
        .with_state(servers)
}

async fn overview(State(servers): State<Arc<Servers>>) -> Json<Value> {
    let row = |upstream: &SimulatedUpstream| {
        let faults: BTreeMap<String, &str> = upstream.forms().into_iter().collect();
        let fault = upstream.fault().map(|fault| fault.to_string());
        json!({
            "name": upstream.name(), "base_url": upstream.base_url(), "env": upstream.env_name(),
            "fault": fault, "calls": upstream.calls().total, "faults": faults,
        })
    };
    Json(json!({"upstreams": servers.upstreams().map(row).collect::<Vec<_>>()}))
}

async fn calls(State(servers): State<Arc<Servers>>) -> Json<BTreeMap<&'static str, Calls>> {
    Json(servers.upstreams().map(|upstream| (upstream.name(), upstream.calls())).collect())
}

async fn forget(State(servers): State<Arc<Servers>>) -> StatusCode {
    servers.upstreams().for_each(SimulatedUpstream::forget);
    StatusCode::NO_CONTENT
}

async fn faults(State(servers): State<Arc<Servers>>) -> Json<BTreeMap<&'static str, String>> {
    let set = |upstream: &SimulatedUpstream| Some((upstream.name(), upstream.fault()?.to_string()));
    Json(servers.upstreams().filter_map(set).collect())
}

async fn set(State(servers): State<Arc<Servers>>, Path(upstream): Path<String>, body: String) -> Response {
    let text = match serde_json::from_str::<Value>(&body) {
        Ok(Value::String(text)) => text,
        Ok(Value::Object(object)) => object.get("fault").and_then(Value::as_str).unwrap_or_default().to_owned(),
        _ => body,
    };
    answer(servers.set_fault(&upstream, &text).await)
}

async fn clear(State(servers): State<Arc<Servers>>, Path(upstream): Path<String>) -> Response {
    answer(servers.clear(&upstream).await)
}

async fn clear_all(State(servers): State<Arc<Servers>>) -> Response {
    answer(servers.clear_all().await)
}

fn answer(result: Result<(), SetFaultError>) -> Response {
    let Err(error) = result else { return StatusCode::NO_CONTENT.into_response() };
    let status = match &error {
        SetFaultError::Fault(FaultError::UnknownUpstream { .. }) => StatusCode::NOT_FOUND,
        SetFaultError::Fault(_) => StatusCode::BAD_REQUEST,
        SetFaultError::Port { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, Json(json!({"error": error.to_string()}))).into_response()
}

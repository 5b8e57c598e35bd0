//! The control API: the simulator's own HTTP interface, for what runs in another process.
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
//! What does not exist is answered 404 or 400 with `{"error"}`, and the error lists what does.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::fault::FaultError;
use super::fleet::{Fleet, SetFaultError};
use super::ledger::Calls;
use super::station::Station;

pub(super) fn router(fleet: Arc<Fleet>) -> Router {
    Router::new()
        .route("/_control", get(overview))
        .route("/_control/calls", get(calls).delete(forget))
        .route("/_control/faults", get(faults).delete(clear_all))
        .route("/_control/faults/{upstream}", put(set).delete(clear))
        .with_state(fleet)
}

async fn overview(State(fleet): State<Arc<Fleet>>) -> Json<Value> {
    let upstream = |station: &Station| {
        let faults: BTreeMap<String, &str> = station.forms().into_iter().collect();
        let fault = station.fault().map(|fault| fault.to_string());
        json!({
            "name": station.upstream.name, "base_url": station.base_url(), "env": station.env_name(),
            "fault": fault, "calls": station.calls().total, "faults": faults,
        })
    };
    Json(json!({"upstreams": fleet.stations().map(upstream).collect::<Vec<_>>()}))
}

async fn calls(State(fleet): State<Arc<Fleet>>) -> Json<BTreeMap<&'static str, Calls>> {
    Json(fleet.stations().map(|station| (station.upstream.name, station.calls())).collect())
}

async fn forget(State(fleet): State<Arc<Fleet>>) -> StatusCode {
    fleet.stations().for_each(Station::forget);
    StatusCode::NO_CONTENT
}

async fn faults(State(fleet): State<Arc<Fleet>>) -> Json<BTreeMap<&'static str, String>> {
    let set = |station: &Station| Some((station.upstream.name, station.fault()?.to_string()));
    Json(fleet.stations().filter_map(set).collect())
}

async fn set(State(fleet): State<Arc<Fleet>>, Path(upstream): Path<String>, body: String) -> Response {
    let text = match serde_json::from_str::<Value>(&body) {
        Ok(Value::String(text)) => text,
        Ok(Value::Object(object)) => object.get("fault").and_then(Value::as_str).unwrap_or_default().to_owned(),
        _ => body,
    };
    answer(fleet.set_fault(&upstream, &text).await)
}

async fn clear(State(fleet): State<Arc<Fleet>>, Path(upstream): Path<String>) -> Response {
    answer(fleet.clear(&upstream).await)
}

async fn clear_all(State(fleet): State<Arc<Fleet>>) -> Response {
    answer(fleet.clear_all().await)
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

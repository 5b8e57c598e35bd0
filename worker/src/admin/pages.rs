//! The breakers as JSON: all, one, their history, the overrides in force, the thresholds.

use axum::{
    Json, Router,
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
    routing::get,
};
use circuit_registry::{BreakerView, CircuitRegistry, Policy};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    journal::Entry,
    live::Live,
    overrides::{known, unknown},
};
use crate::words;

/// The pages. `live` knows the breakers and their history.
pub(super) fn router(live: Live) -> Router {
    Router::new()
        .route("/breakers", get(breakers))
        .route("/breakers/{name}", get(breaker))
        .route("/history", get(history))
        .route("/overrides", get(overrides))
        .route("/config", get(config))
        .with_state(live)
}

/// All breakers in alphabetical order.
pub(super) fn all(registry: &CircuitRegistry) -> Vec<BreakerView> {
    let mut views = registry.views();
    views.sort_by(|a, b| a.service.cmp(&b.service));
    views
}

async fn breakers(State(live): State<Live>) -> Json<Vec<BreakerView>> {
    Json(all(&live.registry))
}

/// One breaker with its thresholds and its history.
#[derive(Debug, Serialize)]
struct Detail {
    breaker: BreakerView,
    policy: Vec<Threshold>,
    history: Vec<Entry>,
}

async fn breaker(State(live): State<Live>, Path(name): Path<String>) -> Response {
    let Some(breaker) = known(&live.registry, &name) else { return unknown(&live.registry, &name) };
    let breaker = breaker.view();
    let history = live.journal.entries(Some(&name));
    Json(Detail { breaker, policy: thresholds(&live.registry, &name), history }).into_response()
}

/// Which part of the history is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    service: Option<String>,
}

async fn history(State(live): State<Live>, Query(part): Query<Part>) -> Json<Vec<Entry>> {
    Json(live.journal.entries(part.service.as_deref()))
}

async fn overrides(State(live): State<Live>) -> Json<Vec<Value>> {
    let views = live.registry.views();
    let each = views.iter().flat_map(|view| view.overrides.iter().map(move |held| (view, held)));
    Json(each.map(|(view, held)| json!({ "service": view.service, "override": held })).collect())
}

async fn config(State(live): State<Live>) -> Json<Value> {
    let config = live.registry.config();
    let services = config.service_names().map(|name| (name.to_owned(), json!(thresholds(&live.registry, name))));
    let services: serde_json::Map<_, _> = services.collect();
    let (applied, refused) = live.registry.reloads();
    let last = live
        .registry
        .last_reload()
        .map(|(applied, at)| json!({ "applied": applied, "at": jiff::Timestamp::try_from(at).unwrap_or_default() }));
    Json(json!({
        "services": services,
        "any_other": thresholds(&live.registry, ""),
        "reloads": { "applied": applied, "refused": refused, "last": last },
    }))
}

/// One threshold of a running policy, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Threshold {
    /// Its name in `breakers.yaml`.
    key: &'static str,
    /// Its value in words; `None` where there is no limit.
    value: Option<String>,
    /// `service` if it is other than the defaults, `defaults` if those are other than what is built in, else `built-in`.
    from: &'static str,
}

/// The thresholds by which a service goes now. The value of an entry that repeats the defaults counts as theirs.
pub(super) fn thresholds(registry: &CircuitRegistry, service: &str) -> Vec<Threshold> {
    let config = registry.config();
    let (own, defaults, built_in) = (config.policy(service), config.policy(""), Policy::default());
    words::THRESHOLDS
        .iter()
        .map(|(key, read)| {
            let value = read(&own);
            let from = match (value == read(&defaults), value == read(&built_in)) {
                (false, _) => "service",
                (true, false) => "defaults",
                (true, true) => "built-in",
            };
            Threshold { key, value, from }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use circuit_registry::{BreakersConfig, Override};

    use super::*;
    use crate::admin::{Journal, tests::Server};

    #[tokio::test]
    async fn each_page_shows_what_is_in_force() {
        let yaml = "defaults: { fail_max: 7 }\nservices: { vies: { reset_timeout: 90s }, tavily: { fail_max: 3 } }";
        let config = BreakersConfig::from_yaml(yaml).expect("valid");
        let journal = Journal::default();
        let registry = CircuitRegistry::builder().config(config).observer(journal.clone()).build();
        registry.breaker("vies").force_open(Override::new("alice", "maintenance"));
        registry.flush_observers();
        let server = Server::start(registry, journal).await;

        let one = server.json("/breakers/vies").await;
        assert_eq!(one["breaker"]["mode"], "force_open");
        assert_eq!(one["breaker"]["overrides"][0]["who"], "alice");
        assert_eq!(one["history"][0]["event"], "override");
        let row =
            |page: &Value, key: &str| page.as_array().expect("a list").iter().find(|row| row["key"] == key).cloned();
        let is =
            |value: &'static str, from: &'static str| move |row: Value| row["value"] == value && row["from"] == from;
        assert!(row(&one["policy"], "reset_timeout").is_some_and(is("90s", "service")), "{one}");
        assert!(row(&one["policy"], "fail_max").is_some_and(is("7", "defaults")), "{one}");
        assert!(row(&one["policy"], "half_open.permits").is_some_and(is("1", "built-in")), "{one}");

        assert_eq!(server.json("/overrides").await[0]["override"]["why"], "maintenance");
        assert_eq!(server.json("/history?service=vies").await.as_array().map(Vec::len), Some(2));
        assert_eq!(server.json("/history?service=tavily").await.as_array().map(Vec::len), Some(0));
        let config = server.json("/config").await;
        assert!(row(&config["services"]["tavily"], "fail_max").is_some_and(is("3", "service")), "{config}");
        assert_eq!(server.json("/breakers").await.as_array().map(Vec::len), Some(2));
        assert!(server.json("/breakers/vise").await["error"].as_str().is_some_and(|text| text.contains("vies")));
    }
}

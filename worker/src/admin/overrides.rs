//! `POST /breakers/NAME` overrides a breaker, or lets it decide again.
//!
//! Only requests from this machine's loopback interface are accepted, even if the server listens elsewhere too. A web page in
//! an operator's browser cannot send one: its request has the page's own name in `Host`, or no JSON.
//!
//! | answer | means |
//! |---|---|
//! | 200 | the override is in force and stored |
//! | 503 | the override is in force in this worker, but **not** stored: it is lost at a restart and unknown to the fleet |
//! | 400, 415, 422 | the request is malformed |
//! | 403 | the request comes from elsewhere |
//! | 404 | there is no such breaker |

use std::{net::SocketAddr, time::Duration};

use axum::{
    Json, Router,
    extract::{ConnectInfo, Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use circuit_registry::{Breaker, BreakerView, CircuitRegistry, Override, policy::FleetPolicy};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Longest name or reason in bytes. People read them, and every worker keeps them.
const MAX_TEXT: usize = 500;

/// What an operator wants a breaker to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case", deny_unknown_fields)]
pub enum OverrideRequest {
    /// Refuse every call.
    Open(OverrideDetails),
    /// Let every call pass.
    Close(OverrideDetails),
    /// Let every call pass, and log when the breaker would have opened.
    Observe(OverrideDetails),
    /// Let the breaker decide again. Without a name, all overrides end.
    Auto {
        /// End only the override of this operator.
        #[serde(default)]
        who: Option<String>,
    },
}

/// Who overrides a breaker, why, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverrideDetails {
    /// The operator.
    pub who: String,
    /// The reason.
    pub why: String,
    /// Duration in milliseconds; without it, until released.
    #[serde(default)]
    pub for_ms: Option<u64>,
}

/// The answer to an override that is stored.
#[derive(Debug, Clone, Serialize)]
struct Stored {
    /// True if the override is in force in every worker that shares the breaker.
    fleet: bool,
    /// The breaker after the override.
    breaker: BreakerView,
}

/// The routes that change something.
pub(crate) fn router(registry: CircuitRegistry) -> Router {
    Router::new().route("/breakers/{name}", post(override_breaker)).with_state(registry)
}

async fn override_breaker(
    State(registry): State<CircuitRegistry>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Path(name): Path<String>,
    Json(order): Json<OverrideRequest>,
) -> Response {
    if !(peer.ip().to_canonical().is_loopback() && names_an_address(&headers)) {
        return refused(StatusCode::FORBIDDEN, "breakers can be overridden from the worker's own machine only");
    }
    let Some(breaker) = known(&registry, &name) else {
        let message = format!("there is no breaker '{name}'; `osint breakers` lists them");
        return refused(StatusCode::NOT_FOUND, &message);
    };
    if let Err(message) = apply(&breaker, order) {
        return refused(StatusCode::BAD_REQUEST, &message);
    }
    match breaker.stored().await {
        Ok(()) => {
            let shares = matches!(breaker.policy().fleet, FleetPolicy::Share(_));
            let fleet = shares && registry.store_errors().is_some_and(|(kind, _)| kind == "redis");
            Json(Stored { fleet, breaker: breaker.view() }).into_response()
        }
        Err(error) => refused(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

fn refused(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "error": message }))).into_response()
}

/// A web page from elsewhere can send a browser here under the page's own host name, but not under an IP address.
fn names_an_address(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    name == "localhost" || name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok()
}

/// A breaker that exists or that inherits from a configured one. A misspelt name must not create a breaker.
fn known(registry: &CircuitRegistry, name: &str) -> Option<Breaker> {
    let family = name.split_once(':').map(|(family, _)| family);
    let configured = registry.config().service_names().any(|known| known == name || Some(known) == family);
    let there = || registry.views().iter().any(|view| view.service.as_str() == name);
    (configured || there()).then(|| registry.breaker(name))
}

fn apply(breaker: &Breaker, order: OverrideRequest) -> Result<(), String> {
    let details = |given: OverrideDetails| {
        let order = Override::new(line("who", given.who)?, line("why", given.why)?);
        match given.for_ms {
            None => Ok(order),
            Some(0) => Err("how long? The duration must be above 0".to_owned()),
            Some(millis) => Ok(order.lasting(Duration::from_millis(millis))),
        }
    };
    match order {
        OverrideRequest::Open(given) => breaker.force_open(details(given)?),
        OverrideRequest::Close(given) => breaker.force_closed(details(given)?),
        OverrideRequest::Observe(given) => breaker.observe_only(details(given)?),
        OverrideRequest::Auto { who: None } => breaker.auto(),
        OverrideRequest::Auto { who: Some(who) } => {
            if !breaker.release(&who) {
                return Err(format!("'{who}' does not override this breaker"));
            }
        }
    }
    Ok(())
}

/// One line of text that is not empty.
fn line(what: &str, text: String) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err(format!("{what}: it is empty"));
    }
    if text.len() > MAX_TEXT || text.chars().any(char::is_control) {
        return Err(format!("{what}: one line of at most {MAX_TEXT} bytes"));
    }
    Ok(text)
}

#[cfg(test)]
pub(crate) mod tests {
    use circuit_registry::{
        BreakersConfig,
        policy::Mode,
        store::{MemoryStore, Store},
    };
    use tokio::net::TcpListener;

    use super::*;

    /// A registry with the routes of this module. It ends with the test.
    pub(crate) async fn worker(store: Option<MemoryStore>) -> (CircuitRegistry, SocketAddr) {
        let config = BreakersConfig::from_yaml("services: { vies: {}, tavily: {} }").expect("valid configuration");
        let builder = CircuitRegistry::builder().config(config);
        let registry = match store {
            None => builder.build(),
            Some(store) => {
                assert_eq!(store.kind(), "memory");
                let registry = builder.store(store).build();
                tokio::spawn(registry.restore().await.run(std::future::pending()));
                registry
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let service = router(registry.clone()).into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        (registry, address)
    }

    async fn post(address: SocketAddr, name: &str, host: &str, body: &str) -> (u16, String) {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let request = http.post(format!("http://{address}/breakers/{name}")).header("content-type", "application/json");
        let answer = request.header("host", host).body(body.to_owned()).send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("text"))
    }

    const OPEN: &str = r#"{ "order": "open", "who": "alice", "why": "maintenance" }"#;

    #[tokio::test]
    async fn refused_requests_change_nothing() {
        let (registry, address) = worker(Some(MemoryStore::new())).await;
        let here = address.to_string();
        for (name, host, body, status, text) in [
            ("tavily", "rebound.example", OPEN, 403, "own machine"),
            ("tavily", "rebound.example:9464", OPEN, 403, "own machine"),
            ("tavilly", &here, OPEN, 404, "no breaker 'tavilly'"),
            ("tavily", &here, "{", 400, ""),
            ("tavily", &here, r#"{ "order": "ajar", "who": "a", "why": "b" }"#, 422, "ajar"),
            ("tavily", &here, r#"{ "order": "open", "who": "a" }"#, 422, "why"),
            ("tavily", &here, r#"{ "order": "open", "who": "a", "why": " " }"#, 400, "why"),
            ("tavily", &here, r#"{ "order": "open", "who": "a\nb", "why": "b" }"#, 400, "one line"),
            ("tavily", &here, r#"{ "order": "open", "who": "a", "why": "b", "for_ms": 0 }"#, 400, "how long"),
            ("tavily", &here, r#"{ "order": "auto", "who": "bob" }"#, 400, "'bob' does not override"),
        ] {
            let (code, answer) = post(address, name, host, body).await;
            assert!(code == status && answer.contains(text), "{name} at {host}, {body}: {code} {answer}");
        }
        let views = registry.views();
        assert_eq!(views.len(), 2, "no breaker was made: {views:?}");
        assert!(views.iter().all(|view| view.mode == Mode::Enforce), "{views:?}");
    }

    #[tokio::test]
    async fn an_override_is_acknowledged_when_it_is_stored() {
        let store = MemoryStore::new();
        let (registry, address) = worker(Some(store.clone())).await;
        for (host, name) in
            [(address.to_string(), "tavily"), ("localhost".to_owned(), "vies:DE"), ("[::1]:1".to_owned(), "vies")]
        {
            let (code, answer) = post(address, name, &host, OPEN).await;
            assert_eq!(code, 200, "{answer}");
            assert_eq!(registry.breaker(name).view().mode, Mode::ForceOpen);
            assert!(store.text(name).is_some_and(|text| text.contains("maintenance")));
        }
        store.set_away(true);
        let (code, answer) = post(address, "tavily", "localhost", r#"{ "order": "auto" }"#).await;
        assert!(code == 503 && answer.contains("away"), "{code} {answer}");
        assert_eq!(registry.breaker("tavily").view().mode, Mode::Enforce, "in force here anyway");
    }
}

//! `POST /breakers/NAME` overrides a breaker, or lets it decide again. `access` has checked the token.
//!
//! | answer | means |
//! |---|---|
//! | 200 | the override is in force; `stored` and `in_force` say whether a restart ends it, and where it holds |
//! | 503 | the override is in force in this worker, but its store does not take it: it is lost at a restart and unknown to the fleet |
//! | 400, 415, 422 | the request is malformed |
//! | 404 | there is no such breaker; the answer names the nearest ones |

use std::time::Duration;

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use circuit_registry::{Breaker, BreakerView, CircuitRegistry, Override, policy::FleetPolicy};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::words::nearest;

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

/// Where an override holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InForce {
    /// In this process only, until it ends: it has no store.
    Process,
    /// In this worker, also after a restart.
    Worker,
    /// In every worker that shares the breaker.
    Fleet,
}

impl InForce {
    fn of(registry: &CircuitRegistry, breaker: &Breaker) -> Self {
        let shares = matches!(breaker.policy().fleet, FleetPolicy::Share(_));
        match registry.store_errors() {
            None | Some(("memory", _)) => Self::Process,
            Some(("redis", _)) if shares => Self::Fleet,
            Some(_) => Self::Worker,
        }
    }

    /// The same in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Process => "in force in this process only: it has no store, so the override ends with it",
            Self::Worker => "stored, and in force in this worker",
            Self::Fleet => "stored, and in force in the whole fleet",
        }
    }
}

/// The answer to an override that is in force.
#[derive(Debug, Clone, Serialize)]
struct Answer {
    /// False if the override ends with this process.
    stored: bool,
    in_force: InForce,
    /// `in_force` in words.
    note: &'static str,
    /// The breaker after the override.
    breaker: BreakerView,
}

/// The routes that change something.
pub(crate) fn router(registry: CircuitRegistry) -> Router {
    Router::new().route("/breakers/{name}", post(override_breaker)).with_state(registry)
}

async fn override_breaker(
    State(registry): State<CircuitRegistry>,
    Path(name): Path<String>,
    Json(order): Json<OverrideRequest>,
) -> Response {
    let Some(breaker) = known(&registry, &name) else { return unknown(&registry, &name) };
    if let Err(message) = apply(&breaker, order) {
        return refused(StatusCode::BAD_REQUEST, &message);
    }
    let in_force = InForce::of(&registry, &breaker);
    if in_force != InForce::Process
        && let Err(error) = breaker.stored().await
    {
        return refused(StatusCode::SERVICE_UNAVAILABLE, &error.to_string());
    }
    let (stored, note) = (in_force != InForce::Process, in_force.words());
    Json(Answer { stored, in_force, note, breaker: breaker.view() }).into_response()
}

/// The answer for a name without a breaker.
pub(super) fn unknown(registry: &CircuitRegistry, name: &str) -> Response {
    let views = registry.views();
    let near = nearest(name, views.iter().map(|view| view.service.as_str()));
    let hint = if near.is_empty() {
        "`osint breakers` lists them".to_owned()
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    refused(StatusCode::NOT_FOUND, &format!("there is no breaker '{name}'; {hint}"))
}

fn refused(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "error": message }))).into_response()
}

/// A breaker that exists or that inherits from a configured one. A misspelt name must not create a breaker.
pub(super) fn known(registry: &CircuitRegistry, name: &str) -> Option<Breaker> {
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
    use std::{fs, path::Path as FilePath};

    use circuit_registry::{BreakersConfig, policy::Mode, store::FileStore};

    use super::*;
    use crate::admin::{Journal, tests::Server};

    /// A server with breakers, and a store in the file if one is named. It ends with the test.
    pub(crate) async fn worker(store: Option<&FilePath>) -> Server {
        let config = BreakersConfig::from_yaml("services: { vies: {}, tavily: {} }").expect("valid configuration");
        let journal = Journal::default();
        let builder = CircuitRegistry::builder().config(config).observer(journal.clone());
        let registry = match store {
            None => builder.build(),
            Some(file) => {
                let registry = builder.store(FileStore::new(file)).build();
                tokio::spawn(registry.restore().await.run(std::future::pending()));
                registry
            }
        };
        Server::start(registry, journal).await
    }

    async fn post(server: &Server, name: &str, host: &str, body: &str) -> (u16, String) {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let url = format!("http://{}/breakers/{name}", server.address);
        let request = http.post(url).header("content-type", "application/json").bearer_auth(server.token());
        let answer = request.header("host", host).body(body.to_owned()).send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("text"))
    }

    const OPEN: &str = r#"{ "order": "open", "who": "alice", "why": "maintenance" }"#;

    #[tokio::test]
    async fn refused_requests_change_nothing() {
        let server = worker(None).await;
        let here = server.address.to_string();
        let long = format!(r#"{{ "order": "open", "who": "a", "why": "{}" }}"#, "b".repeat(100_000));
        for (name, body, status, text) in [
            ("tavilly", OPEN, 404, "did you mean tavily?"),
            ("tavily", "{", 400, ""),
            ("tavily", r#"{ "order": "ajar", "who": "a", "why": "b" }"#, 422, "ajar"),
            ("tavily", r#"{ "order": "open", "who": "a" }"#, 422, "why"),
            ("tavily", r#"{ "order": "open", "who": "a", "why": " " }"#, 400, "why"),
            ("tavily", r#"{ "order": "open", "who": "a\nb", "why": "b" }"#, 400, "one line"),
            ("tavily", r#"{ "order": "open", "who": "a", "why": "b", "for_ms": 0 }"#, 400, "how long"),
            ("tavily", r#"{ "order": "auto", "who": "bob" }"#, 400, "'bob' does not override"),
            ("tavily", &long, 413, ""),
        ] {
            let (code, answer) = post(&server, name, &here, body).await;
            assert!(code == status && answer.contains(text), "{name}, {body:.80}: {code} {answer}");
        }
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let url = format!("http://{here}/breakers/tavily");
        let bare = http.post(&url).header("content-type", "application/json").body(OPEN);
        assert_eq!(bare.send().await.expect("an answer").status(), 401, "writes need the token");
        let foreign = http.post(&url).bearer_auth(server.token()).header("origin", "http://evil.example").body(OPEN);
        assert_eq!(foreign.send().await.expect("an answer").status(), 403, "no page of another site");
        let views = server.registry.views();
        assert_eq!(views.len(), 2, "no breaker was made: {views:?}");
        assert!(views.iter().all(|view| view.mode == Mode::Enforce), "{views:?}");
    }

    #[tokio::test]
    async fn an_override_says_where_it_is_in_force() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("breakers.state");
        let server = worker(Some(&file)).await;
        for (host, name) in [
            (server.address.to_string(), "tavily"),
            ("localhost".to_owned(), "vies:DE"),
            ("[::1]:1".to_owned(), "vies"),
        ] {
            let (code, answer) = post(&server, name, &host, OPEN).await;
            assert!(code == 200 && answer.contains(r#""stored":true,"in_force":"worker""#), "{code} {answer}");
            assert_eq!(server.registry.breaker(name).view().mode, Mode::ForceOpen);
            let stored = fs::read_to_string(&file).expect("stored");
            assert!(stored.lines().any(|line| line.contains(name) && line.contains("maintenance")), "{stored}");
        }
        drop(folder);
        let (code, answer) = post(&server, "tavily", "localhost", r#"{ "order": "auto" }"#).await;
        assert_eq!(code, 503, "{answer}");
        assert_eq!(server.registry.breaker("tavily").view().mode, Mode::Enforce, "in force here anyway");

        let server = worker(None).await;
        let (code, answer) = post(&server, "tavily", "localhost", OPEN).await;
        assert!(code == 200 && answer.contains(r#""stored":false,"in_force":"process""#), "{code} {answer}");
    }
}

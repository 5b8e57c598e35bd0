//! An upstream at work: its row, its record of calls, its memory and the fault that is set.
//!
//! Every request passes here, in the same order for all upstreams: find the route, book the arrival, ask the fault what
//! happens, answer, book the answer. Handlers know nothing of it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use futures::{StreamExt, stream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::answer::Answer;
use super::fault::{Arg, Effect, Fault, FaultError, Scenario, forms};
use super::ledger::{Calls, Ledger};
use super::port::{Connection, Hangup};
use super::upstream::{Call, Memory, Rate, Upstream, pairs, segments};

/// The scenario of every upstream whose row has a rate: its refusal once the rate is exceeded.
pub(super) const ENFORCE_RATE: Scenario =
    Scenario { name: "enforce_rate", arg: Arg::None, about: "refuses the calls above the rate it publishes" };

/// The most a request body may be; more is answered 413.
const MAX_REQUEST: usize = 16 << 20;
/// How long a reset waits for the half of the body to be on the wire.
const RESET_AFTER: Duration = Duration::from_millis(20);
/// How many pieces a dripping body comes in, at most.
const DRIPS: usize = 64;

#[derive(Debug)]
pub(super) struct Station {
    pub(super) upstream: &'static Upstream,
    origin: String,
    /// What to replace in answers by what: public origins by simulated ones.
    links: Vec<(&'static str, String)>,
    ledger: Ledger,
    memory: Memory,
    active: Mutex<Option<Active>>,
    /// Callbacks under way; they end with the station.
    callbacks: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Active {
    fault: Fault,
    since: Instant,
    seen: u64,
}

impl Station {
    pub(super) fn new(upstream: &'static Upstream, origin: String, links: Vec<(&'static str, String)>) -> Station {
        let (ledger, memory, active, callbacks) = Default::default();
        Station { upstream, origin, links, ledger, memory, active, callbacks }
    }

    /// The URL that stands for the upstream's public base URL, without a slash at its end.
    pub(super) fn base_url(&self) -> String {
        format!("{}{}", self.origin, self.upstream.base)
    }

    /// The name of the environment variable that clients read the base URL from.
    pub(super) fn env_name(&self) -> String {
        format!("{}_BASE_URL", self.upstream.name.to_uppercase())
    }

    pub(super) fn parse(&self, fault: &str) -> Result<Fault, FaultError> {
        Fault::parse(self.upstream.name, self.upstream.scenarios, fault)
    }

    /// The text forms of every fault it can have, with what each does.
    pub(super) fn forms(&self) -> Vec<(String, &'static str)> {
        forms(self.upstream.scenarios)
    }

    /// Sets the fault, or none. The count of calls and the clock of the fault start now.
    pub(super) fn set(&self, fault: Option<Fault>) {
        *self.active() = fault.map(|fault| Active { fault, since: Instant::now(), seen: 0 });
    }

    pub(super) fn fault(&self) -> Option<Fault> {
        self.active().as_ref().map(|active| active.fault.clone())
    }

    pub(super) fn calls(&self) -> Calls {
        Calls { counters: self.memory.all(), ..self.ledger.calls() }
    }

    /// Forgets the calls received and what the upstream remembers of them.
    pub(super) fn forget(&self) {
        self.ledger.clear();
        self.memory.clear();
    }

    fn active(&self) -> MutexGuard<'_, Option<Active>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The router that serves this upstream, whatever the path.
    pub(super) fn router(self: Arc<Station>) -> Router {
        Router::new().fallback(handle).with_state(self)
    }

    fn effect(&self, operation: &str, target: &str, now: Instant) -> (Effect, Option<(&'static str, String)>) {
        let mut active = self.active();
        let Some(active) = active.as_mut().filter(|active| active.fault.concerns(operation, target)) else {
            return (Effect::Answer, None);
        };
        active.seen += 1;
        let effect = active.fault.effect(active.seen, now.duration_since(active.since));
        (effect, active.fault.scenario().map(|(name, argument)| (name, argument.to_owned())))
    }

    fn over_rate(&self, call: &Call, now: Instant) -> Option<Answer> {
        call.scenario(ENFORCE_RATE.name)?;
        let Rate { calls, window, refusal } = self.upstream.rate.as_ref()?;
        (self.ledger.within(*window, now) > *calls).then(refusal)
    }

    /// Posts a document, but only to this machine: the address comes from a request.
    fn call_back(&self, url: String, document: serde_json::Value) {
        let local =
            reqwest::Url::parse(&url).is_ok_and(|url| matches!(url.host_str(), Some("127.0.0.1" | "localhost")));
        if local {
            let mut callbacks = self.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
            callbacks.spawn(deliver(url, document.to_string()));
        }
    }

    /// What the upstream says, and what its fault does with that.
    fn answer(&self, request: &axum::http::request::Parts, body: &[u8]) -> (Answer, Effect) {
        let now = Instant::now();
        let method = if request.method == "HEAD" { "GET" } else { request.method.as_str() };
        let path = segments(request.uri.path());
        let below = path.strip_prefix(segments(self.upstream.base).as_slice());
        let routed = below.and_then(|below| {
            let found = |route: &'static super::upstream::Route| Some((route, route.captures(method, below)?));
            self.upstream.routes.iter().find_map(found)
        });
        let operation = routed.as_ref().map_or("unrouted", |(route, _)| route.operation);
        let target = request.uri.path_and_query().map_or("", |target| target.as_str());
        let (effect, scenario) = self.effect(operation, target, now);
        let call = Call {
            segments: below.unwrap_or(&path).to_vec(),
            captured: routed.as_ref().map(|(_, captured)| captured.clone()).unwrap_or_default(),
            query: pairs(request.uri.query().unwrap_or("")),
            headers: &request.headers,
            body,
            scenario,
            blank: matches!(effect, Effect::Blank),
            fixtures: self.upstream.fixtures,
            memory: &self.memory,
        };
        self.ledger.arrive(operation, (self.upstream.split)(&call), now);
        let answer = match (routed, self.over_rate(&call, now)) {
            // Whoever is turned away at the door has neither spent anything nor started any work.
            _ if matches!(effect, Effect::Reply(_) | Effect::Hangup) => Answer::text(503, "text/plain", ""),
            (_, Some(refusal)) => refusal,
            (Some((route, _)), None) => (route.answer)(&call),
            (None, None) => (self.upstream.unrouted)(),
        };
        (answer.relocated(&self.links), effect)
    }
}

/// Delivers a callback, three times at most.
async fn deliver(url: String, document: String) {
    let plain = reqwest::Client::builder().timeout(Duration::from_secs(5)).no_proxy().tls_certs_only([]);
    let Ok(client) = plain.build() else { return };
    for pause in [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(2)] {
        sleep(pause).await;
        let request = client.post(&url).header("content-type", "application/json").body(document.clone());
        if request.send().await.is_ok_and(|response| response.status().is_success()) {
            return;
        }
    }
}

async fn handle(State(station): State<Arc<Station>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST).await else {
        return Answer::text(413, "text/plain", "Content Too Large").into_response();
    };
    let (mut answer, effect) = station.answer(&parts, &body);
    if let (Some((url, document)), Effect::Answer) = (answer.take_callback(), &effect) {
        station.call_back(url, document);
    }
    let status = match &effect {
        Effect::Hang | Effect::Reset | Effect::Hangup => 0,
        Effect::Reply(reply) => reply.status(),
        _ => answer.status(),
    };
    station.ledger.answered(status);
    match effect {
        Effect::Answer | Effect::Blank => answer.into_response(),
        Effect::Reply(reply) => reply.into_response(),
        Effect::Delay(delay) => {
            sleep(delay).await;
            answer.into_response()
        }
        Effect::Drip(pause) => drip(answer, pause),
        Effect::Truncate => {
            let half = answer.body().len() / 2;
            let body = answer.body()[..half].to_vec();
            answer.with_body(body).into_response()
        }
        // The connection task is dropped, and this with it, when the client gives up.
        Effect::Hang => std::future::pending().await,
        Effect::Hangup => {
            let mut response = Response::new(Body::empty());
            response.extensions_mut().insert(Hangup);
            response
        }
        Effect::Reset => reset(answer, parts.extensions.get::<Connection>()),
    }
}

fn drip(answer: Answer, pause: Duration) -> Response<Body> {
    let size = (answer.body().len() / DRIPS).max(1);
    let pieces: Vec<_> = answer.body().chunks(size).map(Bytes::copy_from_slice).collect();
    let slowly = stream::iter(pieces).then(move |piece| async move {
        sleep(pause).await;
        Ok::<_, Infallible>(piece)
    });
    answer.into_response_with(Body::from_stream(slowly))
}

fn reset(answer: Answer, connection: Option<&Connection>) -> Response<Body> {
    if let Some(connection) = connection {
        connection.reset_on_close();
    }
    let half = Bytes::copy_from_slice(&answer.body()[..answer.body().len() / 2]);
    let broken = stream::iter([Ok(half)]).chain(stream::once(async {
        sleep(RESET_AFTER).await;
        Err(std::io::Error::other("reset on purpose"))
    }));
    answer.into_response_with(Body::from_stream(broken))
}

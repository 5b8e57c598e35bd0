//! A simulated upstream at work: its spec, the log of its calls, its memory and the fault that is set.
//!
//! Every request takes the same steps for all upstreams: find the route, record the arrival, ask the fault for its effect,
//! answer, record the status. Handlers see none of these steps.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use axum::http::request::Parts;
use tokio::time::Instant;

use crate::answer::Answer;
use crate::call_log::{CallLog, Calls};
use crate::callbacks::Callbacks;
use crate::delivery;
use crate::fault::{ENFORCE_RATE, Effect, Fault, FaultError, forms};
use crate::port::Connection;
use crate::spec::{Call, Memory, Rate, Route, UpstreamSpec, pairs, segments};

/// The longest request body, in bytes; a longer one is answered 413.
const MAX_REQUEST: usize = 16 << 20;

/// One upstream that runs.
#[derive(Debug)]
pub(crate) struct SimulatedUpstream {
    spec: &'static UpstreamSpec,
    origin: String,
    /// Public origins, and the simulated ones that replace them in answers.
    links: Vec<(&'static str, String)>,
    log: CallLog,
    memory: Memory,
    active: Mutex<Option<ActiveFault>>,
    callbacks: Callbacks,
}

/// The fault that is set.
#[derive(Debug)]
struct ActiveFault {
    fault: Fault,
    since: Instant,
    /// The calls that it applied to.
    calls: u64,
}

/// The scenario that is set, with its argument.
type ActiveScenario = Option<(&'static str, String)>;

impl SimulatedUpstream {
    /// An upstream that has had no calls. `origin` is its own address, `links` replace public origins in its answers.
    pub(crate) fn new(spec: &'static UpstreamSpec, origin: String, links: Vec<(&'static str, String)>) -> Self {
        let (log, memory, active, callbacks) = Default::default();
        SimulatedUpstream { spec, origin, links, log, memory, active, callbacks }
    }

    /// The name, as in the catalog of sources.
    pub(crate) fn name(&self) -> &'static str {
        self.spec.name
    }

    /// Environment variables of its credentials, with values that it accepts.
    pub(crate) fn credentials(&self) -> &'static [(&'static str, &'static str)] {
        self.spec.credentials
    }

    /// The names of the faults that only it has.
    pub(crate) fn scenarios(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.spec.scenarios.iter().map(|scenario| scenario.name)
    }

    /// The URL that stands for the upstream's public base URL, without a slash at its end.
    pub(crate) fn base_url(&self) -> String {
        format!("{}{}", self.origin, self.spec.base)
    }

    /// The name of the environment variable that clients read the base URL from.
    pub(crate) fn env_name(&self) -> String {
        format!("{}_BASE_URL", self.spec.name.to_uppercase())
    }

    /// Parses the text of a fault.
    pub(crate) fn parse(&self, fault: &str) -> Result<Fault, FaultError> {
        Fault::parse(self.spec.name, self.spec.scenarios, fault)
    }

    /// The text forms of every fault it can have, with what each does.
    pub(crate) fn forms(&self) -> Vec<(String, &'static str)> {
        forms(self.spec.scenarios)
    }

    /// Sets the fault, or none. The count of calls and the clock of the fault start now.
    pub(crate) fn set_fault(&self, fault: Option<Fault>) {
        *self.active() = fault.map(|fault| ActiveFault { fault, since: Instant::now(), calls: 0 });
    }

    /// The fault that is set.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.active().as_ref().map(|active| active.fault.clone())
    }

    /// The calls received, and the counters of its memory.
    pub(crate) fn calls(&self) -> Calls {
        Calls { counters: self.memory.all(), ..self.log.calls() }
    }

    /// Forgets the calls received and empties the memory.
    pub(crate) fn forget(&self) {
        self.log.clear();
        self.memory.clear();
    }

    fn active(&self) -> MutexGuard<'_, Option<ActiveFault>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The router that serves this upstream, whatever the path.
    pub(crate) fn router(self: Arc<SimulatedUpstream>) -> Router {
        Router::new().fallback(handle).with_state(self)
    }

    /// The effect on a call of this operation to this path and query, and the scenario that its handler looks up.
    fn effect(&self, operation: &str, target: &str, now: Instant) -> (Effect, ActiveScenario) {
        let mut active = self.active();
        let Some(active) = active.as_mut().filter(|active| active.fault.applies_to(operation, target)) else {
            return (Effect::Answer, None);
        };
        active.calls += 1;
        let effect = active.fault.effect(active.calls, now.duration_since(active.since));
        (effect, active.fault.scenario().map(|(name, argument)| (name, argument.to_owned())))
    }

    /// The answer to a call above the rate, if the rate is enforced.
    fn over_rate(&self, call: &Call, now: Instant) -> Option<Answer> {
        call.scenario(ENFORCE_RATE.name)?;
        let Rate { calls, window, refusal } = self.spec.rate.as_ref()?;
        (self.log.within(*window, now) > *calls).then(refusal)
    }

    /// The part of the path below the base, and the route that takes it, with what its path captures.
    fn route<'a>(&self, method: &str, path: &'a [String]) -> (&'a [String], Option<(&'static Route, Vec<String>)>) {
        let Some(below) = path.strip_prefix(segments(self.spec.base).as_slice()) else { return (path, None) };
        let takes = |route: &'static Route| Some((route, route.captures(method, below)?));
        (below, self.spec.routes.iter().find_map(takes))
    }

    /// The upstream's answer, and what its fault does with it.
    fn answer(&self, request: &Parts, body: &[u8]) -> (Answer, Effect) {
        let now = Instant::now();
        let method = if request.method == "HEAD" { "GET" } else { request.method.as_str() };
        let path = segments(request.uri.path());
        let (below, routed) = self.route(method, &path);
        let operation = routed.as_ref().map_or("unrouted", |(route, _)| route.operation);
        let target = request.uri.path_and_query().map_or("", |target| target.as_str());
        let (effect, scenario) = self.effect(operation, target, now);
        let call = Call {
            segments: below.to_vec(),
            captured: routed.as_ref().map(|(_, captured)| captured.clone()).unwrap_or_default(),
            query: pairs(request.uri.query().unwrap_or("")),
            headers: &request.headers,
            body,
            scenario,
            not_found: matches!(effect, Effect::NotFound),
            fixtures: self.spec.fixtures,
            memory: &self.memory,
        };
        self.log.record_arrival(operation, (self.spec.key)(&call), now);
        let answer = match (routed, self.over_rate(&call, now)) {
            // A call that the fault turns away spends no credits and starts no job.
            _ if matches!(effect, Effect::Reply(_) | Effect::DropConnection) => Answer::text(503, "text/plain", ""),
            (_, Some(refusal)) => refusal,
            (Some((route, _)), None) => (route.answer)(&call),
            (None, None) => (self.spec.unrouted)(),
        };
        (answer.with_local_links(&self.links), effect)
    }
}

async fn handle(State(upstream): State<Arc<SimulatedUpstream>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST).await else {
        return Answer::text(413, "text/plain", "Content Too Large").into_response();
    };
    let (mut answer, effect) = upstream.answer(&parts, &body);
    if let (Some((url, document)), Effect::Answer) = (answer.take_callback(), &effect) {
        upstream.callbacks.post(url, &document);
    }
    upstream.log.record_status(delivery::status(&answer, &effect));
    delivery::deliver(answer, effect, parts.extensions.get::<Connection>()).await
}

//! `/events`: what the dashboard shows, live, as server-sent events.
//!
//! | event | data |
//! |---|---|
//! | `breakers` | all breakers, as `/breakers`; at the start, and whenever one differs, at most once a second |
//! | `history` | the entries so far, once at the start |
//! | `entry` | a new entry of the history |
//! | `samples` | for each breaker that was called lately `[calls, failures]` of each 5 s of the last 10 min, oldest first |
//! | `investigations` | the investigations that run now, with how many of their questions have an outcome |

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::get,
};
use circuit_registry::{CircuitRegistry, ServiceName};
use futures::{StreamExt, stream};
use serde::Serialize;
use serde_json::Value;
use temporalio_client::{Client, WorkflowListOptions, WorkflowQueryOptions};
use tokio::{
    sync::{broadcast, watch},
    task::JoinSet,
    time::{Interval, MissedTickBehavior, interval, timeout},
};

use super::{
    journal::{Entry, Journal},
    pages::all,
};
use crate::workflow::InvestigationWorkflow;

/// How often the breakers are compared with what a follower has.
const TICK: Duration = Duration::from_secs(1);

/// How often calls are counted for the sparklines.
const SAMPLE: Duration = Duration::from_secs(5);

/// How many samples are kept: ten minutes.
const SAMPLES: usize = 120;

/// How often the running investigations are listed while someone follows.
const LIST: Duration = Duration::from_secs(3);

/// Investigations that are listed at most.
const LISTED: usize = 20;

/// How long the Temporal server and its workers may take to answer.
const ANSWER: Duration = Duration::from_secs(2);

/// An investigation that runs now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Running {
    /// The id of its workflow.
    id: String,
    /// When it began.
    started: Option<jiff::Timestamp>,
    /// Questions that were asked so far.
    asked: usize,
    /// Those with an outcome.
    settled: usize,
    /// Those whose outcome is a gap.
    gaps: usize,
}

/// Calls and failures of a service between two samples.
type Sample = [u64; 2];

/// What the pages read.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) registry: CircuitRegistry,
    pub(super) journal: Journal,
    samples: Arc<Mutex<Samples>>,
    running: watch::Sender<Arc<Vec<Running>>>,
    /// Sampling and listing end with the last clone.
    _tasks: Arc<JoinSet<()>>,
}

impl Live {
    /// Starts to sample, and with a client of the Temporal server also to list investigations while someone follows.
    pub(super) fn start(registry: CircuitRegistry, journal: Journal, client: Option<Client>) -> Self {
        let (samples, running) = (Arc::<Mutex<Samples>>::default(), watch::Sender::new(Arc::default()));
        let mut tasks = JoinSet::new();
        tasks.spawn(sample(registry.clone(), samples.clone()));
        if let Some(client) = client {
            tasks.spawn(list(client, running.clone()));
        }
        Self { registry, journal, samples, running, _tasks: Arc::new(tasks) }
    }
}

pub(super) fn router(live: Live) -> Router {
    Router::new().route("/events", get(events)).with_state(live)
}

async fn events(State(live): State<Live>) -> Response {
    let (past, news) = live.journal.follow();
    let mut running = live.running.subscribe();
    running.mark_changed(); // the list as it is now is news to this follower
    let follower = Follower {
        shown: Value::Null,
        news,
        running,
        ticks: every(TICK),
        samples: every(SAMPLE),
        first: vec![event("history", &past)],
        live,
    };
    let events = stream::unfold(follower, |mut follower| async move {
        let event = follower.next().await;
        Some((Ok::<_, Infallible>(event), follower))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

/// One reader of `/events`.
struct Follower {
    live: Live,
    /// The breakers as last sent.
    shown: Value,
    news: broadcast::Receiver<Entry>,
    running: watch::Receiver<Arc<Vec<Running>>>,
    ticks: Interval,
    samples: Interval,
    first: Vec<Event>,
}

impl Follower {
    async fn next(&mut self) -> Event {
        if let Some(first) = self.first.pop() {
            return first;
        }
        loop {
            tokio::select! {
                entry = self.news.recv() => match entry {
                    Ok(entry) => return event("entry", &entry),
                    // Too slow, or the journal is gone: what is there now is sent again.
                    Err(_) => {
                        let (past, news) = self.live.journal.follow();
                        self.news = news;
                        return event("history", &past);
                    }
                },
                _ = self.ticks.tick() => {
                    let now = serde_json::to_value(all(&self.live.registry)).unwrap_or_default();
                    if differ(&self.shown, &now) {
                        self.shown = now;
                        return event("breakers", &self.shown);
                    }
                }
                _ = self.samples.tick() => {
                    let samples = self.live.samples.lock().unwrap_or_else(PoisonError::into_inner);
                    return event("samples", &samples.active());
                }
                Ok(()) = self.running.changed() => {
                    let running = self.running.borrow_and_update().clone();
                    return event("investigations", &*running);
                }
            }
        }
    }
}

fn every(time: Duration) -> Interval {
    let mut ticks = interval(time);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn event(name: &str, data: &impl Serialize) -> Event {
    Event::default().event(name).json_data(data).unwrap_or_default()
}

/// Whether anything differs but the time left, which a reader counts down by itself.
fn differ(shown: &Value, now: &Value) -> bool {
    let (Value::Array(shown), Value::Array(now)) = (shown, now) else { return true };
    let still = |value: &Value| {
        let mut value = value.clone();
        let waits = value.as_object_mut().and_then(|fields| fields.insert("retry_in_ms".to_owned(), Value::Null));
        for held in value.get_mut("overrides").and_then(Value::as_array_mut).into_iter().flatten() {
            held["ends_in_ms"] = Value::Null;
        }
        (value, waits.is_some_and(|time| !time.is_null()))
    };
    shown.len() != now.len() || shown.iter().zip(now).any(|(a, b)| still(a) != still(b))
}

/// The calls of the last minutes, by service.
#[derive(Debug, Default)]
struct Samples(BTreeMap<ServiceName, Series>);

#[derive(Debug, Default)]
struct Series {
    total: Sample,
    steps: VecDeque<Sample>,
}

impl Samples {
    fn take(&mut self, registry: &CircuitRegistry) {
        let views = registry.views();
        self.0.retain(|service, _| views.iter().any(|view| view.service == *service));
        for view in views {
            let calls = &view.calls;
            let failed = calls.failure + calls.throttled;
            let total = [calls.success + failed + calls.neutral + calls.rejected(), failed];
            let series = self.0.entry(view.service).or_default();
            let step = [0, 1].map(|n: usize| total[n].saturating_sub(series.total[n]));
            series.total = total;
            series.steps.push_back(step);
            if series.steps.len() > SAMPLES {
                series.steps.pop_front();
            }
        }
    }

    fn active(&self) -> BTreeMap<&str, &VecDeque<Sample>> {
        let active = self.0.iter().filter(|(_, series)| series.steps.iter().any(|[calls, _]| *calls > 0));
        active.map(|(service, series)| (service.as_str(), &series.steps)).collect()
    }
}

async fn sample(registry: CircuitRegistry, samples: Arc<Mutex<Samples>>) {
    let mut ticks = every(SAMPLE);
    loop {
        ticks.tick().await;
        samples.lock().unwrap_or_else(PoisonError::into_inner).take(&registry);
    }
}

async fn list(client: Client, running: watch::Sender<Arc<Vec<Running>>>) {
    let mut ticks = every(LIST);
    loop {
        ticks.tick().await;
        if running.receiver_count() == 0 {
            continue;
        }
        // While the server does not answer, the last list stays: `/ready` says that the server is gone.
        if let Ok(now) = timeout(LIST + ANSWER, investigations(&client)).await {
            running.send_if_modified(|shown| {
                let differs = **shown != now;
                *shown = Arc::new(now);
                differs
            });
        }
    }
}

async fn investigations(client: &Client) -> Vec<Running> {
    let query = "WorkflowType = 'InvestigationWorkflow' AND ExecutionStatus = 'Running'";
    let rows = client.list_workflows(query, WorkflowListOptions::builder().limit(LISTED).build());
    let rows = rows.filter_map(|row| async move { row.ok() });
    let each = rows.map(|row| async move {
        let (id, started) = (row.id().to_owned(), row.start_time().and_then(|at| at.try_into().ok()));
        let handle = client.get_workflow_handle::<InvestigationWorkflow>(id.as_str());
        let query = handle.query(InvestigationWorkflow::progress, (), WorkflowQueryOptions::default());
        // No worker may be there to answer. The investigation is listed all the same.
        let steps = timeout(ANSWER, query).await.ok().and_then(Result::ok).unwrap_or_default();
        let settled = steps.iter().filter_map(|step| step.status);
        let gaps = settled.clone().filter(|status| status.is_gap()).count();
        Running { id, started, asked: steps.len(), settled: settled.count(), gaps }
    });
    each.buffer_unordered(LISTED).collect().await
}

#[cfg(test)]
mod tests {
    use circuit_registry::{BreakersConfig, Verdict};
    use serde_json::json;

    use super::*;
    use crate::admin::tests::Server;

    #[test]
    fn a_countdown_alone_is_no_change() {
        let at = |state: &str, left: Option<u64>| json!([{ "state": state, "retry_in_ms": left, "overrides": [] }]);
        assert!(!differ(&at("open", Some(500)), &at("open", Some(400))));
        assert!(differ(&at("open", Some(500)), &at("open", None)));
        assert!(differ(&at("open", Some(500)), &at("closed", Some(500))));
        assert!(differ(&Value::Null, &at("open", None)));
    }

    #[test]
    fn samples_count_what_happened_between_them() {
        let registry = CircuitRegistry::builder().config(BreakersConfig::default()).log(false).build();
        let settle = |verdict| registry.breaker("vies").try_acquire().expect("closed").settle(verdict);
        let mut samples = Samples::default();
        let _ = registry.breaker("quiet");
        settle(Verdict::Success);
        samples.take(&registry);
        settle(Verdict::Failure);
        settle(Verdict::Success);
        for _ in 0..SAMPLES {
            samples.take(&registry);
        }
        let steps = samples.active()["vies"];
        assert_eq!((steps.len(), steps[0]), (SAMPLES, [2, 1]), "the oldest is forgotten");
        assert!(!samples.active().contains_key("quiet"));
    }

    #[tokio::test]
    async fn a_follower_hears_of_a_change_at_once() {
        let config = BreakersConfig::from_yaml("defaults: { fail_max: 1 }\nservices: { vies: {} }").expect("valid");
        let journal = Journal::default();
        let registry = CircuitRegistry::builder().config(config).observer(journal.clone()).log(false).build();
        let server = Server::start(registry, journal).await;
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let mut answer = http.get(format!("http://{}/events", server.address)).send().await.expect("an answer");
        let mut heard = String::new();
        let mut until = async |text: &str| {
            while !heard.contains(text) {
                let chunk = timeout(Duration::from_secs(10), answer.chunk()).await.expect("in time").expect("open");
                heard.push_str(&String::from_utf8_lossy(&chunk.expect("more")));
            }
        };
        until("event: breakers").await;
        server.registry.breaker("vies").try_acquire().expect("closed").settle(Verdict::Failure);
        until("event: entry").await;
        until("\"state\":\"open\"").await;
    }
}

//! Pauses work on the server: while a breaker is open, the task queue of its service hands out no activities.
//!
//! Without a pause, the server hands an activity to a worker, the open breaker refuses it, and the server hands it out again when the
//! breaker is due. With a pause the activity stays in the queue: it takes no slot and no attempt, and other workers need no shared store to
//! notice. The service needs a task queue of its own, because the server limits the whole queue.
//!
//! The pauser reads the state of the breakers a few times a second, and sends changes to the server. It reads the state and not
//! events, so it misses nothing. It also sees a breaker whose open time is over: the queue then lets one activity through as the
//! probe. The pauser takes no part in calls.
//!
//! | breaker | rate of the queue |
//! |---|---|
//! | open, or forced open | 0 |
//! | due for a probe, or half-open | the first step |
//! | closed again | one step after the other, then no limit |
//!
//! Activities that a workflow starts *eagerly* do not pass the queue, so the server's limit does not pause them: start them with
//! `do_not_eagerly_execute`, or run the queue in another worker than the workflow's.
//!
//! A half-open breaker refuses the activities that arrive beside the probe, so the activities of such a queue should `wait`.
//! One process pauses a queue. If that process is killed, the queue stays paused until the next one starts. A process that ends in
//! order resumes all queues.

use std::time::Duration;

use temporalio_client::{Client, tonic::IntoRequest};
use temporalio_common::protos::temporal::api::{
    enums::v1::TaskQueueType,
    taskqueue::v1::RateLimit,
    workflowservice::v1::{UpdateTaskQueueConfigRequest, update_task_queue_config_request::RateLimitUpdate},
};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::{CircuitRegistry, State};

/// How often the breakers are read.
const CHECK: Duration = Duration::from_millis(200);

/// The time limit for an answer of the server.
const PATIENCE: Duration = Duration::from_secs(5);

/// Activities a second while a breaker recovers, and how long each step lasts once it is closed.
const STEPS: [f32; 4] = [1.0, 5.0, 20.0, 100.0];
const STEP: Duration = Duration::from_secs(5);

/// Sets the rates of task queues by the state of breakers.
///
/// ```no_run
/// # use circuit_registry::{CircuitRegistry, temporal::QueuePauser};
/// # async fn pause(client: temporalio_client::Client, registry: CircuitRegistry, shutdown: impl Future<Output = ()>) {
/// QueuePauser::new(client, registry).queue("northdata", "northdata-activities").run(shutdown).await;
/// # }
/// ```
#[must_use = "no queue is paused until it runs"]
pub struct QueuePauser {
    client: Client,
    registry: CircuitRegistry,
    steps: Vec<f32>,
    step: Duration,
    queues: Vec<Queue>,
}

struct Queue {
    service: String,
    name: String,
    /// The limit that the server has from us; `None` if it has none.
    sent: Option<Limit>,
    /// When the breaker was seen closed again.
    closed_at: Option<Instant>,
    /// The last request failed, and that is logged.
    failing: bool,
}

/// How many activities a second the server hands out.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    PerSecond(f32),
    Unlimited,
}

impl QueuePauser {
    /// Pauses no queue yet. The queues are in the namespace of `client`.
    pub fn new(client: Client, registry: CircuitRegistry) -> Self {
        Self { client, registry, steps: STEPS.to_vec(), step: STEP, queues: Vec::new() }
    }

    /// Pauses `task_queue` while the breaker of `service` is open.
    pub fn queue(mut self, service: impl Into<String>, task_queue: impl Into<String>) -> Self {
        let (service, name) = (service.into(), task_queue.into());
        self.queues.push(Queue { service, name, sent: None, closed_at: None, failing: false });
        self
    }

    /// The steps of a recovery, in activities a second. Each lasts `step` once the breaker is closed. The first is also the rate while
    /// the breaker is half-open. The default is 1, 5, 20 and 100, for five seconds each.
    pub fn recovering(mut self, steps: impl IntoIterator<Item = f32>, step: Duration) -> Self {
        self.steps = steps.into_iter().filter(|rate| rate.is_finite() && *rate > 0.0).collect();
        self.step = step;
        self
    }

    /// Pauses and resumes queues until `shutdown` resolves, then resumes all. If the server does not answer, that is logged and the
    /// request repeated.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut checks = interval(CHECK);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                _ = checks.tick() => {}
            }
            for at in 0..self.queues.len() {
                let state = self.registry.breaker(&self.queues[at].service).view().state;
                let limit = self.queues[at].wanted(state, &self.steps, self.step, Instant::now());
                self.send(at, limit, state.as_str()).await;
            }
        }
        for at in 0..self.queues.len() {
            self.send(at, Limit::Unlimited, "the queue pauser has ended").await;
        }
    }

    /// Sends the limit to the server, unless the server has it.
    async fn send(&mut self, at: usize, limit: Limit, why: &str) {
        let queue = &self.queues[at];
        if queue.sent == Some(limit) {
            return;
        }
        let rate_limit = match limit {
            Limit::PerSecond(requests_per_second) => Some(RateLimit { requests_per_second }),
            Limit::Unlimited => None,
        };
        let request = UpdateTaskQueueConfigRequest {
            namespace: self.client.options().namespace.clone(),
            identity: "circuit-registry".to_owned(),
            task_queue: queue.name.clone(),
            task_queue_type: TaskQueueType::Activity.into(),
            update_queue_rate_limit: Some(RateLimitUpdate {
                rate_limit,
                reason: format!("circuit breaker of {}: {why}", queue.service),
            }),
            ..Default::default()
        };
        let mut server = self.client.connection().workflow_service();
        let answer = timeout(PATIENCE, server.update_task_queue_config(request.into_request())).await;
        let error = match answer {
            Ok(Ok(_)) => None,
            Ok(Err(status)) => Some(status.message().to_owned()),
            Err(_) => Some(format!("no answer within {PATIENCE:?}")),
        };
        let queue = &mut self.queues[at];
        let (service, task_queue) = (queue.service.as_str(), queue.name.as_str());
        match error {
            None => {
                tracing::info!(service, task_queue, ?limit, why, "the task queue's rate was set");
                queue.sent = Some(limit);
                queue.failing = false;
            }
            Some(error) if !queue.failing => {
                tracing::warn!(service, task_queue, error, "the task queue's rate cannot be set; trying again");
                queue.failing = true;
            }
            Some(_) => {}
        }
    }
}

impl Queue {
    /// The limit that belongs to the breaker's state.
    fn wanted(&mut self, state: State, steps: &[f32], step: Duration, now: Instant) -> Limit {
        let rate = |at: usize| steps.get(at).map_or(Limit::Unlimited, |rate| Limit::PerSecond(*rate));
        match state {
            State::Open => {
                self.closed_at = None;
                Limit::PerSecond(0.0)
            }
            State::HalfOpen => {
                self.closed_at = None;
                rate(0)
            }
            // A limit that an earlier process left is removed at once, not raised in steps.
            State::Closed if matches!(self.sent, None | Some(Limit::Unlimited)) => Limit::Unlimited,
            State::Closed => {
                let passed = now.duration_since(*self.closed_at.get_or_insert(now));
                let done = passed.as_nanos().checked_div(step.as_nanos()).unwrap_or(u128::MAX);
                rate(usize::try_from(done).unwrap_or(usize::MAX).saturating_add(1))
            }
        }
    }
}

impl std::fmt::Debug for QueuePauser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let queues = self.queues.iter().map(|queue| (&queue.service, &queue.name));
        f.debug_struct("QueuePauser").field("queues", &queues.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue {
        Queue { service: "s".into(), name: "q".into(), sent: None, closed_at: None, failing: false }
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_is_paused_and_recovers_in_steps() {
        let (mut queue, start, step) = (queue(), Instant::now(), Duration::from_secs(5));
        let mut at = |state, secs| {
            let limit = queue.wanted(state, &[1.0, 5.0, 20.0], step, start + Duration::from_secs(secs));
            queue.sent = Some(limit);
            limit
        };
        assert_eq!(at(State::Closed, 0), Limit::Unlimited, "a limit of another process is removed at once");
        assert_eq!(at(State::Open, 1), Limit::PerSecond(0.0));
        assert_eq!(at(State::HalfOpen, 30), Limit::PerSecond(1.0));
        assert_eq!(at(State::Open, 31), Limit::PerSecond(0.0));
        assert_eq!(at(State::HalfOpen, 60), Limit::PerSecond(1.0));
        let recovery = [61, 65, 66, 70, 71, 600].map(|secs| at(State::Closed, secs));
        let [five, twenty] = [Limit::PerSecond(5.0), Limit::PerSecond(20.0)];
        assert_eq!(recovery, [five, five, twenty, twenty, Limit::Unlimited, Limit::Unlimited]);
        assert_eq!(at(State::Open, 700), Limit::PerSecond(0.0));
        assert_eq!(at(State::Closed, 701), five, "every recovery begins anew");
        assert_eq!(at(State::Open, 703), Limit::PerSecond(0.0));
    }

    #[tokio::test(start_paused = true)]
    async fn without_steps_a_closed_breaker_resumes_its_queue() {
        let mut queue = queue();
        for (steps, step) in [(&[][..], STEP), (&[1.0][..], Duration::ZERO)] {
            queue.sent = Some(Limit::PerSecond(0.0));
            assert_eq!(queue.wanted(State::Closed, steps, step, Instant::now()), Limit::Unlimited);
        }
    }
}

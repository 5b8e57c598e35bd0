//! execution-policy: a pipeline of retry, time limits and breaker on an injectable clock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use execution_policy::{
    BreakerState, CircuitBreaker, Event, ExecutionPolicy as Pipeline, ExecutionPolicyBuilder, Retry,
    core::{ManualClock, TestCore},
    retry::RetryBudget,
};

use super::{bare, why};
use crate::{
    contract::{Adapter, Clock, Feature, Flight, Guard, Policy, Sick, State, launch_future},
    speed::once,
};

pub(super) struct ExecutionPolicy;

impl Adapter for ExecutionPolicy {
    fn name(&self) -> &'static str {
        "execution-policy 0.0.6"
    }

    fn clock(&self) -> Clock {
        Clock::Virtual
    }

    fn lacks(&self, feature: Feature) -> Option<&'static str> {
        use Feature as F;
        match feature {
            F::Consecutive
            | F::MinimumCalls
            | F::Cancel
            | F::OnePermit
            | F::ManyPermits
            | F::Timeout
            | F::StateReading
            | F::Events
            | F::RetryBudget => None,
            F::CountWindow => Some("its window is over time, not over calls"),
            F::Neutral => Some(why::NEUTRAL),
            F::MaxWait => Some(why::MAX_WAIT),
            F::RejectionCount => Some(why::REJECTIONS),
            F::Growth => Some(why::GROWTH),
            F::Jitter => Some(why::JITTER),
            F::WallClock => Some(why::WALL_CLOCK),
            F::Snapshot => Some(why::SNAPSHOT),
            F::ForceOpen => Some(why::FORCE),
            F::Observe => Some(why::OBSERVE),
            F::Reload => Some(why::RELOAD),
            F::ConfigFile => Some(why::FILE),
            F::Names => Some(why::NAMES),
        }
    }

    fn build(&self, policy: &Policy, _speed: u32) -> Box<dyn Guard> {
        let clock = ManualClock::new();
        let openings = Arc::new(AtomicU32::new(0));
        let heard = Arc::clone(&openings);
        let breaker = match policy.window {
            Some(window) => CircuitBreaker::failure_ratio()
                .ratio(f64::from(window.percent) / 100.0)
                .minimum_throughput(window.minimum),
            None => CircuitBreaker::consecutive_failures(policy.fail_max),
        };
        let mut builder = ExecutionPolicyBuilder::<(), Sick>::new()
            .circuit_breaker(breaker.open_for(policy.reset_timeout).half_open_max_calls(policy.permits))
            .on_event(move |event| {
                let opened = matches!(event, Event::CircuitStateChanged { to: BreakerState::Open });
                heard.fetch_add(u32::from(opened), Ordering::SeqCst);
            });
        if let Some(timeout) = policy.timeout {
            builder = builder.attempt_timeout(timeout);
        }
        let pipeline = builder.build_with(TestCore::new(clock.clone()));
        Box::new(Live { pipeline: Arc::new(pipeline), clock, openings })
    }

    fn own(&self, group: &str, key: &str) -> Option<Result<(), String>> {
        ((group, key) == ("Composition", "a")).then(a_rejection_costs_no_retry_token)
    }
}

/// One token, never refilled: if a hundred rejections leave it, the probe afterwards can still be retried.
fn a_rejection_costs_no_retry_token() -> Result<(), String> {
    let clock = ManualClock::new();
    let pipeline = ExecutionPolicyBuilder::<(), Sick>::new()
        .circuit_breaker(CircuitBreaker::consecutive_failures(3).open_for(Duration::from_secs(60)))
        .retry(
            Retry::fixed(Duration::ZERO)
                .max_attempts(2)
                .when(|error| *error == Sick::Ill)
                .budget(RetryBudget::new(0.0, 1)),
        )
        .build_with(TestCore::new(clock.clone()));
    for _ in 0..3 {
        let _ = once(pipeline.run(async || Err(Sick::Indifferent)));
    }
    for _ in 0..100 {
        if !once(pipeline.run(async || Ok(()))).is_err_and(|error| error.is_circuit_open()) {
            return Err("expected a rejection, observed a call".into());
        }
    }
    clock.advance(Duration::from_secs(60));
    let attempts = AtomicU32::new(0);
    let _ = once(pipeline.run(async || {
        attempts.fetch_add(1, Ordering::SeqCst);
        Err(Sick::Ill)
    }));
    match attempts.into_inner() {
        2 => Ok(()),
        other => Err(format!("expected the token to be left for a second attempt, observed {other} attempts")),
    }
}

struct Live {
    pipeline: Arc<Pipeline<TestCore, (), Sick>>,
    clock: ManualClock,
    openings: Arc<AtomicU32>,
}

impl Guard for Live {
    fn start(&self) -> Option<Box<dyn Flight>> {
        let pipeline = Arc::clone(&self.pipeline);
        launch_future(bare, |work| {
            Box::pin(async move {
                let mut work = Some(work);
                // One attempt, so the work is asked for once.
                let _ = pipeline
                    .run_boxed(|| match work.take() {
                        Some(work) => Box::pin(work),
                        None => Box::pin(async { Err(Sick::Indifferent) }),
                    })
                    .await;
            })
        })
    }

    fn state(&self) -> State {
        match self.pipeline.circuit_state() {
            Some(BreakerState::Open) => State::Open,
            Some(BreakerState::HalfOpen) => State::HalfOpen,
            _ => State::Closed,
        }
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn openings(&self) -> u32 {
        self.openings.load(Ordering::SeqCst)
    }
}

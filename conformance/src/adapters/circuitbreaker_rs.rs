//! circuitbreaker-rs: an atomic state beside counters, with a budget of probes per half-open episode and hooks.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use circuitbreaker_rs::{CircuitBreaker, DefaultPolicy, HookRegistry};

use super::{bare, why};
use crate::contract::{Adapter, Clock, Feature, Flight, Guard, Policy, Sick, State, launch_future};

pub(super) struct CircuitbreakerRs;

impl Adapter for CircuitbreakerRs {
    fn name(&self) -> &'static str {
        "circuitbreaker-rs 0.1.1"
    }

    fn clock(&self) -> Clock {
        Clock::Real
    }

    fn lacks(&self, feature: Feature) -> Option<&'static str> {
        use Feature as F;
        match feature {
            F::Consecutive
            | F::MinimumCalls
            | F::Cancel
            | F::OnePermit
            | F::ManyPermits
            | F::StateReading
            | F::Events
            | F::ForceOpen => None,
            F::CountWindow => Some("its rate is over all calls since it closed, not a window"),
            F::Neutral => Some(why::NEUTRAL),
            F::MaxWait => Some(why::MAX_WAIT),
            F::Timeout => Some(why::TIMEOUT),
            F::RejectionCount => Some("announces rejections of probes only, not of calls while open"),
            F::Growth => Some(why::GROWTH),
            F::Jitter => Some(why::JITTER),
            F::WallClock => Some(why::WALL_CLOCK),
            F::Snapshot => Some(why::SNAPSHOT),
            F::Observe => Some(why::OBSERVE),
            F::Reload => Some(why::RELOAD),
            F::ConfigFile => Some(why::FILE),
            F::Names => Some(why::NAMES),
            F::RetryBudget => Some(why::BUDGET),
        }
    }

    fn build(&self, policy: &Policy, speed: u32) -> Box<dyn Guard> {
        let openings = Arc::new(AtomicU32::new(0));
        let hooks = HookRegistry::new();
        let heard = Arc::clone(&openings);
        hooks.set_on_open(move || {
            heard.fetch_add(1, Ordering::SeqCst);
        });
        let builder = CircuitBreaker::<DefaultPolicy, Sick>::builder()
            .cooldown(policy.reset_timeout / speed)
            .probe_interval(policy.permits)
            .consecutive_successes(u64::from(policy.permits))
            .hooks(hooks);
        let builder = match policy.window {
            Some(window) => builder
                .failure_threshold(f64::from(window.percent) / 100.0)
                .min_throughput(u64::from(window.minimum))
                .consecutive_failures(u64::MAX),
            None => builder.min_throughput(u64::MAX).consecutive_failures(u64::from(policy.fail_max)),
        };
        Box::new(Live { breaker: builder.build(), openings })
    }
}

struct Live {
    breaker: CircuitBreaker<DefaultPolicy, Sick>,
    openings: Arc<AtomicU32>,
}

impl Guard for Live {
    fn start(&self) -> Option<Box<dyn Flight>> {
        let breaker = self.breaker.clone();
        launch_future(bare, |work| Box::pin(async move { drop(breaker.call_async(|| work).await) }))
    }

    fn state(&self) -> State {
        match self.breaker.current_state() {
            circuitbreaker_rs::State::Closed => State::Closed,
            circuitbreaker_rs::State::Open => State::Open,
            circuitbreaker_rs::State::HalfOpen => State::HalfOpen,
        }
    }

    fn openings(&self) -> u32 {
        self.openings.load(Ordering::SeqCst)
    }

    fn force_open(&self) {
        self.breaker.force_open();
    }
}

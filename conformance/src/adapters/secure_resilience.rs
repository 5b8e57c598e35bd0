//! secure_resilience: closures only, one probe at a time, generations checked.

use std::sync::Arc;

use secure_resilience::{CircuitBreaker, CircuitBreakerPolicy, CircuitBreakerState};

use super::why;
use crate::contract::{Adapter, Clock, Feature, Flight, Guard, Policy, State, launch_closure};

pub(super) struct SecureResilience;

impl Adapter for SecureResilience {
    fn name(&self) -> &'static str {
        "secure_resilience 0.4.0"
    }

    fn clock(&self) -> Clock {
        Clock::Real
    }

    fn lacks(&self, feature: Feature) -> Option<&'static str> {
        use Feature as F;
        match feature {
            F::Consecutive | F::OnePermit | F::StateReading => None,
            F::Cancel => Some("takes closures, and a closure cannot be cancelled"),
            F::ManyPermits => Some("one probe at a time, always"),
            F::CountWindow => Some(why::NO_WINDOW),
            F::MinimumCalls => Some(why::MINIMUM),
            F::Neutral => Some(why::NEUTRAL),
            F::MaxWait => Some(why::MAX_WAIT),
            F::Timeout => Some(why::TIMEOUT),
            F::Events => Some(why::EVENTS),
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
            F::RetryBudget => Some(why::BUDGET),
        }
    }

    fn build(&self, policy: &Policy, speed: u32) -> Box<dyn Guard> {
        let policy = CircuitBreakerPolicy::new()
            .with_failure_threshold(policy.fail_max)
            .with_open_duration(policy.reset_timeout / speed);
        Box::new(Live(Arc::new(CircuitBreaker::new(policy))))
    }
}

struct Live(Arc<CircuitBreaker>);

impl Guard for Live {
    fn start(&self) -> Option<Box<dyn Flight>> {
        let breaker = Arc::clone(&self.0);
        launch_closure(move |work| drop(breaker.call(work)))
    }

    fn state(&self) -> State {
        match self.0.state() {
            Ok(CircuitBreakerState::Open) => State::Open,
            Ok(CircuitBreakerState::HalfOpen) => State::HalfOpen,
            Ok(CircuitBreakerState::Closed) | Err(_) => State::Closed,
        }
    }
}

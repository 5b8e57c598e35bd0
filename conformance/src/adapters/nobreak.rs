//! nobreak: three states under a mutex, with a success threshold for closing and no limit on probes.

use std::sync::Arc;

use nobreak::{CircuitBreaker, CircuitState};

use super::{bare, why};
use crate::contract::{Adapter, Clock, Feature, Flight, Guard, Policy, State, launch_future};

pub(super) struct Nobreak;

impl Adapter for Nobreak {
    fn name(&self) -> &'static str {
        "nobreak 0.1.0"
    }

    fn clock(&self) -> Clock {
        Clock::Real
    }

    fn lacks(&self, feature: Feature) -> Option<&'static str> {
        use Feature as F;
        match feature {
            F::Consecutive | F::Cancel | F::StateReading => None,
            F::CountWindow => Some(why::NO_WINDOW),
            F::MinimumCalls => Some(why::MINIMUM),
            F::Neutral => Some(why::NEUTRAL),
            F::OnePermit | F::ManyPermits => Some(why::NO_LIMIT),
            F::MaxWait => Some("probes are not limited, so none is waited for"),
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
        let breaker = nobreak::builder()
            .with_failure_threshold(policy.fail_max as usize)
            .with_success_threshold(policy.permits as usize)
            .with_open_duration(policy.reset_timeout / speed)
            .build();
        Box::new(Live(Arc::new(breaker)))
    }
}

struct Live(Arc<CircuitBreaker>);

impl Guard for Live {
    fn start(&self) -> Option<Box<dyn Flight>> {
        let breaker = Arc::clone(&self.0);
        launch_future(bare, |work| Box::pin(async move { drop(breaker.call_async(|| work).await) }))
    }

    fn state(&self) -> State {
        match self.0.state() {
            CircuitState::Closed => State::Closed,
            CircuitState::Open => State::Open,
            CircuitState::HalfOpen => State::HalfOpen,
        }
    }
}

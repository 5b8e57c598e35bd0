//! failsafe: a state machine under a mutex; half-open admits everybody, and announces itself through an instrument.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use failsafe::{
    Config, Instrument, StateMachine, backoff,
    failure_policy::{ConsecutiveFailures, consecutive_failures},
    futures::CircuitBreaker,
};

use super::{bare, why};
use crate::contract::{Adapter, Clock, Feature, Flight, Guard, Policy, State, launch_future};

pub(super) struct Failsafe;

impl Adapter for Failsafe {
    fn name(&self) -> &'static str {
        "failsafe 1.3.0"
    }

    fn clock(&self) -> Clock {
        Clock::Real
    }

    fn lacks(&self, feature: Feature) -> Option<&'static str> {
        use Feature as F;
        match feature {
            F::Consecutive | F::Cancel | F::Events | F::RejectionCount | F::Growth => None,
            F::CountWindow => Some("its rate is an exponential average over time, not a window of calls"),
            F::MinimumCalls => Some("its minimum is requests per time window"),
            F::StateReading => Some("the state cannot be asked for, only its changes are announced"),
            F::Neutral => Some(why::NEUTRAL),
            F::OnePermit | F::ManyPermits => Some(why::NO_LIMIT),
            F::MaxWait => Some("probes are not limited, so none is waited for"),
            F::Timeout => Some(why::TIMEOUT),
            F::Jitter => Some("its jitter is documented to shorten the open time"),
            F::WallClock => Some(why::WALL_CLOCK),
            F::Snapshot => Some(why::SNAPSHOT),
            F::ForceOpen => Some("an operator can only reset it"),
            F::Observe => Some(why::OBSERVE),
            F::Reload => Some(why::RELOAD),
            F::ConfigFile => Some(why::FILE),
            F::Names => Some(why::NAMES),
            F::RetryBudget => Some(why::BUDGET),
        }
    }

    fn build(&self, policy: &Policy, speed: u32) -> Box<dyn Guard> {
        let observed = Observed::default();
        let machine = Config::new()
            .failure_policy(consecutive_failures(policy.fail_max, backoff::constant(policy.reset_timeout / speed)))
            .instrument(observed.clone())
            .build();
        Box::new(Live { machine, observed })
    }

    fn own(&self, group: &str, key: &str) -> Option<Result<(), String>> {
        // Its back-off is an iterator, so ten thousand openings need no clock.
        let cap = Duration::from_secs(600);
        ((group, key) == ("Time", "c")).then(|| {
            let opened = backoff::exponential(Duration::from_secs(60), cap).nth(10_000);
            if opened == Some(cap) { Ok(()) } else { Err(format!("expected {cap:?}, observed {opened:?}")) }
        })
    }
}

#[derive(Clone)]
struct Observed(Arc<(Mutex<State>, AtomicU32, AtomicU32)>);

impl Default for Observed {
    fn default() -> Self {
        Self(Arc::new((Mutex::new(State::Closed), AtomicU32::new(0), AtomicU32::new(0))))
    }
}

impl Observed {
    fn set(&self, state: State) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Instrument for Observed {
    fn on_call_rejected(&self) {
        self.0.2.fetch_add(1, Ordering::SeqCst);
    }

    fn on_open(&self) {
        self.0.1.fetch_add(1, Ordering::SeqCst);
        self.set(State::Open);
    }

    fn on_half_open(&self) {
        self.set(State::HalfOpen);
    }

    fn on_closed(&self) {
        self.set(State::Closed);
    }
}

struct Live {
    machine: StateMachine<ConsecutiveFailures<backoff::Constant>, Observed>,
    observed: Observed,
}

impl Guard for Live {
    fn start(&self) -> Option<Box<dyn Flight>> {
        launch_future(bare, |work| {
            let call = self.machine.call(work);
            Box::pin(async move { drop(call.await) })
        })
    }

    fn state(&self) -> State {
        *self.observed.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn openings(&self) -> u32 {
        self.observed.0.1.load(Ordering::SeqCst)
    }

    fn rejections(&self) -> u32 {
        self.observed.0.2.load(Ordering::SeqCst)
    }
}

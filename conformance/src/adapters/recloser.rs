//! recloser: a failure rate over a full ring, once for closed and once for half-open; tracing events tell the state.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
};

use recloser::{AsyncRecloser, RECLOSER_EVENT};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::why;
use crate::contract::{Adapter, Clock, Feature, Flight, Guard, Policy, Sick, State, launch_future};

pub(super) struct Recloser;

impl Adapter for Recloser {
    fn name(&self) -> &'static str {
        "recloser 1.4.0"
    }

    fn clock(&self) -> Clock {
        Clock::Real
    }

    fn lacks(&self, feature: Feature) -> Option<&'static str> {
        use Feature as F;
        match feature {
            F::CountWindow | F::Cancel | F::Events => None,
            F::Consecutive => Some("knows a failure rate over a full ring only"),
            F::MinimumCalls => Some("judges a full ring only, without a minimum"),
            F::StateReading => Some("the state cannot be asked for, only its changes are traced"),
            F::Neutral => Some(why::NEUTRAL),
            F::OnePermit | F::ManyPermits => Some(why::NO_LIMIT),
            F::MaxWait => Some("probes are not limited, so none is waited for"),
            F::Timeout => Some(why::TIMEOUT),
            F::RejectionCount => Some(why::REJECTIONS),
            F::Growth => Some("growth is a function of the caller's, the crate has no cap"),
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
        let (len, rate) = policy
            .window
            .map_or((policy.fail_max as usize, 1.0), |window| (window.size as usize, window.percent as f32 / 100.0));
        let observed = Observed::default();
        let breaker = tracing::subscriber::with_default(observed.clone(), || {
            recloser::Recloser::custom()
                .error_rate_closed(rate)
                .closed_len(len)
                .half_open_len(policy.permits as usize)
                .open_wait(policy.reset_timeout / speed)
                .build()
        });
        Box::new(Live { breaker: breaker.into(), observed })
    }
}

/// Hears which states it enters, and how often it opened.
#[derive(Clone)]
struct Observed(Arc<Mutex<(State, u32)>>);

impl Default for Observed {
    fn default() -> Self {
        Self(Arc::new(Mutex::new((State::Closed, 0))))
    }
}

#[derive(Default)]
struct Entered {
    state: Option<State>,
    started: bool,
}

impl Visit for Entered {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "state" {
            self.state = match value {
                "Closed" => Some(State::Closed),
                "Open" => Some(State::Open),
                "HalfOpen" => Some(State::HalfOpen),
                _ => None,
            };
        }
    }

    fn record_u64(&mut self, field: &Field, _: u64) {
        self.started |= field.name() == "started_ts";
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

impl Subscriber for Observed {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == RECLOSER_EVENT
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut entered = Entered::default();
        event.record(&mut entered);
        if let (Some(state), true) = (entered.state, entered.started) {
            let mut observed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            observed.0 = state;
            observed.1 += u32::from(state == State::Open);
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Live {
    breaker: AsyncRecloser,
    observed: Observed,
}

impl Guard for Live {
    fn start(&self) -> Option<Box<dyn Flight>> {
        let observed = self.observed.clone();
        let listening = move |poll: &mut dyn FnMut()| tracing::subscriber::with_default(observed.clone(), poll);
        launch_future(listening, |work| {
            let call = self.breaker.call(work);
            Box::pin(async move { drop::<Result<(), recloser::Error<Sick>>>(call.await) })
        })
    }

    fn state(&self) -> State {
        self.observed.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    fn failures_to_trip(&self, policy: &Policy) -> u32 {
        // It looks at the rate only from the call after the ring is full.
        policy.window.map_or(policy.fail_max, |window| window.size) + 1
    }

    fn openings(&self) -> u32 {
        self.observed.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

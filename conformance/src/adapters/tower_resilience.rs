//! tower-resilience-circuitbreaker: a tower service in front of a circuit under an asynchronous mutex.

use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use tower::{Service, util::BoxCloneSyncService};
use tower_resilience_circuitbreaker::{
    CircuitBreakerError, CircuitBreakerHandle, CircuitBreakerLayer, CircuitState, SlidingWindowType,
};

use super::why;
use crate::{
    contract::{Adapter, Clock, Controlled, Feature, Flight, Guard, Policy, Sick, State, launch_future},
    speed::once,
};

pub(super) struct TowerResilience;

impl Adapter for TowerResilience {
    fn name(&self) -> &'static str {
        "tower-resilience-circuitbreaker 0.14.0"
    }

    fn clock(&self) -> Clock {
        Clock::Real
    }

    fn lacks(&self, feature: Feature) -> Option<&'static str> {
        use Feature as F;
        match feature {
            F::Consecutive
            | F::CountWindow
            | F::MinimumCalls
            | F::Cancel
            | F::OnePermit
            | F::ManyPermits
            | F::StateReading
            | F::Events
            | F::RejectionCount
            | F::ForceOpen => None,
            F::Neutral => Some(why::NEUTRAL),
            F::MaxWait => Some(why::MAX_WAIT),
            F::Timeout => Some("time limits are another layer's business"),
            F::Growth => Some(why::GROWTH),
            F::Jitter => Some(why::JITTER),
            F::WallClock => Some(why::WALL_CLOCK),
            F::Snapshot => Some(why::SNAPSHOT),
            F::Observe => Some(why::OBSERVE),
            F::Reload => Some(why::RELOAD),
            F::ConfigFile => Some(why::FILE),
            F::Names => Some(why::NAMES),
            F::RetryBudget => Some("retries are another layer's business"),
        }
    }

    fn build(&self, policy: &Policy, speed: u32) -> Box<dyn Guard> {
        let openings = Arc::new(AtomicU32::new(0));
        let rejections = Arc::new(AtomicU32::new(0));
        let (opened, rejected) = (Arc::clone(&openings), Arc::clone(&rejections));
        let builder = CircuitBreakerLayer::builder()
            .wait_duration_in_open(policy.reset_timeout / speed)
            .permitted_calls_in_half_open(policy.permits as usize)
            .on_state_transition(move |_, to| {
                opened.fetch_add(u32::from(to == CircuitState::Open), Ordering::SeqCst);
            })
            .on_call_rejected(move || {
                rejected.fetch_add(1, Ordering::SeqCst);
            });
        let builder = match policy.window {
            Some(window) => builder
                .sliding_window_type(SlidingWindowType::CountBased)
                .sliding_window_size(window.size as usize)
                .minimum_number_of_calls(window.minimum as usize)
                .failure_rate_threshold(f64::from(window.percent) / 100.0),
            None => builder.consecutive_failures(policy.fail_max as usize),
        };
        let (layer, handle) = builder.build_with_handle().expect("the cases configure valid circuits");
        let service = layer.layer_fn(tower::service_fn(|work: Controlled| work));
        // When two callers meet at its mutex it sleeps on tokio's timer.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .expect("a runtime for its timer");
        let service = Mutex::new(BoxCloneSyncService::new(service));
        Box::new(Live { service, handle, openings, rejections, runtime: Arc::new(runtime) })
    }
}

struct Live {
    service: Mutex<BoxCloneSyncService<Controlled, (), CircuitBreakerError<Sick>>>,
    handle: CircuitBreakerHandle,
    openings: Arc<AtomicU32>,
    rejections: Arc<AtomicU32>,
    runtime: Arc<tokio::runtime::Runtime>,
}

impl Guard for Live {
    fn start(&self) -> Option<Box<dyn Flight>> {
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let runtime = Arc::clone(&self.runtime);
        let within = move |poll: &mut dyn FnMut()| {
            let _timer = runtime.enter();
            poll();
        };
        launch_future(within, |work| {
            Box::pin(async move {
                if poll_fn(|cx| service.poll_ready(cx)).await.is_ok() {
                    let _ = service.call(work).await;
                }
            })
        })
    }

    fn state(&self) -> State {
        match self.handle.state() {
            CircuitState::Closed => State::Closed,
            CircuitState::Open => State::Open,
            CircuitState::HalfOpen => State::HalfOpen,
        }
    }

    fn openings(&self) -> u32 {
        self.openings.load(Ordering::SeqCst)
    }

    fn rejections(&self) -> u32 {
        self.rejections.load(Ordering::SeqCst)
    }

    fn force_open(&self) {
        once(self.handle.force_open());
    }
}

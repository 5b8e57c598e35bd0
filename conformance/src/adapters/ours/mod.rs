//! Ours: on tokio's paused clock, through `Breaker::call` like any user.

mod check;
mod fleet;
mod own;

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use circuit_registry::{
    Breaker, BreakersConfig, CircuitRegistry, Classify, Event, EventKind, Observer, Override, RegistryBuilder, Verdict,
};

use crate::{
    contract::{Adapter, Clock, Feature, Flight, Guard, Policy, Sick, State, launch_future},
    speed,
};

pub(super) struct Ours;

impl Classify for Sick {
    fn verdict(&self) -> Verdict {
        match self {
            Self::Ill => Verdict::Failure,
            Self::Indifferent => Verdict::Neutral,
        }
    }
}

impl Adapter for Ours {
    fn name(&self) -> &'static str {
        speed::ours::NAME
    }

    fn clock(&self) -> Clock {
        Clock::Virtual
    }

    fn lacks(&self, _: Feature) -> Option<&'static str> {
        None
    }

    fn build(&self, policy: &Policy, _speed: u32) -> Box<dyn Guard> {
        Box::new(World::new(&entry(policy)).guard())
    }

    fn own(&self, group: &str, key: &str) -> Option<Result<(), String>> {
        own::run(group, key)
    }
}

/// The policy as an entry of `breakers.yaml`.
fn entry(policy: &Policy) -> String {
    let millis = |time: Duration| format!("{}ms", time.as_millis());
    let mut entry = format!(
        "{{ reset_timeout: {}, half_open: {{ permits: {}, max_wait: {} }}",
        millis(policy.reset_timeout),
        policy.permits,
        millis(policy.max_wait),
    );
    match policy.window {
        Some(window) => write!(
            entry,
            ", fail_max: off, window: {{ calls: {}, minimum_calls: {}, failure_rate: {}% }}",
            window.size, window.minimum, window.percent
        ),
        None => write!(entry, ", fail_max: {}", policy.fail_max),
    }
    .expect("a string takes everything");
    if let Some(timeout) = policy.timeout {
        write!(entry, ", timeout: {}", millis(timeout)).expect("a string takes everything");
    }
    entry + " }"
}

/// A registry of one service, `upstream`, on a clock of its own.
struct World {
    runtime: Arc<tokio::runtime::Runtime>,
    registry: CircuitRegistry,
    heard: Heard,
}

impl World {
    fn new(entry: &str) -> Self {
        Self::with(&format!("services:\n  upstream: {entry}\n"), |builder| builder)
    }

    fn with(yaml: &str, more: impl FnOnce(RegistryBuilder) -> RegistryBuilder) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime for its clock");
        let heard = Heard::default();
        let config = BreakersConfig::from_yaml(yaml).expect("the cases configure valid policies");
        let registry = {
            let _clock = runtime.enter();
            let builder = CircuitRegistry::builder().config(config).observer(heard.clone()).log(false);
            more(builder).build()
        };
        Self { runtime: Arc::new(runtime), registry, heard }
    }

    fn guard(self) -> Live {
        Live { breaker: self.within(|| self.registry.breaker("upstream")), world: self }
    }

    /// Runs something where this world's clock is known.
    fn within<T>(&self, act: impl FnOnce() -> T) -> T {
        let _clock = self.runtime.enter();
        act()
    }

    fn advance(&self, by: Duration) {
        self.runtime.block_on(async {
            tokio::time::advance(by).await;
            // Once around the scheduler, so that timers that are due have fired.
            tokio::task::yield_now().await;
        });
    }
}

/// Counts what it hears.
#[derive(Clone, Default)]
struct Heard(Arc<(AtomicU32, AtomicU32)>);

impl Heard {
    fn openings(&self) -> u32 {
        self.0.0.load(Ordering::SeqCst)
    }

    fn would_open(&self) -> u32 {
        self.0.1.load(Ordering::SeqCst)
    }
}

impl Observer for Heard {
    fn on_event(&self, event: &Event) {
        let counter = match &event.kind {
            EventKind::Transition(transition) if transition.to == circuit_registry::State::Open => &self.0.0,
            EventKind::WouldOpen(_) => &self.0.1,
            _ => return,
        };
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

struct Live {
    breaker: Breaker,
    world: World,
}

impl Guard for Live {
    fn start(&self) -> Option<Box<dyn Flight>> {
        let runtime = Arc::clone(&self.world.runtime);
        let within = move |poll: &mut dyn FnMut()| {
            let _clock = runtime.enter();
            poll();
        };
        let breaker = self.breaker.clone();
        launch_future(within, |work| Box::pin(async move { drop(breaker.call(work).await) }))
    }

    fn state(&self) -> State {
        match self.world.within(|| self.breaker.view().state) {
            circuit_registry::State::Closed => State::Closed,
            circuit_registry::State::Open => State::Open,
            circuit_registry::State::HalfOpen => State::HalfOpen,
        }
    }

    fn advance(&self, by: Duration) {
        self.world.advance(by);
    }

    fn openings(&self) -> u32 {
        self.world.registry.flush_observers();
        self.world.heard.openings()
    }

    fn rejections(&self) -> u32 {
        u32::try_from(self.world.within(|| self.breaker.view().calls.rejected())).unwrap_or(u32::MAX)
    }

    fn force_open(&self) {
        self.world.within(|| self.breaker.force_open(Override::new("the case", "an operator says so")));
    }
}

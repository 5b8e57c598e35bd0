//! The cases of the breaker's contract, on paused time and through the public API alone: each test is one case, and its name says it.
//!
//! The headings are the modules. Unless a case says otherwise a breaker opens on three failures in a row, for sixty
//! seconds, and lets one probe through. Nothing here looks at random sequences (see `properties`) or at real services.

mod composition;
mod config;
mod control;
mod counting;
mod generations;
mod memory;
#[cfg(feature = "prometheus")]
mod metrics;
mod permits;
mod time;

use std::{
    future::pending,
    io,
    sync::{Arc, Barrier, Mutex},
    thread,
    time::Duration,
};

use circuit_registry::{
    Breaker, BreakersConfig, CallError, CircuitRegistry, Event, EventKind, Observer, Permit, State, Verdict,
};
use tokio::time::{Instant, advance};

/// Three failures in a row open for a minute.
const THREE: &str = "services: { s: { fail_max: 3, reset_timeout: 60s } }";

fn config(yaml: &str) -> BreakersConfig {
    BreakersConfig::from_yaml(yaml).expect("valid configuration")
}

/// One service's breaker, and the time since it was made.
struct Case {
    registry: CircuitRegistry,
    s: Breaker,
    start: Instant,
}

impl Case {
    /// The breaker `s` of a configuration.
    fn of(yaml: &str) -> Self {
        Self::with(CircuitRegistry::new(config(yaml)))
    }

    fn with(registry: CircuitRegistry) -> Self {
        Self { s: registry.breaker("s"), registry, start: Instant::now() }
    }

    fn three() -> Self {
        Self::of(THREE)
    }

    /// Moves the clock to `secs` after the beginning.
    async fn at(&self, secs: f64) {
        advance(Duration::from_secs_f64(secs).saturating_sub(self.start.elapsed())).await;
    }

    /// A call that starts now.
    fn start(&self) -> Permit {
        self.s.try_acquire().expect("admitted")
    }

    fn fail(&self) {
        self.start().settle(Verdict::Failure);
    }

    fn succeed(&self) {
        self.start().settle(Verdict::Success);
    }

    /// Three quick failures.
    fn trip(&self) {
        (0..3).for_each(|_| self.fail());
        assert_eq!(self.state(), State::Open);
    }

    /// Is a call admitted now? The call says nothing.
    fn admits(&self) -> bool {
        self.s.try_acquire().is_ok()
    }

    fn state(&self) -> State {
        self.s.view().state
    }

    fn retry_in(&self) -> Duration {
        self.s.view().retry_in.expect("open")
    }

    fn failures(&self) -> u32 {
        self.s.view().consecutive_failures
    }
}

/// Runs `work` on `threads` threads at once, all of them on the paused clock of this test.
fn at_once<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    let (clock, barrier) = (tokio::runtime::Handle::current(), Barrier::new(threads));
    thread::scope(|scope| {
        let spawned: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let _clock = clock.enter();
                    barrier.wait();
                    work()
                })
            })
            .collect();
        spawned.into_iter().map(|t| t.join().expect("no panic")).collect()
    })
}

/// Remembers what it heard.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Event>>>);

impl Observer for Heard {
    fn on_event(&self, event: &Event) {
        self.0.lock().expect("no panic").push(event.clone());
    }
}

impl Heard {
    /// A breaker `s` whose events are heard.
    fn of(yaml: &str) -> (Case, Self) {
        let heard = Self::default();
        let registry = CircuitRegistry::builder().config(config(yaml)).observer(heard.clone()).build();
        (Case::with(registry), heard)
    }

    /// How many of the events so far are of this kind.
    fn count(&self, case: &Case, kind: impl Fn(&EventKind) -> bool) -> usize {
        case.registry.flush_observers();
        self.0.lock().expect("no panic").iter().filter(|e| kind(&e.kind)).count()
    }
}

/// A call that never answers.
async fn hang(breaker: &Breaker) -> Result<(), CallError<io::Error>> {
    breaker.call(pending()).await
}

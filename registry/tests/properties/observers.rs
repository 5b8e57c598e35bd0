//! Observers and clocks that panic, hang or meddle touch no call.

use std::{
    panic::resume_unwind,
    sync::{Arc, Condvar, Mutex, OnceLock, mpsc},
    time::{Duration, SystemTime},
};

use circuit_registry::{CircuitRegistry, Event, EventKind, Observer, Override, WallClock};
use proptest::{collection::vec, prelude::*};

use crate::{State, Verdict, config};

const YAML: &str = "services: { s: { fail_max: 2, reset_timeout: 1s, half_open: { permits: 2 } } }";

/// Panics at everything, its own questions included.
struct Panics;

impl Observer for Panics {
    fn on_event(&self, _: &Event) {
        resume_unwind(Box::new("an observer's own affair"));
    }
}

/// Hangs at the first event until it is let go.
#[derive(Clone, Default)]
struct Hangs(Arc<(Mutex<bool>, Condvar)>);

impl Hangs {
    fn let_go(&self) {
        *self.0.0.lock().expect("no panic") = true;
        self.0.1.notify_all();
    }
}

impl Observer for Hangs {
    fn on_event(&self, _: &Event) {
        let free = self.0.0.lock().expect("no panic");
        drop(self.0.1.wait_while(free, |free| !*free).expect("no panic"));
    }
}

/// Does to its registry whatever can be done from inside an event.
#[derive(Clone, Default)]
struct Meddles(Arc<OnceLock<CircuitRegistry>>);

impl Observer for Meddles {
    fn on_event(&self, event: &Event) {
        if let Some(registry) = self.0.get() {
            let _ = registry.views();
            if event.service == "s" {
                registry.breaker("other").force_closed(Override::new("meddler", "heard something"));
            }
        }
    }
}

struct PanickingClock;

impl WallClock for PanickingClock {
    fn now(&self) -> SystemTime {
        resume_unwind(Box::new("a clock's own affair"));
    }
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Admit,
    Settle(usize, Verdict),
    Advance(u64),
    Force,
    Auto,
}

fn op() -> impl Strategy<Value = Op> {
    let verdict = prop_oneof![2 => Just(Verdict::Success), 3 => Just(Verdict::Failure), 1 => Just(Verdict::Neutral)];
    prop_oneof![
        8 => Just(Op::Admit),
        8 => (any::<usize>(), verdict).prop_map(|(call, verdict)| Op::Settle(call, verdict)),
        4 => (0..1500_u64).prop_map(Op::Advance),
        1 => Just(Op::Force),
        1 => Just(Op::Auto),
    ]
}

/// What a caller sees of a run.
async fn run(registry: &CircuitRegistry, ops: &[Op]) -> Vec<String> {
    let breaker = registry.breaker("s");
    let mut calls = Vec::new();
    let mut seen = Vec::new();
    for op in ops {
        let answer = match op {
            Op::Admit => match breaker.try_acquire() {
                Ok(call) => {
                    let answer = format!("probe {}", call.is_probe());
                    calls.push(call);
                    answer
                }
                Err(rejection) => format!("{rejection:?}"),
            },
            Op::Settle(call, verdict) if !calls.is_empty() => {
                format!("{:?}", calls.remove(call % calls.len()).settle(*verdict))
            }
            Op::Settle(..) => String::new(),
            Op::Advance(millis) => {
                tokio::time::advance(Duration::from_millis(*millis)).await;
                String::new()
            }
            Op::Force => {
                breaker.force_open(Override::new("alice", "why").lasting(Duration::from_secs(1)));
                String::new()
            }
            Op::Auto => {
                breaker.auto();
                String::new()
            }
        };
        let mut view = breaker.view();
        // Wall time differs from run to run, and only a call that takes the lock is measured.
        view.since = SystemTime::UNIX_EPOCH;
        if let Some(failure) = &mut view.last_failure {
            (failure.at, failure.took) = (SystemTime::UNIX_EPOCH, None);
        }
        seen.push(format!("{op:?}: {answer} {view:?}"));
    }
    seen
}

fn paused<T>(run: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
        .block_on(run)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A run beside the worst of observers is the run without any.
    #[test]
    fn callers_see_no_difference(ops in vec(op(), 1..100)) {
        let alone = paused(async { run(&CircuitRegistry::builder().config(config(YAML)).log(false).build(), &ops).await });
        let (hangs, meddles) = (Hangs::default(), Meddles::default());
        let among_panics = paused(async {
            let registry = CircuitRegistry::builder()
                .config(config(YAML))
                .observer(Panics)
                .observer(meddles.clone())
                .wall_clock(PanickingClock)
                .build();
            drop(meddles.0.set(registry.clone()));
            let seen = run(&registry, &ops).await;
            registry.flush_observers();
            seen
        });
        let beside_a_hang = paused(async {
            run(&CircuitRegistry::builder().config(config(YAML)).observer(hangs.clone()).build(), &ops).await
        });
        hangs.let_go();
        prop_assert_eq!(&alone, &among_panics);
        prop_assert_eq!(&alone, &beside_a_hang);
    }
}

/// More events than the queue holds, and none is taken: they are dropped and counted, and no call waits.
#[test]
fn events_that_nobody_takes_are_dropped_and_counted() {
    paused(async {
        let hangs = Hangs::default();
        let registry = CircuitRegistry::builder().config(config(YAML)).observer(hangs.clone()).build();
        let breaker = registry.breaker("s");
        for _ in 0..20_000 {
            breaker.try_acquire().unwrap().settle(Verdict::Success);
        }
        assert_eq!(breaker.view().calls.success, 20_000);
        assert!(registry.events_dropped() > 20_000);
        hangs.let_go();
        registry.flush_observers();
    });
}

/// An observer that panics at one event hears the next.
#[test]
fn a_panic_loses_one_event_of_one_observer_only() {
    struct PanicsOnce(mpsc::Sender<EventKind>);
    impl Observer for PanicsOnce {
        fn on_event(&self, event: &Event) {
            let _ = self.0.send(event.kind.clone());
            if matches!(event.kind, EventKind::Admitted { .. }) {
                resume_unwind(Box::new("an observer's own affair"));
            }
        }
    }
    paused(async {
        let (tell, heard) = mpsc::channel();
        let registry = CircuitRegistry::builder().config(config(YAML)).observer(PanicsOnce(tell)).build();
        for _ in 0..2 {
            registry.breaker("s").try_acquire().unwrap().settle(Verdict::Failure);
        }
        registry.flush_observers();
        assert_eq!(heard.try_iter().count(), 5, "twice admitted, twice settled, once opened");
        assert_eq!(registry.breaker("s").view().state, State::Open);
    });
}

//! Random sequences of whole calls, step by step beside the model.

use std::{
    collections::BTreeMap,
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use circuit_registry::{
    Breaker, BreakersConfig, CallError, CircuitRegistry, Override, Permit, RejectReason, Rejection, store::MemoryStore,
};
use futures::channel::oneshot;
use proptest::{collection::vec, option, prelude::*, sample::select};
use tokio::task::JoinHandle;

use crate::{
    Mode, Verdict, config,
    model::{Answer, Ending, Model},
};

/// A policy of `s`, without chance: the model says to the nanosecond how long each opening lasts.
fn policy() -> impl Strategy<Value = String> {
    let window = (1..=6_u32, 1..=4_u32, select(vec![25, 50, 100]));
    let shape = (option::weighted(0.7, 1..=4_u32), option::of(window), 1..=20_u32, select(vec![1, 2, 3]), 0..=80_u32);
    let rest =
        (1..=4_u32, option::of(select(vec![34, 50, 100])), 1..=40_u32, option::of(1..=20_u32), option::of(1..=3_u32));
    (shape, rest).prop_map(|((fail_max, window, reset, factor, more), (permits, rate, max_wait, timeout, places))| {
        let mut keys = vec![
            format!("reset_timeout: {}ms", reset * 100),
            format!("reset_growth: {{ factor: {factor}, max: {}ms }}", (reset + more) * 100),
            format!(
                "half_open: {{ permits: {permits}, max_wait: {}ms{} }}",
                max_wait * 100,
                rate.map_or(String::new(), |rate| format!(", failure_rate: {rate}%"))
            ),
            "throttle_max: 3s".to_owned(),
        ];
        keys.extend(fail_max.map(|n| format!("fail_max: {n}")));
        keys.extend(window.map(|(calls, minimum, rate)| {
            let minimum = minimum.min(calls);
            format!("window: {{ calls: {calls}, minimum_calls: {minimum}, failure_rate: {rate}% }}")
        }));
        keys.extend(timeout.map(|n| format!("timeout: {}ms", n * 100)));
        keys.extend(places.map(|n| format!("bulkhead: {{ max_concurrent: {n} }}")));
        format!("services: {{ s: {{ {} }} }}", keys.join(", "))
    })
}

#[derive(Debug, Clone)]
enum Op {
    /// A call begins, and waits for the order how to end.
    Call,
    /// A permit is taken by hand.
    Acquire,
    End(usize, Verdict),
    /// The caller gives up.
    Cancel(usize),
    Panic(usize),
    Advance(u64),
    Reload(usize),
    Hold(Mode, u8, Option<u64>),
    Release(Option<u8>),
    Reset,
    /// The process ends in order and another one takes over.
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let verdict = prop_oneof![
        4 => Just(Verdict::Success),
        6 => Just(Verdict::Failure),
        1 => option::of(0..60_u64).prop_map(|tenths| Verdict::Throttled { retry_after: tenths.map(|n| Duration::from_millis(n * 100)) }),
        1 => Just(Verdict::Neutral),
    ];
    let forced = select(vec![Mode::Observe, Mode::ForceClosed, Mode::ForceOpen]);
    prop_oneof![
        25 => Just(Op::Call),
        10 => Just(Op::Acquire),
        25 => (any::<usize>(), verdict).prop_map(|(call, verdict)| Op::End(call, verdict)),
        4 => any::<usize>().prop_map(Op::Cancel),
        3 => any::<usize>().prop_map(Op::Panic),
        15 => (0..30_u64).prop_map(Op::Advance),
        3 => any::<usize>().prop_map(Op::Reload),
        2 => (forced, 0..2_u8, option::of(1..40_u64)).prop_map(|(mode, who, lasting)| Op::Hold(mode, who, lasting)),
        3 => option::of(0..2_u8).prop_map(Op::Release),
        1 => Just(Op::Reset),
        1 => Just(Op::Restart),
    ]
}

/// How a protected call ends.
enum End {
    With(Verdict),
    Panic,
}

type Answered = Result<Verdict, CallError<io::Error>>;

/// Something in flight.
enum Flight {
    Call(Pin<Box<dyn Future<Output = Answered>>>, oneshot::Sender<End>),
    Permit(Permit),
}

struct Started {
    flight: Flight,
    expires: Option<Duration>,
}

fn begin(breaker: &Breaker) -> (Pin<Box<dyn Future<Output = Answered>>>, oneshot::Sender<End>) {
    let (order, ordered) = oneshot::channel();
    let breaker = breaker.clone();
    let call = async move {
        let work = async move {
            match ordered.await {
                Ok(End::With(verdict)) => Ok(verdict),
                // Unwinds without troubling the panic hook.
                Ok(End::Panic) | Err(_) => resume_unwind(Box::new("on purpose")),
            }
        };
        breaker.call_with(work, |result: &io::Result<Verdict>| *result.as_ref().expect("never an error")).await
    };
    (Box::pin(call), order)
}

fn poll(call: &mut Pin<Box<dyn Future<Output = Answered>>>) -> Poll<Answered> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// A process: a registry that remembers itself in the store.
struct Process {
    registry: CircuitRegistry,
    stop: oneshot::Sender<()>,
    keeper: JoinHandle<()>,
}

impl Process {
    async fn start(config: BreakersConfig, store: &MemoryStore) -> Self {
        let registry = CircuitRegistry::builder().config(config).store(store.clone()).log(false).build();
        let (stop, stopped) = oneshot::channel::<()>();
        let keeper = tokio::spawn(registry.restore().await.run(async {
            let _ = stopped.await;
        }));
        Self { registry, stop, keeper }
    }

    async fn end(self) {
        drop(self.stop);
        self.keeper.await.expect("the keeper ends in order");
    }
}

struct World {
    process: Process,
    store: MemoryStore,
    /// Which of the configurations is in force.
    configured: usize,
    breaker: Breaker,
    configs: Vec<BreakersConfig>,
    model: Model,
    start: tokio::time::Instant,
    started: usize,
    flights: BTreeMap<usize, Started>,
    timeout: Option<Duration>,
    rejections: u64,
    late: u64,
}

impl World {
    async fn new(policies: &[String]) -> Self {
        let configs: Vec<_> = policies.iter().map(|yaml| config(yaml)).collect();
        let store = MemoryStore::new();
        let process = Process::start(configs[0].clone(), &store).await;
        Self {
            breaker: process.registry.breaker("s"),
            configured: 0,
            store,
            model: Model::new(&configs[0].policy("s")),
            timeout: configs[0].policy("s").timeout,
            process,
            configs,
            start: tokio::time::Instant::now(),
            started: 0,
            flights: BTreeMap::new(),
            rejections: 0,
            late: 0,
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn pick(&self, which: usize) -> Option<usize> {
        (!self.flights.is_empty()).then(|| *self.flights.keys().nth(which % self.flights.len()).expect("modulo"))
    }

    fn admitted(&mut self, flight: Flight) -> Result<(), TestCaseError> {
        let answer = self.model.admit(self.started, self.now());
        prop_assert!(matches!(answer, Answer::Pass | Answer::Probe | Answer::Bypass), "admitted, not {:?}", answer);
        if let Flight::Permit(permit) = &flight {
            prop_assert_eq!(permit.is_probe(), answer == Answer::Probe);
            prop_assert_eq!(permit.generation(), self.model.generation());
        }
        let expires = self.timeout.map(|time| self.now() + time);
        self.flights.insert(self.started, Started { flight, expires });
        Ok(())
    }

    fn rejected(&mut self, rejection: &Rejection) -> Result<(), TestCaseError> {
        self.rejections += 1;
        let expected = self.model.admit(self.started, self.now());
        let retry_in = rejection.retry_in.unwrap_or_default();
        let answer = match rejection.reason {
            RejectReason::Open | RejectReason::ForcedOpen => {
                Answer::Open { retry_in, forced: rejection.reason == RejectReason::ForcedOpen }
            }
            RejectReason::HalfOpenBusy => Answer::Busy { retry_in },
            RejectReason::BulkheadFull => Answer::Full,
            _ => return Err(TestCaseError::fail(format!("{rejection}"))),
        };
        prop_assert_eq!(answer, expected);
        Ok(())
    }

    /// A call has ended with this verdict.
    fn ended(&mut self, call: usize, verdict: Verdict) {
        let now = self.now();
        let (settlement, opening) = self.model.settle(call, Ending { verdict, slow: false, not_before: None }, now);
        if let Some(opening) = opening {
            self.model.lasts(opening.most); // without jitter, the least and the most are the same
        }
        self.late += u64::from(settlement == crate::Settlement::Late);
    }

    fn cancel(&mut self, call: usize) {
        if let Some(started) = self.flights.remove(&call) {
            drop(started.flight);
            let outlived = started.expires.is_some_and(|end| self.now() >= end);
            self.ended(call, if outlived { Verdict::Failure } else { Verdict::Neutral });
        }
    }

    fn call(&mut self) -> Result<(), TestCaseError> {
        self.started += 1;
        let (mut call, order) = begin(&self.breaker);
        match poll(&mut call) {
            Poll::Pending => self.admitted(Flight::Call(call, order)),
            Poll::Ready(Err(CallError::Rejected(rejection))) => self.rejected(&rejection),
            Poll::Ready(other) => Err(TestCaseError::fail(format!("{other:?} before its end"))),
        }
    }

    fn end(&mut self, which: usize, verdict: Verdict) -> Result<(), TestCaseError> {
        let Some(id) = self.pick(which) else { return Ok(()) };
        match self.flights.remove(&id).map(|started| started.flight) {
            Some(Flight::Call(mut call, order)) => {
                prop_assert!(order.send(End::With(verdict)).is_ok());
                let answered = poll(&mut call);
                prop_assert!(matches!(answered, Poll::Ready(Ok(_))), "{:?}", answered);
                self.ended(id, verdict);
            }
            Some(Flight::Permit(permit)) => {
                let settlement = permit.settle(verdict);
                let late = self.late;
                self.ended(id, verdict);
                prop_assert_eq!(settlement == crate::Settlement::Late, self.late > late);
            }
            None => {}
        }
        Ok(())
    }

    fn panic(&mut self, which: usize) -> Result<(), TestCaseError> {
        let Some(id) = self.pick(which) else { return Ok(()) };
        let Some(Started { flight, .. }) = self.flights.remove(&id) else { return Ok(()) };
        let panicked = catch_unwind(AssertUnwindSafe(|| match flight {
            Flight::Call(mut call, order) => {
                drop(order.send(End::Panic));
                drop(poll(&mut call));
            }
            Flight::Permit(permit) => {
                let _permit = permit;
                resume_unwind(Box::new("on purpose"));
            }
        }));
        prop_assert!(panicked.is_err());
        self.ended(id, Verdict::Failure);
        Ok(())
    }

    fn hold(&mut self, mode: Mode, who: u8, lasting: Option<Duration>, now: Duration) {
        let mut order = Override::new(who.to_string(), "on purpose");
        order.ttl = lasting;
        match mode {
            Mode::ForceOpen => self.breaker.force_open(order),
            Mode::ForceClosed => self.breaker.force_closed(order),
            _ => self.breaker.observe_only(order),
        }
        self.model.hold(mode, who, lasting, now);
    }

    /// The end of a process is the end of its calls, and some have outlived their timeout.
    async fn restart(&mut self, now: Duration) -> Result<(), TestCaseError> {
        while let Some(id) = self.pick(0) {
            self.cancel(id);
        }
        let new = Process::start(BreakersConfig::default(), &MemoryStore::new()).await;
        std::mem::replace(&mut self.process, new).end().await;
        self.process = Process::start(self.configs[self.configured].clone(), &self.store).await;
        prop_assert_eq!(self.now(), now, "nothing of this takes time");
        self.breaker = self.process.registry.breaker("s");
        self.model.restart(self.breaker.view().generation, now);
        (self.rejections, self.late) = (0, 0);
        Ok(())
    }

    async fn step(&mut self, op: &Op) -> Result<(), TestCaseError> {
        let now = self.now();
        match op {
            Op::Call => self.call()?,
            Op::Acquire => {
                self.started += 1;
                match self.breaker.try_acquire() {
                    Ok(permit) => self.admitted(Flight::Permit(permit))?,
                    Err(rejection) => self.rejected(&rejection)?,
                }
            }
            Op::End(which, verdict) => self.end(*which, *verdict)?,
            Op::Cancel(which) => {
                if let Some(id) = self.pick(*which) {
                    self.cancel(id);
                }
            }
            Op::Panic(which) => self.panic(*which)?,
            Op::Advance(tenths) => {
                tokio::time::advance(Duration::from_millis(tenths * 100)).await;
                self.time_out()?;
            }
            Op::Reload(to) => {
                self.configured = to % self.configs.len();
                let new = self.configs[self.configured].clone();
                self.model.reload(&new.policy("s"), now);
                self.timeout = new.policy("s").timeout;
                self.process.registry.apply(new);
            }
            Op::Hold(mode, who, lasting) => {
                self.hold(*mode, *who, lasting.map(|tenths| Duration::from_millis(tenths * 100)), now);
            }
            Op::Release(who) => {
                match who {
                    Some(who) => drop(self.breaker.release(&who.to_string())),
                    None => self.breaker.auto(),
                }
                self.model.release(*who, now);
            }
            Op::Reset => {
                self.breaker.reset();
                self.model.reset();
            }
            Op::Restart => self.restart(now).await?,
        }
        Ok(())
    }

    /// Calls that have outlived their timeout end by themselves, and no others.
    fn time_out(&mut self) -> Result<(), TestCaseError> {
        let now = self.now();
        let calls: Vec<usize> = self.flights.keys().copied().collect();
        for id in calls {
            let Some(Started { flight: Flight::Call(call, _), expires }) = self.flights.get_mut(&id) else { continue };
            let over = expires.is_some_and(|end| now >= end);
            match poll(call) {
                Poll::Pending => prop_assert!(!over, "should have timed out"),
                Poll::Ready(Err(CallError::TimedOut { .. })) => {
                    prop_assert!(over, "timed out too early");
                    self.flights.remove(&id);
                    self.ended(id, Verdict::Failure);
                }
                Poll::Ready(other) => return Err(TestCaseError::fail(format!("{other:?} by itself"))),
            }
        }
        Ok(())
    }

    fn compare(&self, op: &Op) -> Result<(), TestCaseError> {
        let (view, now) = (self.breaker.view(), self.now());
        prop_assert_eq!(view.mode, self.model.mode(now), "mode after {:?}", op);
        prop_assert_eq!(view.state, self.model.state(now), "state after {:?}", op);
        prop_assert_eq!(view.generation, self.model.generation(), "generation after {:?}", op);
        prop_assert_eq!(view.consecutive_failures, self.model.consecutive(), "failures after {:?}", op);
        prop_assert_eq!(view.window_calls, self.model.tally(now).map(|t| t.0), "window after {:?}", op);
        if view.mode == Mode::Enforce && view.state == crate::State::Open {
            prop_assert_eq!(view.retry_in, self.model.deadline().map(|d| d - now), "deadline after {:?}", op);
        }
        prop_assert_eq!(view.in_flight as usize, self.flights.len(), "in flight after {:?}", op);
        prop_assert_eq!(view.calls.rejected(), self.rejections, "rejections after {:?}", op);
        prop_assert_eq!(view.calls.late, self.late, "late after {:?}", op);
        Ok(())
    }
}

proptest! {
    #[test]
    fn whole_calls_agree_with_the_contract(policies in vec(policy(), 1..4), ops in vec(op(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let mut world = World::new(&policies).await;
            for op in &ops {
                world.step(op).await?;
                world.compare(op)?;
            }
            // Whatever is still in flight is given up, and leaves nothing behind.
            while let Some(id) = world.pick(0) {
                let cancel = Op::Cancel(0);
                world.step(&cancel).await?;
                prop_assert!(!world.flights.contains_key(&id));
                world.compare(&cancel)?;
            }
            prop_assert_eq!(world.breaker.view().in_flight, 0);
            if world.breaker.view().state != crate::State::Open {
                prop_assert!(world.breaker.try_acquire().is_ok(), "no call is in, and none gets in");
            }
            Ok(())
        })?;
    }
}

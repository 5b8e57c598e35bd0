//! The invariants of the contract on random sequences of events, with explicit time that also steps back.
//!
//! One property compares the state with a naive [`model`] of the contract after every event. The others need no model: each
//! looks at one invariant from before to after every event. What needs threads, tasks or observers is in `tests/properties.rs`.

mod model;

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{Admission, BreakerState, NotAdmitted, StateChange, Ticket};
use crate::{
    clock::Tick,
    error::RejectReason,
    outcome::{Settlement, State, Verdict},
    policy::{
        BulkheadPolicy, HalfOpenPolicy, LimitScope, Mode, OpenTime, Policy, Rate, RateLimitPolicy, RetryPolicy,
        SlowPolicy, Span, TripPolicy, WindowPolicy,
    },
    state::{
        machine::{Cause, Sample},
        overrides::Override,
    },
};
use model::{Answer, Ending, Model};

// ── random policies ────────────────────────────────────────────────────────────────────────────────────────────────────────

fn count(range: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = NonZeroU32> {
    range.prop_map(|n| NonZeroU32::new(n).unwrap())
}

fn rate() -> impl Strategy<Value = Rate> {
    select(vec![1, 10, 25, 33, 50, 60, 100]).prop_map(|percent| Rate::percent(percent).unwrap())
}

/// In units that make collisions with the steps of the clock likely.
fn time(tenths: std::ops::RangeInclusive<u64>) -> impl Strategy<Value = Duration> {
    tenths.prop_map(|n| Duration::from_millis(n * 100))
}

fn window() -> impl Strategy<Value = WindowPolicy> {
    let span = prop_oneof![count(1..=6).prop_map(Span::Calls), time(6..=60).prop_map(Span::Time)];
    let slow = option::of(rate().prop_map(|rate| SlowPolicy { call: Duration::from_secs(1), rate }));
    (span, 1..=4_u32, option::of(rate()), slow).prop_map(|(span, minimum_calls, failure_rate, slow)| {
        let minimum_calls = match span {
            Span::Calls(calls) => minimum_calls.min(calls.get()),
            Span::Time(_) => minimum_calls,
        };
        WindowPolicy { span, minimum_calls, failure_rate, slow }
    })
}

/// What a call passes besides the breaker. Only the bulkhead ever refuses one here.
fn limits() -> impl Strategy<Value = Policy> {
    (option::weighted(0.3, count(1..=3)), select(vec![0, 0, 0, 1, 2, 3])).prop_map(|(places, other)| Policy {
        bulkhead: places.map(|max_concurrent| BulkheadPolicy { max_concurrent, max_wait: Duration::ZERO }),
        timeout: (other == 1).then_some(Duration::from_secs(1)),
        rate_limit: (other == 2).then_some(RateLimitPolicy {
            limit: NonZeroU32::new(1_000_000).unwrap(),
            per: Duration::from_secs(1),
            scope: LimitScope::Process,
        }),
        retry: (other == 3).then_some(RetryPolicy {
            max_attempts: NonZeroU32::MIN,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(1),
            budget: Some(Rate::ALL),
        }),
        ..Policy::default()
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let trip = (option::weighted(0.7, count(1..=4)), option::of(window()));
    let open = (time(1..=20), select(vec![1000, 1500, 2000, 3000]), time(0..=80), select(vec![0, 20, 100]));
    let half_open = (count(1..=4), option::of(rate()), time(1..=40));
    let mode = prop_oneof![8 => Just(Mode::Enforce), 1 => Just(Mode::Observe), 1 => Just(Mode::ForceClosed), 1 => Just(Mode::ForceOpen)];
    (trip, open, half_open, limits(), mode, time(1..=50)).prop_map(
        |((fail_max, window), (reset_timeout, factor_milli, more, jitter), half_open, limits, mode, throttle_max)| {
            let (permits, failure_rate, max_wait) = half_open;
            Policy {
                trip: TripPolicy { fail_max, window },
                open: OpenTime {
                    reset_timeout,
                    factor_milli,
                    max: reset_timeout + more,
                    jitter: Rate::percent(jitter).unwrap(),
                },
                half_open: HalfOpenPolicy { permits, failure_rate, max_wait },
                mode,
                throttle_max,
                ..limits
            }
        },
    )
}

// ── random events ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Numbers of calls and policies are taken modulo how many there are. Another way to change a breaker is one more of these, one more
/// arm in [`World::step`], and one more in [`follow`].
#[derive(Debug, Clone)]
enum Op {
    Admit,
    /// A call in flight ends; a drop is a neutral verdict, a panic a failure.
    Settle(usize, Ending),
    Advance(Duration),
    /// The clock steps back.
    Back(Duration),
    Reload(usize),
    Hold(Mode, u8, Option<Duration>),
    Release(Option<u8>),
    Reset,
}

fn ending() -> impl Strategy<Value = Ending> {
    let verdict = prop_oneof![
        4 => Just(Verdict::Success),
        6 => Just(Verdict::Failure),
        1 => option::of(time(0..=60)).prop_map(|retry_after| Verdict::Throttled { retry_after }),
        2 => Just(Verdict::Neutral),
    ];
    (verdict, prop::bool::weighted(0.2), option::weighted(0.1, time(0..=60)))
        .prop_map(|(verdict, slow, not_before)| Ending { verdict, slow, not_before })
}

fn op() -> impl Strategy<Value = Op> {
    let forced = select(vec![Mode::Observe, Mode::ForceClosed, Mode::ForceOpen]);
    prop_oneof![
        30 => Just(Op::Admit),
        30 => (any::<usize>(), ending()).prop_map(|(call, ending)| Op::Settle(call, ending)),
        12 => time(0..=30).prop_map(Op::Advance),
        2 => time(0..=30).prop_map(Op::Back),
        3 => any::<usize>().prop_map(Op::Reload),
        2 => (forced, 0..2_u8, option::of(time(0..=40))).prop_map(|(mode, who, lasting)| Op::Hold(mode, who, lasting)),
        3 => option::of(0..2_u8).prop_map(Op::Release),
        1 => Just(Op::Reset),
    ]
}

type Run = (Vec<Policy>, Vec<Op>, u64);

fn run() -> impl Strategy<Value = Run> {
    (vec(policy(), 1..4), vec(op(), 1..120), any::<u64>())
}

// ── the state, driven ──────────────────────────────────────────────────────────────────────────────────────────────────────

struct World {
    state: BreakerState,
    policies: Vec<Arc<Policy>>,
    now: Tick,
    rng: crate::state::rng::Rng,
    calls: Vec<(usize, Ticket)>,
    started: usize,
}

/// What an event brought.
#[derive(Debug, Clone, Copy)]
enum Effect {
    Admitted(Ticket),
    Refused(NotAdmitted),
    Settled(Ticket, Settlement, Option<StateChange>),
    /// The state was changed from outside, or nothing happened.
    Changed,
}

impl World {
    fn new((policies, _, seed): &Run) -> Self {
        let policies: Vec<_> = policies.iter().cloned().map(Arc::new).collect();
        Self {
            state: BreakerState::new(policies[0].clone(), Tick::ZERO),
            policies,
            now: Tick::ZERO,
            rng: crate::state::rng::Rng::new(*seed),
            calls: Vec::new(),
            started: 0,
        }
    }

    fn step(&mut self, op: &Op) -> Effect {
        let now = self.now;
        match op {
            Op::Admit => {
                self.started += 1;
                return match self.state.admit(now, 1) {
                    (Ok(ticket), _) => {
                        self.calls.push((self.started, ticket));
                        Effect::Admitted(ticket)
                    }
                    (Err(refusal), state_change) => {
                        assert_eq!(state_change, None, "a refusal changes nothing");
                        Effect::Refused(refusal)
                    }
                };
            }
            Op::Settle(call, ending) if !self.calls.is_empty() => {
                let (_, ticket) = self.calls.remove(call % self.calls.len());
                let sample = Sample { verdict: ending.verdict, slow: ending.slow, not_before: ending.not_before };
                let (settlement, state_change) = self.state.settle(ticket, sample, now, self.rng.next());
                return Effect::Settled(ticket, settlement, state_change);
            }
            Op::Settle(..) => {}
            Op::Advance(by) => self.now = now.after(*by),
            Op::Back(by) => self.now = Tick::from_nanos(now.as_nanos().saturating_sub(by.as_nanos() as u64)),
            Op::Reload(to) => {
                let _ = self.state.reconfigure(&self.policies[to % self.policies.len()].clone(), now);
            }
            Op::Hold(kind, who, lasting) => {
                let order = Override { who: who.to_string(), why: String::new(), ttl: *lasting };
                let _ = self.state.hold(*kind, order, now);
            }
            Op::Release(who) => {
                let _ = self.state.release(who.map(|w| w.to_string()).as_deref(), now);
            }
            Op::Reset => {
                let _ = self.state.reset(now);
            }
        }
        Effect::Changed
    }

    fn at(&self) -> Duration {
        Duration::from_nanos(self.now.as_nanos())
    }

    /// All that the breaker decides from.
    fn machine(&self) -> String {
        format!("{:?}", self.state.machine)
    }

    fn deadline(&self) -> Option<Tick> {
        self.state.machine.opening().map(|(deadline, _)| deadline)
    }

    /// Probes without a verdict, of the present generation.
    fn probes_out(&self) -> usize {
        let present = self.state.machine.generation();
        self.calls.iter().filter(|(_, t)| t.admission == Admission::Probe && t.generation == present).count()
    }
}

fn opened(effect: Effect) -> Option<crate::state::machine::Step> {
    match effect {
        Effect::Settled(_, _, Some(StateChange::Transition(t) | StateChange::WouldOpen(t))) if t.to == State::Open => {
            Some(t)
        }
        _ => None,
    }
}

// ── the properties ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Steps the model as the state were stepped, and compares the answers.
fn follow(model: &mut Model, world: &World, op: &Op, call: Option<usize>, effect: Effect) -> Result<(), TestCaseError> {
    let now = world.at();
    match op {
        Op::Admit => {
            let expected = model.admit(world.started, now);
            let answer = match effect {
                Effect::Admitted(Ticket { admission: Admission::Pass, .. }) => Answer::Pass,
                Effect::Admitted(Ticket { admission: Admission::Probe, .. }) => Answer::Probe,
                Effect::Admitted(Ticket { admission: Admission::Bypass, .. }) => Answer::Bypass,
                Effect::Refused(NotAdmitted::Rejected(reason, retry_in)) => {
                    let retry_in = retry_in.unwrap_or_default();
                    match reason {
                        RejectReason::Open => Answer::Open { retry_in, forced: false },
                        RejectReason::ForcedOpen => Answer::Open { retry_in, forced: true },
                        RejectReason::HalfOpenBusy => Answer::Busy { retry_in },
                        RejectReason::BulkheadFull => Answer::Full,
                        other => return Err(TestCaseError::fail(format!("{other:?}"))),
                    }
                }
                other => return Err(TestCaseError::fail(format!("{other:?} by an admission"))),
            };
            prop_assert_eq!(answer, expected);
        }
        Op::Settle(_, ending) => {
            if let (Some(call), Effect::Settled(_, settlement, _)) = (call, effect) {
                let (expected, opening) = model.settle(call, *ending, now);
                prop_assert_eq!(settlement, expected);
                if let Some(opening) = opening {
                    let deadline = world.deadline().map(|d| Duration::from_nanos(d.as_nanos()));
                    prop_assert!(deadline.is_some(), "should have opened");
                    let lasts = deadline.unwrap_or_default() - now;
                    let rounding = Duration::from_micros(1);
                    prop_assert!(
                        lasts + rounding >= opening.least && lasts <= opening.most + rounding,
                        "{lasts:?} {opening:?}"
                    );
                    model.lasts(lasts);
                }
            }
        }
        Op::Advance(_) | Op::Back(_) => {}
        Op::Reload(to) => model.reload(&world.policies[to % world.policies.len()], now),
        Op::Hold(kind, who, lasting) => model.hold(*kind, *who, *lasting, now),
        Op::Release(who) => model.release(*who, now),
        Op::Reset => model.reset(),
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_books_agree_with_the_contract(run in run()) {
        let mut world = World::new(&run);
        let mut model = Model::new(&run.0[0]);
        for op in &run.1 {
            let ends = match op {
                Op::Settle(call, _) if !world.calls.is_empty() => Some(world.calls[call % world.calls.len()].0),
                _ => None,
            };
            let effect = world.step(op);
            follow(&mut model, &world, op, ends, effect)?;
            let (state, tick, now) = (&world.state, world.now, world.at());
            prop_assert_eq!(state.mode(tick), model.mode(now), "mode after {:?}", op);
            prop_assert_eq!(state.state(tick), model.state(now), "state after {:?}", op);
            prop_assert_eq!(state.machine.generation(), model.generation(), "generation after {:?}", op);
            prop_assert_eq!(state.machine.consecutive_failures(), model.consecutive(), "failures after {:?}", op);
            let deadline = world.deadline().map(|d| Duration::from_nanos(d.as_nanos()));
            prop_assert_eq!(deadline, model.deadline(), "deadline after {:?}", op);
            let tally = state.machine.tally(tick).map(|t| (t.calls, t.failures, t.slow));
            prop_assert_eq!(tally, model.tally(now), "window after {:?}", op);
        }
    }

    /// Most calls never see the state, but a digest of them: it says what the state would have answered.
    #[test]
    fn the_digest_says_what_the_state_would_answer(run in run()) {
        let mut world = World::new(&run);
        for op in &run.1 {
            let digest = world.state.digest(world.now, false);
            let deadline = digest.rejects_until;
            let (machine, policy) = (world.machine(), world.state.policy.clone());
            let deciding = world.state.mode(world.now) == Mode::Enforce && world.state.overrides.is_idle(world.now);
            let unlimited = policy.bulkhead.is_none()
                && policy.timeout.is_none()
                && policy.rate_limit.is_none()
                && policy.retry.is_none_or(|r| r.budget.is_none());
            prop_assert_eq!(digest.generation, world.state.machine.generation());
            prop_assert_eq!(digest.admits, deciding && unlimited && world.state.machine.is_closed());
            prop_assert_eq!(deadline, if deciding { world.deadline() } else { None });
            let slow = policy.trip.window.as_ref().is_some_and(|w| w.slow.is_some());
            prop_assert_eq!((digest.timed, world.state.digest(world.now, true).timed), (slow, true));
            match world.step(op) {
                Effect::Admitted(ticket) if digest.admits => {
                    prop_assert_eq!((ticket.admission, ticket.generation, ticket.placed), (Admission::Pass, digest.generation, false));
                }
                Effect::Admitted(_) => prop_assert!(deadline.is_none_or(|d| d <= world.now)),
                Effect::Refused(refusal) => {
                    prop_assert!(!digest.admits, "{:?}", refusal);
                    if let Some(deadline) = deadline.filter(|d| *d > world.now) {
                        let retry_in = deadline.since(world.now);
                        prop_assert_eq!(refusal, NotAdmitted::Rejected(RejectReason::Open, Some(retry_in)));
                    }
                }
                Effect::Settled(ticket, ..) => {
                    let success = matches!(op, Op::Settle(_, Ending { verdict: Verdict::Success, .. }));
                    let by_fast_path = ticket.admission == Admission::Pass && ticket.generation == digest.generation;
                    if success && digest.pristine && by_fast_path {
                        prop_assert_eq!(world.machine(), machine, "there was nothing for a success to change");
                    }
                }
                Effect::Changed => {}
            }
        }
    }

    /// 1
    #[test]
    fn unsettled_probes_never_exceed_the_permits(run in run()) {
        let mut world = World::new(&run);
        for op in &run.1 {
            if let Effect::Admitted(ticket) = world.step(op)
                && ticket.admission == Admission::Probe
            {
                let permits = world.state.policy.half_open.permits.get() as usize;
                prop_assert!(world.probes_out() <= permits, "{} of {permits}", world.probes_out());
            }
        }
    }

    /// 2
    #[test]
    fn whatever_becomes_of_them_ended_calls_leave_no_place_taken(run in run()) {
        let mut world = World::new(&run);
        for op in &run.1 {
            world.step(op);
            let placed = world.calls.iter().filter(|(_, t)| t.placed).count();
            prop_assert_eq!(world.state.occupied as usize, placed);
        }
        let neutral = Ending { verdict: Verdict::Neutral, slow: false, not_before: None };
        while !world.calls.is_empty() {
            world.step(&Op::Settle(0, neutral));
        }
        prop_assert_eq!(world.state.occupied, 0);
        if world.state.state(world.now) != State::Open {
            prop_assert!(matches!(world.step(&Op::Admit), Effect::Admitted(..)), "no call is in, and none gets in");
        }
    }

    /// 3
    #[test]
    fn a_verdict_counts_in_its_own_generation_alone(run in run()) {
        let mut world = World::new(&run);
        for op in &run.1 {
            let (before, generation) = (world.machine(), world.state.machine.generation());
            if let Effect::Settled(ticket, settlement, state_change) = world.step(op) {
                prop_assert_eq!(settlement == Settlement::Late, ticket.generation != generation);
                if settlement == Settlement::Late {
                    prop_assert_eq!(world.machine(), before);
                    prop_assert_eq!(state_change, None);
                }
            }
            prop_assert!(world.state.machine.generation() >= generation, "generations only go on");
        }
    }

    /// 4
    #[test]
    fn only_an_opening_writes_a_deadline(run in run()) {
        let mut world = World::new(&run);
        for op in &run.1 {
            let (before, generation) = (world.deadline(), world.state.machine.generation());
            let effect = world.step(op);
            let after = world.deadline();
            let given_up = matches!(op, Op::Hold(..) | Op::Reload(_)) && after == Some(world.now);
            if after.is_some() && opened(effect).is_none() && !given_up && world.state.mode(world.now) <= Mode::Observe {
                prop_assert_eq!(after, before, "moved by {:?}", op);
            }
            if before.is_some() && after.is_some() && before != after {
                prop_assert!(world.state.machine.generation() > generation);
            }
        }
    }

    /// 5
    #[test]
    fn a_success_resets_the_count_and_a_neutral_call_does_not(run in run()) {
        let mut world = World::new(&run);
        for op in &run.1 {
            let (closed, before) = (world.state.machine.is_closed(), world.machine());
            let failures = world.state.machine.consecutive_failures();
            let Effect::Settled(ticket, Settlement::Counted, _) = world.step(op) else { continue };
            let Op::Settle(_, ending) = op else { continue };
            let after = world.state.machine.consecutive_failures();
            match ending.verdict {
                _ if ticket.admission == Admission::Bypass => prop_assert_eq!(world.machine(), before),
                Verdict::Success => prop_assert_eq!(after, 0),
                // The last probe, by whose failure the rate is not reached.
                Verdict::Failure if !closed && world.state.machine.is_closed() => prop_assert_eq!(after, 0),
                Verdict::Neutral if closed => prop_assert_eq!(world.machine(), before),
                Verdict::Neutral | Verdict::Throttled { .. } => prop_assert_eq!(after, failures),
                Verdict::Failure => prop_assert_eq!(after, failures + 1),
            }
        }
    }

    /// 6
    #[test]
    fn reading_changes_nothing_and_needs_no_traffic(run in run(), looks in vec(time(0..=200), 1..10)) {
        let (mut looked_at, mut left_alone) = (World::new(&run), World::new(&run));
        for op in &run.1 {
            for look in &looks {
                let at = Tick::ZERO.after(*look);
                let first = (looked_at.state.state(at), looked_at.state.machine.tally(at), looked_at.state.digest(at, false));
                let _ = looked_at.state.state(Tick::from_nanos(u64::MAX));
                let again = (looked_at.state.state(at), looked_at.state.machine.tally(at), looked_at.state.digest(at, false));
                prop_assert_eq!(first, again);
            }
            looked_at.step(op);
            left_alone.step(op);
            prop_assert_eq!(looked_at.machine(), left_alone.machine());
        }
        // An opening that nothing overrules is due by time alone.
        if let Some(deadline) = looked_at.deadline()
            && looked_at.state.mode(deadline) == Mode::Enforce
        {
            prop_assert_eq!(looked_at.state.state(deadline), State::HalfOpen);
            prop_assert_ne!(looked_at.state.state(Tick::from_nanos(deadline.as_nanos().saturating_sub(1))), State::HalfOpen);
        }
    }

    /// 7
    #[test]
    fn openings_last_between_the_least_and_the_most(run in run()) {
        let mut world = World::new(&run);
        let mut first = true;
        for op in &run.1 {
            let (policy, openings) = (world.state.policy.clone(), world.state.machine.openings());
            let effect = world.step(op);
            if let Some(t) = opened(effect) {
                let lasts = t.open_for.unwrap_or_default();
                let asked = match op {
                    Op::Settle(_, Ending { not_before, .. }) => not_before.unwrap_or_default().min(policy.throttle_max),
                    _ => Duration::ZERO,
                };
                if let Cause::Throttled { retry_after } = t.cause {
                    prop_assert_eq!(lasts, retry_after);
                    prop_assert!(lasts <= policy.throttle_max);
                } else {
                    prop_assert!(lasts >= policy.open.reset_timeout && lasts <= policy.open.max.max(asked));
                    let ungrown = policy.open.reset_timeout + policy.open.jitter.of(policy.open.reset_timeout);
                    prop_assert!(!first || lasts <= ungrown.max(asked), "{:?} is the first since the close", lasts);
                }
                prop_assert_eq!(world.deadline(), Some(world.now.after(lasts)));
            }
            // An opening that is overruled makes no transition, and is one all the same.
            first = world.state.machine.is_closed() || first && world.state.machine.openings() == openings;
        }
    }

    /// 8
    #[test]
    fn overrides_outrank_everything_until_released_or_over(run in run(), kind in select(vec![Mode::ForceOpen, Mode::ForceClosed, Mode::Observe]),
                                                           lasting in option::of(time(1..=100)), before in 0..60_usize) {
        let mut world = World::new(&run);
        let (prefix, rest) = run.1.split_at(before.min(run.1.len()));
        let free = |op: &Op| !matches!(op, Op::Hold(..) | Op::Release(_) | Op::Back(_));
        for op in prefix.iter().filter(|op| free(op)) {
 world.step(op);
}
        let order = Override { who: "operator".into(), why: String::new(), ttl: lasting };
        let end = lasting.map(|time| world.now.after(time));
        world.state.hold(kind, order, world.now);
        let (state, admits) = if kind == Mode::ForceOpen { (State::Open, false) } else { (State::Closed, true) };
        for op in rest.iter().filter(|op| free(op)) {
            let effect = world.step(op);
            if end.is_none_or(|end| world.now < end) {
                prop_assert_eq!(world.state.mode(world.now), kind);
                prop_assert_eq!(world.state.state(world.now), state, "by {:?}", op);
                match effect {
                    Effect::Admitted(..) => prop_assert!(admits),
                    Effect::Refused(NotAdmitted::Rejected(RejectReason::ForcedOpen, _)) => prop_assert!(!admits),
                    Effect::Refused(other) => {
                        let full = matches!(other, NotAdmitted::Rejected(RejectReason::BulkheadFull, _));
                        prop_assert!(full, "{:?}", other);
                    }
                    Effect::Settled(..) | Effect::Changed => {}
                }
            } else {
                prop_assert_eq!(world.state.mode(world.now), world.state.policy.mode, "after its end");
            }
        }
        world.state.release(Some("operator"), world.now);
        prop_assert_eq!(world.state.mode(world.now), world.state.policy.mode, "after its release");
    }

    /// 9
    #[test]
    fn a_reload_moves_no_deadline_and_clears_no_counter(run in run()) {
        let mut world = World::new(&run);
        for op in &run.1 {
            let (deadline, failures, openings) =
                (world.deadline(), world.state.machine.consecutive_failures(), world.state.machine.openings());
            let (closed, generation, holds) =
                (world.state.machine.is_closed(), world.state.machine.generation(), format!("{:?}", world.state.overrides));
            let span = |state: &BreakerState| state.policy.trip.window.as_ref().map(|w| w.span);
            let (before, tally) = (span(&world.state), world.state.machine.tally(world.now));
            world.step(op);
            if !matches!(op, Op::Reload(_)) {
                continue;
            }
            let machine = &world.state.machine;
            prop_assert_eq!(machine.is_closed(), closed);
            prop_assert_eq!((machine.consecutive_failures(), machine.openings()), (failures, openings));
            prop_assert_eq!(format!("{:?}", world.state.overrides), holds);
            if deadline.is_some() {
                prop_assert_eq!(world.deadline(), deadline);
            }
            if world.state.mode(world.now) <= Mode::Observe {
                prop_assert_eq!(machine.generation(), generation);
            }
            if span(&world.state) == before {
                prop_assert_eq!(machine.tally(world.now), tally);
            }
        }
    }
}

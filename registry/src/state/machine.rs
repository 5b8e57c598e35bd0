//! The state machine: closed, open, half-open. It is pure and total.
//!
//! Every function takes what it needs — the policy, the present [`Tick`], a random draw — and none reads a clock,
//! takes a lock, logs or waits. Two ideas carry it:
//!
//! * **A deadline, not a timer.** An open breaker stores when it is due, once, at the opening. What it *is* follows from
//!   that and `now`: reading it early, late or never changes nothing.
//! * **A generation.** Every change of state, and every replacement of lost probes, starts a new one. A verdict
//!   carries the generation that admitted its call; if that is over, the verdict is late and changes nothing.

use std::{fmt, time::Duration};

use crate::{
    clock::Tick,
    outcome::{Settlement, State, Verdict},
    policy::{HalfOpenPolicy, Policy},
    state::{
        backoff::open_time,
        window::{Tally, Window, trips},
    },
};

/// Why a breaker changed its state, with the counts that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// This many failures in a row.
    ConsecutiveFailures {
        /// How many.
        failures: u32,
    },
    /// Too large a share of the window failed.
    FailureRate {
        /// Failed calls in the window.
        failures: u64,
        /// All calls in the window.
        calls: u64,
    },
    /// Too large a share of the window was slow.
    SlowRate {
        /// Slow calls in the window.
        slow: u64,
        /// All calls in the window.
        calls: u64,
    },
    /// The service asked us to stay away.
    Throttled {
        /// For how long, after the cap.
        retry_after: Duration,
    },
    /// The time was up and a probe was let through.
    Due,
    /// Probes failed.
    ProbesFailed {
        /// Failed probes.
        failed: u32,
        /// Probes that decide.
        permits: u32,
    },
    /// Probes succeeded.
    ProbesSucceeded {
        /// Good probes.
        succeeded: u32,
        /// Probes that decide.
        permits: u32,
    },
    /// An operator decided.
    Operator,
    /// An override ended by itself.
    OverrideEnded,
    /// It was so before a restart.
    Restored,
    /// Another process of the fleet decided so.
    Peer,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConsecutiveFailures { failures } => write!(f, "{failures} consecutive failures"),
            Self::FailureRate { failures, calls } => write!(f, "{failures} of {calls} calls failed"),
            Self::SlowRate { slow, calls } => write!(f, "{slow} of {calls} calls were slow"),
            Self::Throttled { retry_after } => write!(f, "throttled for {retry_after:?}"),
            Self::Due => f.write_str("probe due"),
            Self::ProbesFailed { failed, permits } => write!(f, "{failed} of {permits} probes failed"),
            Self::ProbesSucceeded { succeeded, permits } => write!(f, "{succeeded} of {permits} probes succeeded"),
            Self::Operator => f.write_str("operator"),
            Self::OverrideEnded => f.write_str("override ended"),
            Self::Restored => f.write_str("restored"),
            Self::Peer => f.write_str("decided by a peer"),
        }
    }
}

/// A change of state. Observers hear of it as a [`Transition`](crate::Transition).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) from: State,
    pub(crate) to: State,
    pub(crate) cause: Cause,
    /// The generation that began with it.
    pub(crate) generation: u64,
    /// For an opening, how long it lasts.
    pub(crate) open_for: Option<Duration>,
    /// Since when the state after has held.
    pub(crate) began: Tick,
}

/// What a settled call tells the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) verdict: Verdict,
    /// The call took longer than the policy's slow-call threshold.
    pub(crate) slow: bool,
    /// For a failure: the service asked us to stay away at least this long.
    pub(crate) not_before: Option<Duration>,
}

impl From<Verdict> for Sample {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, slow: false, not_before: None }
    }
}

/// The answer to "may this call start?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MachineAnswer {
    /// Yes.
    Pass,
    /// Yes, as one of the calls that decide whether the service is back.
    Probe,
    /// No: open.
    Open { retry_in: Duration },
    /// No: half-open, and every probe is out.
    Busy { retry_in: Duration },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Closed,
    Open {
        since: Tick,
        deadline: Tick,
        cause: Cause,
    },
    HalfOpen {
        /// Probes without a verdict.
        out: u32,
        good: u32,
        bad: u32,
        /// When the probes now out began to be waited for: the first of them left, or the last verdict came.
        since: Tick,
    },
}

/// One breaker's stored state.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    phase: Phase,
    generation: u64,
    consecutive: u32,
    /// Failures in a row in other processes of the fleet, since the last success anywhere.
    peers_failed: u32,
    /// How many of our own failures in a row came before the last success of a peer: alone they still count, but not
    /// together with the peers'.
    apart: u32,
    /// Openings since the last close; the exponent of the open time's growth.
    openings: u32,
    window: Option<Window>,
}

impl Machine {
    pub(crate) fn new(policy: &Policy) -> Self {
        Self {
            phase: Phase::Closed,
            generation: 0,
            consecutive: 0,
            peers_failed: 0,
            apart: 0,
            openings: 0,
            window: policy.trip.window.as_ref().map(|w| Window::new(w.span)),
        }
    }

    // ── reading ────────────────────────────────────────────────────────────────────────────────────────────────────────

    pub(crate) fn state(&self, now: Tick) -> State {
        match self.phase {
            Phase::Closed => State::Closed,
            Phase::Open { deadline, .. } if now < deadline => State::Open,
            Phase::Open { .. } | Phase::HalfOpen { .. } => State::HalfOpen,
        }
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) const fn consecutive_failures(&self) -> u32 {
        self.consecutive
    }

    pub(crate) const fn openings(&self) -> u32 {
        self.openings
    }

    pub(crate) fn tally(&self, now: Tick) -> Option<Tally> {
        self.window.as_ref().map(|w| w.tally(now))
    }

    /// When the present opening is due, and why it opened. `None` unless the stored phase is open.
    pub(crate) const fn opening(&self) -> Option<(Tick, Cause)> {
        match self.phase {
            Phase::Open { deadline, cause, .. } => Some((deadline, cause)),
            Phase::Closed | Phase::HalfOpen { .. } => None,
        }
    }

    /// How long the present opening lasts in all; zero unless the stored phase is open.
    pub(crate) const fn open_time(&self) -> Duration {
        match self.phase {
            Phase::Open { since, deadline, .. } => deadline.since(since),
            Phase::Closed | Phase::HalfOpen { .. } => Duration::ZERO,
        }
    }

    /// Stored as closed, with nothing that a success would have to reset.
    pub(crate) const fn is_pristine(&self) -> bool {
        matches!(self.phase, Phase::Closed) && self.consecutive == 0 && self.peers_failed == 0 && self.window.is_none()
    }

    pub(crate) const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// Stored as half-open, with a probe out.
    pub(crate) const fn is_probing(&self) -> bool {
        matches!(self.phase, Phase::HalfOpen { out: 1.., .. })
    }

    /// Our own failures in a row since anyone's last success.
    pub(crate) const fn joint_failures(&self) -> u32 {
        self.consecutive.saturating_sub(self.apart)
    }

    /// Failures in a row in other processes.
    pub(crate) const fn peers_failed(&self) -> u32 {
        self.peers_failed
    }

    /// What [`admit`](Self::admit) would answer, without taking anything.
    pub(crate) fn peek(&self, now: Tick, policy: &HalfOpenPolicy) -> MachineAnswer {
        match self.phase {
            Phase::Closed => MachineAnswer::Pass,
            Phase::Open { deadline, .. } if now < deadline => MachineAnswer::Open { retry_in: deadline.since(now) },
            Phase::Open { .. } => MachineAnswer::Probe,
            Phase::HalfOpen { out, good, bad, since } => {
                let permits = policy.permits.get();
                let judged = good.saturating_add(bad);
                // With no probe out a slot is free, whatever a reload did to the number of permits.
                let lost_after = since.after(policy.max_wait);
                if out == 0 || out.saturating_add(judged) < permits || now >= lost_after {
                    MachineAnswer::Probe
                } else {
                    MachineAnswer::Busy { retry_in: lost_after.since(now) }
                }
            }
        }
    }

    // ── events ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Asks for a call to start. A [`MachineAnswer::Probe`] has taken its slot.
    pub(crate) fn admit(&mut self, now: Tick, policy: &HalfOpenPolicy) -> (MachineAnswer, Option<Step>) {
        let admission = self.peek(now, policy);
        if admission != MachineAnswer::Probe {
            return (admission, None);
        }
        let transition = match &mut self.phase {
            Phase::HalfOpen { out, good, bad, since } => {
                let judged = good.saturating_add(*bad);
                if *out == 0 || out.saturating_add(judged) < policy.permits.get() {
                    if *out == 0 {
                        *since = now;
                    }
                    *out += 1;
                    None
                } else {
                    // The probes out are lost: whatever they still say is late.
                    self.enter_half_open(now);
                    None
                }
            }
            Phase::Closed | Phase::Open { .. } => {
                let due = self.opening().map_or(now, |(deadline, _)| deadline);
                self.enter_half_open(now);
                Some(self.step(State::Open, State::HalfOpen, Cause::Due, due))
            }
        };
        (admission, transition)
    }

    /// Takes a call's verdict. `generation` is the one that admitted it, `draw` is uniform over `u64`.
    pub(crate) fn settle(
        &mut self,
        generation: u64,
        sample: Sample,
        now: Tick,
        draw: u64,
        policy: &Policy,
    ) -> (Settlement, Option<Step>) {
        if generation != self.generation {
            return (Settlement::Late, None);
        }
        let transition = match self.phase {
            Phase::Closed => self.settle_closed(sample, now, draw, policy),
            Phase::HalfOpen { .. } => self.settle_probe(sample, now, draw, policy),
            // Openings start a generation, so no call was ever admitted in this one.
            Phase::Open { .. } => None,
        };
        (Settlement::Counted, transition)
    }

    fn settle_closed(&mut self, sample: Sample, now: Tick, draw: u64, policy: &Policy) -> Option<Step> {
        let failed = match sample.verdict {
            Verdict::Success => false,
            Verdict::Failure => true,
            Verdict::Throttled { retry_after } => return Some(self.throttle(retry_after, now, policy)),
            Verdict::Neutral => return None,
        };
        self.consecutive = if failed { self.consecutive.saturating_add(1) } else { 0 };
        if !failed {
            (self.peers_failed, self.apart) = (0, 0);
        }
        if let Some(window) = &mut self.window {
            window.record(now, failed, sample.slow);
        }
        let cause = self.trip_cause(now, policy, failed)?;
        Some(self.open(cause, sample.not_before, now, draw, policy))
    }

    fn trip_cause(&self, now: Tick, policy: &Policy, failed: bool) -> Option<Cause> {
        let failures = self.consecutive.max(self.joint_failures().saturating_add(self.peers_failed));
        if failed && policy.trip.fail_max.is_some_and(|max| failures >= max.get()) {
            return Some(Cause::ConsecutiveFailures { failures });
        }
        let (window, rule) = (self.window.as_ref()?, policy.trip.window.as_ref()?);
        let tally = window.tally(now);
        if !trips(rule, tally) {
            return None;
        }
        let by_failures =
            tally.failures > 0 && rule.failure_rate.is_some_and(|rate| rate.reached(tally.failures, tally.calls));
        Some(if by_failures {
            Cause::FailureRate { failures: tally.failures, calls: tally.calls }
        } else {
            Cause::SlowRate { slow: tally.slow, calls: tally.calls }
        })
    }

    fn settle_probe(&mut self, sample: Sample, now: Tick, draw: u64, policy: &Policy) -> Option<Step> {
        let Phase::HalfOpen { out, good, bad, since } = &mut self.phase else { return None };
        *out = out.saturating_sub(1);
        match sample.verdict {
            Verdict::Neutral => return None,
            Verdict::Throttled { retry_after } => return Some(self.throttle(retry_after, now, policy)),
            // Where slowness opens the breaker, a slow answer is no proof of recovery.
            Verdict::Success if !sample.slow => *good += 1,
            Verdict::Success | Verdict::Failure => *bad += 1,
        }
        self.consecutive = if sample.verdict == Verdict::Success { 0 } else { self.consecutive.saturating_add(1) };
        *since = now;
        let (succeeded, failed) = (*good, *bad);
        let permits = policy.half_open.permits.get();
        let too_many = policy.half_open.failure_rate.map_or(1, |rate| rate.threshold(permits));
        if failed >= too_many {
            Some(self.open(Cause::ProbesFailed { failed, permits }, sample.not_before, now, draw, policy))
        } else if succeeded.saturating_add(too_many) > permits {
            // The verdicts still to come could not make it too many failures.
            Some(self.close(State::HalfOpen, Cause::ProbesSucceeded { succeeded, permits }, now))
        } else {
            None
        }
    }

    // ── changed from outside ──────────────────────────────────────────────────────────────────────────────────────────────

    /// Starts a generation without changing the state: what is in flight will be late. Probes out are given up, so a half-open
    /// breaker becomes open and due.
    pub(crate) fn disown_calls(&mut self, now: Tick) {
        self.generation += 1;
        if matches!(self.phase, Phase::HalfOpen { .. }) {
            self.phase = Phase::Open { since: now, deadline: now, cause: Cause::Operator };
        }
    }

    /// Back to closed with nothing remembered.
    pub(crate) fn reset(&mut self, now: Tick) -> Option<Step> {
        let from = self.state(now);
        let transition = self.close(from, Cause::Operator, now);
        (from != State::Closed).then_some(transition)
    }

    /// Goes by `new` from now on. Keeps phase, deadline, generation, counters, and the evidence as far as the new window holds it.
    pub(crate) fn reconfigure(&mut self, old: &Policy, new: &Policy) {
        let span = |policy: &Policy| policy.trip.window.as_ref().map(|w| w.span);
        if span(old) != span(new) {
            self.window = match (&self.window, span(new)) {
                (_, None) => None,
                (None, Some(span)) => Some(Window::new(span)),
                (Some(window), Some(span)) => Some(window.resized(span)),
            };
        }
    }

    /// Takes over the opening of another process, or of this one before a restart: its deadline and its place in the growth of
    /// the open time. Evidence stays. Observing an opening never restarts its cool-down: the deadline is the opening's own.
    pub(crate) fn adopt_open(&mut self, deadline: Tick, openings: u32, cause: Cause, now: Tick) -> Option<Step> {
        let from = self.state(now);
        self.openings = openings;
        self.enter_open(now, deadline, cause);
        let to = self.state(now);
        let open_for = (to == State::Open).then(|| deadline.since(now));
        (from != to).then(|| Step { open_for, ..self.step(from, to, cause, now) })
    }

    /// Takes over the good verdict of another process's probe. Of a closed breaker it clears nothing.
    pub(crate) fn adopt_close(&mut self, now: Tick) -> Option<Step> {
        let from = self.state(now);
        (!self.is_closed()).then(|| self.close(from, Cause::Peer, now))
    }

    /// Learns how many failures in a row the other processes have had since anyone's last success; none, if one has just
    /// succeeded. Together with ours they may be enough.
    pub(crate) fn receive_failures(&mut self, peers: u32, now: Tick, draw: u64, policy: &Policy) -> Option<Step> {
        if !self.is_closed() {
            return None;
        }
        self.peers_failed = peers;
        if peers == 0 {
            self.apart = self.consecutive;
        }
        let failures = self.joint_failures().saturating_add(peers);
        let enough = self.joint_failures() > 0 && policy.trip.fail_max.is_some_and(|max| failures >= max.get());
        enough.then(|| self.open(Cause::ConsecutiveFailures { failures }, None, now, draw, policy))
    }

    // ── the only places that change the phase ──────────────────────────────────────────────────────────────────────────

    fn open(&mut self, cause: Cause, not_before: Option<Duration>, now: Tick, draw: u64, policy: &Policy) -> Step {
        let asked = not_before.map_or(Duration::ZERO, |d| d.min(policy.throttle_max));
        let open_for = open_time(&policy.open, self.openings, draw).max(asked);
        self.openings = self.openings.saturating_add(1);
        self.open_for(open_for, cause, now)
    }

    fn throttle(&mut self, retry_after: Option<Duration>, now: Tick, policy: &Policy) -> Step {
        let retry_after = retry_after.unwrap_or(policy.open.reset_timeout).min(policy.throttle_max);
        self.open_for(retry_after, Cause::Throttled { retry_after }, now)
    }

    fn open_for(&mut self, time: Duration, cause: Cause, now: Tick) -> Step {
        let from = self.state(now);
        self.enter_open(now, now.after(time), cause);
        Step { open_for: Some(time), ..self.step(from, State::Open, cause, now) }
    }

    fn enter_open(&mut self, since: Tick, deadline: Tick, cause: Cause) {
        self.phase = Phase::Open { since, deadline, cause };
        self.generation += 1;
    }

    fn enter_half_open(&mut self, now: Tick) {
        self.phase = Phase::HalfOpen { out: 1, good: 0, bad: 0, since: now };
        self.generation += 1;
    }

    fn close(&mut self, from: State, cause: Cause, now: Tick) -> Step {
        self.phase = Phase::Closed;
        self.generation += 1;
        self.consecutive = 0;
        self.peers_failed = 0;
        self.apart = 0;
        self.openings = 0;
        if let Some(window) = &mut self.window {
            window.clear();
        }
        self.step(from, State::Closed, cause, now)
    }

    const fn step(&self, from: State, to: State, cause: Cause, began: Tick) -> Step {
        Step { from, to, cause, generation: self.generation, open_for: None, began }
    }
}

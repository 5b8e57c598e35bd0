//! The contract once more, as naively as possible: every verdict is kept, every rate is counted afresh, every call in
//! flight is on a list. It shares no arithmetic with what it judges.

use std::{collections::BTreeMap, time::Duration};

use super::{Mode, Policy, Rate, Settlement, Span, State, Verdict};

/// Time since the beginning.
pub(crate) type At = Duration;

/// What a finished call says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) verdict: Verdict,
    pub(crate) slow: bool,
    pub(crate) not_before: Option<Duration>,
}

/// The answer to "may this call start?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Pass,
    Probe,
    /// Past a breaker that was overruled.
    Bypass,
    Open {
        /// Until the deadline, or the end of a forced opening.
        retry_in: Duration,
        forced: bool,
    },
    Busy {
        retry_in: Duration,
    },
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pass,
    Probe,
    Bypass,
}

#[derive(Debug, Clone, Copy)]
struct Call {
    kind: Kind,
    generation: u64,
}

#[derive(Debug, Clone)]
enum Phase {
    Closed,
    Open {
        deadline: At,
    },
    HalfOpen {
        /// Of this generation: whether it failed, and whether it was slow.
        verdicts: Vec<(bool, bool)>,
        /// When the probes out began to be waited for.
        quiet_since: At,
    },
}

#[derive(Debug, Clone)]
struct Hold {
    kind: Mode,
    who: u8,
    ends: Option<At>,
}

/// One call in the evidence of the window.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: At,
    failed: bool,
    slow: bool,
}

/// The least and the most that an opening may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) least: Duration,
    pub(crate) most: Duration,
}

#[derive(Debug, Clone)]
pub(crate) struct Model {
    policy: Policy,
    phase: Phase,
    generation: u64,
    consecutive: u32,
    /// Openings by failure since the last close.
    openings: u32,
    evidence: Vec<Seen>,
    holds: Vec<Hold>,
    calls: BTreeMap<usize, Call>,
    opened_at: At,
}

const SLICES: u128 = 60;

impl Model {
    pub(crate) fn new(policy: &Policy) -> Self {
        Self {
            policy: policy.clone(),
            phase: Phase::Closed,
            generation: 0,
            consecutive: 0,
            openings: 0,
            evidence: Vec::new(),
            holds: Vec::new(),
            calls: BTreeMap::new(),
            opened_at: At::ZERO,
        }
    }

    // ── reading ────────────────────────────────────────────────────────────────────────────────────────────────────────

    pub(crate) fn mode(&self, now: At) -> Mode {
        let held = |kind| self.in_force(now).any(|h| h.kind == kind);
        [Mode::ForceOpen, Mode::ForceClosed, Mode::Observe].into_iter().find(|k| held(*k)).unwrap_or(self.policy.mode)
    }

    pub(crate) fn state(&self, now: At) -> State {
        match (self.mode(now), &self.phase) {
            (Mode::ForceOpen, _) => State::Open,
            (Mode::ForceClosed | Mode::Observe, _) | (Mode::Enforce, Phase::Closed) => State::Closed,
            (Mode::Enforce, Phase::Open { deadline }) if now < *deadline => State::Open,
            (Mode::Enforce, _) => State::HalfOpen,
        }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn consecutive(&self) -> u32 {
        self.consecutive
    }

    /// The deadline of the opening that is stored, whatever overrules it.
    pub(crate) fn deadline(&self) -> Option<At> {
        match self.phase {
            Phase::Open { deadline } => Some(deadline),
            Phase::Closed | Phase::HalfOpen { .. } => None,
        }
    }

    /// Calls, failures and slow calls in the window.
    pub(crate) fn tally(&self, now: At) -> Option<(u64, u64, u64)> {
        self.policy.trip.window.as_ref()?;
        let inside = self.inside(now);
        let count = |which: fn(&Seen) -> bool| inside.iter().filter(|s| which(s)).count() as u64;
        Some((count(|_| true), count(|s| s.failed), count(|s| s.slow)))
    }

    fn in_force(&self, now: At) -> impl Iterator<Item = &Hold> {
        self.holds.iter().filter(move |h| h.ends.is_none_or(|end| now < end))
    }

    /// The evidence that still counts. A clock behind the last call counts as the time of that call.
    fn inside(&self, now: At) -> Vec<Seen> {
        match self.policy.trip.window.as_ref().map(|w| w.span) {
            None => Vec::new(),
            Some(Span::Calls(n)) => self.evidence[self.evidence.len().saturating_sub(n.get() as usize)..].to_vec(),
            Some(Span::Time(time)) => {
                let slice = time.as_nanos() / SLICES;
                let now = self.evidence.last().map_or(now, |last| now.max(last.at));
                let young = |s: &&Seen| s.at.as_nanos() / slice + SLICES > now.as_nanos() / slice;
                self.evidence.iter().filter(young).copied().collect()
            }
        }
    }

    fn probes_out(&self) -> usize {
        self.calls.values().filter(|c| c.kind == Kind::Probe && c.generation == self.generation).count()
    }

    // ── calls ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    pub(crate) fn admit(&mut self, call: usize, now: At) -> Answer {
        let mode = self.mode(now);
        let refused = match mode {
            Mode::ForceOpen => Some(Answer::Open { retry_in: self.forced_for(now), forced: true }),
            Mode::ForceClosed | Mode::Observe => None,
            Mode::Enforce => self.refusal(now),
        };
        if let Some(refused) = refused {
            return refused;
        }
        let in_flight = self.calls.len();
        if self.policy.bulkhead.is_some_and(|b| in_flight >= b.max_concurrent.get() as usize) {
            return Answer::Full;
        }
        let kind = if mode == Mode::ForceClosed || self.refusal(now).is_some() {
            Kind::Bypass
        } else {
            self.start_probe_if_any_is_due(now)
        };
        self.calls.insert(call, Call { kind, generation: self.generation });
        match kind {
            Kind::Pass => Answer::Pass,
            Kind::Probe => Answer::Probe,
            Kind::Bypass => Answer::Bypass,
        }
    }

    fn forced_for(&self, now: At) -> Duration {
        let ends: Vec<_> = self.in_force(now).filter(|h| h.kind == Mode::ForceOpen).map(|h| h.ends).collect();
        match ends.iter().copied().collect::<Option<Vec<At>>>().and_then(|ends| ends.into_iter().max()) {
            Some(end) => end - now,
            None => self.policy.open.reset_timeout,
        }
    }

    /// Why the breaker's own judgement would not let a call pass.
    fn refusal(&self, now: At) -> Option<Answer> {
        match &self.phase {
            Phase::Closed => None,
            Phase::Open { deadline } if now < *deadline => {
                Some(Answer::Open { retry_in: *deadline - now, forced: false })
            }
            Phase::Open { .. } => None,
            Phase::HalfOpen { verdicts, quiet_since } => {
                let (out, permits) = (self.probes_out(), self.policy.half_open.permits.get() as usize);
                let lost_at = *quiet_since + self.policy.half_open.max_wait;
                let free = out == 0 || out + verdicts.len() < permits || now >= lost_at;
                (!free).then(|| Answer::Busy { retry_in: lost_at - now })
            }
        }
    }

    /// Nothing refuses this call.
    fn start_probe_if_any_is_due(&mut self, now: At) -> Kind {
        let (out, permits) = (self.probes_out(), self.policy.half_open.permits.get() as usize);
        match &mut self.phase {
            Phase::Closed => return Kind::Pass,
            Phase::HalfOpen { quiet_since, .. } if out == 0 => *quiet_since = now,
            Phase::HalfOpen { verdicts, .. } if out + verdicts.len() < permits => {}
            Phase::Open { .. } | Phase::HalfOpen { .. } => {
                self.phase = Phase::HalfOpen { verdicts: Vec::new(), quiet_since: now };
                self.generation += 1;
            }
        }
        Kind::Probe
    }

    /// A call ends. Where that opens the breaker, between how much and how much time it is open for; [`lasts`](Self::lasts)
    /// says which.
    pub(crate) fn settle(&mut self, call: usize, ending: Ending, now: At) -> (Settlement, Option<Opening>) {
        let call = self.calls.remove(&call).expect("in flight");
        if call.generation != self.generation {
            return (Settlement::Late, None);
        }
        if call.kind == Kind::Bypass {
            return (Settlement::Counted, None);
        }
        let opening = match (ending.verdict, &self.phase) {
            (Verdict::Neutral, _) | (_, Phase::Open { .. }) => None,
            (Verdict::Throttled { retry_after }, _) => {
                let time = match retry_after {
                    None | Some(Duration::ZERO) => self.policy.open.reset_timeout,
                    Some(time) => time.min(self.policy.throttle_max),
                };
                Some(Opening { least: time, most: time })
            }
            (verdict, Phase::Closed) => {
                self.count(verdict, ending.slow, now);
                self.trips(verdict, now).then(|| self.opening(ending))
            }
            (verdict, Phase::HalfOpen { .. }) => self.judge_probe(verdict, ending, now),
        };
        if let Some(opening) = opening {
            self.generation += 1;
            self.opened_at = now;
            self.phase = Phase::Open { deadline: now + opening.least };
        }
        (Settlement::Counted, opening)
    }

    /// The opening that just began lasts so long.
    pub(crate) fn lasts(&mut self, time: Duration) {
        self.phase = Phase::Open { deadline: self.opened_at + time };
    }

    fn count(&mut self, verdict: Verdict, slow: bool, now: At) {
        let failed = verdict == Verdict::Failure;
        self.consecutive = if failed { self.consecutive + 1 } else { 0 };
        if self.policy.trip.window.is_some() {
            let at = self.evidence.last().map_or(now, |last| now.max(last.at));
            self.evidence.push(Seen { at, failed, slow });
        }
    }

    fn trips(&self, verdict: Verdict, now: At) -> bool {
        let enough_in_a_row =
            verdict == Verdict::Failure && self.policy.trip.fail_max.is_some_and(|max| self.consecutive >= max.get());
        let too_much_of_the_window = self.policy.trip.window.as_ref().is_some_and(|window| {
            let (calls, failures, slow) = self.tally(now).expect("there is a window");
            let reaches = |part: u64, ppm: u32| part > 0 && part as f64 / calls as f64 >= f64::from(ppm) / 1e6;
            calls >= u64::from(window.minimum_calls)
                && (window.failure_rate.is_some_and(|rate| reaches(failures, rate.ppm()))
                    || window.slow.is_some_and(|s| reaches(slow, s.rate.ppm())))
        });
        enough_in_a_row || too_much_of_the_window
    }

    fn judge_probe(&mut self, verdict: Verdict, ending: Ending, now: At) -> Option<Opening> {
        self.consecutive = if verdict == Verdict::Failure { self.consecutive + 1 } else { 0 };
        let Phase::HalfOpen { verdicts, quiet_since } = &mut self.phase else { unreachable!("only probes come here") };
        verdicts.push((verdict == Verdict::Failure, ending.slow));
        *quiet_since = now;
        let permits = self.policy.half_open.permits.get() as usize;
        let failed = verdicts.iter().filter(|verdict| verdict.0).count();
        let slow = verdicts.iter().filter(|verdict| verdict.1).count();
        let to_come = permits.saturating_sub(verdicts.len());
        let reaches = |part: usize, rate: Rate| part > 0 && part as f64 / permits as f64 >= f64::from(rate.ppm()) / 1e6;
        let fails = |failed: usize| self.policy.half_open.failure_rate.map_or(failed > 0, |rate| reaches(failed, rate));
        let drags = |slow: usize| slow_rate(&self.policy).is_some_and(|rate| reaches(slow, rate));
        if fails(failed) || drags(slow) {
            return Some(self.opening(ending));
        }
        if !fails(failed + to_come) && !drags(slow + to_come) {
            self.close();
        }
        None
    }

    /// The next opening by failure.
    fn opening(&mut self, ending: Ending) -> Opening {
        let open = self.policy.open;
        let grown = open.reset_timeout.as_secs_f64() * (f64::from(open.factor_milli) / 1e3).powi(self.openings as i32);
        let least = Duration::try_from_secs_f64(grown).unwrap_or(Duration::MAX).min(open.max);
        let jitter = 1.0 + f64::from(open.jitter.ppm()) / 1e6;
        let most = Duration::try_from_secs_f64(least.as_secs_f64() * jitter).unwrap_or(Duration::MAX).min(open.max);
        let asked = ending.not_before.unwrap_or_default().min(self.policy.throttle_max);
        self.openings += 1;
        Opening { least: least.max(asked), most: most.max(asked) }
    }

    fn close(&mut self) {
        self.phase = Phase::Closed;
        self.generation += 1;
        self.consecutive = 0;
        self.openings = 0;
        self.evidence.clear();
    }

    // ── operators and configuration ────────────────────────────────────────────────────────────────────────────────────

    pub(crate) fn hold(&mut self, kind: Mode, who: u8, lasting: Option<Duration>, now: At) {
        self.holds.retain(|h| h.ends.is_none_or(|end| now < end) && !(h.kind == kind && h.who == who));
        self.holds.push(Hold { kind, who, ends: lasting.map(|time| now + time) });
        if kind != Mode::Observe {
            self.disown(now);
        }
    }

    pub(crate) fn release(&mut self, who: Option<u8>, now: At) {
        self.holds.retain(|h| h.ends.is_none_or(|end| now < end) && who.is_some_and(|who| h.who != who));
    }

    pub(crate) fn reset(&mut self) {
        self.close();
    }

    pub(crate) fn reload(&mut self, new: &Policy, now: At) {
        let mode = self.mode(now);
        let span = |policy: &Policy| policy.trip.window.as_ref().map(|w| w.span);
        match (span(&self.policy), span(new)) {
            (Some(Span::Calls(old)), Some(Span::Calls(new))) if old != new => self.evidence = self.inside(now),
            (Some(Span::Time(old)), Some(Span::Time(new))) if old != new => {
                let slice = old.as_nanos() / SLICES;
                let last = self.evidence.last().map_or(At::ZERO, |last| last.at);
                self.evidence = self.inside(last);
                for seen in &mut self.evidence {
                    seen.at = Duration::from_nanos((seen.at.as_nanos() / slice * slice) as u64);
                }
            }
            (old, new) if old == new => {}
            _ => self.evidence.clear(),
        }
        let rule = |policy: &Policy| (policy.half_open, slow_rate(policy));
        if rule(&self.policy) != rule(new) && matches!(self.phase, Phase::HalfOpen { .. }) {
            self.phase = Phase::HalfOpen { verdicts: Vec::new(), quiet_since: now };
            self.generation += 1;
        }
        self.policy = new.clone();
        if self.mode(now) != mode && matches!(self.mode(now), Mode::ForceOpen | Mode::ForceClosed) {
            self.disown(now);
        }
    }

    /// The process ends, and another one goes on from what it remembers: an opening for the rest of its time, overrides until
    /// their end. Calls in flight and evidence are gone. The new process numbers its generations anew, from `generation`.
    #[allow(dead_code, reason = "the state alone have no store")]
    pub(crate) fn restart(&mut self, generation: u64, now: At) {
        self.phase = match self.phase {
            Phase::Closed => Phase::Closed,
            Phase::HalfOpen { .. } => Phase::Open { deadline: now },
            Phase::Open { deadline } => {
                let most = self.policy.open.max.max(self.policy.throttle_max);
                Phase::Open { deadline: deadline.clamp(now, now + most) }
            }
        };
        self.holds.retain(|h| h.ends.is_none_or(|end| now < end));
        self.calls.clear();
        self.evidence.clear();
        self.consecutive = 0;
        self.generation = generation;
    }

    /// Calls in flight are late; a half-open breaker is open and due.
    fn disown(&mut self, now: At) {
        self.generation += 1;
        if matches!(self.phase, Phase::HalfOpen { .. }) {
            self.phase = Phase::Open { deadline: now };
        }
    }
}

/// The share of slow probes that opens again.
fn slow_rate(policy: &Policy) -> Option<Rate> {
    let slow = policy.trip.window.as_ref().and_then(|window| window.slow)?;
    Some(policy.half_open.slow_rate.unwrap_or(slow.rate))
}

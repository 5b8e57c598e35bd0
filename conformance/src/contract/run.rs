//! Drives one breaker through one case.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError, RwLock},
    thread,
    time::{Duration, Instant},
};

use super::{
    Adapter, Clock, End, Feature, Flight, Guard, State,
    cases::{Body, Case, Step},
};

/// What became of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The crate does what the contract says.
    Pass,
    /// It does not: what was expected, and what was seen.
    Fail(String),
    /// Its design has no such thing, and why.
    RuledOut(&'static str),
}

/// Faster than life, on a real clock, unless a case says otherwise: 60 s become 0.6 s.
const SPEED: u32 = 100;
/// How far real sleeps may overshoot before a failure is put down to the machine and the case repeated.
const TOLERANCE: Duration = Duration::from_millis(7);
/// Added to each real sleep, so that a deadline set a moment after the step began has passed too.
const SLACK: Duration = Duration::from_millis(2);
const ATTEMPTS: u32 = 12;

/// Runs a case against a crate.
pub fn run(adapter: &dyn Adapter, case: &Case) -> Outcome {
    if let Some(reason) = case.needs.iter().find_map(|&feature| adapter.lacks(feature)) {
        return Outcome::RuledOut(reason);
    }
    let steps = match case.body {
        Body::Steps(steps) => steps,
        Body::Own => {
            return match adapter.own(case.group, case.key) {
                Some(Ok(())) => Outcome::Pass,
                Some(Err(seen)) => Outcome::Fail(seen),
                None => Outcome::Fail("the adapter has no code for this case and no reason why not".into()),
            };
        }
    };
    let mut outcome = Outcome::Pass;
    for _ in 0..ATTEMPTS {
        let mut stage = Stage::new(adapter, case);
        outcome = stage.play(steps);
        if !matches!(outcome, Outcome::Fail(_)) || stage.overshoot <= TOLERANCE {
            return outcome;
        }
    }
    outcome
}

struct Stage<'a> {
    adapter: &'a dyn Adapter,
    case: &'a Case,
    guard: Box<dyn Guard>,
    flights: HashMap<&'static str, Box<dyn Flight>>,
    /// Case time.
    now: Duration,
    speed: u32,
    /// By how much real sleeps came late.
    overshoot: Duration,
}

impl<'a> Stage<'a> {
    fn new(adapter: &'a dyn Adapter, case: &'a Case) -> Self {
        let speed = match adapter.clock() {
            Clock::Virtual => 1,
            Clock::Real => case.speed.unwrap_or(SPEED),
        };
        Self {
            adapter,
            case,
            guard: adapter.build(&case.policy, speed),
            flights: HashMap::new(),
            now: Duration::ZERO,
            speed,
            overshoot: Duration::ZERO,
        }
    }

    fn play(&mut self, steps: &[Step]) -> Outcome {
        for (position, step) in steps.iter().enumerate() {
            match self.take(*step) {
                Ok(()) => {}
                Err(Stop::RuledOut(reason)) => return Outcome::RuledOut(reason),
                Err(Stop::Differs { expected, observed }) => {
                    let before = position.checked_sub(1).map_or("the start".into(), |last| steps[last].to_string());
                    let at = self.now.as_secs_f64();
                    return Outcome::Fail(format!("t={at}, after {before}: expected {expected}, observed {observed}"));
                }
            }
        }
        Outcome::Pass
    }

    fn take(&mut self, step: Step) -> Result<(), Stop> {
        match step {
            Step::At(time) => self.wait_until(Duration::from_millis(time)),
            Step::Trip => {
                for _ in 0..self.guard.failures_to_trip(&self.case.policy) {
                    self.call(End::Err)?;
                }
            }
            Step::Make(count, how) => {
                for _ in 0..count {
                    self.call(how)?;
                }
            }
            Step::Start(label) => match self.guard.start() {
                Some(flight) => drop(self.flights.insert(label, flight)),
                None => return differs(format!("{label} to be admitted"), "a rejection"),
            },
            Step::End(label, how) => {
                if let Some(flight) = self.flights.remove(label) {
                    flight.end(how);
                }
            }
            Step::Admits => {
                if !self.admits() {
                    return differs("a call to be admitted", "a rejection");
                }
            }
            Step::Rejects => {
                if self.admits() {
                    return differs("a rejection", "an admitted call");
                }
            }
            Step::Full => {
                self.needs(Feature::OnePermit)?;
                if self.admits() {
                    return differs("a rejection (no slot is free)", "an admitted call");
                }
            }
            Step::Is(state) => same(state, self.guard.state())?,
            Step::Read(times) => {
                for _ in 0..times {
                    let _: State = self.guard.state();
                }
            }
            Step::Callers { callers, admitted } => same(admitted, self.callers(callers))?,
            Step::FailTogether(callers) => self.fail_together(callers)?,
            Step::Openings(count) => {
                self.needs(Feature::Events)?;
                same(count, self.guard.openings())?;
            }
            Step::Rejections(count) => same(count, self.guard.rejections())?,
            Step::ForceOpen => self.guard.force_open(),
        }
        Ok(())
    }

    fn needs(&self, feature: Feature) -> Result<(), Stop> {
        self.adapter.lacks(feature).map_or(Ok(()), |reason| Err(Stop::RuledOut(reason)))
    }

    fn call(&self, how: End) -> Result<(), Stop> {
        match self.guard.start() {
            Some(flight) => {
                flight.end(how);
                Ok(())
            }
            None => differs("the call to be admitted", "a rejection"),
        }
    }

    /// `adm?`: a call that is admitted goes away again at once, in the gentlest way the crate has.
    fn admits(&self) -> bool {
        let gentle = if self.adapter.lacks(Feature::Cancel).is_some() { End::Ok } else { End::Drop };
        self.guard.start().map(|flight| flight.end(gentle)).is_some()
    }

    fn wait_until(&mut self, time: Duration) {
        let by = time.saturating_sub(self.now);
        match self.adapter.clock() {
            Clock::Virtual => self.guard.advance(by),
            Clock::Real => {
                let asked = by / self.speed + SLACK;
                let started = Instant::now();
                thread::sleep(asked);
                self.overshoot += started.elapsed().saturating_sub(asked);
            }
        }
        self.now = time;
        for flight in self.flights.values_mut() {
            flight.poke();
        }
    }

    fn callers(&self, count: u32) -> u32 {
        let flights = together(count, |_| self.guard.start());
        flights.iter().flatten().count() as u32
    }

    fn fail_together(&self, count: u32) -> Result<(), Stop> {
        let flights: Vec<Mutex<Option<Box<dyn Flight>>>> = (0..count).map(|_| Mutex::new(self.guard.start())).collect();
        let ended = together(count, |caller| {
            let flight = flights[caller as usize].lock().unwrap_or_else(PoisonError::into_inner).take();
            flight.map(|flight| flight.end(End::Err)).is_some()
        });
        same(count, ended.into_iter().filter(|&ended| ended).count() as u32)
    }
}

/// Runs `act` on as many threads at once: they queue at a lock, which is opened when all are there.
fn together<T: Send>(count: u32, act: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let gate = RwLock::new(());
    thread::scope(|scope| {
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        let callers: Vec<_> = (0..count)
            .map(|caller| {
                let (gate, act) = (&gate, &act);
                let body = move || {
                    drop(gate.read());
                    act(caller)
                };
                thread::Builder::new().stack_size(128 * 1024).spawn_scoped(scope, body)
            })
            .collect();
        drop(closed);
        callers.into_iter().flatten().filter_map(|caller| caller.join().ok()).collect()
    })
}

enum Stop {
    Differs { expected: String, observed: String },
    RuledOut(&'static str),
}

fn differs<T>(expected: impl Into<String>, observed: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Differs { expected: expected.into(), observed: observed.into() })
}

fn same<T: PartialEq + std::fmt::Debug>(expected: T, observed: T) -> Result<(), Stop> {
    if expected == observed { Ok(()) } else { differs(format!("{expected:?}"), format!("{observed:?}")) }
}

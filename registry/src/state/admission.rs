//! Whether a call may start, and what the end of a call changes.
//!
//! One admission walks through *time left → override → open → retry budget → rate limit → bulkhead → probe*. It first asks every
//! step, and takes only when all agree. So a rejection has nothing to give back.

use std::time::Duration;

use super::{
    Admission, BreakerState, NotAdmitted, Query, StateChange, Ticket,
    machine::{MachineAnswer, Sample, Step},
    state_change,
};
use crate::{
    clock::Tick,
    error::RejectReason,
    outcome::{Settlement, Verdict},
    policy::Mode,
};

/// Without a timeout and a threshold for slow calls, a call that its caller's deadline cuts is a failure after this time.
const PATIENCE: Duration = Duration::from_secs(10);

impl BreakerState {
    /// May a call start?
    pub(crate) fn admit(&mut self, now: Tick, query: Query) -> (Result<Ticket, NotAdmitted>, Option<StateChange>) {
        match self.try_admit(now, query) {
            Ok((ticket, state_change)) => (Ok(ticket), state_change),
            Err(refusal) => (Err(refusal), None),
        }
    }

    fn try_admit(&mut self, now: Tick, query: Query) -> Result<(Ticket, Option<StateChange>), NotAdmitted> {
        let refused = |reason, retry_in| Err(NotAdmitted::Rejected(reason, retry_in));
        if query.deadline.is_some_and(|deadline| now >= deadline) {
            return refused(RejectReason::NoTimeLeft, None);
        }
        let mode = self.mode(now);
        self.ask_mode(mode, now)?;
        let cost = self.policy.retry.and_then(|retry| retry.budget);
        if query.attempt > 1 && cost.is_some() && !self.budget.affords_retry() {
            return refused(RejectReason::BudgetExhausted, None);
        }
        match (&self.limiter, &self.fleet_limit) {
            (_, Some(fleet_limit)) => fleet_limit.check(now)?,
            (Some(limiter), None) => {
                let limited = |retry_in| NotAdmitted::Rejected(RejectReason::RateLimited, Some(retry_in));
                limiter.check(now).map_err(limited)?;
            }
            (None, None) => {}
        }
        if self.policy.bulkhead.is_some_and(|b| query.in_flight >= b.max_concurrent.get().into()) {
            return refused(RejectReason::BulkheadFull, None);
        }
        // Every step agrees; from here on nothing rejects the call.
        match (&mut self.limiter, &mut self.fleet_limit) {
            (_, Some(fleet_limit)) => fleet_limit.spend(now),
            (Some(limiter), None) => limiter.spend(now),
            (None, None) => {}
        }
        let (admission, state_change) = self.enter(mode, now);
        if let Some(cost) = cost {
            self.budget.book(query.attempt, cost);
        }
        let (alarm, fails_from) = self.time_limits(now, query.deadline);
        let generation = self.machine.generation();
        Ok((Ticket { generation, admission, fast: false, started: Some(now), alarm, fails_from }, state_change))
    }

    /// When a call that starts now is given up, and from when on that is a failure.
    fn time_limits(&self, now: Tick, deadline: Option<Tick>) -> (Option<Tick>, Option<Tick>) {
        let timeout = self.policy.timeout.map(|time| now.after(time));
        let Some(deadline) = deadline else { return (timeout, timeout) };
        // The call ends and is settled before its caller is given up.
        let cut = before_deadline(now, deadline);
        match timeout {
            Some(timeout) => (Some(timeout.min(cut)), Some(timeout)),
            None => {
                let slow = self.policy.trip.window.as_ref().and_then(|w| w.slow).map(|slow| slow.call);
                (Some(cut), Some(now.after(slow.unwrap_or(PATIENCE)).max(cut)))
            }
        }
    }

    /// The first two steps, without taking anything.
    fn ask_mode(&mut self, mode: Mode, now: Tick) -> Result<(), NotAdmitted> {
        match mode {
            Mode::ForceClosed | Mode::Observe => Ok(()),
            Mode::ForceOpen => {
                let retry_in = match self.overrides.forced_open_until(now) {
                    Some(end) => end.since(now),
                    None => self.policy.open.reset_timeout,
                };
                Err(NotAdmitted::Rejected(RejectReason::ForcedOpen, Some(retry_in)))
            }
            Mode::Enforce => match self.machine.peek(now, &self.policy.half_open) {
                MachineAnswer::Pass => Ok(()),
                MachineAnswer::Probe => self.fleet_view.as_mut().map_or(Ok(()), |fleet_view| fleet_view.may_probe(now)),
                MachineAnswer::Open { retry_in } => Err(NotAdmitted::Rejected(RejectReason::Open, Some(retry_in))),
                MachineAnswer::Busy { retry_in } => {
                    Err(NotAdmitted::Rejected(RejectReason::HalfOpenBusy, Some(retry_in)))
                }
            },
        }
    }

    fn enter(&mut self, mode: Mode, now: Tick) -> (Admission, Option<StateChange>) {
        if matches!(mode, Mode::ForceClosed | Mode::ForceOpen) {
            return (Admission::Bypass, None);
        }
        let (admission, transition) = self.machine.admit(now, &self.policy.half_open);
        let admission = match admission {
            MachineAnswer::Pass => Admission::Pass,
            MachineAnswer::Probe => Admission::Probe,
            // Only under observation: the machine would have rejected the call.
            MachineAnswer::Open { .. } | MachineAnswer::Busy { .. } => Admission::Bypass,
        };
        (admission, transition.and_then(|t| self.decided(mode, t, now)))
    }

    /// A call ended.
    pub(crate) fn settle(
        &mut self,
        ticket: Ticket,
        sample: Sample,
        now: Tick,
        draw: u64,
    ) -> (Settlement, Option<StateChange>) {
        if ticket.admission == Admission::Bypass {
            let current = ticket.generation == self.machine.generation();
            return (if current { Settlement::Counted } else { Settlement::Late }, None);
        }
        let mode = self.mode(now);
        let peers_failed = self.machine.peers_failed();
        let (settlement, transition) = self.machine.settle(ticket.generation, sample, now, draw, &self.policy);
        if let Some(fleet_view) = &mut self.fleet_view
            && peers_failed > self.machine.peers_failed()
            && transition.is_none()
        {
            fleet_view.succeeded();
        }
        (settlement, transition.and_then(|t| self.decided(mode, t, now)))
    }

    /// Records what the machine decided, for the fleet and for observers.
    pub(super) fn decided(&mut self, mode: Mode, transition: Step, now: Tick) -> Option<StateChange> {
        if let Some(fleet_view) = &mut self.fleet_view {
            match mode {
                Mode::Enforce => fleet_view.decided(&transition, self.machine.openings(), now),
                // What a breaker would do under observation is not shared.
                Mode::Observe | Mode::ForceClosed | Mode::ForceOpen => fleet_view.moved_on(),
            }
        }
        state_change(mode, transition)
    }

    /// The sample that `verdict` makes of a call that took `took`.
    pub(crate) fn sample(&self, verdict: Verdict, not_before: Option<Duration>, took: Option<Duration>) -> Sample {
        let threshold = self.policy.trip.window.as_ref().and_then(|w| w.slow).map(|slow| slow.call);
        let slow = matches!((took, threshold), (Some(took), Some(threshold)) if took >= threshold);
        Sample { verdict, slow, not_before }
    }
}

/// A little before `deadline`: a tenth of the time that is left, at most a second.
pub(crate) fn before_deadline(now: Tick, deadline: Tick) -> Tick {
    let left = deadline.since(now);
    now.after(left - (left / 10).min(Duration::from_secs(1)))
}

//! What changes a breaker besides calls: operators, a reload, and the records of its store.

use std::{sync::Arc, time::Duration};

use super::{
    BreakerState, StateChange,
    fleet_view::OrderKind,
    limiter::Limiter,
    machine::{Cause, Step},
    overrides::{ActiveOverride, Override},
    state_change,
};
use crate::{
    clock::Tick,
    outcome::State,
    policy::{Mode, Policy},
};

impl BreakerState {
    /// Puts an override in force. Calls in flight when a breaker is forced are late when they end.
    pub(crate) fn hold(&mut self, kind: Mode, order: Override, now: Tick) -> Option<StateChange> {
        let before = self.state(now);
        if kind != Mode::Observe {
            self.machine.disown_calls(now);
        }
        if let Some(fleet_view) = &mut self.fleet_view {
            fleet_view.ordered(OrderKind::Hold(kind, order.clone()), now);
        }
        self.overrides.hold(kind, order, now);
        self.operated(before, now)
    }

    /// Releases the overrides of `who`, or all of them. `None` if there was none.
    pub(crate) fn release(&mut self, who: Option<&str>, now: Tick) -> Option<Option<StateChange>> {
        let before = self.state(now);
        let any = match who {
            Some(who) => self.overrides.release(who, now),
            None => self.overrides.release_all(now),
        };
        if any && let Some(fleet_view) = &mut self.fleet_view {
            fleet_view.ordered(OrderKind::Release(who.map(str::to_owned)), now);
        }
        any.then(|| self.operated(before, now))
    }

    /// Closes the breaker and forgets everything.
    pub(crate) fn reset(&mut self, now: Tick) -> Option<StateChange> {
        let mode = self.mode(now);
        let transition = self.machine.reset(now)?;
        let state_change = self.decided(mode, transition, now);
        if let Some(change) = self.fleet_view.as_mut().and_then(|fleet_view| fleet_view.change.as_mut()) {
            change.alone = true; // an operator decided later than the record, so this outranks it
        }
        state_change
    }

    // ── from the store ────────────────────────────────────────────────────────────────────────────────────────────────

    /// Opens, because a record says so: one of this process before a restart, or one of another process.
    pub(crate) fn adopt_open(&mut self, deadline: Tick, openings: u32, cause: Cause, now: Tick) -> Option<StateChange> {
        let mode = self.mode(now);
        let transition = self.machine.adopt_open(deadline, openings, cause, now);
        self.moved_on();
        transition.and_then(|t| state_change(mode, t))
    }

    /// Closes, because the probe of another process succeeded.
    pub(crate) fn adopt_close(&mut self, now: Tick) -> Option<StateChange> {
        let mode = self.mode(now);
        let transition = self.machine.adopt_close(now);
        self.moved_on();
        transition.and_then(|t| state_change(mode, t))
    }

    fn moved_on(&mut self) {
        if let Some(fleet_view) = &mut self.fleet_view {
            fleet_view.moved_on();
        }
    }

    /// A peer says how many failures in a row it has; zero is a success.
    pub(crate) fn receive_failures(&mut self, peer: u64, failures: u32, now: Tick, draw: u64) -> Option<StateChange> {
        let mode = self.mode(now);
        let policy = self.policy.clone();
        // A failure from longer ago than an opening lasts belongs to another incident.
        let lasting = policy.open.reset_timeout.max(Duration::from_secs(60));
        let sum = self.fleet_view.as_mut()?.received(peer, failures, now, lasting);
        let transition = self.machine.receive_failures(sum, now, draw, &policy)?;
        self.decided(mode, transition, now)
    }

    /// Puts exactly these overrides in force. `None` if they are in force already.
    pub(crate) fn adopt_overrides(&mut self, holds: Vec<ActiveOverride>, now: Tick) -> Option<Option<StateChange>> {
        let before = self.state(now);
        let mode = self.mode(now);
        if !self.overrides.replace(holds, now) {
            return None;
        }
        if mode != self.mode(now) && matches!(self.mode(now), Mode::ForceOpen | Mode::ForceClosed) {
            self.machine.disown_calls(now);
        }
        Some(self.operated(before, now))
    }

    /// Goes by `policy` from now on; state, deadline, generation and evidence stay. `None` if nothing changed.
    pub(crate) fn reconfigure(&mut self, policy: &Arc<Policy>, now: Tick) -> Option<Option<StateChange>> {
        if self.policy == *policy {
            return None;
        }
        let (before, mode) = (self.state(now), self.mode(now));
        self.machine.reconfigure(&self.policy, policy);
        if self.policy.rate_limit != policy.rate_limit {
            self.limiter = policy.rate_limit.as_ref().map(|limit| Box::new(Limiter::new(limit)));
        }
        self.policy = policy.clone();
        self.join(now);
        if self.mode(now) != mode && matches!(self.mode(now), Mode::ForceClosed | Mode::ForceOpen) {
            self.machine.disown_calls(now);
        }
        Some(self.operated(before, now))
    }

    /// Overrides that have ended by themselves, and the state that callers feel since the last of these ends. `None` if
    /// there is none. To be asked before anything else at `now`, so that the end of an override is heard like its
    /// beginning.
    pub(crate) fn end_overrides(&mut self, now: Tick) -> Option<(Vec<ActiveOverride>, Option<StateChange>)> {
        let ended = self.overrides.take_ended(now)?;
        let began = ended.iter().filter_map(|hold| hold.ends).max().unwrap_or(now);
        let (from, to) = (self.heard.state, self.state(now));
        let step = Step {
            from,
            to,
            cause: Cause::OverrideEnded,
            generation: self.machine.generation(),
            open_for: None,
            began,
        };
        Some((ended, (from != to).then_some(StateChange::Transition(step))))
    }

    /// The transition that callers feel when the mode changed.
    fn operated(&self, before: State, now: Tick) -> Option<StateChange> {
        let after = self.state(now);
        (before != after).then(|| {
            StateChange::Transition(Step {
                from: before,
                to: after,
                cause: Cause::Operator,
                generation: self.machine.generation(),
                open_for: None,
                began: now,
            })
        })
    }
}

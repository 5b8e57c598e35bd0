//! The state as observers have heard of it. The transitions that they hear form a path: each begins where the one before ended.
//!
//! The machine changes its state by time alone too: an opening is due at its deadline, with no call to say so. And an override
//! covers what the machine does beneath it. So a step of the machine may begin at a state that observers have not heard of.

use crate::{
    clock::Tick,
    outcome::State,
    state::machine::{Cause, Step},
};

/// The state that observers have heard of last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) state: State,
    /// Since when it has held.
    pub(crate) since: Tick,
}

/// A step, and since when the state before it had held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeardStep {
    pub(crate) step: Step,
    pub(crate) since: Tick,
}

impl Heard {
    /// What observers are to hear so that `step` goes on from where they are: nothing, the step, or the time step that led
    /// to it and the step.
    pub(crate) fn follow(&mut self, step: Step) -> [Option<HeardStep>; 2] {
        let due = (self.state == State::Open && step.from == State::HalfOpen && step.to != State::HalfOpen)
            .then(|| Step { to: State::HalfOpen, cause: Cause::Due, open_for: None, ..step });
        [due.and_then(|due| self.hear(due)), self.hear(step)]
    }

    fn hear(&mut self, step: Step) -> Option<HeardStep> {
        let before = *self;
        if before.state == step.to {
            return None;
        }
        *self = Self { state: step.to, since: step.began };
        Some(HeardStep { step: Step { from: before.state, ..step }, since: before.since })
    }
}

#[cfg(test)]
mod tests {
    use State::{Closed, HalfOpen, Open};

    use super::*;

    fn step(from: State, to: State) -> Step {
        Step { from, to, cause: Cause::Operator, generation: 1, open_for: None, began: Tick::ZERO }
    }

    fn heard(state: State, next: Step) -> Vec<(State, State)> {
        let mut heard = Heard { state, since: Tick::ZERO };
        heard.follow(next).into_iter().flatten().map(|heard| (heard.step.from, heard.step.to)).collect()
    }

    #[test]
    fn a_step_goes_on_from_what_was_heard() {
        assert_eq!(heard(Closed, step(Closed, Open)), [(Closed, Open)]);
        assert_eq!(heard(Open, step(HalfOpen, Closed)), [(Open, HalfOpen), (HalfOpen, Closed)], "due by time alone");
        assert_eq!(heard(Open, step(HalfOpen, Open)), [(Open, HalfOpen), (HalfOpen, Open)], "the probe failed");
        assert_eq!(heard(Open, step(Open, HalfOpen)), [(Open, HalfOpen)]);
        assert_eq!(heard(HalfOpen, step(Open, HalfOpen)), [], "heard at the end of an override");
        assert_eq!(heard(Closed, step(HalfOpen, Open)), [(Closed, Open)], "beneath an override");
    }
}

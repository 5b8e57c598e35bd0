//! Overrides of operators: they outrank timers, verdicts and the configuration.
//!
//! Each override has a holder, a reason and, if its holder wishes, an end. Two holders of the same override hold it together:
//! it lasts until both have let go. Of different kinds, the more cautious outranks: open before closed before observe.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{clock::Tick, policy::Mode};

/// Who overrules a breaker, why, and for how long.
///
/// ```
/// use std::time::Duration;
/// use circuit_registry::Override;
///
/// let maintenance = Override::new("alice", "announced maintenance").lasting(Duration::from_secs(3600));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Override {
    /// Who holds it. The same holder's later override of the same kind replaces the earlier one.
    pub who: String,
    /// Why.
    pub why: String,
    /// How long from now; without it, until released.
    pub ttl: Option<Duration>,
}

impl Override {
    /// An override that lasts until it is released.
    pub fn new(who: impl Into<String>, why: impl Into<String>) -> Self {
        Self { who: who.into(), why: why.into(), ttl: None }
    }

    /// The same, ending by itself after `time`.
    #[must_use]
    pub const fn lasting(mut self, time: Duration) -> Self {
        self.ttl = Some(time);
        self
    }
}

/// An override in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActiveOverride {
    pub(crate) kind: Mode,
    pub(crate) who: String,
    pub(crate) why: String,
    pub(crate) ends: Option<Tick>,
}

impl ActiveOverride {
    fn holds(&self, now: Tick) -> bool {
        self.ends.is_none_or(|end| now < end)
    }
}

/// The overrides of one breaker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overrides {
    holds: Vec<ActiveOverride>,
}

impl Overrides {
    /// Adds an override. `kind` is never [`Mode::Enforce`].
    pub(crate) fn hold(&mut self, kind: Mode, order: Override, now: Tick) {
        self.holds.retain(|h| h.holds(now) && !(h.kind == kind && h.who == order.who));
        self.holds.push(ActiveOverride {
            kind,
            who: order.who,
            why: order.why,
            ends: order.ttl.map(|time| now.after(time)),
        });
    }

    /// Puts exactly `holds` in force: what a store remembers. False if they were.
    pub(crate) fn replace(&mut self, holds: Vec<ActiveOverride>, now: Tick) -> bool {
        let same = |a: &ActiveOverride, b: &ActiveOverride| {
            // Times that went through a store and back are not the same to the nanosecond.
            let near = match (a.ends, b.ends) {
                (Some(a), Some(b)) => a.since(b).max(b.since(a)) < Duration::from_millis(500),
                (a, b) => a == b,
            };
            near && a.kind == b.kind && a.who == b.who && a.why == b.why
        };
        let present = self.in_force(now).count();
        if present == holds.len() && holds.iter().all(|new| self.in_force(now).any(|old| same(new, old))) {
            return false;
        }
        self.holds = holds;
        true
    }

    /// Lets go of everything `who` holds. Whether that was anything.
    pub(crate) fn release(&mut self, who: &str, now: Tick) -> bool {
        let any = self.in_force(now).any(|h| h.who == who);
        self.holds.retain(|h| h.holds(now) && h.who != who);
        any
    }

    /// Lets go of everything. Whether that was anything.
    pub(crate) fn release_all(&mut self, now: Tick) -> bool {
        std::mem::take(&mut self.holds).iter().any(|h| h.holds(now))
    }

    /// Takes out the overrides that have ended by themselves; `None` if there is none.
    pub(crate) fn take_ended(&mut self, now: Tick) -> Option<Vec<ActiveOverride>> {
        if self.holds.iter().all(|h| h.holds(now)) {
            return None;
        }
        Some(self.holds.extract_if(.., |h| !h.holds(now)).collect())
    }

    /// No override is in force, and none will be by time alone.
    pub(crate) fn is_idle(&self, now: Tick) -> bool {
        self.in_force(now).next().is_none()
    }

    /// The mode at `now`, and the override that made it so.
    pub(crate) fn mode(&self, configured: Mode, now: Tick) -> (Mode, Option<&ActiveOverride>) {
        match self.in_force(now).max_by_key(|h| h.kind) {
            Some(hold) => (hold.kind, Some(hold)),
            None => (configured, None),
        }
    }

    /// When a forced opening ends: the last of its holders' ends, if all have one.
    pub(crate) fn forced_open_until(&self, now: Tick) -> Option<Tick> {
        self.in_force(now)
            .filter(|h| h.kind == Mode::ForceOpen)
            .map(|h| h.ends)
            .max_by_key(|end| end.map_or(u64::MAX, Tick::as_nanos))?
    }

    /// The overrides in force.
    pub(crate) fn in_force(&self, now: Tick) -> impl Iterator<Item = &ActiveOverride> {
        self.holds.iter().filter(move |h| h.holds(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Tick {
        Tick::ZERO.after(Duration::from_secs(secs))
    }

    #[test]
    fn two_holders_must_both_let_go() {
        let mut overrides = Overrides::default();
        overrides.hold(Mode::ForceOpen, Override::new("alice", "a"), at(0));
        overrides.hold(Mode::ForceOpen, Override::new("bob", "b"), at(0));
        assert!(overrides.release("alice", at(1)));
        assert_eq!(overrides.mode(Mode::Enforce, at(1)).0, Mode::ForceOpen);
        assert!(overrides.release("bob", at(1)) && !overrides.release("bob", at(1)));
        assert_eq!(overrides.mode(Mode::Enforce, at(1)).0, Mode::Enforce);
    }

    #[test]
    fn an_override_ends_by_itself_and_the_cautious_one_wins() {
        let mut overrides = Overrides::default();
        overrides.hold(Mode::ForceClosed, Override::new("bob", "b"), at(0));
        overrides.hold(Mode::ForceOpen, Override::new("alice", "a").lasting(Duration::from_secs(60)), at(0));
        assert_eq!(overrides.mode(Mode::Observe, at(59)).0, Mode::ForceOpen);
        assert_eq!(overrides.forced_open_until(at(59)), Some(at(60)));
        assert_eq!(overrides.mode(Mode::Observe, at(60)).0, Mode::ForceClosed);
        assert!(
            overrides.release("bob", at(60)) && !overrides.release("alice", at(60)),
            "what has ended cannot be released"
        );
        assert_eq!(overrides.mode(Mode::Observe, at(60)).0, Mode::Observe);
    }

    #[test]
    fn the_same_holder_replaces_its_own() {
        let mut overrides = Overrides::default();
        overrides.hold(Mode::ForceOpen, Override::new("alice", "a").lasting(Duration::from_secs(60)), at(0));
        overrides.hold(Mode::ForceOpen, Override::new("alice", "longer"), at(10));
        assert_eq!(overrides.in_force(at(100)).count(), 1);
        assert_eq!(overrides.forced_open_until(at(100)), None);
    }
}

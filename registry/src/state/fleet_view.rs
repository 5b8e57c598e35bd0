//! What one process knows of its fleet, for one breaker. Pure: it gets the answers of the store and the time.

use std::{sync::Arc, time::Duration};

use crate::{
    clock::{Stamp, Tick},
    error::RejectReason,
    outcome::State,
    policy::Mode,
    state::{
        NotAdmitted,
        machine::{Cause, Step},
        overrides::Override,
    },
};

/// A question of a call to the store is answered within this time, or decided here.
pub(crate) const ASK: Duration = Duration::from_millis(100);

/// What a call has to ask before it can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// May this process probe?
    Probe,
    /// Is there a token in the fleet's rate limit?
    Token,
}

/// Who may send the probes of the present opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbeLease {
    /// No call has asked yet.
    Unknown,
    /// The question is out.
    Asked { until: Tick },
    /// This process.
    Mine { until: Tick },
    /// Another process.
    Theirs { until: Tick },
    /// The store did not answer in time: each goes by itself.
    Alone { until: Tick },
}

/// A change of state that the store has not heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    pub(crate) at: Tick,
    /// The record that was known when it was decided.
    pub(crate) on: Stamp,
    /// Decided without the store: between two such decisions the later one is probe lease.
    pub(crate) alone: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Opened {
        deadline: Tick,
        open_for: Duration,
        cause: Cause,
        openings: u32,
        /// From closed, not by a failed probe.
        fresh: bool,
    },
    Closed,
}

/// An operator's word that the store has not heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) kind: OrderKind,
    pub(crate) at: Tick,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OrderKind {
    Hold(Mode, Override),
    /// Of one holder, or of all.
    Release(Option<String>),
}

/// The record that this process goes by.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) epoch: Stamp,
    /// Its text; `None` if there is none.
    pub(crate) text: Option<Arc<str>>,
    /// It is open: probes need a lease.
    pub(crate) open: bool,
    /// While it is open: when a probe is due.
    pub(crate) until: Option<Stamp>,
}

/// What one process knows of its fleet, for one breaker.
#[derive(Debug)]
pub(crate) struct FleetView {
    /// The store answers.
    pub(crate) up: bool,
    pub(crate) known: Known,
    pub(crate) change: Option<Change>,
    pub(crate) orders: Vec<Order>,
    probe_lease: ProbeLease,
    /// Peers with failures in a row: which peer, how many, and when it published that.
    peers: Vec<(u64, u32, Tick)>,
    /// The number of failures in a row that peers were published of, and whether a success is to be published.
    published: u32,
    recovered: bool,
}

/// Beyond this many unsent orders of one breaker the oldest are dropped.
const ORDERS: usize = 256;

impl FleetView {
    pub(crate) const fn new() -> Self {
        Self {
            up: false,
            known: Known { epoch: Stamp::from_micros(0), text: None, open: false, until: None },
            change: None,
            orders: Vec::new(),
            probe_lease: ProbeLease::Unknown,
            peers: Vec::new(),
            published: 0,
            recovered: false,
        }
    }

    // ── probes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    /// May a probe that is due be sent from here?
    pub(crate) fn may_probe(&mut self, now: Tick) -> Result<(), NotAdmitted> {
        if !self.up || !self.known.open {
            return Ok(());
        }
        if let Some(until) = self.held(now) {
            return Err(NotAdmitted::Rejected(RejectReason::Open, Some(until.since(now))));
        }
        match self.probe_lease {
            ProbeLease::Mine { until } | ProbeLease::Alone { until } if now < until => Ok(()),
            _ => {
                self.probe_lease = ProbeLease::Asked { until: now.after(ASK) };
                Err(NotAdmitted::Ask(Question::Probe))
            }
        }
    }

    /// Until when someone else is probing, or is being asked about.
    pub(crate) fn held(&self, now: Tick) -> Option<Tick> {
        match self.probe_lease {
            ProbeLease::Theirs { until } | ProbeLease::Asked { until } if self.up && now < until => Some(until),
            _ => None,
        }
    }

    /// This process has the probe, until then.
    pub(crate) const fn granted(&mut self, until: Tick) {
        self.probe_lease = ProbeLease::Mine { until };
    }

    /// Another process has it, until then. What this one already holds it keeps.
    pub(crate) fn taken(&mut self, until: Tick, now: Tick) {
        if !matches!(self.probe_lease, ProbeLease::Mine { until } if now < until) {
            self.probe_lease = ProbeLease::Theirs { until };
        }
    }

    /// The store does not say: this process decides by itself, until then.
    pub(crate) const fn alone(&mut self, until: Tick) {
        self.probe_lease = ProbeLease::Alone { until };
    }

    /// It is unknown which process has the probe of this opening.
    pub(crate) const fn ask_again(&mut self) {
        self.probe_lease = ProbeLease::Unknown;
    }

    /// Until when this process has the probe.
    pub(crate) fn mine(&self, now: Tick) -> Option<Tick> {
        match self.probe_lease {
            ProbeLease::Mine { until } if now < until => Some(until),
            _ => None,
        }
    }

    // ── what the fleet has to hear ─────────────────────────────────────────────────────────────────────────────────────

    /// The machine changed its state by its own judgement.
    pub(crate) fn decided(&mut self, transition: &Step, openings: u32, now: Tick) {
        let kind = match transition.to {
            State::HalfOpen => return,
            State::Closed => ChangeKind::Closed,
            State::Open => {
                let open_for = transition.open_for.unwrap_or_default();
                ChangeKind::Opened {
                    deadline: now.after(open_for),
                    open_for,
                    cause: transition.cause,
                    openings,
                    fresh: transition.from == State::Closed,
                }
            }
        };
        let alone = !self.up || matches!(self.probe_lease, ProbeLease::Alone { .. });
        self.change = Some(Change { kind, at: now, on: self.known.epoch, alone });
        self.moved_on();
    }

    /// A new state begins: no process has its probe, and earlier failures do not count.
    pub(crate) fn moved_on(&mut self) {
        self.probe_lease = ProbeLease::Unknown;
        self.peers.clear();
        (self.published, self.recovered) = (0, false);
    }

    pub(crate) fn ordered(&mut self, kind: OrderKind, at: Tick) {
        if self.orders.len() >= ORDERS {
            self.orders.remove(0);
        }
        self.orders.push(Order { kind, at });
    }

    // ── failures in a row, counted together ────────────────────────────────────────────────────────────────────────────

    /// A peer says how many it has; zero is a success. The sum of all peers.
    pub(crate) fn received(&mut self, peer: u64, failures: u32, now: Tick, lasting: Duration) -> u32 {
        self.peers.retain(|(who, _, at)| failures > 0 && *who != peer && now < at.after(lasting));
        if failures > 0 {
            self.peers.push((peer, failures, now));
        }
        self.peers.iter().fold(0, |sum, (_, failures, _)| sum.saturating_add(*failures))
    }

    /// A call of ours succeeded while peers were failing: it counts for all.
    pub(crate) fn succeeded(&mut self) {
        self.peers.clear();
        self.recovered = true;
    }

    /// The number of failures in a row to publish the peers now, if there is something new to publish.
    pub(crate) fn publish(&mut self, consecutive: u32) -> Option<u32> {
        let success = std::mem::take(&mut self.recovered) && consecutive == 0;
        if consecutive == self.published && !success {
            return None;
        }
        self.published = consecutive;
        Some(consecutive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Tick {
        Tick::ZERO.after(Duration::from_millis(millis))
    }

    fn shared() -> FleetView {
        let mut fleet_view = FleetView::new();
        fleet_view.up = true;
        fleet_view.known.open = true;
        fleet_view
    }

    #[test]
    fn one_caller_asks_and_the_others_wait_for_the_answer() {
        let mut fleet_view = shared();
        assert_eq!(fleet_view.may_probe(at(0)), Err(NotAdmitted::Ask(Question::Probe)));
        assert_eq!(
            fleet_view.may_probe(at(40)),
            Err(NotAdmitted::Rejected(RejectReason::Open, Some(Duration::from_millis(60))))
        );
        assert_eq!(fleet_view.may_probe(at(100)), Err(NotAdmitted::Ask(Question::Probe)), "an answer that never came");
    }

    #[test]
    fn a_lease_holds_until_it_ends() {
        let mut fleet_view = shared();
        fleet_view.granted(at(1000));
        fleet_view.taken(at(5000), at(10));
        assert_eq!((fleet_view.may_probe(at(999)), fleet_view.mine(at(999))), (Ok(()), Some(at(1000))));
        assert!(fleet_view.may_probe(at(1000)).is_err());
        fleet_view.taken(at(5000), at(1001));
        assert_eq!(fleet_view.held(at(4999)), Some(at(5000)));
        assert_eq!(fleet_view.may_probe(at(5000)), Err(NotAdmitted::Ask(Question::Probe)));
    }

    #[test]
    fn without_a_store_or_a_shared_opening_no_call_asks() {
        let mut fleet_view = shared();
        fleet_view.taken(at(5000), at(0));
        fleet_view.up = false;
        assert_eq!((fleet_view.may_probe(at(1)), fleet_view.held(at(1))), (Ok(()), None));
        fleet_view.up = true;
        fleet_view.known.open = false;
        assert_eq!(fleet_view.may_probe(at(1)), Ok(()));
    }

    #[test]
    fn peers_failures_add_up_until_someone_succeeds() {
        let minute = Duration::from_secs(60);
        let mut fleet_view = shared();
        assert_eq!(fleet_view.received(1, 2, at(0), minute), 2);
        assert_eq!(fleet_view.received(2, 1, at(1), minute), 3);
        assert_eq!(fleet_view.received(1, 3, at(2), minute), 4, "the newest word of each");
        assert_eq!(
            fleet_view.received(3, 1, at(60_001), minute),
            4,
            "an old word is forgotten: {:?}",
            fleet_view.peers
        );
        assert_eq!(fleet_view.received(2, 0, at(60_002), minute), 0, "a success anywhere ends the row");
        fleet_view.received(1, 2, at(60_003), minute);
        fleet_view.succeeded();
        assert_eq!(fleet_view.publish(0), Some(0));
        assert_eq!(fleet_view.publish(0), None, "once");
        assert_eq!((fleet_view.publish(2), fleet_view.publish(2), fleet_view.publish(0)), (Some(2), None, Some(0)));
    }
}

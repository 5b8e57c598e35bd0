//! What becomes of a record when a process has something to add: pure, so that any interleaving can be tried.
//!
//! A store compares and exchanges texts; it knows nothing of breakers. So a process reads the record, merges its own into it and
//! puts the result in its place, or starts again if another was faster. Every decision has an epoch, which only grows.
//! A verdict on an opening names the opening it is about, and is void if that is over: a process that was frozen while the world
//! went on cannot undo what happened since.

use std::time::Duration;

use crate::{
    policy::Mode,
    snapshot::{Snapshot, Stamp, StoredHold, StoredState, Vote},
};

/// Overrides that ended or were released are remembered so long.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);

/// What a process has to add to a record.
#[derive(Debug, Clone)]
pub(crate) struct Proposal {
    /// The process.
    pub(crate) by: String,
    /// Its own state, for a record that does not exist.
    pub(crate) own: Snapshot,
    pub(crate) change: Option<Decision>,
    pub(crate) orders: Vec<(OrderedHold, Stamp)>,
}

/// A change of state, in the store's time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) kind: Decided,
    pub(crate) at: Stamp,
    /// The epoch of the record it was decided on.
    pub(crate) on: Stamp,
    /// Decided without the store.
    pub(crate) alone: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decided {
    Opened { until: Stamp, open_for: Duration, openings: u32, cause: String, throttled: bool, fresh: bool },
    Closed,
}

/// An operator's word, in the store's time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OrderedHold {
    Hold { kind: Mode, who: String, why: String, ends: Option<Stamp> },
    Release(Option<String>),
}

/// What became of a change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The record says it now. Also if there was nothing to say.
    Accepted,
    /// It counts, and more processes must say the same: until then each goes by its own state.
    Waiting,
    /// The record knows better.
    Superseded,
}

/// Merges `proposal` into `current`. `quorum`: so many processes must open before the fleet does.
pub(crate) fn merge(current: Option<Snapshot>, proposal: &Proposal, now: Stamp, quorum: u32) -> (Snapshot, Outcome) {
    let seeded = current.is_none();
    let mut record = current.unwrap_or_else(|| proposal.own.clone());
    record.votes.retain(|vote| now < vote.until);
    let outcome = match &proposal.change {
        None => Outcome::Accepted,
        // Its own state, which it just brought in, is no evidence against its own decision.
        Some(change) if seeded => {
            (record.state, record.epoch) = (StoredState::Closed, change.on);
            decide(&mut record, change, proposal, quorum)
        }
        Some(change) => decide(&mut record, change, proposal, quorum),
    };
    for (order, at) in &proposal.orders {
        obey(&mut record.overrides, order, *at);
    }
    record.overrides.retain(|hold| hold.holds(now) || now < hold.epoch.after(REMEMBERED));
    (record, outcome)
}

fn decide(record: &mut Snapshot, change: &Decision, proposal: &Proposal, quorum: u32) -> Outcome {
    // About the present record; or made without the store, and later than the record.
    let valid = change.on >= record.epoch || (change.alone && change.at > record.epoch);
    match &change.kind {
        Decided::Closed => {
            record.votes.retain(|vote| vote.by != proposal.by);
            if !record.is_open() {
                return Outcome::Accepted; // nobody else thought otherwise
            }
            if !valid {
                return Outcome::Superseded;
            }
            let votes = std::mem::take(&mut record.votes);
            *record = Snapshot {
                overrides: std::mem::take(&mut record.overrides),
                votes,
                ..decided(record, change, proposal)
            };
            Outcome::Accepted
        }
        Decided::Opened { until, throttled, fresh, .. } => {
            if record.is_open() {
                // A fresh opening of ours beside one that is in force is the same one, unless we were asked to stay away for longer.
                let in_force = record.until.is_some_and(|present| change.at < present);
                let longer = *throttled && record.until.is_none_or(|present| *until > present);
                if (*fresh && in_force && !longer) || (!*fresh && !valid) {
                    return Outcome::Superseded;
                }
            } else if !*fresh && !valid {
                return Outcome::Superseded; // a probe failed, and another's succeeded since
            } else if quorum > 1 {
                record.votes.retain(|vote| vote.by != proposal.by);
                record.votes.push(Vote { by: proposal.by.clone(), until: *until });
                if (record.votes.len() as u64) < u64::from(quorum) {
                    return Outcome::Waiting;
                }
            }
            *record =
                Snapshot { overrides: std::mem::take(&mut record.overrides), ..decided(record, change, proposal) };
            Outcome::Accepted
        }
    }
}

/// The record after `change`.
fn decided(record: &Snapshot, change: &Decision, proposal: &Proposal) -> Snapshot {
    let epoch = change.at.max(record.epoch.max(change.on).after(Duration::from_micros(1)));
    let base = Snapshot {
        state: StoredState::Closed,
        epoch,
        until: None,
        open_for: Duration::ZERO,
        openings: 0,
        cause: String::new(),
        by: proposal.by.clone(),
        overrides: Vec::new(),
        votes: Vec::new(),
        ..proposal.own.clone()
    };
    match &change.kind {
        Decided::Closed => base,
        Decided::Opened { until, open_for, openings, cause, .. } => Snapshot {
            state: StoredState::Open,
            until: Some(*until),
            open_for: *open_for,
            openings: *openings,
            cause: cause.clone(),
            ..base
        },
    }
}

/// Takes an operator's word into account: of two words about the same, the newer one holds.
fn obey(holds: &mut Vec<StoredHold>, order: &OrderedHold, at: Stamp) {
    match order {
        OrderedHold::Hold { kind, who, why, ends } => {
            let new =
                StoredHold { kind: *kind, who: who.clone(), why: why.clone(), ends: *ends, epoch: at, released: false };
            match holds.iter_mut().find(|hold| hold.kind == *kind && hold.who == *who) {
                Some(old) if old.epoch > at => {}
                Some(old) => *old = new,
                None => holds.push(new),
            }
        }
        OrderedHold::Release(who) => {
            let concerned = |hold: &&mut StoredHold| who.as_ref().is_none_or(|who| hold.who == *who);
            for hold in holds.iter_mut().filter(concerned).filter(|hold| hold.epoch <= at) {
                (hold.released, hold.epoch) = (true, at);
            }
        }
    }
}

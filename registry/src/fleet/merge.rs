//! Merges the change of a process into a record. This is pure, so tests can try any interleaving.
//!
//! A store compares and exchanges texts, and knows nothing about breakers. So a process reads the record, merges its change into it and
//! puts the result in its place. If another process was faster, it starts again. Every decision has an epoch, which only grows. A
//! verdict on an opening names that opening, and is void if the opening is over: a process that was frozen cannot undo what the
//! others decided since.

use std::time::Duration;

use crate::{
    clock::Stamp,
    policy::Mode,
    store::record::{Snapshot, StoredOverride, StoredState, Vote},
};

/// How long overrides stay in a record after they ended or were released.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);

/// What a process adds to a record.
#[derive(Debug, Clone)]
pub(crate) struct Proposal {
    /// The process.
    pub(crate) by: String,
    /// Its own state, for a record that does not exist.
    pub(crate) own: Snapshot,
    pub(crate) change: Option<Decision>,
    pub(crate) orders: Vec<(OverrideOrder, Stamp)>,
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

/// An operator's order, in the store's time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OverrideOrder {
    Hold { kind: Mode, who: String, why: String, ends: Option<Stamp> },
    Release(Option<String>),
}

/// Whether a record takes a change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The record has it. Also if there was no change.
    Accepted,
    /// It counts as a vote, but more processes must open first. Until then each goes by its own state.
    Waiting,
    /// The record has a newer decision.
    Superseded,
}

/// Merges `proposal` into `current`. `quorum`: the number of processes that must open before the fleet does.
pub(crate) fn merge(current: Option<Snapshot>, proposal: &Proposal, now: Stamp, quorum: u32) -> (Snapshot, Outcome) {
    let seeded = current.is_none();
    let mut record = current.unwrap_or_else(|| proposal.own.clone());
    record.votes.retain(|vote| now < vote.until);
    let outcome = match &proposal.change {
        None => Outcome::Accepted,
        // The record starts as the process's own state, which is no evidence against its own decision.
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
                return Outcome::Accepted; // no other process has it open
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

/// Enters an operator's order: of two orders about the same override, the newer one counts.
fn obey(holds: &mut Vec<StoredOverride>, order: &OverrideOrder, at: Stamp) {
    match order {
        OverrideOrder::Hold { kind, who, why, ends } => {
            let new = StoredOverride {
                kind: *kind,
                who: who.clone(),
                why: why.clone(),
                ends: *ends,
                epoch: at,
                released: false,
            };
            match holds.iter_mut().find(|hold| hold.kind == *kind && hold.who == *who) {
                Some(old) if old.epoch > at => {}
                Some(old) => *old = new,
                None => holds.push(new),
            }
        }
        OverrideOrder::Release(who) => {
            let concerned = |hold: &&mut StoredOverride| who.as_ref().is_none_or(|who| hold.who == *who);
            for hold in holds.iter_mut().filter(concerned).filter(|hold| hold.epoch <= at) {
                (hold.released, hold.epoch) = (true, at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::policy::Policy;

    fn at(secs: u64) -> Stamp {
        Stamp::from_micros(secs * 1_000_000)
    }

    fn decision(kind: Decided, time: u64, on: Stamp, alone: bool) -> Proposal {
        let change = Some(Decision { kind, at: at(time), on, alone });
        Proposal { by: "a".into(), own: Snapshot::closed("s", &Policy::default()), change, orders: Vec::new() }
    }

    fn opened(until: u64, fresh: bool, throttled: bool) -> Decided {
        let open_for = Duration::from_secs(60);
        Decided::Opened { until: at(until), open_for, openings: 1, cause: "test".into(), throttled, fresh }
    }

    /// The record of an opening at `time` that lasts a minute.
    fn open(time: u64) -> Snapshot {
        merge(None, &decision(opened(time + 60, true, false), time, at(0), false), at(time), 1).0
    }

    #[test]
    fn a_second_opening_joins_the_one_in_force() {
        let first = open(100);
        assert_eq!((first.state, first.until, first.epoch), (StoredState::Open, Some(at(160)), at(100)));
        let again = decision(opened(165, true, false), 105, at(0), false);
        assert_eq!(merge(Some(first.clone()), &again, at(105), 1), (first.clone(), Outcome::Superseded));
        let asked_to_stay_away = decision(opened(900, true, true), 105, at(0), false);
        let (longer, outcome) = merge(Some(first.clone()), &asked_to_stay_away, at(105), 1);
        assert_eq!((longer.until, outcome), (Some(at(900)), Outcome::Accepted));
        let much_later = decision(opened(260, true, false), 200, at(0), false);
        assert_eq!(merge(Some(first), &much_later, at(200), 1).1, Outcome::Accepted, "that one was over");
    }

    #[test]
    fn a_verdict_on_a_past_opening_is_void() {
        let first = open(100);
        let failed = decision(opened(221, false, false), 161, first.epoch, false);
        let (second, outcome) = merge(Some(first.clone()), &failed, at(161), 1);
        assert_eq!((second.until, outcome), (Some(at(221)), Outcome::Accepted));
        let frozen = decision(Decided::Closed, 170, first.epoch, false);
        assert_eq!(merge(Some(second.clone()), &frozen, at(170), 1), (second.clone(), Outcome::Superseded));
        let closed = decision(Decided::Closed, 222, second.epoch, false);
        let (third, outcome) = merge(Some(second), &closed, at(222), 1);
        assert_eq!((third.state, outcome), (StoredState::Closed, Outcome::Accepted));
        let failed_too = decision(opened(290, false, false), 230, first.epoch, false);
        assert_eq!(merge(Some(third.clone()), &failed_too, at(230), 1), (third, Outcome::Superseded));
    }

    #[test]
    fn the_later_of_two_lone_decisions_counts() {
        let first = open(100);
        for (mine, theirs) in [(170, 165), (165, 170)] {
            let closed = decision(Decided::Closed, theirs, first.epoch, true);
            let (record, _) = merge(Some(first.clone()), &closed, at(200), 1);
            let reopened = decision(opened(mine + 60, false, false), mine, first.epoch, true);
            let (record, outcome) = merge(Some(record), &reopened, at(200), 1);
            let expected = if mine > theirs { StoredState::Open } else { StoredState::Closed };
            assert_eq!(record.state, expected, "{mine} and {theirs}: {outcome:?}");
        }
    }

    #[test]
    fn a_quorum_counts_processes_with_openings_in_force() {
        let by = |by: &str, time: u64| Proposal {
            by: by.into(),
            ..decision(opened(time + 60, true, false), time, at(0), false)
        };
        let (record, outcome) = merge(None, &by("a", 100), at(100), 2);
        assert_eq!((record.state, outcome), (StoredState::Closed, Outcome::Waiting));
        let (record, outcome) = merge(Some(record), &by("a", 110), at(110), 2);
        assert_eq!((record.votes.len(), outcome), (1, Outcome::Waiting), "one process is one vote");
        assert_eq!(merge(Some(record.clone()), &by("b", 171), at(171), 2).1, Outcome::Waiting, "the other's is over");
        let (record, outcome) = merge(Some(record), &by("b", 120), at(120), 2);
        assert_eq!((record.state, record.until, outcome), (StoredState::Open, Some(at(180)), Outcome::Accepted));
    }

    fn order() -> impl Strategy<Value = (OverrideOrder, Stamp)> {
        let who = prop_oneof![Just("alice"), Just("bob")];
        let kind = prop_oneof![Just(Mode::Observe), Just(Mode::ForceOpen)];
        let hold = (kind, who.clone(), any::<bool>()).prop_map(|(kind, who, ends)| OverrideOrder::Hold {
            kind,
            who: who.into(),
            why: String::new(),
            ends: ends.then_some(at(5000)),
        });
        let release = prop_oneof![
            who.prop_map(|who| OverrideOrder::Release(Some(who.into()))),
            Just(OverrideOrder::Release(None)),
        ];
        (prop_oneof![hold, release], (1..1000_u64).prop_map(at))
    }

    proptest! {
        /// The newest order about an override decides, however the orders are grouped.
        #[test]
        fn the_newest_order_counts(mut orders in vec(order(), 1..12), cut in 0..12_usize) {
            orders.sort_by_key(|(_, at)| *at);
            orders.dedup_by_key(|(_, at)| *at);
            let proposal = |orders: &[(OverrideOrder, Stamp)]| Proposal {
                by: "a".into(),
                own: Snapshot::closed("s", &Policy::default()),
                change: None,
                orders: orders.to_vec(),
            };
            let (whole, _) = merge(None, &proposal(&orders), at(1000), 1);
            let (first, second) = orders.split_at(cut.min(orders.len()));
            let (half, _) = merge(None, &proposal(first), at(1000), 1);
            let (parts, _) = merge(Some(half), &proposal(second), at(1000), 1);
            prop_assert_eq!(&whole.overrides, &parts.overrides);
            for hold in whole.overrides.iter().filter(|hold| hold.holds(at(1000))) {
                let last = orders.iter().rev().find(|(order, _)| match order {
                    OverrideOrder::Hold { kind, who, .. } => *kind == hold.kind && *who == hold.who,
                    OverrideOrder::Release(who) => who.as_ref().is_none_or(|who| *who == hold.who),
                });
                let ordered = matches!(last, Some((OverrideOrder::Hold { .. }, _)));
                prop_assert!(ordered, "{:?} is in force by {:?}", hold, last);
            }
        }

        /// For any proposals in any order, epochs only grow, and an open record has an end.
        #[test]
        fn epochs_only_grow(proposals in vec((0..4_u8, 0..200_u64, 0..200_u64, any::<bool>()), 1..40), quorum in 1..4_u32) {
            let mut record: Option<Snapshot> = None;
            for (i, (kind, time, on, alone)) in proposals.into_iter().enumerate() {
                let kind = match kind {
                    0 => Decided::Closed,
                    kind => opened(time + 60, kind == 1, kind == 2),
                };
                let before = record.clone();
                let proposal = Proposal { by: (i % 5).to_string(), ..decision(kind, time, at(on), alone) };
                let (after, outcome) = merge(record, &proposal, at(time), quorum);
                if let Some(before) = &before {
                    prop_assert!(after.epoch >= before.epoch);
                    let changed = (before.state, before.until) != (after.state, after.until);
                    prop_assert_eq!(changed && outcome != Outcome::Accepted, false, "{:?}", outcome);
                    prop_assert!(!changed || after.epoch > before.epoch);
                }
                prop_assert_eq!(after.is_open(), after.until.is_some());
                record = Some(after);
            }
        }
    }
}

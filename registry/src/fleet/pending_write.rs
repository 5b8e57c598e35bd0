//! A change of one breaker on its way into its record.

use std::sync::Arc;

use super::{
    merge::{Decided, Decision, Outcome, OverrideOrder, Proposal, merge},
    record_codec,
};
use crate::{
    breaker::inner::BreakerInner,
    clock::Stamp,
    outcome::ServiceName,
    state::{
        fleet_view::{Change, ChangeKind, Order, OrderKind},
        machine::Cause,
    },
    store::{Put, StoreClock, handle::StoreHandle, record::Snapshot},
};

/// A change that a breaker wants in its record, and the text that the record had when it was last read.
pub(crate) struct PendingWrite {
    proposal: Proposal,
    change: Option<Change>,
    orders: usize,
    quorum: u32,
    /// It is put even if the record does not change.
    again: bool,
    /// The text to replace.
    pub(crate) expected: Option<Arc<str>>,
}

/// A pending write merged into a record.
pub(crate) struct Merged {
    record: Snapshot,
    outcome: Outcome,
    text: Arc<str>,
}

impl PendingWrite {
    /// The expected record with this change.
    pub(crate) fn merge(&self, service: &ServiceName, now: Stamp) -> Merged {
        // A text that cannot be read counts as no record, and is replaced.
        let current = self.expected.as_deref().and_then(|text| Snapshot::decode(text, Some(service)).ok());
        let (record, outcome) = merge(current, &self.proposal, now, self.quorum);
        let text = record.encode().into();
        Merged { record, outcome, text }
    }

    /// The replacement that this takes; `None` if the record has the change already.
    pub(crate) fn put(&self, service: &ServiceName, merged: &Merged, now: Stamp) -> Option<Put> {
        (self.again || self.expected.as_deref() != Some(&*merged.text)).then(|| Put {
            service: service.clone(),
            expected: self.expected.clone(),
            text: merged.text.clone(),
            keep: record_codec::keep(&merged.record, now),
        })
    }
}

/// What `inner` has to publish. `again`: also what the store knew before, because the store lost it or would drop it soon.
pub(crate) fn pending_write(
    inner: &BreakerInner,
    handle: &StoreHandle,
    clock: StoreClock,
    again: bool,
) -> Option<PendingWrite> {
    let mut pending_write = None;
    inner.operate(|state, now, _| {
        let own = record_codec::snapshot(&inner.name, state, now, clock, &handle.process);
        let Some((fleet_view, policy)) = record_codec::shared(state) else { return (None, None) };
        fleet_view.up = handle.is_up();
        let change = fleet_view.change;
        let decision = change.map(|change| decision(&change, clock));
        let orders: Vec<_> = fleet_view.orders.iter().map(|order| override_order(order, clock)).collect();
        let again = again && !own.is_blank();
        if decision.is_some() || !orders.is_empty() || again {
            pending_write = Some(PendingWrite {
                change,
                orders: orders.len(),
                quorum: policy.quorum.get(),
                again,
                expected: fleet_view.known.text.clone(),
                proposal: Proposal { by: handle.process.clone(), own, change: decision, orders },
            });
        }
        (None, None)
    });
    pending_write
}

/// A change of state, in the store's time.
fn decision(change: &Change, clock: StoreClock) -> Decision {
    let kind = match change.kind {
        ChangeKind::Closed => Decided::Closed,
        ChangeKind::Opened { deadline, open_for, cause, openings, fresh } => Decided::Opened {
            until: clock.stamp(deadline),
            open_for,
            openings,
            cause: cause.to_string(),
            throttled: matches!(cause, Cause::Throttled { .. }),
            fresh,
        },
    };
    Decision { kind, at: clock.stamp(change.at), on: change.on, alone: change.alone }
}

/// An operator's order, in the store's time.
fn override_order(order: &Order, clock: StoreClock) -> (OverrideOrder, Stamp) {
    let kind = match &order.kind {
        OrderKind::Release(who) => OverrideOrder::Release(who.clone()),
        OrderKind::Hold(kind, hold) => OverrideOrder::Hold {
            kind: *kind,
            who: hold.who.clone(),
            why: hold.why.clone(),
            ends: hold.ttl.map(|time| clock.stamp(order.at.after(time))),
        },
    };
    (kind, clock.stamp(order.at))
}

/// A pending write was stored: the record is `merged` now.
pub(crate) fn settled(inner: &BreakerInner, pending_write: &PendingWrite, merged: &Merged, clock: StoreClock) {
    inner.operate(|state, now, _| {
        let Some((fleet_view, _)) = record_codec::shared(state) else { return (None, None) };
        fleet_view.orders.drain(..pending_write.orders.min(fleet_view.orders.len()));
        let newer = fleet_view.change.filter(|change| pending_write.change != Some(*change));
        let ours = pending_write.change.is_some() && newer.is_none();
        let newer_record = merged.record.epoch > fleet_view.known.epoch;
        fleet_view.change = newer.map(|change| Change { on: change.on.max(merged.record.epoch), ..change });
        fleet_view.known = record_codec::known(&merged.record, &merged.text);
        let follow = match merged.outcome {
            Outcome::Superseded => ours,
            Outcome::Accepted => pending_write.change.is_none() && newer.is_none() && newer_record,
            Outcome::Waiting => false,
        };
        let phase = if follow { record_codec::adopt_state(state, &merged.record, clock, now) } else { None };
        record_codec::with_overrides(state, &merged.record, clock, now, phase)
    });
}

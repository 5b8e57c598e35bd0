//! One breaker as a member of its fleet: what its state has to say becomes a proposal for its record, and what a record says
//! is entered into its state.

use std::{sync::Arc, time::Duration};

use crate::{
    breaker::inner::BreakerInner,
    clock::{Stamp, Tick},
    event::EventKind,
    fleet::{
        merge::{Decided, Decision, Outcome, OverrideOrder, Proposal, merge},
        message::FailuresNote,
        store_handle::{StoreClock, StoreHandle},
    },
    hash,
    outcome::ServiceName,
    policy::{FleetPolicy, Mode, SharePolicy},
    state::{
        BreakerState, StateChange,
        fleet_view::{Change, ChangeKind, FleetView, Known, OrderKind},
        machine::Cause,
        overrides::ActiveOverride,
    },
    store::{
        Lease, Put,
        record::{Snapshot, StoredOverride, StoredState},
    },
};

/// A record with nothing in it is kept for a day, so that a process that missed the end of an opening learns of it.
const KEEP: Duration = Duration::from_secs(24 * 3600);

/// A record with an override that has no end is kept for so long beyond the last process that knew it.
const KEEP_ENDLESS: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a breaker has to tell its fleet, and what stood in its record when it was last looked at.
pub(crate) struct PendingWrite {
    proposal: Proposal,
    change: Option<Change>,
    orders: usize,
    quorum: u32,
    /// It is stored whether it is new or not.
    again: bool,
    /// The text that is to be replaced.
    pub(crate) expected: Option<Arc<str>>,
}

/// A pending write merged into a record.
pub(crate) struct Merged {
    record: Snapshot,
    outcome: Outcome,
    text: Arc<str>,
}

impl PendingWrite {
    /// What becomes of the expected record.
    pub(crate) fn merge(&self, service: &ServiceName, now: Stamp) -> Merged {
        // What cannot be read is nothing, and is replaced.
        let current = self.expected.as_deref().and_then(|text| Snapshot::decode(text, Some(service)).ok());
        let (record, outcome) = merge(current, &self.proposal, now, self.quorum);
        let text = record.encode().into();
        Merged { record, outcome, text }
    }

    /// The exchange of texts that it takes; `None` if the record says it all already.
    pub(crate) fn put(&self, service: &ServiceName, merged: &Merged, now: Stamp) -> Option<Put> {
        (self.again || self.expected.as_deref() != Some(&*merged.text)).then(|| Put {
            service: service.clone(),
            expected: self.expected.clone(),
            text: merged.text.clone(),
            keep: keep(&merged.record, now),
        })
    }
}

/// How long a record is worth keeping.
pub(crate) fn keep(record: &Snapshot, now: Stamp) -> Duration {
    let holds = record.overrides.iter().filter(|hold| hold.holds(now));
    let overruled = holds.map(|hold| hold.ends.map_or(KEEP_ENDLESS, |end| end.since(now))).max();
    let open = record.until.map_or(Duration::ZERO, |until| until.since(now));
    KEEP.saturating_add(open.max(overruled.unwrap_or_default()))
}

/// The state of a breaker as it is stored.
pub(crate) fn snapshot(
    name: &ServiceName,
    state: &BreakerState,
    now: Tick,
    clock: StoreClock,
    process: &str,
) -> Snapshot {
    let base = Snapshot {
        epoch: clock.stamp(now),
        by: process.to_owned(),
        openings: state.machine.openings(),
        overrides: state.overrides.in_force(now).map(|hold| stored(hold, now, clock)).collect(),
        ..Snapshot::closed(name, &state.policy)
    };
    match state.machine.opening() {
        Some((deadline, cause)) => Snapshot {
            state: StoredState::Open,
            until: Some(clock.stamp(deadline)),
            open_for: state.machine.open_time(),
            cause: cause.to_string(),
            ..base
        },
        None if state.machine.is_closed() => base,
        None => Snapshot { state: StoredState::HalfOpen, until: Some(clock.stamp(now)), ..base },
    }
}

fn stored(hold: &ActiveOverride, now: Tick, clock: StoreClock) -> StoredOverride {
    StoredOverride {
        kind: hold.kind,
        who: hold.who.clone(),
        why: hold.why.clone(),
        ends: hold.ends.map(|end| clock.stamp(end)),
        epoch: clock.stamp(now),
        released: false,
    }
}

fn holds(record: &Snapshot, clock: StoreClock, now: Tick) -> Vec<ActiveOverride> {
    let present = clock.stamp(now);
    let in_force = record.overrides.iter().filter(|hold| hold.holds(present));
    let hold = |stored: &StoredOverride| ActiveOverride {
        kind: stored.kind,
        who: stored.who.clone(),
        why: stored.why.clone(),
        ends: stored.ends.map(|end| clock.tick(end)),
    };
    in_force.map(hold).collect()
}

/// Enters what a record of before this process says. Whether it made the breaker open or overruled.
pub(crate) fn restore(inner: &BreakerInner, record: &Snapshot, text: &str, clock: StoreClock) -> bool {
    let mut told = false;
    inner.operate(|state, now, _| {
        let adopted = adopt_overrides(state, record, clock, now);
        let mut state_change = None;
        // Whatever policy wrote it: the rest of its time is clamped to what the present one allows.
        if record.is_open() {
            let deadline = now.after(record.remaining(clock.stamp(now), &state.policy));
            state_change = state.adopt_open(deadline, record.openings, Cause::Restored, now);
            told = true;
        }
        if let Some(fleet_view) = &mut state.fleet_view {
            fleet_view.orders.clear();
            fleet_view.known = known(record, &text.into());
        }
        let Some((event, overruled)) = adopted else { return (state_change, None) };
        told = true;
        (overruled.or(state_change), Some(event))
    });
    told
}

/// The overrides of a record enter into force; `None` if they are.
fn adopt_overrides(
    state: &mut BreakerState,
    record: &Snapshot,
    clock: StoreClock,
    now: Tick,
) -> Option<(EventKind, Option<StateChange>)> {
    let holds = holds(record, clock, now);
    let said = holds.iter().max_by_key(|hold| hold.kind).map(|hold| (hold.who.clone(), hold.why.clone()));
    let state_change = state.adopt_overrides(holds, now)?;
    let (who, why) = said.unwrap_or_else(|| ("everyone".into(), "released".into()));
    Some((EventKind::Overridden { mode: state.mode(now), who, why }, state_change))
}

/// What `inner` has to tell its fleet. `again`: also if that is nothing new, for a store that lost
/// what it had, or that would forget it.
pub(crate) fn pending_write(
    inner: &BreakerInner,
    store_handle: &StoreHandle,
    clock: StoreClock,
    again: bool,
) -> Option<PendingWrite> {
    let mut pending_write = None;
    inner.operate(|state, now, _| {
        let own = snapshot(&inner.name, state, now, clock, &store_handle.process);
        let Some((fleet_view, policy)) = shared(state) else { return (None, None) };
        fleet_view.up = store_handle.is_up();
        let change = fleet_view.change;
        let decision = change.map(|change| Decision {
            kind: match change.kind {
                ChangeKind::Closed => Decided::Closed,
                ChangeKind::Opened { deadline, open_for, cause, openings, fresh } => Decided::Opened {
                    until: clock.stamp(deadline),
                    open_for,
                    openings,
                    cause: cause.to_string(),
                    throttled: matches!(cause, Cause::Throttled { .. }),
                    fresh,
                },
            },
            at: clock.stamp(change.at),
            on: change.on,
            alone: change.alone,
        });
        let orders: Vec<_> = fleet_view
            .orders
            .iter()
            .map(|order| {
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
            })
            .collect();
        let again = again && !own.is_blank();
        if decision.is_some() || !orders.is_empty() || again {
            pending_write = Some(PendingWrite {
                change,
                orders: orders.len(),
                quorum: policy.quorum.get(),
                again,
                expected: fleet_view.known.text.clone(),
                proposal: Proposal { by: store_handle.process.clone(), own, change: decision, orders },
            });
        }
        (None, None)
    });
    pending_write
}

/// How many failures in a row `inner` has, if its fleet does not know. While the store is away nobody is told.
pub(crate) fn failures(inner: &BreakerInner, store_handle: &StoreHandle) -> Option<FailuresNote> {
    let mut note = None;
    inner.operate(|state, now, _| {
        let in_a_row = state.machine.joint_failures();
        let closed = state.machine.is_closed() && state.mode(now) == Mode::Enforce;
        if let Some((fleet_view, policy)) = shared(state)
            && policy.quorum.get() == 1
            && closed
            && store_handle.is_up()
        {
            let service = inner.name.as_str().to_owned();
            note = fleet_view.publish(in_a_row).map(|in_a_row| FailuresNote {
                service,
                by: store_handle.process.clone(),
                in_a_row,
            });
        }
        (None, None)
    });
    note
}

fn shared(state: &mut BreakerState) -> Option<(&mut FleetView, SharePolicy)> {
    let FleetPolicy::Share(policy) = state.policy.fleet else { return None };
    state.fleet_view.as_deref_mut().map(|fleet_view| (fleet_view, policy))
}

/// A pending write was stored: the record says `merged` now.
pub(crate) fn settled(inner: &BreakerInner, pending_write: &PendingWrite, merged: &Merged, clock: StoreClock) {
    inner.operate(|state, now, _| {
        let Some((fleet_view, _)) = shared(state) else { return (None, None) };
        fleet_view.orders.drain(..pending_write.orders.min(fleet_view.orders.len()));
        let newer = fleet_view.change.filter(|change| pending_write.change != Some(*change));
        let ours = pending_write.change.is_some() && newer.is_none();
        let guarded = merged.record.epoch > fleet_view.known.epoch;
        fleet_view.change = newer.map(|change| Change { on: change.on.max(merged.record.epoch), ..change });
        fleet_view.known = known(&merged.record, &merged.text);
        let go_by_it = match merged.outcome {
            Outcome::Superseded => ours,
            Outcome::Accepted => pending_write.change.is_none() && newer.is_none() && guarded,
            Outcome::Waiting => false,
        };
        let phase = if go_by_it { adopt_state(state, &merged.record, clock, now) } else { None };
        with_overrides(state, &merged.record, clock, now, phase)
    });
}

/// A record was read or heard of. It is entered unless it is old, or this process has something newer to say.
pub(crate) fn received(
    inner: &BreakerInner,
    store_handle: &StoreHandle,
    record: &Snapshot,
    text: &Arc<str>,
    clock: StoreClock,
) {
    inner.operate(|state, now, _| {
        let Some((fleet_view, _)) = shared(state) else { return (None, None) };
        fleet_view.up = store_handle.is_up();
        if fleet_view.known.text.as_deref() == Some(text)
            || fleet_view.change.is_some()
            || !fleet_view.orders.is_empty()
        {
            return (None, None);
        }
        if record.epoch < fleet_view.known.epoch {
            return (None, None);
        }
        let newer = record.epoch > fleet_view.known.epoch;
        fleet_view.known = known(record, text);
        let phase = if newer { adopt_state(state, record, clock, now) } else { None };
        with_overrides(state, record, clock, now, phase)
    });
}

fn known(record: &Snapshot, text: &Arc<str>) -> Known {
    Known { epoch: record.epoch, text: Some(text.clone()), open: record.is_open(), until: record.until }
}

fn adopt_state(state: &mut BreakerState, record: &Snapshot, clock: StoreClock, now: Tick) -> Option<StateChange> {
    if record.is_open() {
        let deadline = now.after(record.remaining(clock.stamp(now), &state.policy));
        state.adopt_open(deadline, record.openings, Cause::Peer, now)
    } else {
        state.adopt_close(now)
    }
}

fn with_overrides(
    state: &mut BreakerState,
    record: &Snapshot,
    clock: StoreClock,
    now: Tick,
    phase: Option<StateChange>,
) -> (Option<StateChange>, Option<EventKind>) {
    let pending = state.fleet_view.as_ref().is_some_and(|fleet_view| !fleet_view.orders.is_empty());
    if pending {
        return (phase, None);
    }
    match adopt_overrides(state, record, clock, now) {
        None => (phase, None),
        Some((event, state_change)) => (state_change.or(phase), Some(event)),
    }
}

/// A peer says how many failures in a row it has. Whether that opened the breaker.
pub(crate) fn receive_failures(inner: &BreakerInner, store_handle: &StoreHandle, note: &FailuresNote) -> bool {
    let mut opened = false;
    inner.operate(|state, now, draw| {
        let Some((fleet_view, policy)) = shared(state) else { return (None, None) };
        fleet_view.up = store_handle.is_up();
        if policy.quorum.get() > 1 || state.mode(now) != Mode::Enforce {
            return (None, None);
        }
        let peer = hash::fnv(hash::BASIS, note.by.as_bytes());
        let generation = state.machine.generation();
        let state_change = state.receive_failures(peer, note.in_a_row, now, draw);
        opened = generation != state.machine.generation();
        (state_change, None)
    });
    opened
}

/// A peer got the probe of an opening.
pub(crate) fn receive_lease(inner: &BreakerInner, store_handle: &StoreHandle, epoch: Stamp, lasting: Duration) {
    inner.operate(|state, now, _| {
        if let Some((fleet_view, _)) = shared(state)
            && fleet_view.known.epoch == epoch
        {
            fleet_view.up = store_handle.is_up();
            fleet_view.taken(now.after(lasting), now);
        }
        (None, None)
    });
}

/// The lease that `inner` would ask for at this moment, or that it holds; `None` if it is not shared.
pub(crate) fn lease(inner: &BreakerInner, store_handle: &StoreHandle) -> Option<(Lease, bool)> {
    let mut lease = None;
    inner.operate(|state, now, _| {
        let probing = state.machine.is_probing();
        if let Some((fleet_view, policy)) = shared(state) {
            let held = fleet_view.mine(now).is_some() && probing;
            lease = Some((
                Lease {
                    service: inner.name.clone(),
                    epoch: fleet_view.known.epoch,
                    record: fleet_view.known.text.clone(),
                    due: fleet_view.known.until.unwrap_or_default(),
                    process: store_handle.process.clone(),
                    lasting: policy.lease,
                },
                held,
            ));
        }
        (None, None)
    });
    lease
}

/// Changes what is known of the fleet, if `inner` is shared.
pub(crate) fn with_fleet_view(inner: &BreakerInner, change: impl FnOnce(&mut FleetView, SharePolicy, Tick)) {
    inner.operate(|state, now, _| {
        if let Some((fleet_view, policy)) = shared(state) {
            change(fleet_view, policy, now);
        }
        (None, None)
    });
}

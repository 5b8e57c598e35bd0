//! Translates between the state of a breaker and its record: a state becomes a snapshot, and a record is entered into a state.

use std::{sync::Arc, time::Duration};

use crate::{
    breaker::inner::BreakerInner,
    clock::{Stamp, Tick},
    event::EventKind,
    hash,
    outcome::ServiceName,
    policy::{FleetPolicy, Mode, SharePolicy},
    state::{
        BreakerState, StateChange,
        fleet_view::{FleetView, Known},
        machine::Cause,
        overrides::ActiveOverride,
    },
    store::{
        Lease, StoreClock,
        handle::StoreHandle,
        message::FailuresNote,
        record::{Snapshot, StoredOverride, StoredState},
    },
};

/// A record that says nothing is kept for a day: a process that missed the end of an opening can still read it.
const KEEP: Duration = Duration::from_secs(24 * 3600);

/// A record with an override that has no end is kept this long after the last process put it.
const KEEP_ENDLESS: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long the store should keep a record.
pub(super) fn keep(record: &Snapshot, now: Stamp) -> Duration {
    let holds = record.overrides.iter().filter(|hold| hold.holds(now));
    let overruled = holds.map(|hold| hold.ends.map_or(KEEP_ENDLESS, |end| end.since(now))).max();
    let open = record.until.map_or(Duration::ZERO, |until| until.since(now));
    KEEP.saturating_add(open.max(overruled.unwrap_or_default()))
}

/// The state of a breaker, as it is stored.
pub(super) fn snapshot(
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

/// Enters a record from before this process. True if the breaker is open or overruled because of it.
pub(super) fn restore(
    inner: &BreakerInner,
    record: &Snapshot,
    text: &str,
    same_policy: bool,
    clock: StoreClock,
) -> bool {
    let mut restored = false;
    inner.operate(|state, now, _| {
        let adopted = adopt_overrides(state, record, clock, now);
        let mut state_change = None;
        if same_policy && record.is_open() {
            let deadline = now.after(record.remaining(clock.stamp(now), &state.policy));
            state_change = state.adopt_open(deadline, record.openings, Cause::Restored, now);
            restored = true;
        }
        if let Some(fleet_view) = &mut state.fleet_view {
            fleet_view.orders.clear();
            // An opening under another policy does not count here, and the next record replaces it.
            let open = same_policy && record.is_open();
            fleet_view.known = Known { open, ..known(record, &text.into()) };
        }
        let Some((event, overruled)) = adopted else { return (state_change, None) };
        restored = true;
        (overruled.or(state_change), Some(event))
    });
    restored
}

/// Puts the overrides of a record into force; `None` if they are in force already.
fn adopt_overrides(
    state: &mut BreakerState,
    record: &Snapshot,
    clock: StoreClock,
    now: Tick,
) -> Option<(EventKind, Option<StateChange>)> {
    let holds = holds(record, clock, now);
    let strongest = holds.iter().max_by_key(|hold| hold.kind).map(|hold| (hold.who.clone(), hold.why.clone()));
    let state_change = state.adopt_overrides(holds, now)?;
    let (who, why) = strongest.unwrap_or_else(|| ("everyone".into(), "released".into()));
    Some((EventKind::Overridden { mode: state.mode(now), who, why }, state_change))
}

/// The number of failures in a row of `inner`, if it is news to the fleet. `None` while the store is away.
pub(super) fn failures(inner: &BreakerInner, handle: &StoreHandle) -> Option<FailuresNote> {
    let mut note = None;
    inner.operate(|state, now, _| {
        let in_a_row = state.machine.joint_failures();
        let closed = state.machine.is_closed() && state.mode(now) == Mode::Enforce;
        if let Some((fleet_view, policy)) = shared(state)
            && policy.quorum.get() == 1
            && closed
            && handle.is_up()
        {
            let service = inner.name.as_str().to_owned();
            note = fleet_view.publish(in_a_row).map(|in_a_row| FailuresNote {
                service,
                by: handle.process.clone(),
                in_a_row,
            });
        }
        (None, None)
    });
    note
}

pub(super) fn shared(state: &mut BreakerState) -> Option<(&mut FleetView, SharePolicy)> {
    let FleetPolicy::Share(policy) = state.policy.fleet else { return None };
    state.fleet_view.as_deref_mut().map(|fleet_view| (fleet_view, policy))
}

/// Enters a record that was read or received, unless it is old or this process has a newer change to publish.
pub(super) fn receive(
    inner: &BreakerInner,
    handle: &StoreHandle,
    record: &Snapshot,
    text: &Arc<str>,
    clock: StoreClock,
) {
    inner.operate(|state, now, _| {
        let Some((fleet_view, _)) = shared(state) else { return (None, None) };
        fleet_view.up = handle.is_up();
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

pub(super) fn known(record: &Snapshot, text: &Arc<str>) -> Known {
    Known { epoch: record.epoch, text: Some(text.clone()), open: record.is_open(), until: record.until }
}

pub(super) fn adopt_state(
    state: &mut BreakerState,
    record: &Snapshot,
    clock: StoreClock,
    now: Tick,
) -> Option<StateChange> {
    if record.is_open() {
        let deadline = now.after(record.remaining(clock.stamp(now), &state.policy));
        state.adopt_open(deadline, record.openings, Cause::Peer, now)
    } else {
        state.adopt_close(now)
    }
}

pub(super) fn with_overrides(
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

/// Enters a peer's number of failures in a row. True if that opened the breaker.
pub(super) fn receive_failures(inner: &BreakerInner, handle: &StoreHandle, note: &FailuresNote) -> bool {
    let mut opened = false;
    inner.operate(|state, now, draw| {
        let Some((fleet_view, policy)) = shared(state) else { return (None, None) };
        fleet_view.up = handle.is_up();
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

/// Enters that a peer got the lease of an opening.
pub(super) fn receive_lease(inner: &BreakerInner, handle: &StoreHandle, epoch: Stamp, lasting: Duration) {
    inner.operate(|state, now, _| {
        if let Some((fleet_view, _)) = shared(state)
            && fleet_view.known.epoch == epoch
        {
            fleet_view.up = handle.is_up();
            fleet_view.taken(now.after(lasting), now);
        }
        (None, None)
    });
}

/// The lease that `inner` would ask for now, and whether it holds it. `None` if `inner` is not shared.
pub(super) fn lease(inner: &BreakerInner, handle: &StoreHandle) -> Option<(Lease, bool)> {
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
                    process: handle.process.clone(),
                    lasting: policy.lease,
                },
                held,
            ));
        }
        (None, None)
    });
    lease
}

/// Changes the fleet view of `inner`, if it is shared.
pub(super) fn with_fleet_view(inner: &BreakerInner, change: impl FnOnce(&mut FleetView, SharePolicy, Tick)) {
    inner.operate(|state, now, _| {
        if let Some((fleet_view, policy)) = shared(state) {
            change(fleet_view, policy, now);
        }
        (None, None)
    });
}

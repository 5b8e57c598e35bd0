//! One breaker as a member of its fleet: what its books have to say becomes a proposal for its record, and what a record says
//! is entered into its books.

use std::{sync::Arc, time::Duration};

use crate::{
    books::{Books, Notice},
    clock::Tick,
    control::Hold,
    event::EventKind,
    fleet::{
        link::{Link, StoreClock},
        merge::{Decided, Decision, OrderedHold, Outcome, Proposal, merge},
        message::FailuresNote,
        share::{Change, ChangeKind, Known, OrderKind, Share},
    },
    hash,
    machine::Cause,
    outcome::ServiceName,
    policy::{FleetPolicy, Mode, SharePolicy},
    shell::Core,
    snapshot::{Snapshot, Stamp, StoredHold, StoredState},
    store::{Lease, Put},
};

/// A record with nothing in it is kept for a day, so that a process that missed the end of an opening learns of it.
const KEEP: Duration = Duration::from_secs(24 * 3600);

/// A record with an override that has no end is kept for so long beyond the last process that knew it.
const KEEP_ENDLESS: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a breaker has to tell its fleet, and what stood in its record when it was last looked at.
pub(crate) struct Draft {
    proposal: Proposal,
    change: Option<Change>,
    orders: usize,
    quorum: u32,
    /// It is stored whether it is new or not.
    again: bool,
    /// The text that is to be replaced.
    pub(crate) expected: Option<Arc<str>>,
}

/// A draft merged into a record.
pub(crate) struct Merged {
    record: Snapshot,
    outcome: Outcome,
    text: Arc<str>,
}

impl Draft {
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
pub(crate) fn snapshot(name: &ServiceName, books: &Books, now: Tick, clock: StoreClock, process: &str) -> Snapshot {
    let base = Snapshot {
        epoch: clock.stamp(now),
        by: process.to_owned(),
        openings: books.machine.openings(),
        overrides: books.control.in_force(now).map(|hold| stored(hold, now, clock)).collect(),
        ..Snapshot::closed(name, &books.policy)
    };
    match books.machine.opening() {
        Some((deadline, cause)) => Snapshot {
            state: StoredState::Open,
            until: Some(clock.stamp(deadline)),
            open_for: books.machine.open_time(),
            cause: cause.to_string(),
            ..base
        },
        None if books.machine.is_closed() => base,
        None => Snapshot { state: StoredState::HalfOpen, until: Some(clock.stamp(now)), ..base },
    }
}

fn stored(hold: &Hold, now: Tick, clock: StoreClock) -> StoredHold {
    StoredHold {
        kind: hold.kind,
        who: hold.who.clone(),
        why: hold.why.clone(),
        ends: hold.ends.map(|end| clock.stamp(end)),
        epoch: clock.stamp(now),
        released: false,
    }
}

fn holds(record: &Snapshot, clock: StoreClock, now: Tick) -> Vec<Hold> {
    let present = clock.stamp(now);
    let in_force = record.overrides.iter().filter(|hold| hold.holds(present));
    let hold = |stored: &StoredHold| Hold {
        kind: stored.kind,
        who: stored.who.clone(),
        why: stored.why.clone(),
        ends: stored.ends.map(|end| clock.tick(end)),
    };
    in_force.map(hold).collect()
}

/// Enters what a record of before this process says. Whether it made the breaker open or overruled.
pub(crate) fn restore(core: &Core, record: &Snapshot, text: &str, same_policy: bool, clock: StoreClock) -> bool {
    let mut told = false;
    core.operate(|books, now, _| {
        let adopted = adopt_holds(books, record, clock, now);
        let mut notice = None;
        if same_policy && record.is_open() {
            let deadline = now.after(record.remaining(clock.stamp(now), &books.policy));
            notice = books.adopt_open(deadline, record.openings, Cause::Restored, now);
            told = true;
        }
        if let Some(share) = &mut books.share {
            share.orders.clear();
            // An opening by another policy is not ours to go by, and the next record replaces it.
            let open = same_policy && record.is_open();
            share.known = Known { open, ..known(record, &text.into()) };
        }
        let Some((event, overruled)) = adopted else { return (notice, None) };
        told = true;
        (overruled.or(notice), Some(event))
    });
    told
}

/// The overrides of a record enter into force; `None` if they are.
fn adopt_holds(
    books: &mut Books,
    record: &Snapshot,
    clock: StoreClock,
    now: Tick,
) -> Option<(EventKind, Option<Notice>)> {
    let holds = holds(record, clock, now);
    let said = holds.iter().max_by_key(|hold| hold.kind).map(|hold| (hold.who.clone(), hold.why.clone()));
    let notice = books.adopt_holds(holds, now)?;
    let (who, why) = said.unwrap_or_else(|| ("everyone".into(), "released".into()));
    Some((EventKind::Overridden { mode: books.mode(now), who, why }, notice))
}

/// What `core` has to tell its fleet. `again`: also if that is nothing new, for a store that lost
/// what it had, or that would forget it.
pub(crate) fn draft(core: &Core, link: &Link, clock: StoreClock, again: bool) -> Option<Draft> {
    let mut draft = None;
    core.operate(|books, now, _| {
        let own = snapshot(&core.name, books, now, clock, &link.process);
        let Some((share, policy)) = shared(books) else { return (None, None) };
        share.up = link.is_up();
        let change = share.change;
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
        let orders: Vec<_> = share
            .orders
            .iter()
            .map(|order| {
                let kind = match &order.kind {
                    OrderKind::Release(who) => OrderedHold::Release(who.clone()),
                    OrderKind::Hold(kind, hold) => OrderedHold::Hold {
                        kind: *kind,
                        who: hold.who.clone(),
                        why: hold.why.clone(),
                        ends: hold.until.map(|time| clock.stamp(order.at.after(time))),
                    },
                };
                (kind, clock.stamp(order.at))
            })
            .collect();
        let again = again && !own.is_blank();
        if decision.is_some() || !orders.is_empty() || again {
            draft = Some(Draft {
                change,
                orders: orders.len(),
                quorum: policy.quorum.get(),
                again,
                expected: share.known.text.clone(),
                proposal: Proposal { by: link.process.clone(), own, change: decision, orders },
            });
        }
        (None, None)
    });
    draft
}

/// How many failures in a row `core` has, if its fleet does not know. While the store is away nobody is told.
pub(crate) fn failures(core: &Core, link: &Link) -> Option<FailuresNote> {
    let mut note = None;
    core.operate(|books, now, _| {
        let in_a_row = books.machine.joint_failures();
        let closed = books.machine.is_closed() && books.mode(now) == Mode::Enforce;
        if let Some((share, policy)) = shared(books)
            && policy.quorum.get() == 1
            && closed
            && link.is_up()
        {
            let service = core.name.as_str().to_owned();
            note = share.tell(in_a_row).map(|in_a_row| FailuresNote { service, by: link.process.clone(), in_a_row });
        }
        (None, None)
    });
    note
}

fn shared(books: &mut Books) -> Option<(&mut Share, SharePolicy)> {
    let FleetPolicy::Share(policy) = books.policy.fleet else { return None };
    books.share.as_deref_mut().map(|share| (share, policy))
}

/// A draft was stored: the record says `merged` now.
pub(crate) fn settled(core: &Core, draft: &Draft, merged: &Merged, clock: StoreClock) {
    core.operate(|books, now, _| {
        let Some((share, _)) = shared(books) else { return (None, None) };
        share.orders.drain(..draft.orders.min(share.orders.len()));
        let newer = share.change.filter(|change| draft.change != Some(*change));
        let ours = draft.change.is_some() && newer.is_none();
        let behind = merged.record.epoch > share.known.epoch;
        share.change = newer.map(|change| Change { on: change.on.max(merged.record.epoch), ..change });
        share.known = known(&merged.record, &merged.text);
        let go_by_it = match merged.outcome {
            Outcome::Superseded => ours,
            Outcome::Accepted => draft.change.is_none() && newer.is_none() && behind,
            Outcome::Waiting => false,
        };
        let phase = if go_by_it { adopt_state(books, &merged.record, clock, now) } else { None };
        with_holds(books, &merged.record, clock, now, phase)
    });
}

/// A record was read or heard of. It is entered unless it is old, or this process has something newer to say.
pub(crate) fn heard(core: &Core, link: &Link, record: &Snapshot, text: &Arc<str>, clock: StoreClock) {
    core.operate(|books, now, _| {
        let Some((share, _)) = shared(books) else { return (None, None) };
        share.up = link.is_up();
        if share.known.text.as_deref() == Some(text) || share.change.is_some() || !share.orders.is_empty() {
            return (None, None);
        }
        if record.epoch < share.known.epoch {
            return (None, None);
        }
        let newer = record.epoch > share.known.epoch;
        share.known = known(record, text);
        let phase = if newer { adopt_state(books, record, clock, now) } else { None };
        with_holds(books, record, clock, now, phase)
    });
}

fn known(record: &Snapshot, text: &Arc<str>) -> Known {
    Known { epoch: record.epoch, text: Some(text.clone()), open: record.is_open(), until: record.until }
}

fn adopt_state(books: &mut Books, record: &Snapshot, clock: StoreClock, now: Tick) -> Option<Notice> {
    if record.is_open() {
        let deadline = now.after(record.remaining(clock.stamp(now), &books.policy));
        books.adopt_open(deadline, record.openings, Cause::Peer, now)
    } else {
        books.adopt_close(now)
    }
}

fn with_holds(
    books: &mut Books,
    record: &Snapshot,
    clock: StoreClock,
    now: Tick,
    phase: Option<Notice>,
) -> (Option<Notice>, Option<EventKind>) {
    let pending = books.share.as_ref().is_some_and(|share| !share.orders.is_empty());
    if pending {
        return (phase, None);
    }
    match adopt_holds(books, record, clock, now) {
        None => (phase, None),
        Some((event, notice)) => (notice.or(phase), Some(event)),
    }
}

/// A peer says how many failures in a row it has. Whether that opened the breaker.
pub(crate) fn heard_failures(core: &Core, link: &Link, note: &FailuresNote) -> bool {
    let mut opened = false;
    core.operate(|books, now, draw| {
        let Some((share, policy)) = shared(books) else { return (None, None) };
        share.up = link.is_up();
        if policy.quorum.get() > 1 || books.mode(now) != Mode::Enforce {
            return (None, None);
        }
        let peer = hash::fnv(hash::BASIS, note.by.as_bytes());
        let generation = books.machine.generation();
        let notice = books.hear_failures(peer, note.in_a_row, now, draw);
        opened = generation != books.machine.generation();
        (notice, None)
    });
    opened
}

/// A peer got the probe of an opening.
pub(crate) fn heard_lease(core: &Core, link: &Link, epoch: Stamp, lasting: Duration) {
    core.operate(|books, now, _| {
        if let Some((share, _)) = shared(books)
            && share.known.epoch == epoch
        {
            share.up = link.is_up();
            share.taken(now.after(lasting), now);
        }
        (None, None)
    });
}

/// The lease that `core` would ask for at this moment, or that it holds; `None` if it is not shared.
pub(crate) fn lease(core: &Core, link: &Link) -> Option<(Lease, bool)> {
    let mut lease = None;
    core.operate(|books, now, _| {
        let probing = books.machine.is_probing();
        if let Some((share, policy)) = shared(books) {
            let held = share.mine(now).is_some() && probing;
            lease = Some((
                Lease {
                    service: core.name.clone(),
                    epoch: share.known.epoch,
                    record: share.known.text.clone(),
                    due: share.known.until.unwrap_or_default(),
                    process: link.process.clone(),
                    lasting: policy.lease,
                },
                held,
            ));
        }
        (None, None)
    });
    lease
}

/// Changes what is known of the fleet, if `core` is shared.
pub(crate) fn with_share(core: &Core, change: impl FnOnce(&mut Share, SharePolicy, Tick)) {
    core.operate(|books, now, _| {
        if let Some((share, policy)) = shared(books) {
            change(share, policy, now);
        }
        (None, None)
    });
}

//! The shell around a breaker's [`books`](crate::books): it locks, reads the clock, counts, announces and waits.
//!
//! A call in good times takes no lock: it reads the [`gate`](crate::gate), bumps a counter of its own thread's, runs, looks at
//! the gate again and bumps another. Everything else goes through the mutex, which is never held while a call runs.

use std::{
    fmt,
    pin::pin,
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use crate::{
    books::{Books, Entry, Mark, Notice, Refusal, Ticket},
    call::{Call, Said},
    clock::Tick,
    context::{self, CallContext},
    control::Override,
    event::EventKind,
    fleet::{
        ask,
        share::{ASK, Question},
    },
    gate::{Gate, Word},
    histogram::Histogram,
    hub::{Draws, Hub},
    lanes::{Counter, Lanes},
    machine::Sample,
    outcome::{CallError, Classify, Rejection, ServiceName, Settlement, State, Verdict},
    policy::{Mode, Policy},
    store::StoreError,
    sync::{AtomicU64, Mutex, MutexGuard, Ordering},
    view::{BreakerView, CallCounts},
};

/// A handle on one service's breaker. Clones are handles on the same breaker.
#[derive(Clone)]
pub struct Breaker {
    core: Arc<Core>,
}

impl Breaker {
    pub(crate) const fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The protected service's name.
    #[must_use]
    pub fn name(&self) -> &ServiceName {
        &self.core.name
    }

    /// Runs `work` if the breaker lets it, and takes its outcome into account: `Ok` is a success, an error says itself what it
    /// means.
    ///
    /// If the returned future is dropped, the call is neutral, unless it had outlived its timeout. If `work` panics,
    /// that is a failure, and the panic goes on.
    ///
    /// # Errors
    /// [`CallError::Rejected`] if it never ran, [`CallError::TimedOut`] if it took longer than the policy or the surrounding
    /// [`CallContext`] allows, [`CallError::Upstream`] with its own error otherwise.
    #[inline(always)] // see `call`
    pub fn call<T, E, F>(&self, work: F) -> impl Future<Output = Result<T, CallError<E>>>
    where
        F: Future<Output = Result<T, E>>,
        E: Classify,
    {
        Call::new(&*self.core, work, classified)
    }

    /// Like [`call`](Self::call), with the verdict given by `judge`: for errors that do not classify themselves, and for
    /// answers that look well and are not.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    #[inline(always)] // see `call`
    pub fn call_with<T, E, F>(
        &self,
        work: F,
        judge: impl FnOnce(&Result<T, E>) -> Verdict,
    ) -> impl Future<Output = Result<T, CallError<E>>>
    where
        F: Future<Output = Result<T, E>>,
    {
        Call::new(&*self.core, work, |result: &Result<T, E>| (judge(result), None))
    }

    /// Like [`call_with`](Self::call_with), where a failure may also say how long to stay away.
    #[cfg(feature = "tower")]
    pub(crate) fn call_said<T, E, F>(
        &self,
        work: F,
        judge: impl FnOnce(&Result<T, E>) -> Said,
    ) -> impl Future<Output = Result<T, CallError<E>>>
    where
        F: Future<Output = Result<T, E>>,
    {
        Call::new(&*self.core, work, judge)
    }

    /// Asks for one call to start; waits for a place in the bulkhead as long as the policy says.
    ///
    /// # Errors
    /// The reason why it may not, with the time to come back.
    pub async fn acquire(&self) -> Result<Permit, Rejection> {
        let receipt = self.core.enter().await?;
        Ok(Permit { core: self.core.clone(), receipt: Some(receipt) })
    }

    /// Asks for one call to start, now or not at all.
    ///
    /// # Errors
    /// The reason why it may not, with the time to come back.
    pub fn try_acquire(&self) -> Result<Permit, Rejection> {
        let receipt = self.core.try_enter()?;
        Ok(Permit { core: self.core.clone(), receipt: Some(receipt) })
    }

    /// What the breaker looks like now. Looking changes nothing.
    #[must_use]
    pub fn view(&self) -> BreakerView {
        self.core.view()
    }

    /// The policy it goes by now.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        self.core.lock().policy.clone()
    }

    /// Rejects every call until `order` is released or ends, whatever timers and verdicts say. Calls in flight are late when they
    /// end.
    pub fn force_open(&self, order: Override) {
        self.core.hold(Mode::ForceOpen, order);
    }

    /// Lets every call pass until `order` is released or ends. Their verdicts are counted and change nothing.
    pub fn force_closed(&self, order: Override) {
        self.core.hold(Mode::ForceClosed, order);
    }

    /// Lets every call pass, and tells observers when it would have opened, until `order` is released or ends.
    pub fn observe_only(&self, order: Override) {
        self.core.hold(Mode::Observe, order);
    }

    /// Releases every override, whoever holds it: the breaker decides again.
    pub fn auto(&self) {
        self.core.release(None);
    }

    /// Releases the overrides that `who` holds; those of others stay. Whether there were any.
    pub fn release(&self, who: &str) -> bool {
        self.core.release(Some(who))
    }

    /// Closes it and forgets failures, evidence and the growth of its open time. Overrides stay.
    pub fn reset(&self) {
        self.core.operate(|books, now, _| (books.reset(now), None));
        self.core.note_all();
    }

    /// Waits until what was said to this breaker so far — overrides, releases, a reset — is in the store: it survives a restart,
    /// and where the breaker is shared it holds in the whole fleet.
    ///
    /// ```
    /// # use circuit_registry::{CircuitRegistry, Override, store::{MemoryStore, StoreError}};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), StoreError> {
    /// # let registry = CircuitRegistry::builder().store(MemoryStore::new()).build();
    /// # tokio::spawn(registry.restore().await.run(std::future::pending()));
    /// let breaker = registry.breaker("northdata");
    /// breaker.force_open(Override::new("alice", "announced maintenance"));
    /// breaker.stored().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If there is no store or no [`Keeper`](crate::Keeper), or it could not be stored within five seconds. It is in force in this
    /// process all the same, and is stored as soon as that is possible.
    pub async fn stored(&self) -> Result<(), StoreError> {
        let core = &*self.core;
        let link = core.hub.link.as_ref().ok_or_else(StoreError::absent)?;
        let shared = core.lock().share.is_some();
        link.stored(&core.name, if shared { &link.shared } else { &link.snapshots }).await
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.view(), f)
    }
}

/// Permission for one call. It ends exactly once: [settled](Self::settle) with a verdict, or dropped, which is neutral
/// (a failure, if the drop is part of a panic).
#[must_use = "a permit dropped unused says nothing about the service; settle it"]
pub struct Permit {
    core: Arc<Core>,
    receipt: Option<Receipt>,
}

impl Permit {
    /// Ends the call.
    pub fn settle(mut self, verdict: Verdict) -> Settlement {
        self.end(verdict, None)
    }

    /// Ends the call with what its error says, Retry-After included.
    pub fn settle_error(mut self, error: &impl Classify) -> Settlement {
        self.end(error.verdict(), error.retry_after())
    }

    /// Whether this call is a probe of a half-open breaker.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.receipt.as_ref().is_some_and(|r| matches!(r.way, Way::Booked(Ticket { entry: Entry::Probe, .. })))
    }

    /// The generation that admitted the call.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.receipt.as_ref().map_or(0, |r| r.way.generation())
    }

    fn end(&mut self, verdict: Verdict, not_before: Option<Duration>) -> Settlement {
        match self.receipt.take() {
            Some(receipt) => self.core.settle(&receipt, verdict, not_before),
            None => Settlement::Late,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(receipt) = self.receipt.take() {
            let verdict = if std::thread::panicking() { Verdict::Failure } else { self.core.dropped(&receipt) };
            self.core.settle(&receipt, verdict, None);
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("service", &self.core.name).field("receipt", &self.receipt).finish()
    }
}

/// How a call was admitted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// By the gate's word alone.
    Gate(Word),
    /// By the books.
    Booked(Ticket),
}

impl Way {
    const fn generation(&self) -> u64 {
        match self {
            Self::Gate(word) => word.generation(),
            Self::Booked(ticket) => ticket.generation,
        }
    }
}

/// What the end of a call needs to know of its beginning.
#[derive(Debug)]
pub(crate) struct Receipt {
    pub(crate) way: Way,
    /// When it began, where that is measured.
    pub(crate) started: Option<Tick>,
    /// When the policy's timeout is over, where there is one.
    pub(crate) expires: Option<Tick>,
}

/// Why a call that may wait does not start now.
pub(crate) enum NotNow {
    Rejected(Rejection),
    /// The bulkhead is full, and there may be a place within this time.
    Queue {
        max_wait: Duration,
    },
}

#[inline]
pub(crate) fn classified<T, E: Classify>(result: &Result<T, E>) -> Said {
    match result {
        Ok(_) => (Verdict::Success, None),
        Err(error) => (error.verdict(), error.retry_after()),
    }
}

/// Refusals that are counted apart from the lanes: they are rare, and take the mutex anyway.
const REFUSALS: usize = 4;

/// One breaker. Everything on it is reached through shared references.
pub(crate) struct Core {
    gate: Gate,
    lanes: Lanes,
    pub(crate) name: ServiceName,
    refused: [AtomicU64; REFUSALS],
    /// By [`State`] entered.
    transitions: [AtomicU64; 3],
    behind: Mutex<Behind>,
    /// A place in the bulkhead was freed.
    freed: Notify,
    histogram: Option<Box<Histogram>>,
    hub: Arc<Hub>,
}

struct Behind {
    books: Books,
    draws: Draws,
}

impl Core {
    pub(crate) fn new(name: ServiceName, policy: Arc<Policy>, hub: Arc<Hub>) -> Self {
        let mut books = Books::new(policy);
        if hub.link.as_ref().is_some_and(|link| link.fleet().is_some()) {
            books.connect();
        }
        let seed = name.bytes().fold(hub.seed, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
        let core = Self {
            gate: Gate::new(Word::new(0)),
            lanes: Lanes::new(),
            name,
            refused: Default::default(),
            transitions: Default::default(),
            histogram: hub.measured.then(Box::default),
            behind: Mutex::new(Behind { books, draws: Draws::new(seed) }),
            freed: Notify::new(),
            hub,
        };
        core.publish(&core.lock_all().books, core.hub.clock.now());
        core
    }

    #[inline]
    pub(crate) const fn gate(&self) -> &Gate {
        &self.gate
    }

    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        self.lanes.count(counter);
    }

    #[inline]
    pub(crate) fn now(&self) -> Tick {
        self.hub.clock.now()
    }

    // ── admission ──────────────────────────────────────────────────────────────────────────────────────────────────────

    /// The answer of the gate, if it can give one.
    #[inline]
    fn enter_by_gate(&self) -> Option<Result<Receipt, Rejection>> {
        let word = self.gate.read();
        if word.admits() {
            self.lanes.count(Counter::Admitted);
            let started = if word.is_timed() { Some(self.hub.clock.now()) } else { None };
            return Some(Ok(Receipt { way: Way::Gate(word), started, expires: None }));
        }
        let retry_in = self.refused_by_gate(word)?;
        Some(Err(Rejection::Open { service: self.name.clone(), retry_in, forced: false }))
    }

    /// The time until the probe, if the gate alone can tell that a call is rejected; the rejection is counted.
    #[inline]
    pub(crate) fn refused_by_gate(&self, word: Word) -> Option<Duration> {
        if !word.rejects() {
            return None;
        }
        let deadline = self.gate.deadline_of(word)?;
        let now = self.hub.clock.now();
        if now >= deadline {
            return None; // a probe is due: that is for the books
        }
        self.lanes.count(Counter::RejectedOpen);
        Some(deadline.since(now))
    }

    fn try_enter(&self) -> Result<Receipt, Rejection> {
        match self.enter_by_gate() {
            Some(answer) => answer,
            None => self.ask().map_err(|(refusal, _locked)| self.reject(refusal)),
        }
    }

    pub(crate) async fn enter(&self) -> Result<Receipt, Rejection> {
        match self.enter_by_gate() {
            Some(answer) => answer,
            None => self.enter_booked().await,
        }
    }

    /// Asks the books; where the bulkhead is full, waits as long as the policy says and asks again from the first step.
    #[cold]
    pub(crate) async fn enter_booked(&self) -> Result<Receipt, Rejection> {
        let max_wait = match self.ask_or_queue().await {
            Ok(receipt) => return Ok(receipt),
            Err(NotNow::Rejected(rejection)) => return Err(rejection),
            Err(NotNow::Queue { max_wait }) => max_wait,
        };
        let wait = async {
            loop {
                let mut freed = pin!(self.freed.notified());
                freed.as_mut().enable(); // a place freed from here on is not missed
                match self.ask_or_queue().await {
                    Ok(receipt) => return Ok(receipt),
                    Err(NotNow::Rejected(rejection)) => return Err(rejection),
                    Err(NotNow::Queue { .. }) => freed.await,
                }
            }
        };
        match tokio::time::timeout(max_wait, wait).await {
            Ok(Ok(receipt)) => Ok(receipt),
            Ok(Err(rejection)) => {
                self.freed.notify_one(); // the place we were woken for is still free
                Err(rejection)
            }
            Err(_) => self.ask().map_err(|(refusal, _locked)| self.reject(refusal)),
        }
    }

    /// Asks the books, and the store first where they need to know what it says.
    async fn ask_or_queue(&self) -> Result<Receipt, NotNow> {
        // Some times, because others may be faster; then the caller is told to come back.
        for _ in 0..4 {
            match self.ask_once() {
                Ok(answer) => return answer,
                // In a box: it is rare, and every call would carry its size.
                Err(question) => Box::pin(self.ask_store(question)).await,
            }
        }
        self.ask().map_err(|(refusal, _locked)| NotNow::Rejected(self.reject(refusal)))
    }

    /// The answer of the books, or what they need to know first.
    pub(crate) fn ask_once(&self) -> Result<Result<Receipt, NotNow>, Question> {
        let (refusal, behind) = match self.ask() {
            Ok(receipt) => return Ok(Ok(receipt)),
            Err(refused) => refused,
        };
        let can_wait = tokio::runtime::Handle::try_current().is_ok();
        let max_wait = behind.books.policy.bulkhead.map_or(Duration::ZERO, |b| b.max_wait);
        match refusal {
            Refusal::Ask(question) if can_wait => Err(question),
            Refusal::BulkheadFull { .. } if can_wait && !max_wait.is_zero() => Ok(Err(NotNow::Queue { max_wait })),
            _ => Ok(Err(NotNow::Rejected(self.reject(refusal)))),
        }
    }

    /// Asks the books. A refusal comes with the lock still held, so that it is announced in its turn.
    fn ask(&self) -> Result<Receipt, (Refusal, MutexGuard<'_, Behind>)> {
        let attempt = CallContext::with_current(|c| c.attempt).unwrap_or(1);
        let (mut behind, now) = self.lock_all_now();
        let mark = self.prepare(&mut behind.books);
        let (answer, notice) = behind.books.admit(now, attempt);
        self.publish(&behind.books, now);
        self.note(mark, &behind.books);
        let ticket = match answer {
            Ok(ticket) => ticket,
            Err(refusal) => return Err((refusal, behind)),
        };
        self.lanes.count(Counter::Admitted);
        self.announce(now, notice);
        if self.hub.announcer.wants_calls {
            let probe = ticket.entry == Entry::Probe;
            self.hub.announcer.announce(&self.name, now, EventKind::Admitted { probe });
        }
        let expires = behind.books.policy.timeout.map(|time| now.after(time));
        Ok(Receipt { way: Way::Booked(ticket), started: Some(now), expires })
    }

    /// Counts and announces a refusal; under the lock.
    fn reject(&self, refusal: Refusal) -> Rejection {
        let service = self.name.clone();
        if let Refusal::Ask(question) = refusal {
            self.ask_later(question);
        }
        let counted = match refusal {
            Refusal::Open { .. } | Refusal::Ask(Question::Probe) => None,
            Refusal::HalfOpenBusy { .. } => Some(0),
            Refusal::BulkheadFull { .. } => Some(1),
            Refusal::RateLimited { .. } | Refusal::Ask(Question::Token) => Some(2),
            Refusal::BudgetExhausted => Some(3),
        };
        match counted {
            None => self.lanes.count(Counter::RejectedOpen),
            Some(at) => drop(self.refused[at].fetch_add(1, Ordering::Relaxed)),
        }
        let rejection = match refusal {
            Refusal::Open { retry_in, forced } => Rejection::Open { service, retry_in, forced },
            Refusal::HalfOpenBusy { retry_in } => Rejection::HalfOpenBusy { service, retry_in },
            Refusal::BulkheadFull { max_concurrent } => Rejection::BulkheadFull { service, max_concurrent },
            Refusal::RateLimited { retry_in } => Rejection::RateLimited { service, retry_in },
            Refusal::BudgetExhausted => Rejection::BudgetExhausted { service },
            // The answer is on its way.
            Refusal::Ask(Question::Probe) => Rejection::Open { service, retry_in: ASK, forced: false },
            Refusal::Ask(Question::Token) => Rejection::RateLimited { service, retry_in: ASK },
        };
        if self.hub.announcer.wants_calls {
            let kind = EventKind::Rejected(rejection.clone());
            self.hub.announcer.announce(&self.name, self.hub.clock.now(), kind);
        }
        rejection
    }

    /// The time this call gets: what the policy says, and less than what is left of the surrounding work, so that the call ends
    /// and is settled before its caller is given up. `None` without a limit, or without a tokio clock to keep it.
    #[inline]
    pub(crate) fn time_limit(&self, receipt: &Receipt) -> Option<Duration> {
        if receipt.expires.is_none() && !context::in_use() {
            return None;
        }
        let by_policy = receipt.expires.map(|end| end.since(receipt.started.unwrap_or(end)));
        let by_context = CallContext::with_current(|c| c.deadline).flatten().map(|deadline| {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            left - (left / 10).min(Duration::from_secs(1))
        });
        let limit = match (by_policy, by_context) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        tokio::runtime::Handle::try_current().is_ok().then_some(limit)
    }

    // ── asking the fleet ───────────────────────────────────────────────────────────────────────────────────────────────

    pub(crate) async fn ask_store(&self, question: Question) {
        let Some(link) = &self.hub.link else { return };
        match question {
            Question::Probe => ask::probe(self, link).await,
            Question::Token => ask::token(self, link).await,
        }
    }

    /// For a caller that cannot wait: the next one will find the answer.
    fn ask_later(&self, question: Question) {
        let Some(link) = &self.hub.link else { return };
        match question {
            Question::Probe => link.probes.push(&self.name),
            Question::Token => link.tokens.push(&self.name),
        }
    }

    /// Tells the books whether the store is there; and how they stand, for [`note`](Self::note).
    fn prepare(&self, books: &mut Books) -> Mark {
        if let Some(link) = &self.hub.link {
            if let Some(share) = &mut books.share {
                share.up = link.is_up();
            }
            if let Some(quota) = &mut books.quota {
                quota.up = link.is_up();
                quota.shared_by(link.processes());
            }
        }
        books.mark()
    }

    /// Leaves a note for the keeper if the books have changed in a way that others have to hear of.
    fn note(&self, before: Mark, books: &Books) {
        let Some(link) = &self.hub.link else { return };
        let after = books.mark();
        if before == after {
            return;
        }
        if books.share.is_some() {
            link.shared.push(&self.name);
        } else if before.generation != after.generation {
            link.snapshots.push(&self.name);
        }
    }

    /// Leaves a note for the keeper whatever has changed.
    fn note_all(&self) {
        let Some(link) = &self.hub.link else { return };
        let shared = self.lock().share.is_some();
        if shared { &link.shared } else { &link.snapshots }.push(&self.name);
    }

    // ── settlement ─────────────────────────────────────────────────────────────────────────────────────────────────────

    #[inline]
    pub(crate) fn settle(&self, receipt: &Receipt, verdict: Verdict, not_before: Option<Duration>) -> Settlement {
        if let Way::Gate(word) = receipt.way
            && verdict == Verdict::Success
            && word.is_pristine()
            && self.gate.read() == word
        {
            // Nothing has failed in this generation: there is nothing for a success to change.
            self.lanes.count(Counter::Success);
            if let Some(started) = receipt.started {
                self.measure(self.hub.clock.now().since(started));
            }
            return Settlement::Counted;
        }
        self.settle_booked(receipt, verdict, not_before)
    }

    #[cold]
    fn settle_booked(&self, receipt: &Receipt, verdict: Verdict, not_before: Option<Duration>) -> Settlement {
        let ticket = match receipt.way {
            Way::Booked(ticket) => ticket,
            Way::Gate(word) => Ticket { generation: word.generation(), entry: Entry::Pass, placed: false },
        };
        let took = receipt.started.map(|started| self.hub.clock.now().since(started));
        if let Some(took) = took {
            self.measure(took);
        }
        let (mut behind, now) = self.lock_all_now();
        let Behind { books, draws } = &mut *behind;
        let mark = books.mark();
        let sample: Sample = books.sample(verdict, not_before, took);
        let (settlement, notice) = books.settle(ticket, sample, now, draws.next());
        self.publish(books, now);
        self.note(mark, books);
        if self.hub.announcer.wants_calls {
            self.hub.announcer.announce(&self.name, now, EventKind::Settled { verdict, settlement, took });
        }
        self.announce(now, notice);
        drop(behind);
        if ticket.placed {
            self.freed.notify_one();
        }
        self.lanes.count(match verdict {
            Verdict::Success => Counter::Success,
            Verdict::Failure => Counter::Failure,
            Verdict::Throttled { .. } => Counter::Throttled,
            Verdict::Neutral => Counter::Neutral,
        });
        if settlement == Settlement::Late {
            self.lanes.count(Counter::Late);
        }
        settlement
    }

    /// The verdict of a call that was dropped: the caller's own affair, unless it had outlived its timeout.
    pub(crate) fn dropped(&self, receipt: &Receipt) -> Verdict {
        match receipt.expires {
            Some(end) if self.hub.clock.now() >= end => Verdict::Failure,
            _ => Verdict::Neutral,
        }
    }

    fn measure(&self, took: Duration) {
        if let Some(histogram) = &self.histogram {
            histogram.record(took);
        }
    }

    // ── operators and configuration ────────────────────────────────────────────────────────────────────────────────────

    fn hold(&self, kind: Mode, order: Override) {
        let told = EventKind::Overridden { mode: kind, who: order.who.clone(), why: order.why.clone() };
        self.operate(|books, now, _| (books.hold(kind, order, now), Some(told)));
        self.note_all();
    }

    fn release(&self, who: Option<&str>) -> bool {
        let mut any = false;
        self.operate(|books, now, _| match books.release(who, now) {
            None => (None, None),
            Some(notice) => {
                any = true;
                let who = who.unwrap_or("everyone").to_owned();
                let told = EventKind::Overridden { mode: books.mode(now), who, why: "released".into() };
                (notice, Some(told))
            }
        });
        self.note_all();
        any
    }

    /// Goes by `policy` from now on. Whether that is a change.
    pub(crate) fn reconfigure(&self, policy: &Arc<Policy>) -> bool {
        let mut changed = false;
        self.operate(|books, now, _| match books.reconfigure(policy, now) {
            None => (None, None),
            Some(notice) => {
                changed = true;
                (notice, Some(EventKind::Reconfigured))
            }
        });
        if changed {
            self.note_all(); // a record names the policy it was made under
        }
        self.freed.notify_waiters(); // the bulkhead may have grown
        changed
    }

    /// Changes the books from outside a call: `change` gets them, the time and a draw.
    pub(crate) fn operate(&self, change: impl FnOnce(&mut Books, Tick, u64) -> (Option<Notice>, Option<EventKind>)) {
        let (mut behind, now) = self.lock_all_now();
        let Behind { books, draws } = &mut *behind;
        let (notice, told) = change(books, now, draws.next());
        self.publish(books, now);
        if let Some(told) = told {
            self.hub.announcer.announce(&self.name, now, told);
        }
        self.announce(now, notice);
    }

    // ── under the lock ─────────────────────────────────────────────────────────────────────────────────────────────────

    fn lock_all(&self) -> MutexGuard<'_, Behind> {
        // Nothing under this lock panics; if it did, the books would still be in order between two of its steps.
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The books and the time. The clock is read under the lock, so that whoever comes later comes later by the clock too, and nobody
    /// waits for a lock with an old time in hand.
    fn lock_all_now(&self) -> (MutexGuard<'_, Behind>, Tick) {
        let behind = self.lock_all();
        let now = self.hub.clock.now();
        (behind, now)
    }

    fn lock(&self) -> impl std::ops::Deref<Target = Books> + '_ {
        struct Locked<'a>(MutexGuard<'a, Behind>);
        impl std::ops::Deref for Locked<'_> {
            type Target = Books;
            fn deref(&self) -> &Books {
                &self.0.books
            }
        }
        Locked(self.lock_all())
    }

    fn publish(&self, books: &Books, now: Tick) {
        // Who wants to hear of every call gets every call through the books.
        let (word, deadline) = if self.hub.announcer.wants_calls {
            (Word::new(books.machine.generation()), None)
        } else {
            books.digest(now, self.hub.measured)
        };
        self.gate.publish(word, deadline);
    }

    /// Queues what happened. Under the lock, so that the order of the queue is the order of events; observers hear of it on their
    /// own thread.
    fn announce(&self, now: Tick, notice: Option<Notice>) {
        let Some(notice) = notice else { return };
        let kind = match notice {
            Notice::Transition(transition) => {
                self.transitions[transition.to as usize].fetch_add(1, Ordering::Relaxed);
                EventKind::Transition(transition)
            }
            Notice::WouldOpen(transition) => EventKind::WouldOpen(transition),
        };
        self.hub.announcer.announce(&self.name, now, kind);
    }

    // ── reading ────────────────────────────────────────────────────────────────────────────────────────────────────────

    #[cfg(feature = "prometheus")]
    pub(crate) fn histogram(&self) -> Option<&Histogram> {
        self.histogram.as_deref()
    }

    /// Calls that came in, admitted or not: whether the breaker is in use.
    pub(crate) fn arrivals(&self) -> u64 {
        let refused: u64 = self.refused.iter().map(|r| r.load(Ordering::Relaxed)).sum();
        self.lanes.sum(Counter::Admitted) + self.lanes.sum(Counter::RejectedOpen) + refused
    }

    /// Closed by its own judgement and by everyone else's, and nobody is in it: it can be forgotten.
    pub(crate) fn is_forgettable(&self) -> bool {
        let (behind, now) = self.lock_all_now();
        let books = &behind.books;
        self.lanes.in_flight() == 0
            && books.control.is_idle(now)
            && books.policy.mode == Mode::Enforce
            && books.machine.is_closed()
            && books.machine.state(now) == State::Closed
    }

    pub(crate) fn view(&self) -> BreakerView {
        let (behind, now) = self.lock_all_now();
        let books = &behind.books;
        let (mode, hold) = books.control.mode(books.policy.mode, now);
        let state = books.state(now);
        let opening = books.machine.opening();
        let reason = match (hold, mode) {
            (Some(hold), _) => Some(format!("{} by {}: {}", mode.as_str(), hold.who, hold.why)),
            (None, Mode::ForceOpen | Mode::ForceClosed) => Some(format!("{} by configuration", mode.as_str())),
            (None, _) => opening.map(|(_, cause)| cause.to_string()),
        };
        let retry_in = match mode {
            Mode::ForceOpen => books.control.forced_open_until(now).map(|end| end.since(now)),
            Mode::Enforce if state == State::Open => match books.held(now) {
                Some(until) => Some(until.since(now)),
                None => opening.map(|(deadline, _)| deadline.since(now)),
            },
            _ => None,
        };
        let tally = books.machine.tally(now);
        let rate = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        BreakerView {
            service: self.name.clone(),
            state,
            mode,
            reason,
            generation: books.machine.generation(),
            consecutive_failures: books.machine.consecutive_failures(),
            openings: books.machine.openings(),
            failure_rate: tally.and_then(|t| rate(t.failures, t.calls)),
            slow_rate: tally.and_then(|t| rate(t.slow, t.calls)),
            window_calls: tally.map(|t| t.calls),
            retry_in,
            in_flight: self.lanes.in_flight(),
            bulkhead_limit: books.policy.bulkhead.map(|b| b.max_concurrent.get()),
            budget_balance: books.policy.retry.and_then(|r| r.budget).map(|_| books.budget.balance()),
            calls: self.counts(),
        }
    }

    fn counts(&self) -> CallCounts {
        let lane = |counter| self.lanes.sum(counter);
        let refused = |at: usize| self.refused[at].load(Ordering::Relaxed);
        let entered = |state: State| self.transitions[state as usize].load(Ordering::Relaxed);
        CallCounts {
            success: lane(Counter::Success),
            failure: lane(Counter::Failure),
            timed_out: lane(Counter::TimedOut),
            throttled: lane(Counter::Throttled),
            neutral: lane(Counter::Neutral),
            late: lane(Counter::Late),
            rejected_open: lane(Counter::RejectedOpen),
            rejected_half_open_busy: refused(0),
            rejected_bulkhead_full: refused(1),
            rejected_rate_limited: refused(2),
            rejected_budget_exhausted: refused(3),
            to_open: entered(State::Open),
            to_half_open: entered(State::HalfOpen),
            to_closed: entered(State::Closed),
        }
    }
}

#[cfg(all(test, circuit_loom))]
mod interleavings;

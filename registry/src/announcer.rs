//! The queues between breakers and observers.
//!
//! A breaker announces an event under its lock, in the order it decided it, and never waits. A thread of the registry hands the
//! events to the observers, so an observer may block, panic or be slow: it delays no call.
//!
//! There are two lanes, each with its own queue and thread. Observers that want every call have one, all others and the
//! [streams](EventStream) have the other. So a flood of calls, or an observer that cannot keep up with it, neither delays nor
//! loses a transition for the others. Within a lane, calls have their own limit too: they never push out a transition. A thread
//! starts with the first event of its lane and ends with the registry.

use std::{
    cell::Cell,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    task::{Context, Poll},
    thread,
};

use tokio::sync::mpsc;

use crate::{
    clock::{Tick, WallTime},
    event::{Announcement, Event, Observer},
    outcome::ServiceName,
};

/// Events of calls that wait in a lane at the most. Beyond that they are dropped and counted.
const CALLS: usize = 16_384;

/// All other events that wait in a lane at the most. A queue this long means that an observer hangs.
const OTHERS: usize = 65_536;

/// Events that wait in a stream at the most.
const STREAM: usize = 16_384;

thread_local! {
    /// This thread hands events to observers.
    static OF_OBSERVERS: Cell<bool> = const { Cell::new(false) };
}

enum Message {
    Event { service: ServiceName, tick: Tick, what: Announcement },
    Flush(Sender<()>),
}

/// The breakers' end of the queues.
pub(crate) struct Announcer {
    /// For observers that want every call.
    all: Lane,
    /// For all others.
    changes: Lane,
    dropped: AtomicU64,
    pub(crate) wants_calls: bool,
}

impl Announcer {
    pub(crate) fn new(observers: Vec<Arc<dyn Observer>>, wall: WallTime) -> Self {
        let (all, changes): (Vec<_>, Vec<_>) = observers.into_iter().partition(|observer| observer.wants_calls());
        Self {
            wants_calls: !all.is_empty(),
            all: Lane::new("breaker-calls", all, wall.clone()),
            changes: Lane::new("breaker-events", changes, wall),
            dropped: AtomicU64::new(0),
        }
    }

    /// Queues an event; never waits.
    pub(crate) fn announce(&self, service: &ServiceName, tick: Tick, what: impl Into<Announcement>) {
        if !self.all.has_listeners() && !self.changes.has_listeners() {
            return;
        }
        let what = what.into();
        let of_a_call = what.is_of_a_call();
        let event = || Message::Event { service: service.clone(), tick, what: what.clone() };
        let lanes = [Some(&self.all), (!of_a_call).then_some(&self.changes)];
        for lane in lanes.into_iter().flatten().filter(|lane| lane.has_listeners()) {
            if !lane.queue(of_a_call, event()) {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Events that observers missed.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything announced so far was heard. An observer does not wait: it would wait for itself.
    pub(crate) fn flush(&self) {
        if OF_OBSERVERS.get() {
            return;
        }
        for lane in [&self.all, &self.changes] {
            lane.flush();
        }
    }

    /// Drops all observers and ends all streams.
    pub(crate) fn end(&self) {
        for lane in [&self.all, &self.changes] {
            let observers = std::mem::take(&mut *lock(&lane.work.observers));
            let streams = std::mem::take(&mut *lock(&lane.work.streams));
            lane.work.listeners.store(0, Ordering::Relaxed);
            drop((observers, streams));
        }
    }

    pub(crate) fn subscribe(&self) -> EventStream {
        let (sender, events) = mpsc::channel(STREAM);
        let missed = Arc::new(AtomicU64::new(0));
        self.changes.work.add(StreamSender { sender, missed: missed.clone() });
        EventStream { events, missed }
    }
}

impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announcer").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

/// One queue, and the thread that empties it.
struct Lane {
    queue: Sender<Message>,
    work: Arc<LaneWork>,
    started: AtomicBool,
    name: &'static str,
}

/// What a lane shares with its thread.
struct LaneWork {
    events: Mutex<Receiver<Message>>,
    observers: Mutex<Arc<[Arc<dyn Observer>]>>,
    streams: Mutex<Vec<StreamSender>>,
    /// Observers and streams.
    listeners: AtomicUsize,
    /// Events that wait: other events, and those of calls.
    waiting: [AtomicUsize; 2],
    wall: WallTime,
}

impl Lane {
    fn new(name: &'static str, observers: Vec<Arc<dyn Observer>>, wall: WallTime) -> Self {
        let (queue, events) = channel();
        let work = LaneWork {
            events: Mutex::new(events),
            listeners: AtomicUsize::new(observers.len()),
            observers: Mutex::new(observers.into()),
            streams: Mutex::default(),
            waiting: Default::default(),
            wall,
        };
        Self { queue, work: Arc::new(work), started: AtomicBool::new(false), name }
    }

    fn has_listeners(&self) -> bool {
        self.work.listeners.load(Ordering::Relaxed) > 0
    }

    /// False if the queue is full, or there is no thread to empty it.
    fn queue(&self, of_a_call: bool, event: Message) -> bool {
        let waiting = &self.work.waiting[usize::from(of_a_call)];
        if waiting.fetch_add(1, Ordering::Relaxed) >= if of_a_call { CALLS } else { OTHERS } {
            waiting.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        self.start() && self.queue.send(event).is_ok()
    }

    /// Starts the thread, unless it runs. False if the system gives none: the next event tries again.
    fn start(&self) -> bool {
        if self.started.load(Ordering::Relaxed) || self.started.swap(true, Ordering::Relaxed) {
            return true;
        }
        let work = self.work.clone();
        let started = thread::Builder::new().name(self.name.into()).spawn(move || work.serve()).is_ok();
        self.started.store(started, Ordering::Relaxed);
        started
    }

    fn flush(&self) {
        let (done, heard) = channel();
        if self.started.load(Ordering::Relaxed) && self.queue.send(Message::Flush(done)).is_ok() {
            let _ = heard.recv();
        }
    }
}

impl LaneWork {
    /// Ends when the registry is gone.
    fn serve(&self) {
        OF_OBSERVERS.set(true);
        let events = lock(&self.events);
        while let Ok(message) = events.recv() {
            let (service, tick, what) = match message {
                Message::Flush(done) => {
                    let _ = done.send(());
                    continue;
                }
                Message::Event { service, tick, what } => (service, tick, what),
            };
            self.waiting[usize::from(what.is_of_a_call())].fetch_sub(1, Ordering::Relaxed);
            // The wall clock is read here and not by the breaker: not even a clock that blocks touches a call.
            self.hand_out(&Event { service, at: self.wall.at(tick), kind: what.kind(&self.wall) });
        }
    }

    fn hand_out(&self, event: &Event) {
        let observers = lock(&self.observers).clone();
        for observer in &*observers {
            // A panic is the observer's own affair; the panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| observer.on_event(event)));
        }
        lock(&self.streams).retain(|stream| {
            let open = stream.send(event);
            if !open {
                self.listeners.fetch_sub(1, Ordering::Relaxed);
            }
            open
        });
    }

    fn add(&self, stream: StreamSender) {
        lock(&self.streams).push(stream);
        self.listeners.fetch_add(1, Ordering::Relaxed);
    }
}

struct StreamSender {
    sender: mpsc::Sender<Event>,
    missed: Arc<AtomicU64>,
}

impl StreamSender {
    /// False if the stream was dropped.
    fn send(&self, event: &Event) -> bool {
        match self.sender.try_send(event.clone()) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.missed.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }
}

/// The events of a registry from now on, without those of single calls; see
/// [`CircuitRegistry::subscribe`](crate::CircuitRegistry::subscribe).
#[derive(Debug)]
pub struct EventStream {
    events: mpsc::Receiver<Event>,
    missed: Arc<AtomicU64>,
}

impl EventStream {
    /// The next event; `None` when the registry is gone.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// The next event, as a `Stream` gives it: `futures::stream::poll_fn(move |cx| events.poll_next(cx))` is one.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.events.poll_recv(cx)
    }

    /// Events that this stream lost, because 16 384 were waiting already.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

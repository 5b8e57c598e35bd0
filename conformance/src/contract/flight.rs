//! Calls that end on order, as futures and as closures.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, mpsc},
    task::{Context, Poll, Waker},
    thread::JoinHandle,
};

use super::{End, Flight};

/// The error of a call that failed, or that ended without saying anything about the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Sick {
    /// The upstream is ill.
    #[error("the upstream is ill")]
    Ill,
    /// The upstream had no part in it.
    #[error("refused on this side")]
    Indifferent,
}

#[derive(Debug, Default)]
struct Switch {
    entered: bool,
    order: Option<End>,
}

/// The protected call of an asynchronous crate: pending until its flight is ordered to end.
#[derive(Debug)]
pub struct Controlled(Arc<Mutex<Switch>>);

impl Future for Controlled {
    type Output = Result<(), Sick>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let mut switch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        switch.entered = true;
        let order = switch.order;
        drop(switch);
        order.map_or(Poll::Pending, |how| Poll::Ready(carry_out(how)))
    }
}

/// Ends a call from within. A panic unwinds without the hook: it is part of the case, not news for the terminal.
fn carry_out(how: End) -> Result<(), Sick> {
    match how {
        End::Ok | End::Drop => Ok(()),
        End::Err => Err(Sick::Ill),
        End::Neutral => Err(Sick::Indifferent),
        End::Panic => resume_unwind(Box::new("the probe panicked, as the case demands")),
    }
}

type Guarded = Pin<Box<dyn Future<Output = ()> + Send>>;

struct FutureFlight<W: Fn(&mut dyn FnMut())> {
    future: Option<Guarded>,
    switch: Arc<Mutex<Switch>>,
    within: W,
}

/// Starts an asynchronous call and polls it until its work has begun or the breaker has refused. `within` runs each poll
/// (and the drop) inside whatever context the crate needs.
pub fn launch_future<W>(within: W, guard: impl FnOnce(Controlled) -> Guarded) -> Option<Box<dyn Flight>>
where
    W: Fn(&mut dyn FnMut()) + Send + 'static,
{
    let switch = Arc::new(Mutex::new(Switch::default()));
    let mut future = guard(Controlled(Arc::clone(&switch)));
    loop {
        if poll_within(&within, &mut future) {
            return None;
        }
        if switch.lock().unwrap_or_else(PoisonError::into_inner).entered {
            return Some(Box::new(FutureFlight { future: Some(future), switch, within }));
        }
        std::thread::yield_now(); // it queues its callers before it looks at them
    }
}

fn poll_within(within: &dyn Fn(&mut dyn FnMut()), future: &mut Guarded) -> bool {
    let mut ready = false;
    within(&mut || ready = future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    ready
}

impl<W: Fn(&mut dyn FnMut()) + Send> Flight for FutureFlight<W> {
    fn end(mut self: Box<Self>, how: End) {
        if how == End::Drop {
            return;
        }
        self.switch.lock().unwrap_or_else(PoisonError::into_inner).order = Some(how);
        // The panic of a probe ends here, as it would at the edge of the task that ran it.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            while let Some(future) = &mut self.future
                && !poll_within(&self.within, future)
            {
                std::thread::yield_now();
            }
        }));
    }

    fn poke(&mut self) {
        if let Some(future) = &mut self.future
            && poll_within(&self.within, future)
        {
            self.future = None;
        }
    }
}

impl<W: Fn(&mut dyn FnMut())> Drop for FutureFlight<W> {
    fn drop(&mut self) {
        let mut future = self.future.take();
        (self.within)(&mut || drop(future.take()));
    }
}

struct ClosureFlight {
    order: Option<mpsc::Sender<End>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts a call of a crate that takes closures, on a thread of its own. `guard` runs the work it is given through the
/// breaker.
pub fn launch_closure<G>(guard: G) -> Option<Box<dyn Flight>>
where
    G: FnOnce(Box<dyn FnOnce() -> Result<(), Sick>>) + Send + 'static,
{
    let (order, orders) = mpsc::channel::<End>();
    let (entered, entries) = mpsc::channel::<()>();
    let thread = std::thread::Builder::new()
        .stack_size(128 * 1024)
        .spawn(move || {
            let work = Box::new(move || {
                let _ = entered.send(());
                carry_out(orders.recv().unwrap_or(End::Err))
            });
            let _ = catch_unwind(AssertUnwindSafe(|| guard(work)));
        })
        .ok()?;
    // The sender lives in the work: it speaks when the work begins and falls silent when the breaker throws it away.
    let admitted = entries.recv().is_ok();
    let flight = ClosureFlight { order: Some(order), thread: Some(thread) };
    admitted.then(|| Box::new(flight) as Box<dyn Flight>)
}

impl Flight for ClosureFlight {
    fn end(self: Box<Self>, how: End) {
        if let Some(order) = &self.order {
            let _ = order.send(how);
        }
    }
}

impl Drop for ClosureFlight {
    fn drop(&mut self) {
        self.order = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

//! What a call costs: the same call through every breaker, measured in one run.
//!
//! Crates that take a future get `async { Ok(7) }`, polled once with a waker that does nothing, so that no executor is
//! part of the figure. Crates that take a closure get `|| Ok(7)`. Each form has its own floor, the bare call; a figure is
//! the time of a call less the time of the floor of the same run.

pub mod measure;
pub mod rivals;

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// The error of every measured call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the upstream is sick")]
pub struct Sick;

/// How a breaker is handed the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a future, polled once.
    Future,
    /// As a closure.
    Closure,
}

/// One thing to measure: `run(n)` makes `n` calls.
pub struct Subject {
    /// Crate and version.
    pub name: &'static str,
    /// How it is handed the work.
    pub form: Form,
    /// Makes that many calls through one shared breaker.
    pub run: Box<dyn Fn(u32) + Send + Sync>,
}

impl Subject {
    /// A subject from its parts.
    pub fn new(name: &'static str, form: Form, run: impl Fn(u32) + Send + Sync + 'static) -> Self {
        Self { name, form, run: Box::new(run) }
    }
}

/// Polls a future, without an executor, until it is ready. Alone, every call measured here is ready on the first poll; a
/// crate that queues its callers when two meet is polled again at once, which is kinder to it than parking a thread.
#[inline]
pub fn once<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
        return output;
    }
    let mut spins = 0u32;
    loop {
        std::hint::spin_loop();
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        spins += 1;
        if spins.is_multiple_of(1 << 10) {
            std::thread::yield_now();
        }
    }
}

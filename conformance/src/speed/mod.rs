//! What a call costs: the same call through every breaker, measured in one run.
//!
//! Crates that take a future get `async { Ok(7) }` and are awaited in a loop within one task, as a program would, with a
//! waker that does nothing, so that no executor is part of the figure. Crates that take a closure get `|| Ok(7)`. Each
//! form has its own floor, the bare call; a figure is the time of a call less the time of the floor of the same run.

pub mod measure;
pub mod ours;
pub mod rivals;
pub mod targets;
pub mod windows;

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

/// What the measured calls meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    /// Closed; every call succeeds.
    Closed,
    /// Open; every call is rejected.
    Rejected,
}

/// One thing to measure.
pub struct Subject {
    /// Crate and version.
    pub name: String,
    /// How it is handed the work.
    pub form: Form,
    /// What its calls meet.
    pub scene: Scene,
    /// Makes that many calls through one shared breaker and says how many succeeded.
    pub run: Box<dyn Fn(u32) -> u32 + Send + Sync>,
}

impl Subject {
    /// A subject from its parts.
    pub fn new(
        name: impl Into<String>,
        form: Form,
        scene: Scene,
        run: impl Fn(u32) -> u32 + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), form, scene, run: Box::new(run) }
    }

    /// Makes calls that must all meet the scene they claim to meet.
    ///
    /// # Panics
    /// If one does not: the figure would be about something else.
    #[inline]
    pub fn calls(&self, count: u32) {
        let succeeded = (self.run)(count);
        let expected = if self.scene == Scene::Closed { count } else { 0 };
        assert_eq!(succeeded, expected, "{} is not in the scene {:?}", self.name, self.scene);
    }
}

/// Counts the successes among the results of an expression. Like a program, it takes the value of a success and looks at
/// an error, both out of the optimiser's sight.
#[macro_export]
macro_rules! repeat {
    ($count:expr, $call:expr) => {{
        let mut succeeded = 0;
        for _ in 0..$count {
            match $call {
                Ok(value) => {
                    let _ = std::hint::black_box(value);
                    succeeded += 1;
                }
                Err(error) => {
                    let _ = std::hint::black_box(&error);
                }
            }
        }
        succeeded
    }};
}

/// The same for futures, awaited one after the other within one task.
#[macro_export]
macro_rules! awaited {
    ($count:expr, $call:expr) => {
        $crate::speed::once(async { $crate::repeat!($count, $call.await) })
    };
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

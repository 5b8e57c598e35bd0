//! What a call costs when there are already many in the window.
//!
//! Every batch meets a window with exactly this many calls: the breaker is built and filled anew for each, because a
//! measured call is itself one call more.

use std::{
    hint::black_box,
    sync::Mutex,
    time::{Duration, Instant},
};

use super::{Form, Scene, Sick, Subject, measure::lower_quartile};
use crate::awaited;

/// Calls in the window when the measuring begins.
pub const FILLS: [u32; 5] = [0, 100, 1_000, 10_000, 100_000];
/// The largest of [`FILLS`], and so the size of the count windows.
pub const LARGEST: u32 = 100_000;
/// Longer than any measurement: nothing leaves a time window while it is measured.
pub const SPAN: Duration = Duration::from_secs(600);
/// Calls in a batch: few enough to be no part of the fill.
const BATCH: u32 = 64;

/// A kind of window in one crate.
pub struct Windowed {
    /// Crate, version and kind of window.
    pub name: &'static str,
    /// A closed breaker with an empty window.
    pub build: fn() -> Subject,
}

/// Nanoseconds per closed, successful call by the number of calls in the window. `budget` is the time to spend;
/// filling counts, and three batches are made in any case.
pub fn cost(windowed: &Windowed, fill: u32, budget: Duration) -> f64 {
    let mut samples = Vec::new();
    let begun = Instant::now();
    while samples.len() < 3 || (begun.elapsed() < budget && samples.len() < 400) {
        let subject = (windowed.build)();
        subject.calls(fill);
        let start = Instant::now();
        subject.calls(BATCH);
        samples.push(start.elapsed().as_nanos() as f64 / f64::from(BATCH));
    }
    lower_quartile(samples).unwrap_or(f64::NAN)
}

/// Those of tower-resilience.
pub const RIVALS: [Windowed; 2] = [
    Windowed { name: "tower-resilience 0.14.0, count", build: tower_count },
    Windowed { name: "tower-resilience 0.14.0, time", build: tower_time },
];

fn tower_count() -> Subject {
    use tower_resilience_circuitbreaker::{CircuitBreakerLayer, SlidingWindowType};
    tower(
        CircuitBreakerLayer::builder()
            .sliding_window_type(SlidingWindowType::CountBased)
            .sliding_window_size(LARGEST as usize)
            .minimum_number_of_calls(100),
    )
}

fn tower_time() -> Subject {
    use tower_resilience_circuitbreaker::{CircuitBreakerLayer, SlidingWindowType};
    tower(
        CircuitBreakerLayer::builder()
            .sliding_window_type(SlidingWindowType::TimeBased)
            .sliding_window_duration(SPAN)
            .minimum_number_of_calls(100),
    )
}

fn tower(
    builder: tower_resilience_circuitbreaker::CircuitBreakerConfigBuilder<
        tower_resilience_circuitbreaker::DefaultClassifier,
    >,
) -> Subject {
    use tower::Service;
    let layer = builder.failure_rate_threshold(0.5).build().expect("a valid configuration");
    let service = Mutex::new(layer.layer_fn(tower::service_fn(|()| async { Ok::<u64, Sick>(black_box(7)) })));
    Subject::new("tower-resilience", Form::Future, Scene::Closed, move |n| {
        let mut service = service.lock().expect("no panic under this lock").clone();
        awaited!(n, async {
            std::future::poll_fn(|cx| Service::<()>::poll_ready(&mut service, cx)).await?;
            service.call(()).await
        })
    })
}

//! Criterion's view of every breaker: closed and rejected calls, the look-up, and windows; one thread and two.
//!
//! All crates run in one process. The ratios that count are paired more tightly, by `summary`.

#![expect(clippy::disallowed_methods, reason = "the machine's own clock is what is measured")]

use std::{
    thread,
    time::{Duration, Instant},
};

use breaker_conformance::speed::{
    Scene, Subject, ours,
    rivals::{floors, rivals},
    windows,
};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};

fn calls(criterion: &mut Criterion) {
    for (group, scene) in [("closed", Scene::Closed), ("rejected", Scene::Rejected)] {
        let subjects: Vec<Subject> = floors().into_iter().chain([ours::calls(scene)]).chain(rivals(scene)).collect();
        bench(criterion, group, &subjects);
    }
    bench(criterion, "look-up", &ours::lookups());
}

fn bench(criterion: &mut Criterion, group: &str, subjects: &[Subject]) {
    let mut group = criterion.benchmark_group(group);
    for subject in subjects {
        let name = format!("{} ({:?})", subject.name, subject.form);
        group.bench_function(BenchmarkId::new(&name, "1 thread"), |bencher| {
            bencher.iter_custom(|count| timed(subject, count));
        });
        group.bench_function(BenchmarkId::new(&name, "2 threads"), |bencher| {
            bencher.iter_custom(|count| {
                thread::scope(|scope| {
                    let other = scope.spawn(|| timed(subject, count));
                    let own = timed(subject, count);
                    (own + other.join().expect("a measuring thread does not panic")) / 2
                })
            });
        });
    }
    group.finish();
}

fn timed(subject: &Subject, mut count: u64) -> Duration {
    let start = Instant::now();
    while count > 0 {
        let batch = u32::try_from(count).unwrap_or(u32::MAX);
        subject.calls(batch);
        count -= u64::from(batch);
    }
    start.elapsed()
}

/// Batches of 64 calls into a window with a given number of calls. The largest fill is left to `summary`: filling
/// tower-resilience's time window that far takes seconds each time.
fn filled_windows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("64 calls into a window");
    for windowed in ours::WINDOWS.iter().chain(&windows::RIVALS) {
        for fill in [0, 1_000, 10_000] {
            group.bench_function(BenchmarkId::new(windowed.name, fill), |bencher| {
                let filled = || {
                    let subject = (windowed.build)();
                    subject.calls(fill);
                    subject
                };
                bencher.iter_batched_ref(filled, |subject| subject.calls(64), BatchSize::PerIteration);
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .without_plots()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600));
    targets = calls, filled_windows
}
criterion_main!(benches);

//! Nanoseconds per call on one thread and on two, all subjects interleaved round by round.
//!
//! Interleaving is what makes the ratios hold on a busy machine: a slow moment hits a round of everybody. The reported
//! figure is the lower quartile of the rounds, which a passing disturbance does not reach.

use std::{
    hint,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use super::Subject;

/// How long to measure.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Passes over all subjects.
    pub rounds: u32,
    /// The time one batch of calls should take.
    pub batch: Duration,
}

impl Effort {
    /// A few seconds per table.
    pub const STANDARD: Self = Self { rounds: 200, batch: Duration::from_micros(300) };
}

/// Nanoseconds per call and thread.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// One thread alone.
    pub one: f64,
    /// Each of two threads on one shared breaker.
    pub two: f64,
}

/// The calls a batch holds, so that it takes about the time asked for.
fn batch_size(subject: &Subject, batch: Duration) -> u32 {
    let mut calls = 64;
    loop {
        let start = Instant::now();
        (subject.run)(calls);
        let taken = start.elapsed();
        if taken >= batch / 2 || calls >= 1 << 24 {
            return u32::try_from(u128::from(calls) * batch.as_nanos() / taken.as_nanos().max(1)).unwrap_or(1).max(1);
        }
        calls *= 2;
    }
}

fn lower_quartile(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 4]
}

/// Measures all subjects; the result is in their order.
pub fn measure(subjects: &[Subject], effort: Effort) -> Vec<Cost> {
    let sizes: Vec<u32> = subjects.iter().map(|subject| batch_size(subject, effort.batch)).collect();
    let one = alone(subjects, &sizes, effort);
    let two = together(subjects, &sizes, effort);
    one.into_iter().zip(two).map(|(one, two)| Cost { one, two }).collect()
}

fn alone(subjects: &[Subject], sizes: &[u32], effort: Effort) -> Vec<f64> {
    let mut samples = vec![Vec::new(); subjects.len()];
    for _ in 0..effort.rounds {
        for (index, subject) in subjects.iter().enumerate() {
            let start = Instant::now();
            (subject.run)(sizes[index]);
            samples[index].push(start.elapsed().as_nanos() as f64 / f64::from(sizes[index]));
        }
    }
    samples.into_iter().map(lower_quartile).collect()
}

/// Two threads that start each batch together. Rounds in which they did not really overlap are left out: one of them
/// was off the processor, and the other had the breaker to itself.
fn together(subjects: &[Subject], sizes: &[u32], effort: Effort) -> Vec<f64> {
    let gate = AtomicU32::new(0);
    let batch_times = || {
        let mut times = Vec::new();
        let mut passed = 0;
        for _ in 0..effort.rounds {
            for (index, subject) in subjects.iter().enumerate() {
                passed += 2;
                gate.fetch_add(1, Ordering::AcqRel);
                let mut spins = 0u32;
                while gate.load(Ordering::Acquire) < passed {
                    hint::spin_loop();
                    spins += 1;
                    if spins.is_multiple_of(1 << 14) {
                        std::thread::yield_now();
                    }
                }
                let start = Instant::now();
                (subject.run)(sizes[index]);
                times.push((start, Instant::now()));
            }
        }
        times
    };
    let (left, right) = std::thread::scope(|scope| {
        let other = scope.spawn(batch_times);
        (batch_times(), other.join().expect("a measuring thread does not panic"))
    });
    let mut samples = vec![Vec::new(); subjects.len()];
    let mut discarded = vec![Vec::new(); subjects.len()];
    for (position, (a, b)) in left.into_iter().zip(right).enumerate() {
        let index = position % subjects.len();
        let longest = (a.1 - a.0).max(b.1 - b.0);
        let shared = a.1.min(b.1).saturating_duration_since(a.0.max(b.0));
        let mean = ((a.1 - a.0) + (b.1 - b.0)).as_nanos() as f64 / 2.0 / f64::from(sizes[index]);
        let kept = if shared * 10 >= longest * 8 { &mut samples } else { &mut discarded };
        kept[index].push(mean);
    }
    samples
        .into_iter()
        .zip(discarded)
        .map(|(kept, dropped)| lower_quartile(if kept.is_empty() { dropped } else { kept }))
        .collect()
}

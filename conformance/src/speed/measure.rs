//! Nanoseconds per call on one thread and on two, all subjects interleaved round by round.
//!
//! Interleaving is what makes the ratios hold on a busy machine: a slow moment hits a round of everybody. The reported
//! figure is the lower quartile of the rounds, which a passing disturbance does not reach.
//!
//! Two threads prove something only while both run. Where the system tells how long a thread waited for a processor
//! (Linux), a round in which either waited is left out; if too few remain, there is no figure rather than a wrong one.

use std::{
    fs, hint,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use super::Subject;

/// How long to measure.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Passes over all subjects.
    pub rounds: u32,
    /// The time one batch of calls should take on one thread.
    pub batch: Duration,
}

impl Effort {
    /// A few seconds per table.
    pub const STANDARD: Self = Self { rounds: 120, batch: Duration::from_micros(300) };
}

/// Time for sessions of two threads before a subject without enough undisturbed rounds is given up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Nanoseconds per call and thread.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// One thread alone.
    pub one: f64,
    /// Each of two threads on one shared breaker; `None` if the machine was too busy to run two threads at once.
    pub two: Option<f64>,
}

/// Measures all subjects; the result is in their order.
pub fn measure(subjects: &[Subject], effort: Effort) -> Vec<Cost> {
    let sizes: Vec<u32> = subjects.iter().map(|subject| batch_size(subject, effort.batch)).collect();
    let one = alone(subjects, &sizes, effort.rounds);
    let two = together(subjects, &sizes, effort.rounds);
    one.into_iter().zip(two).map(|(one, two)| Cost { one, two }).collect()
}

/// The calls a batch holds, so that it takes about the time asked for.
fn batch_size(subject: &Subject, batch: Duration) -> u32 {
    let mut calls = 16;
    loop {
        let start = Instant::now();
        subject.calls(calls);
        let taken = start.elapsed();
        if taken >= batch / 2 || calls >= 1 << 24 {
            return u32::try_from(u128::from(calls) * batch.as_nanos() / taken.as_nanos().max(1)).unwrap_or(1).max(1);
        }
        calls *= 2;
    }
}

/// The lower quartile; `None` of nothing.
pub fn lower_quartile(mut samples: Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 4).copied()
}

fn alone(subjects: &[Subject], sizes: &[u32], rounds: u32) -> Vec<f64> {
    let mut samples = vec![Vec::new(); subjects.len()];
    for _ in 0..rounds {
        for ((subject, &size), samples) in subjects.iter().zip(sizes).zip(&mut samples) {
            let start = Instant::now();
            subject.calls(size);
            samples.push(start.elapsed().as_nanos() as f64 / f64::from(size));
        }
    }
    samples.into_iter().map(|samples| lower_quartile(samples).unwrap_or(f64::NAN)).collect()
}

fn together(subjects: &[Subject], sizes: &[u32], rounds: u32) -> Vec<Option<f64>> {
    let enough = (rounds / 10).max(1) as usize;
    let mut samples = vec![Vec::new(); subjects.len()];
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && samples.iter().any(|kept| kept.len() < enough) {
        session(subjects, sizes, rounds / 4, &mut samples);
    }
    samples.into_iter().map(|kept| if kept.len() >= enough { lower_quartile(kept) } else { None }).collect()
}

/// One batch on one thread.
struct Batch {
    nanos: f64,
    undisturbed: bool,
}

/// Two threads go through the batches side by side. Each times its own calls and then keeps calling until the other is
/// done too, so that no thread is measured alone on the breaker.
fn session(subjects: &[Subject], sizes: &[u32], rounds: u32, samples: &mut [Vec<f64>]) {
    let (ready, done) = (AtomicU32::new(0), AtomicU32::new(0));
    let batches = || {
        let mut batches = Vec::new();
        let mut meeting = 0;
        for _ in 0..rounds {
            for (subject, &size) in subjects.iter().zip(sizes) {
                meeting += 2;
                let before = queued();
                ready.fetch_add(1, Ordering::AcqRel);
                wait_for(|| ready.load(Ordering::Acquire) >= meeting);
                let start = Instant::now();
                subject.calls(size);
                let taken = start.elapsed();
                done.fetch_add(1, Ordering::AcqRel);
                while done.load(Ordering::Acquire) < meeting {
                    subject.calls(8);
                }
                let waited = queued().saturating_sub(before);
                batches
                    .push(Batch { nanos: taken.as_nanos() as f64 / f64::from(size), undisturbed: waited * 10 < taken });
            }
        }
        batches
    };
    let (left, right) = thread::scope(|scope| {
        let other = scope.spawn(batches);
        (batches(), other.join().expect("a measuring thread does not panic"))
    });
    for (position, (left, right)) in left.into_iter().zip(right).enumerate() {
        if left.undisturbed && right.undisturbed {
            samples[position % subjects.len()].push(f64::midpoint(left.nanos, right.nanos));
        }
    }
}

/// Spins, so that the two set off together; on a machine with other work it lets that pass.
fn wait_for(condition: impl Fn() -> bool) {
    let mut spins = 0u32;
    while !condition() {
        hint::spin_loop();
        spins += 1;
        if spins.is_multiple_of(1 << 12) {
            thread::yield_now();
        }
    }
}

/// The time this thread has waited for a processor since it began; zero where the system does not tell.
fn queued() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_ascii_whitespace().nth(1).and_then(|field| field.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

//! How long calls take: a fixed set of buckets, counted without a lock.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Upper bounds of the buckets, in seconds; slower calls fall into `+Inf`.
pub(crate) const BOUNDS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// The durations of one breaker's calls.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Histogram {
    pub(crate) fn record(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(crate::clock::saturating_nanos(took), Ordering::Relaxed);
    }

    /// Calls at or under each bound, all calls, and their durations added up in seconds.
    #[cfg_attr(not(feature = "prometheus"), allow(dead_code, reason = "only the Prometheus collector reads it"))]
    pub(crate) fn read(&self) -> ([u64; BOUNDS.len()], u64, f64) {
        let mut sum = 0;
        let cumulative = std::array::from_fn(|i| {
            sum += self.buckets[i].load(Ordering::Relaxed);
            sum
        });
        let all = sum + self.buckets[BOUNDS.len()].load(Ordering::Relaxed);
        (cumulative, all, self.nanos.load(Ordering::Relaxed) as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_bounds_belong_to_their_bucket() {
        let histogram = Histogram::default();
        for millis in [5, 6, 29_000, 31_000] {
            histogram.record(Duration::from_millis(millis));
        }
        let (cumulative, all, sum) = histogram.read();
        assert_eq!((cumulative[0], cumulative[1], cumulative[11], all), (1, 2, 3, 4));
        assert!((sum - 60.011).abs() < 1e-9);
    }
}

//! Counts the attempts that never reached an upstream.
//!
//! The server counts every attempt. But an activity that waited ten times for its breaker has not tried ten times, and must keep its
//! retries for the time when the upstream is back. So the worker counts the waits: only for activities that wait, only while they
//! may return, and for a limited number of activities. If an activity returns to another worker, its waits count as attempts
//! there: it gives up earlier than necessary, but never later.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The most waiting activities that are counted. About 2 MB.
const MOST: usize = 50_000;

/// An activity that is overdue by this much has ended, or another worker has it.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
pub(super) struct Waits {
    by_activity: Mutex<HashMap<u64, Wait>>,
}

#[derive(Debug)]
struct Wait {
    refused: u32,
    forgotten_at: Instant,
}

impl Waits {
    /// How many of the attempts before this one were refused.
    pub(super) fn refused(&self, activity: u64, attempt: u32) -> u32 {
        if attempt <= 1 {
            return 0;
        }
        self.lock().get(&activity).map_or(0, |wait| wait.refused).min(attempt - 1)
    }

    /// This attempt was refused, and the next one is due after `delay`.
    pub(super) fn refuse(&self, activity: u64, attempt: u32, delay: Duration, now: Instant) {
        let mut waits = self.lock();
        if waits.len() >= MOST && !waits.contains_key(&activity) {
            waits.retain(|_, wait| wait.forgotten_at > now);
            if waits.len() >= MOST {
                return;
            }
        }
        let forgotten_at = now + delay.min(Duration::from_secs(86_400 * 365)) + PATIENCE;
        let wait = waits.entry(activity).or_insert(Wait { refused: 0, forgotten_at });
        // The first attempt starts the count anew: the activity may have been reset.
        wait.refused = if attempt <= 1 { 1 } else { wait.refused + 1 };
        wait.forgotten_at = forgotten_at;
    }

    /// There will be no attempt after this one.
    pub(super) fn forget(&self, activity: u64, attempt: u32) {
        if attempt > 1 {
            self.lock().remove(&activity);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Wait>> {
        self.by_activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn counts_refusals_until_the_activity_ends_or_is_reset() {
        let (waits, now) = (Waits::default(), Instant::now());
        assert_eq!(waits.refused(7, 5), 0);
        for attempt in 1..=3 {
            waits.refuse(7, attempt, Duration::from_secs(60), now);
        }
        assert_eq!((waits.refused(7, 4), waits.refused(7, 2), waits.refused(7, 1)), (3, 1, 0));
        waits.refuse(7, 1, Duration::from_secs(60), now);
        assert_eq!(waits.refused(7, 2), 1, "reset by the server");
        waits.forget(7, 2);
        assert_eq!(waits.refused(7, 3), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_count_is_bounded_and_overdue_activities_make_room() {
        let (waits, now) = (Waits::default(), Instant::now());
        for activity in 0..MOST as u64 + 10 {
            waits.refuse(activity, 1, Duration::MAX, now);
        }
        assert_eq!(waits.lock().len(), MOST);
        assert_eq!(waits.refused(MOST as u64 + 1, 2), 0);
        let later = now + Duration::from_secs(86_400 * 365) + PATIENCE;
        waits.refuse(u64::MAX, 1, Duration::ZERO, later);
        assert_eq!(waits.lock().len(), 1);
    }
}

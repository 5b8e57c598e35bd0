//! The retry budget: retries may add at most a share to the first attempts.
//!
//! Every first attempt pays in the share, every retry costs a whole; both in exact integers, so that at 20 % exactly
//! every fifth first attempt buys a retry, forever. The balance is capped, so that an hour of good weather does not pay for a
//! storm of retries.

use crate::policy::Rate;

const WHOLE: u64 = 1_000_000;

/// At most this many retries are saved up, and they are there at the start: the first failures of a fresh process may be retried.
const SAVED_AT_MOST: u64 = 10;

/// The balance of one breaker's retries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Budget {
    millionths: u64,
}

impl Budget {
    pub(crate) fn full() -> Self {
        Self { millionths: SAVED_AT_MOST * WHOLE }
    }

    /// Whether a retry could be paid now.
    pub(crate) fn affords_retry(&self) -> bool {
        self.millionths >= WHOLE
    }

    /// BreakerState an admitted call.
    pub(crate) fn book(&mut self, attempt: u32, share: Rate) {
        self.millionths = if attempt > 1 {
            self.millionths.saturating_sub(WHOLE)
        } else {
            (self.millionths + u64::from(share.ppm())).min(SAVED_AT_MOST * WHOLE)
        };
    }

    /// Whole retries that can be paid.
    pub(crate) fn balance(&self) -> u64 {
        self.millionths / WHOLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_exactly_the_share_of_first_attempts() {
        let share = Rate::percent(20).unwrap();
        let mut budget = Budget::full();
        let mut retries = 0;
        for _ in 0..100_000 {
            budget.book(1, share);
            if budget.affords_retry() {
                budget.book(2, share);
                retries += 1;
            }
        }
        // 10 saved at the start, of which the first attempt's pay-in found the purse full.
        assert_eq!(retries, 100_000 / 5 + SAVED_AT_MOST - 1);
    }

    #[test]
    fn an_empty_purse_affords_nothing() {
        let mut budget = Budget::full();
        for _ in 0..SAVED_AT_MOST {
            assert!(budget.affords_retry());
            budget.book(2, Rate::ALL);
        }
        assert!(!budget.affords_retry());
        budget.book(1, Rate::ALL);
        assert_eq!(budget.balance(), 1);
    }
}

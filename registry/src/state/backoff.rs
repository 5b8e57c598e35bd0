//! How long the next opening lasts: a pure function of the policy, the number of openings since the last close, and a draw.

use std::time::Duration;

use crate::{clock::saturating_nanos, policy::OpenTime};

/// The open time of opening number `openings` (0 = the first since the breaker was last closed). `draw` is uniform
/// over all of `u64`. Always within `[reset_timeout, max]`: jitter only adds, and growth stops at the cap.
pub(crate) fn open_time(policy: &OpenTime, openings: u32, draw: u64) -> Duration {
    let base = saturating_nanos(policy.reset_timeout);
    let max = saturating_nanos(policy.max).max(base);
    let grown = grow(base, policy.factor_milli, openings, max);
    let spread = u128::from(grown) * u128::from(policy.jitter.ppm()) / 1_000_000;
    let extra = (spread * u128::from(draw)) >> 64;
    Duration::from_nanos(u64::try_from(u128::from(grown) + extra).unwrap_or(u64::MAX).min(max))
}

/// `base · (factor/1000)^openings`, at most `max`. Stops as soon as the cap is reached or nothing grows.
fn grow(base: u64, factor_milli: u32, openings: u32, max: u64) -> u64 {
    let mut time = u128::from(base);
    let max = u128::from(max);
    for _ in 0..openings {
        let next = time * u128::from(factor_milli) / 1000;
        if next <= time {
            break;
        }
        time = next.min(max);
        if time == max {
            break;
        }
    }
    u64::try_from(time.min(max)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::Rate;

    fn policy(base: u64, factor_milli: u32, max: u64, jitter: u32) -> OpenTime {
        OpenTime {
            reset_timeout: Duration::from_secs(base),
            factor_milli,
            max: Duration::from_secs(max),
            jitter: Rate::percent(jitter).unwrap(),
        }
    }

    #[test]
    fn doubles_up_to_the_cap() {
        let doubling = policy(60, 2000, 600, 0);
        let times: Vec<u64> = (0..6).map(|n| open_time(&doubling, n, 0).as_secs()).collect();
        assert_eq!(times, [60, 120, 240, 480, 600, 600]);
        assert_eq!(open_time(&doubling, 10_000, u64::MAX).as_secs(), 600);
    }

    #[test]
    fn a_hundred_draws_spread_over_the_jitter_and_none_is_early() {
        let jittered = policy(60, 1000, 600, 20);
        let step = u64::MAX / 100;
        let times: Vec<f64> = (0..=100).map(|i| open_time(&jittered, 0, step * i).as_secs_f64()).collect();
        assert!(times.iter().all(|t| (60.0..=72.0).contains(t)));
        assert!(times[0] < 60.2 && times[100] > 71.8, "{times:?}");
    }

    proptest! {
        #[test]
        fn lies_between_the_bounds(base in 1u64..100_000, factor in 0u32..10_000, max in 1u64..1_000_000,
                                   jitter in 0u32..=100, openings in any::<u32>(), draw in any::<u64>()) {
            let policy = policy(base, factor, max.max(base), jitter);
            let time = open_time(&policy, openings, draw);
            prop_assert!(time >= policy.reset_timeout && time <= policy.max);
        }
    }
}

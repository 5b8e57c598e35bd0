//! Decides whether and when an attempt without an answer is retried: a pure function of the policy, the attempt and the time left.
//! The second table of [`failure`](super::failure) lists the results.
//!
//! An activity does not wait for an attempt that would come too late or would be its last: it degrades now. The jitter of a wait is a hash
//! of the activity and its attempt: activities that wait for one breaker return at different times, and a second run waits as
//! long as the first.

use std::time::Duration;

use super::failure::{BULKHEAD_RETRY, BUSY_RETRY, Reason};
use crate::policy::{OnOpen, Policy};

/// Jitter adds up to a fifth of the wait, within these bounds.
const LEAST_SPREAD: Duration = Duration::from_millis(250);
const MOST_SPREAD: Duration = Duration::from_secs(30);

/// An attempt that has ended without an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) reason: Reason,
    /// The time after which the refusal or the upstream allows another attempt.
    pub(super) retry_in: Option<Duration>,
    /// The retry directive that the failure has now.
    pub(super) directive: Next,
    pub(super) on_open: OnOpen,
    /// Attempts that could reach the upstream, this one included; counts from 1.
    pub(super) attempt: u32,
    /// The server grants no attempt after this one.
    pub(super) last: bool,
    /// The time left of the workflow's limit for the activity, if there is a limit.
    pub(super) left: Option<Duration>,
    /// A hash of the activity and its attempt.
    pub(super) salt: u64,
    /// Uniform over all of `u64`.
    pub(super) draw: u64,
}

/// Whether and when the server makes the next attempt: the retry directive of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It does not.
    Never,
    /// After this time.
    After(Duration),
    /// As the activity's own retry policy says.
    ByServer,
}

pub(super) fn next(ended: &Ended, policy: &Policy) -> Next {
    match ended.reason {
        Reason::Declined | Reason::NoTimeLeft => ended.directive,
        Reason::Failed | Reason::TimedOut => repeat(ended, policy),
        _ if ended.on_open == OnOpen::Degrade => ended.directive,
        Reason::Throttled if given_up(ended, policy) => Next::Never,
        _ => wait(ended, policy),
    }
}

/// The wait of `wait` and `wait_max`.
fn wait(ended: &Ended, policy: &Policy) -> Next {
    let reset_timeout = policy.open.reset_timeout;
    let base = match ended.reason {
        Reason::HalfOpenBusy => ended.retry_in.unwrap_or(BUSY_RETRY).min(BUSY_RETRY),
        Reason::BulkheadFull => BULKHEAD_RETRY,
        Reason::RateLimited => ended.retry_in.unwrap_or_default(),
        Reason::BudgetExhausted => reset_timeout,
        Reason::Throttled => ended.retry_in.unwrap_or(reset_timeout).min(policy.throttle_max),
        _ => ended.retry_in.unwrap_or(reset_timeout),
    };
    let spread = (base / 5).clamp(LEAST_SPREAD, MOST_SPREAD);
    let delay = base.saturating_add(share(spread, ended.salt));
    if ended.last || ended.left.is_some_and(|left| delay > left) { Next::Never } else { Next::After(delay) }
}

/// The repetition of an attempt that the upstream failed.
fn repeat(ended: &Ended, policy: &Policy) -> Next {
    if ended.directive == Next::Never || given_up(ended, policy) {
        return Next::Never;
    }
    let asked = ended.retry_in.map(|time| time.min(policy.throttle_max));
    let delay = match (policy.retry, ended.directive, asked) {
        (_, Next::After(own), asked) => own.max(asked.unwrap_or_default()),
        (Some(retry), _, asked) => {
            let doubled = 1_u32.checked_shl(ended.attempt.saturating_sub(1)).filter(|factor| *factor != 0);
            let most = doubled.and_then(|factor| retry.base.checked_mul(factor)).unwrap_or(retry.cap).min(retry.cap);
            share(most, ended.draw).max(asked.unwrap_or_default())
        }
        (None, _, Some(asked)) => asked,
        (None, _, None) => return Next::ByServer,
    };
    Next::After(delay)
}

fn given_up(ended: &Ended, policy: &Policy) -> bool {
    policy.retry.is_some_and(|retry| ended.attempt >= retry.max_attempts.get())
}

/// A share of `whole` that is uniform where `draw` is.
fn share(whole: Duration, draw: u64) -> Duration {
    let nanos = (whole.as_nanos().min(u128::from(u64::MAX)) * u128::from(draw)) >> 64;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::*;
    use crate::policy::RetryPolicy;

    const REFUSALS: [Reason; 6] = [
        Reason::Open,
        Reason::HalfOpenBusy,
        Reason::BulkheadFull,
        Reason::RateLimited,
        Reason::BudgetExhausted,
        Reason::Throttled,
    ];

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn ended(reason: Reason, on_open: OnOpen) -> Ended {
        let directive = if reason == Reason::Failed { Next::ByServer } else { Next::Never };
        let retry_in = (reason != Reason::Failed).then_some(secs(40));
        Ended { reason, retry_in, directive, on_open, attempt: 1, last: false, left: None, salt: 0, draw: u64::MAX }
    }

    fn policy() -> Policy {
        let retry =
            RetryPolicy { max_attempts: NonZeroU32::new(4).unwrap(), base: secs(1), cap: secs(3), budget: None };
        Policy { retry: Some(retry), ..Policy::default() }
    }

    #[test]
    fn degrade_keeps_the_directive_of_every_refusal() {
        for reason in REFUSALS {
            for directive in [Next::Never, Next::After(secs(1)), Next::ByServer] {
                let ended = Ended { directive, ..ended(reason, OnOpen::Degrade) };
                assert_eq!(next(&ended, &policy()), directive, "{reason:?}");
            }
        }
    }

    #[test]
    fn wait_retries_when_the_refusal_allows_it() {
        let reset_timeout = Policy::default().open.reset_timeout;
        let expected = [secs(40), BUSY_RETRY, BULKHEAD_RETRY, secs(40), reset_timeout, secs(40)];
        for (reason, expected) in REFUSALS.into_iter().zip(expected) {
            for on_open in [OnOpen::Wait, OnOpen::WaitMax(secs(600))] {
                assert_eq!(next(&ended(reason, on_open), &policy()), Next::After(expected), "{reason:?}");
            }
        }
        let throttled = Ended { retry_in: Some(secs(100_000)), ..ended(Reason::Throttled, OnOpen::Wait) };
        assert_eq!(next(&throttled, &policy()), Next::After(Policy::default().throttle_max));
    }

    #[test]
    fn a_wait_that_does_not_fit_degrades_now() {
        for reason in REFUSALS {
            let fits = Ended { left: Some(secs(40)), ..ended(reason, OnOpen::Wait) };
            assert!(matches!(next(&fits, &policy()), Next::After(_)), "{reason:?}");
            for late in [Ended { left: Some(Duration::ZERO), ..fits }, Ended { last: true, ..fits }] {
                assert_eq!(next(&late, &policy()), Next::Never, "{reason:?}");
            }
        }
        let jittered = Ended { left: Some(secs(40)), salt: 1 << 63, ..ended(Reason::Open, OnOpen::Wait) };
        assert_eq!(next(&jittered, &policy()), Next::Never, "jitter counts");
    }

    #[test]
    fn failures_are_retried_with_full_jitter_up_to_the_limit() {
        let at = |attempt, draw| next(&Ended { attempt, draw, ..ended(Reason::Failed, OnOpen::Degrade) }, &policy());
        let rounded = |next| match next {
            Next::After(delay) => delay.as_millis().next_multiple_of(10),
            other => panic!("{other:?}"),
        };
        assert_eq!([1, 2, 3].map(|attempt| rounded(at(attempt, u64::MAX))), [1000, 2000, 3000]);
        assert_eq!(at(2, 0), Next::After(Duration::ZERO));
        assert_eq!(at(4, 0), Next::Never);
        let unlimited = ended(Reason::Failed, OnOpen::Wait);
        assert_eq!(next(&unlimited, &Policy::default()), Next::ByServer);
    }

    #[test]
    fn retry_after_is_honoured_up_to_throttle_max() {
        let failed = Ended { draw: 0, ..ended(Reason::Failed, OnOpen::Degrade) };
        let asked = |time| Ended { retry_in: Some(time), ..failed };
        for policy in [policy(), Policy::default()] {
            assert_eq!(next(&asked(secs(7)), &policy), Next::After(secs(7)));
            assert_eq!(next(&asked(secs(100_000)), &policy), Next::After(policy.throttle_max));
        }
        let own = Ended { directive: Next::After(secs(9)), ..asked(secs(7)) };
        assert_eq!(next(&own, &policy()), Next::After(secs(9)), "the activity's own delay stays");
    }

    #[test]
    fn answers_and_final_failures_are_not_retried() {
        for on_open in [OnOpen::Degrade, OnOpen::Wait] {
            assert_eq!(next(&ended(Reason::Declined, on_open), &policy()), Next::Never);
            let final_failure = Ended { directive: Next::Never, ..ended(Reason::Failed, on_open) };
            assert_eq!(next(&final_failure, &policy()), Next::Never);
            let spent = Ended { attempt: 4, ..ended(Reason::Throttled, on_open) };
            assert_eq!(next(&spent, &policy()), Next::Never, "the upstream was asked often enough");
        }
    }

    proptest! {
        #[test]
        fn delays_keep_their_bounds(attempt in 1_u32.., draw: u64, salt: u64, retry_in in 0_u64..10_000) {
            let policy = Policy { retry: policy().retry.map(|r| RetryPolicy { max_attempts: NonZeroU32::MAX, ..r }), ..policy() };
            let failed = Ended { attempt: attempt.min(u32::MAX - 1), draw, ..ended(Reason::Failed, OnOpen::Degrade) };
            let Next::After(delay) = next(&failed, &policy) else { panic!("retried") };
            prop_assert!(delay <= secs(3));
            let open = Ended { salt, retry_in: Some(secs(retry_in)), ..ended(Reason::Open, OnOpen::Wait) };
            let Next::After(delay) = next(&open, &policy) else { panic!("waits") };
            prop_assert!(delay >= secs(retry_in) && delay <= secs(retry_in) + MOST_SPREAD);
        }
    }
}

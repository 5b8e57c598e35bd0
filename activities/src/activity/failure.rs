//! A failed operation as Temporal's own failure.

use temporalio_common::error::ApplicationFailure;

use super::{AttemptInfo, Failed};

impl Failed {
    /// The failure of an attempt. Type and category come from the registry's table; the details are the
    /// [`FailureDetails`](crate::model::FailureDetails). An upstream that failed the last attempt is not asked again, while a refusal of our own
    /// may be repeated for as long as the retry policy lets it.
    #[must_use]
    pub fn failure(self, info: AttemptInfo) -> ApplicationFailure {
        let Self { details, error } = self;
        let reason = details.reason;
        if info.last && !reason.is_refusal() {
            return reason.last_failure(error, *details);
        }
        let retry_in = error.rejection().and_then(|rejection| rejection.retry_in);
        reason.failure(error, retry_in, *details)
    }
}

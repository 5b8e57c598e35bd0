//! A failed operation as Temporal's own failure.

use temporalio_common::error::ApplicationFailure;

use super::Failed;

impl From<Failed> for ApplicationFailure {
    /// The type, the category and whether it is retried come from the registry's table; the details are the
    /// [`Lack`](crate::model::Lack).
    fn from(failed: Failed) -> Self {
        let Failed { lack, error } = failed;
        let retry_in = error.rejection().and_then(circuit_registry::Rejection::retry_in);
        lack.reason.failure(error, retry_in, *lack)
    }
}

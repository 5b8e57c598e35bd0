//! Reads the failure of a finished attempt, and gives it another retry directive: whether and when the server retries.
//!
//! The SDK's failure cannot be changed, and its details cannot be read before they are encoded. So this module encodes, changes and
//! decodes it. Message, type, details and causes stay the same. Only the Rust type of the source error is lost, and after the activity
//! no code can see that type. Only failures of our own table are rebuilt.

use std::{sync::LazyLock, time::Duration};

use temporalio_common::{
    data_converters::{DataConverter, NoopDecodeHint, SerializationContextData},
    error::{ApplicationFailure, IncomingError, OutgoingActivityError, OutgoingError},
    protos::temporal::api::failure::v1::failure::FailureInfo,
};

use super::{
    failure::{FailureDetails, Last, Reason},
    next::Next,
};

static CONVERTER: LazyLock<DataConverter> = LazyLock::new(DataConverter::default);

/// The reason of a failure of our table.
pub(super) fn reason(failure: &ApplicationFailure) -> Option<Reason> {
    failure.type_name().and_then(Reason::from_type_name)
}

/// Whether the activity itself forbids a retry, whatever a policy says.
pub(super) fn is_last(failure: &ApplicationFailure) -> bool {
    failure.source_error().is::<Last>()
}

/// The failure's present retry directive.
pub(super) fn next(failure: &ApplicationFailure) -> Next {
    match failure.next_retry_delay() {
        _ if failure.is_non_retryable() => Next::Never,
        Some(delay) => Next::After(delay),
        None => Next::ByServer,
    }
}

/// The same failure with details that can be read.
pub(super) fn readable(failure: ApplicationFailure) -> ApplicationFailure {
    rebuilt(failure, None)
}

/// The same failure with another retry directive.
pub(super) fn with_directive(failure: ApplicationFailure, next: Next) -> ApplicationFailure {
    rebuilt(failure, Some(next))
}

/// The service that gave no answer and the time until another attempt, from a readable failure.
pub(super) fn details(failure: &ApplicationFailure) -> (Option<String>, Option<Duration>) {
    match failure.details::<FailureDetails>() {
        Ok(Some(details)) => (details.service, details.retry_in_ms.map(Duration::from_millis)),
        // The activity has details of its own: its type name and retry directive have to do.
        Ok(None) | Err(_) => (None, None),
    }
}

fn rebuilt(failure: ApplicationFailure, next: Option<Next>) -> ApplicationFailure {
    let context = SerializationContextData::None;
    let outgoing = OutgoingError::Activity(OutgoingActivityError::Application(Box::new(failure)));
    let mut encoded = CONVERTER.to_failure(&context, outgoing);
    if let (Some(next), Some(FailureInfo::ApplicationFailureInfo(info))) = (next, &mut encoded.failure_info) {
        info.non_retryable = next == Next::Never;
        info.next_retry_delay = match next {
            Next::After(delay) => delay.try_into().ok(),
            Next::Never | Next::ByServer => None,
        };
    }
    let message = encoded.message.clone();
    match CONVERTER.to_error(&context, encoded, NoopDecodeHint) {
        Ok(IncomingError::Application(failure)) => failure,
        // What was encoded as an application failure is decoded as one.
        Ok(_) | Err(_) => ApplicationFailure::new(message),
    }
}

#[cfg(test)]
mod tests {
    use std::{error::Error, fmt};

    use temporalio_common::error::ApplicationErrorCategory;

    use super::*;

    #[derive(Debug)]
    struct Outer(std::io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("outer")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    fn encoded(failure: ApplicationFailure) -> temporalio_common::protos::temporal::api::failure::v1::Failure {
        let outgoing = OutgoingError::Activity(OutgoingActivityError::Application(Box::new(failure)));
        CONVERTER.to_failure(&SerializationContextData::None, outgoing)
    }

    fn failure() -> ApplicationFailure {
        let details =
            FailureDetails::new(Reason::Open, Some("northdata".to_owned()), Some(Duration::from_millis(2500)));
        Reason::Open.failure(Outer(std::io::Error::other("inner")), None, details)
    }

    #[test]
    fn a_readable_failure_encodes_the_same() {
        assert_eq!(encoded(readable(failure())), encoded(failure()));
        let details = details(&readable(failure()));
        assert_eq!(details, (Some("northdata".to_owned()), Some(Duration::from_millis(2500))));
    }

    #[test]
    fn another_directive_changes_nothing_else() {
        let delay = Duration::from_millis(1500);
        for (directive, non_retryable, expected) in
            [(Next::Never, true, None), (Next::After(delay), false, Some(delay)), (Next::ByServer, false, None)]
        {
            let failure = with_directive(failure(), directive);
            assert_eq!((failure.is_non_retryable(), failure.next_retry_delay()), (non_retryable, expected));
            assert_eq!(next(&failure), directive);
            assert_eq!(failure.to_string(), "outer");
            assert_eq!(reason(&failure), Some(Reason::Open));
            assert_eq!(failure.category(), ApplicationErrorCategory::Benign);
            assert_eq!(details(&failure).0.as_deref(), Some("northdata"));
            let cause = encoded(failure).cause.expect("the cause stays");
            assert_eq!(cause.message, "inner");
        }
    }

    #[test]
    fn a_last_failure_is_recognised_and_encodes_the_same() {
        let last = Reason::Open.last_failure(Outer(std::io::Error::other("inner")), "of its own".to_owned());
        assert!(is_last(&last) && !is_last(&failure()));
        let encoded = encoded(last);
        assert_eq!((encoded.message.as_str(), encoded.cause.expect("a cause").message.as_str()), ("outer", "inner"));
    }
}

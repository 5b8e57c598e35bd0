//! What a failed call says besides its verdict: the kind of the failure, and a few words.

use std::{fmt, time::Duration};

use smol_str::SmolStr;

use crate::outcome::Verdict;

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// No connection, or it broke: refused, reset, DNS, TLS.
    Connection,
    /// No answer in time.
    Timeout,
    /// An HTTP status that says so.
    Status,
    /// An answer that cannot be used: cut short, undecodable, or an outage hidden in a success.
    Answer,
    /// The service asked us to stay away.
    Throttled,
    /// The protected work panicked.
    Panic,
    /// None of these, or unknown.
    Other,
}

impl FailureKind {
    /// One word: the spelling of logs and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Status => "status",
            Self::Answer => "answer",
            Self::Throttled => "throttled",
            Self::Panic => "panic",
            Self::Other => "other",
        }
    }

    /// What a failure says that says no more than its kind.
    const fn words(self) -> &'static str {
        match self {
            Self::Connection => "no connection",
            Self::Timeout => "no answer in time",
            Self::Status => "a status that means a failure",
            Self::Answer => "an answer that cannot be used",
            Self::Throttled => "asked us to stay away",
            Self::Panic => "the call panicked",
            Self::Other => "the call failed",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One failure: its kind, and a few words that may stand in a log, a dashboard or an event.
///
/// The words are the implementor's choice, and hold no secret: a status, a class of error. Never a URL, a header, a name or
/// a body.
///
/// ```
/// use circuit_registry::{Failure, FailureKind};
///
/// let failure = Failure::new(FailureKind::Status).saying("HTTP 503");
/// assert_eq!(failure.to_string(), "HTTP 503");
/// assert_eq!(Failure::new(FailureKind::Timeout).to_string(), "no answer in time");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    kind: FailureKind,
    text: SmolStr,
}

impl Failure {
    /// The longest text in bytes. What is longer is cut.
    pub const MAX_TEXT: usize = 120;

    /// A failure of this kind that says no more.
    #[must_use]
    pub const fn new(kind: FailureKind) -> Self {
        Self { kind, text: SmolStr::new_static(kind.words()) }
    }

    /// The same, in these words: at most [`MAX_TEXT`](Self::MAX_TEXT) bytes of them, on one line.
    #[must_use]
    pub fn saying(mut self, words: &str) -> Self {
        let mut end = words.len().min(Self::MAX_TEXT);
        while !words.is_char_boundary(end) {
            end -= 1;
        }
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        self.text = words[..end].chars().map(clean).collect();
        self
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Its words.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl From<FailureKind> for Failure {
    fn from(kind: FailureKind) -> Self {
        Self::new(kind)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The judgement of a finished call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Judgement {
    /// What it says about the service.
    pub verdict: Verdict,
    /// For a failure: how long the service asked to be left alone.
    pub retry_after: Option<Duration>,
    /// For a failure: what happened, if that is known.
    pub failure: Option<Failure>,
}

impl Judgement {
    /// A failure of this kind.
    pub(crate) fn failed(failure: impl Into<Failure>) -> Self {
        Self { verdict: Verdict::Failure, retry_after: None, failure: Some(failure.into()) }
    }

    /// What to remember as the last failure; `None` if it is none.
    pub(crate) fn into_failure(self) -> Option<Failure> {
        match self.verdict {
            Verdict::Success | Verdict::Neutral => None,
            Verdict::Failure => Some(self.failure.unwrap_or(Failure::new(FailureKind::Other))),
            Verdict::Throttled { retry_after } => Some(self.failure.unwrap_or_else(|| {
                let failure = Failure::new(FailureKind::Throttled);
                match retry_after {
                    Some(time) => failure.saying(&format!("asked us to stay away for {time:?}")),
                    None => failure,
                }
            })),
        }
    }
}

impl From<Verdict> for Judgement {
    #[inline]
    fn from(verdict: Verdict) -> Self {
        Self { verdict, retry_after: None, failure: None }
    }
}

impl From<(Verdict, Option<Duration>)> for Judgement {
    fn from((verdict, retry_after): (Verdict, Option<Duration>)) -> Self {
        Self { verdict, retry_after, failure: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_short_and_on_one_line() {
        let failure = Failure::new(FailureKind::Other).saying(&"ä\n".repeat(100));
        assert!(failure.text().len() <= Failure::MAX_TEXT && !failure.text().contains('\n'), "{failure}");
        assert!(failure.text().starts_with("ä ä "));
    }

    #[test]
    fn a_failure_without_words_says_its_kind() {
        assert_eq!(Judgement::from(Verdict::Success).into_failure(), None);
        assert_eq!(Judgement::from(Verdict::Neutral).into_failure(), None);
        assert_eq!(Judgement::from(Verdict::Failure).into_failure(), Some(Failure::new(FailureKind::Other)));
        let throttled = Verdict::Throttled { retry_after: Some(Duration::from_secs(9)) };
        let failure = Judgement::from(throttled).into_failure().expect("a failure");
        assert_eq!((failure.kind(), failure.text()), (FailureKind::Throttled, "asked us to stay away for 9s"));
    }
}

//! The argument of a fault: what it may be, and what a text says.

use std::time::Duration;

/// What the text after the colon must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    /// The fault takes no argument.
    None,
    /// `500ms`, `10s`, `2m`; a bare number is seconds.
    Duration,
    /// As [`Parameter::Duration`], with a default in seconds.
    Seconds(u64),
    /// A whole number, with a default.
    Count(u64),
    /// `3` (three failures, then healthy) or `3/2` (three failures, two answers, and again).
    Cycle,
    /// Free text that the upstream's own handlers read; the name says what it stands for.
    Word(&'static str),
}

/// The argument of a fault, as parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    None,
    Duration(Duration),
    Count(u64),
    Cycle { failing: u64, healthy: Option<u64> },
    Word(String),
}

impl Parameter {
    /// The text of the fault `name` with this parameter, as a help page writes it.
    pub(crate) fn form(self, name: &str) -> String {
        match self {
            Parameter::None => name.to_owned(),
            Parameter::Duration => format!("{name}:DURATION"),
            Parameter::Seconds(default) => format!("{name}[:SECONDS={default}]"),
            Parameter::Count(default) => format!("{name}[:N={default}]"),
            Parameter::Cycle => format!("{name}:K[/N]"),
            Parameter::Word(what) => format!("{name}:{what}"),
        }
    }

    /// Reads the text after the colon; `None` if the parameter does not allow it.
    pub(crate) fn read(self, text: Option<&str>) -> Option<Argument> {
        match (self, text) {
            (Parameter::None, None) => Some(Argument::None),
            (Parameter::Duration, Some(text)) => duration(text).map(Argument::Duration),
            (Parameter::Seconds(default), None) => Some(Argument::Duration(Duration::from_secs(default))),
            (Parameter::Seconds(_), Some(text)) => duration(text).map(Argument::Duration),
            (Parameter::Count(default), None) => Some(Argument::Count(default)),
            (Parameter::Count(_), Some(text)) => number(text).map(Argument::Count),
            (Parameter::Cycle, Some(text)) => cycle(text),
            (Parameter::Word(_), Some(text)) if !text.is_empty() => Some(Argument::Word(text.to_owned())),
            _ => None,
        }
    }
}

impl Argument {
    /// The number, if it is one.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Argument::Count(n) => *n,
            _ => 0,
        }
    }

    /// The duration, if it is one.
    pub(crate) fn duration(&self) -> Duration {
        match self {
            Argument::Duration(duration) => *duration,
            _ => Duration::ZERO,
        }
    }

    /// The text that the upstream's own handlers read; empty if they need none.
    pub(crate) fn word(self) -> String {
        match self {
            Argument::Word(word) => word,
            Argument::Count(n) => n.to_string(),
            _ => String::new(),
        }
    }
}

fn cycle(text: &str) -> Option<Argument> {
    let (failing, healthy) = match text.split_once('/') {
        Some((failing, healthy)) => (failing, Some(number(healthy)?)),
        None => (text, None),
    };
    Some(Argument::Cycle { failing: number(failing)?, healthy })
}

/// A whole number, up to a million: more of anything is a typing error.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|n| *n <= 1_000_000)
}

fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let n = number(digits)?;
    let millis = match &text[digits.len()..] {
        "ms" => n,
        "" | "s" => n * 1_000,
        "m" => n * 60_000,
        _ => return None,
    };
    Some(Duration::from_millis(millis))
}

//! The faults that an upstream can have.
//!
//! A fault is text (`slow:500ms`, `flap:3`, `503_retry_after:30`), because people type it: on a command line, in a
//! `curl -d`, in a test. Parsing turns the text into a [`Fault`]. The error of a text that does not parse lists the texts
//! that do. What a fault does to one call is a pure function of three things: the fault, how many calls it has had, and how
//! long ago it was set. So a flapping upstream flaps the same way in every run.
//!
//! Faults in [`GENERIC`] work for every upstream. An upstream adds its own as a [`Scenario`] (`ms_unavailable:DE` for VIES),
//! which its handlers look up. Any fault may be narrowed to part of an upstream: `500@roller` fails only the calls whose
//! operation is `roller` or whose path or query contains that text.

mod argument;
mod effect;
mod generic;
mod scenario;

use std::fmt;
use std::time::Duration;

pub(crate) use argument::Parameter;
pub(crate) use effect::Effect;
pub(crate) use scenario::{ENFORCE_RATE, Scenario};

use argument::Argument;
use generic::GENERIC;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Generic { row: usize, argument: Argument },
    Specific { name: &'static str, word: String },
}

/// A fault of one upstream, parsed. Its [`Display`](fmt::Display) is the text it was parsed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    kind: Kind,
    only: Option<String>,
    text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// There is no such fault or upstream. The message lists those that exist.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FaultError {
    /// No upstream has this name.
    #[error("no upstream is called `{name}`; there are: {valid}")]
    UnknownUpstream {
        /// The name as given.
        name: String,
        /// Every valid name, comma-separated.
        valid: String,
    },
    /// The upstream has no such fault.
    #[error("`{text}` is not a fault of {upstream}; there are: {valid}")]
    UnknownFault {
        /// The upstream asked for.
        upstream: &'static str,
        /// The text as given.
        text: String,
        /// Every valid form, comma-separated.
        valid: String,
    },
    /// The fault exists, but its argument does not parse.
    #[error("`{text}`: expected `{expected}`")]
    Argument {
        /// The text as given.
        text: String,
        /// The form that parses.
        expected: String,
    },
}

impl Fault {
    /// Parses the text form of a fault for an upstream that adds `scenarios` to the generic ones.
    pub(crate) fn parse(
        upstream: &'static str,
        scenarios: &'static [Scenario],
        text: &str,
    ) -> Result<Fault, FaultError> {
        let text = text.trim();
        let (body, only) = match text.split_once('@') {
            Some((body, only)) if !only.is_empty() => (body, Some(only.to_owned())),
            _ => (text, None),
        };
        let (name, argument) = match body.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (body, None),
        };
        let kind = if let Some(row) = GENERIC.iter().position(|generic| generic.name == name) {
            let parameter = GENERIC[row].parameter;
            parameter.read(argument).map(|argument| Kind::Generic { row, argument }).ok_or(parameter.form(name))
        } else if let Some(Scenario { name, parameter, .. }) = scenarios.iter().find(|s| s.name == name) {
            let specific = |argument: Argument| Kind::Specific { name, word: argument.word() };
            parameter.read(argument).map(specific).ok_or(parameter.form(name))
        } else {
            let valid = forms(scenarios).into_iter().map(|(form, _)| form).collect::<Vec<_>>().join(", ");
            return Err(FaultError::UnknownFault { upstream, text: text.to_owned(), valid });
        };
        match kind {
            Ok(kind) => Ok(Fault { kind, only, text: text.to_owned() }),
            Err(expected) => Err(FaultError::Argument { text: text.to_owned(), expected }),
        }
    }

    /// Whether the fault applies to a call of this operation to this path and query.
    pub(crate) fn applies_to(&self, operation: &str, target: &str) -> bool {
        self.only.as_deref().is_none_or(|only| operation == only || target.contains(only))
    }

    /// What happens to the `nth` call (from 1) that the fault applies to, `elapsed` after it was set.
    pub(crate) fn effect(&self, nth: u64, elapsed: Duration) -> Effect {
        match &self.kind {
            Kind::Generic { row, argument } => (GENERIC[*row].effect)(argument, nth, elapsed),
            Kind::Specific { .. } => Effect::Answer,
        }
    }

    /// The scenario of the upstream that this fault selects: its name and argument (empty if it has none).
    pub(crate) fn scenario(&self) -> Option<(&'static str, &str)> {
        match &self.kind {
            Kind::Specific { name, word } => Some((name, word)),
            Kind::Generic { .. } => None,
        }
    }

    /// Whether the port itself must be closed. A narrowed `refused` cannot close it and drops connections instead.
    pub(crate) fn closes_port(&self) -> bool {
        self.only.is_none() && matches!(&self.kind, Kind::Generic { row, .. } if GENERIC[*row].name == "refused")
    }
}

/// Every fault of an upstream with these scenarios: its text form and what it does.
pub(crate) fn forms(scenarios: &'static [Scenario]) -> Vec<(String, &'static str)> {
    let generic = GENERIC.iter().map(|g| (g.parameter.form(g.name), g.about));
    generic.chain(scenarios.iter().map(|s| (s.parameter.form(s.name), s.about))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    static ONE: &[Scenario] = &[Scenario {
        name: "ms_unavailable",
        parameter: Parameter::Word("COUNTRY"),
        about: "that member state is down",
    }];

    fn parse(text: &str) -> Result<Fault, FaultError> {
        Fault::parse("vies", ONE, text)
    }

    #[test]
    fn every_fault_parses_from_its_own_form() {
        for (form, _) in forms(ONE) {
            let example = form
                .replace("[:SECONDS=", ":")
                .replace("[:N=", ":")
                .replace(":DURATION", ":500ms")
                .replace(":K[/N]", ":3/2")
                .replace("COUNTRY", "DE")
                .replace(']', "");
            let parsed = parse(&example).unwrap_or_else(|e| panic!("{example}: {e}"));
            assert_eq!(parsed.to_string(), example);
        }
    }

    #[test]
    fn an_error_lists_the_faults_that_parse() {
        let unknown = parse("melted").unwrap_err().to_string();
        assert!(unknown.contains("ms_unavailable:COUNTRY") && unknown.contains("slow:DURATION"), "{unknown}");
        for text in
            ["slow", "slow:soon", "slow:1000001s", "deep_json:1000001", "ms_unavailable", "down:3", "flap:x", "flap:1/"]
        {
            assert!(matches!(parse(text), Err(FaultError::Argument { .. })), "{text}");
        }
    }

    #[test]
    fn flapping_depends_on_calls_and_an_outage_on_time() {
        let fails = |text: &str, nth, seconds| {
            matches!(parse(text).unwrap().effect(nth, Duration::from_secs(seconds)), Effect::Reply(_))
        };
        let pattern = |text| (1..=6).map(|n| fails(text, n, 0)).collect::<Vec<_>>();
        assert_eq!(pattern("flap:3"), [true, true, true, false, false, false]);
        assert_eq!(pattern("flap:2/1"), [true, true, false, true, true, false]);
        assert!(fails("down_for:10s", 1, 9) && !fails("down_for:10s", 1, 10));
    }

    #[test]
    fn a_narrowed_fault_leaves_other_calls_alone() {
        let fault = parse("500@roller").unwrap();
        assert!(fault.applies_to("roller", "/enheter/1"));
        assert!(fault.applies_to("other", "/enheter/1/roller?x=1"));
        assert!(!fault.applies_to("entity", "/enheter/1"));
        assert!(parse("refused").unwrap().closes_port());
        assert!(!parse("refused@roller").unwrap().closes_port());
    }
}

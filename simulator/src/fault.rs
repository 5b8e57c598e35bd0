//! The faults an upstream can be told to have, as one closed table.
//!
//! A fault is text (`slow:500ms`, `flap:3`, `503_retry_after:30`), because it is typed by people: on a command line, in a
//! `curl -d`, in a test. Parsing turns the text into a [`Fault`]; whatever does not parse answers with the list of what would.
//! What a fault does to one call is a pure function of three things: the fault, how many calls it has seen, and how long ago
//! it was set. So a flapping upstream flaps the same way in every run.
//!
//! Faults in [`GENERIC`] work for every upstream. An upstream's row adds its own (`ms_unavailable:DE` for VIES), which its
//! handlers look up. Any fault may be narrowed to part of an upstream: `500@roller` fails only the calls whose operation is
//! `roller` or whose path or query contains that text.

use std::fmt;
use std::time::Duration;

use serde_json::json;

use super::answer::{Answer, HTML_CHALLENGE, HTML_GATEWAY, HTML_MAINTENANCE, HTML_MOVED};

/// What happens to one call.
#[derive(Debug)]
pub(super) enum Effect {
    /// Answer as the upstream would.
    Answer,
    /// Answer as the upstream would, this much later.
    Delay(Duration),
    /// Answer in small pieces, this long apart.
    Drip(Duration),
    /// Accept the request and never answer.
    Hang,
    /// Send half of the answer, then reset the connection.
    Reset,
    /// Close the connection before the first byte of an answer.
    Hangup,
    /// Answer as if no company were known.
    Blank,
    /// This instead of the answer.
    Reply(Answer),
    /// The first half of the answer's body, in a complete response.
    Truncate,
}

/// The argument of a fault, as parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Argument {
    Absent,
    Lasting(Duration),
    Count(u64),
    Cycle { failing: u64, healthy: Option<u64> },
    Word(String),
}

/// What the text after the colon must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arg {
    /// The fault takes no argument.
    None,
    /// `500ms`, `10s`, `2m`; a bare number is seconds.
    Duration,
    /// As [`Arg::Duration`], with a default in seconds.
    Seconds(u64),
    /// A whole number, with a default.
    Count(u64),
    /// `3` (three failures, then healthy) or `3/2` (three failures, two answers, and again).
    Cycle,
    /// Free text that the upstream's own handlers read; the name says what it stands for.
    Word(&'static str),
}

/// A fault every upstream can have.
struct Generic {
    name: &'static str,
    arg: Arg,
    about: &'static str,
    effect: fn(&Argument, u64, Duration) -> Effect,
}

/// A fault that only one upstream has: the name, its argument, and what the upstream then does.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) arg: Arg,
    pub(super) about: &'static str,
}

fn reply(answer: Answer) -> Effect {
    Effect::Reply(answer)
}

fn seconds(argument: &Argument) -> u64 {
    match argument {
        Argument::Lasting(duration) => duration.as_secs(),
        _ => 0,
    }
}

fn lasting(argument: &Argument) -> Duration {
    match argument {
        Argument::Lasting(duration) => *duration,
        _ => Duration::ZERO,
    }
}

fn unavailable() -> Answer {
    Answer::text(503, "text/plain; charset=utf-8", "Service Unavailable")
}

fn too_many() -> Answer {
    Answer::json(429, json!({"error": "Too Many Requests"}))
}

/// Declares the rows of [`GENERIC`] without repeating field names.
macro_rules! generic {
    ($($name:literal $arg:expr, $about:literal, $effect:expr;)*) => {
        /// The faults that every upstream can have.
        static GENERIC: &[Generic] = &[$(Generic { name: $name, arg: $arg, about: $about, effect: $effect }),*];
    };
}

generic! {
    "ok" Arg::None, "no fault", |_, _, _| Effect::Answer;
    "down" Arg::None, "503 to every call: the service is dead behind its load balancer", |_, _, _| reply(unavailable());
    "refused" Arg::None, "nothing listens on the port: connections are refused", |_, _, _| Effect::Hangup;
    "hangup" Arg::None, "the connection closes before the first byte of an answer", |_, _, _| Effect::Hangup;
    "reset" Arg::None, "the connection is reset (TCP RST) in the middle of the body", |_, _, _| Effect::Reset;
    "hang" Arg::None, "the request is taken and never answered", |_, _, _| Effect::Hang;
    "slow" Arg::Duration, "the right answer, this much later", |a, _, _| Effect::Delay(lasting(a));
    "drip" Arg::Duration, "the right answer in small pieces, this long apart", |a, _, _| Effect::Drip(lasting(a));
    "flap" Arg::Cycle, "503 for K calls, then healthy; K/N repeats: K failures, N answers", flap;
    "down_for" Arg::Duration, "503 until this long after it was set, then healthy",
        |a, _, elapsed| if elapsed < lasting(a) { reply(unavailable()) } else { Effect::Answer };
    "400" Arg::None, "bad request", |_, _, _| reply(Answer::json(400, json!({"error": "Bad Request"})));
    "401" Arg::None, "bad or expired credentials", |_, _, _| reply(Answer::json(401, json!({"error": "Unauthorized"})));
    "403" Arg::None, "not allowed", |_, _, _| reply(Answer::json(403, json!({"error": "Forbidden"})));
    "403_waf_html" Arg::None, "blocked by a firewall, as an HTML page", |_, _, _| reply(Answer::html(403, HTML_CHALLENGE));
    "404_html" Arg::None, "the endpoint has moved", |_, _, _| reply(Answer::html(404, HTML_MOVED));
    "429" Arg::None, "too many requests, without saying when to come back", |_, _, _| reply(too_many());
    "429_retry_after" Arg::Seconds(5), "too many requests, Retry-After in seconds",
        |a, _, _| reply(too_many().header("retry-after", &seconds(a).to_string()));
    "429_http_date" Arg::Seconds(5), "too many requests, Retry-After as an HTTP date this many seconds ahead",
        |a, _, _| reply(too_many().header("retry-after", &http_date(seconds(a))));
    "500" Arg::None, "internal error, JSON body", |_, _, _| reply(Answer::json(500, json!({"error": "Internal Server Error"})));
    "502_html" Arg::None, "a gateway's HTML page", |_, _, _| reply(Answer::html(502, HTML_GATEWAY));
    "503" Arg::None, "unavailable", |_, _, _| reply(unavailable());
    "503_retry_after" Arg::Seconds(30), "unavailable, Retry-After in seconds",
        |a, _, _| reply(unavailable().header("retry-after", &seconds(a).to_string()));
    "504" Arg::None, "gateway timeout", |_, _, _| reply(Answer::text(504, "text/plain", "Gateway Timeout"));
    "200_html_maintenance" Arg::None, "an HTML maintenance page with status 200", |_, _, _| reply(Answer::html(200, HTML_MAINTENANCE));
    "200_html_challenge" Arg::None, "an HTML challenge of a firewall with status 200", |_, _, _| reply(Answer::html(200, HTML_CHALLENGE));
    "empty_body" Arg::None, "status 200 and no body", |_, _, _| reply(Answer::text(200, "application/json", ""));
    "truncated_json" Arg::None, "the first half of the body in a complete response", |_, _, _| Effect::Truncate;
    "wrong_shape" Arg::None, "valid JSON of a shape nobody documented",
        |_, _, _| reply(Answer::json(200, json!([{"unexpected": {"nested": [1, "two", null]}}, 7, true])));
    "deep_json" Arg::Count(10_000), "an array nested this many levels deep", |a, _, _| reply(deep(a));
    "huge_body" Arg::Count(50), "a valid JSON body of this many MiB, streamed", |a, _, _| reply(Answer::huge(count(a)));
    "gzip_bomb" Arg::None, "a small compressed body that unpacks to 64 MiB", |_, _, _| reply(Answer::gzip_bomb());
    "redirect_private" Arg::None, "a redirect to a link-local metadata address",
        |_, _, _| reply(Answer::text(302, "text/plain", "").header("location", "http://169.254.169.254/latest/meta-data/"));
    "not_found" Arg::None, "the upstream's own answer for a company it does not know", |_, _, _| Effect::Blank;
}

fn count(argument: &Argument) -> u64 {
    match argument {
        Argument::Count(n) => *n,
        _ => 0,
    }
}

fn deep(argument: &Argument) -> Answer {
    let levels = count(argument) as usize;
    Answer::text(200, "application/json", &("[".repeat(levels) + &"]".repeat(levels)))
}

fn flap(argument: &Argument, nth: u64, _: Duration) -> Effect {
    let failing = match argument {
        Argument::Cycle { failing, healthy: Some(healthy) } => (nth - 1) % (failing + healthy).max(1) < *failing,
        Argument::Cycle { failing, healthy: None } => nth <= *failing,
        _ => false,
    };
    if failing { reply(unavailable()) } else { Effect::Answer }
}

fn http_date(seconds_ahead: u64) -> String {
    let then = jiff::Timestamp::now() + Duration::from_secs(seconds_ahead);
    then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

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

/// A fault or an upstream that does not exist. The message lists those that do.
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
    /// The fault exists, its argument does not parse.
    #[error("`{text}`: expected `{expected}`")]
    Argument {
        /// The text as given.
        text: String,
        /// The form that would have parsed.
        expected: String,
    },
}

impl Fault {
    /// Parses the text form of a fault for an upstream that adds `scenarios` to the generic ones.
    pub(super) fn parse(
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
        let kind = if let Some(row) = GENERIC.iter().position(|g| g.name == name) {
            let parsed = argument_of(GENERIC[row].arg, argument);
            parsed.map(|argument| Kind::Generic { row, argument }).ok_or(form(name, GENERIC[row].arg))
        } else if let Some(scenario) = scenarios.iter().find(|s| s.name == name) {
            let parsed = argument_of(scenario.arg, argument);
            let word = |argument| match argument {
                Argument::Word(word) => word,
                Argument::Count(n) => n.to_string(),
                _ => String::new(),
            };
            parsed.map(|a| Kind::Specific { name: scenario.name, word: word(a) }).ok_or(form(name, scenario.arg))
        } else {
            let valid = forms(scenarios).into_iter().map(|(form, _)| form).collect::<Vec<_>>().join(", ");
            return Err(FaultError::UnknownFault { upstream, text: text.to_owned(), valid });
        };
        match kind {
            Ok(kind) => Ok(Fault { kind, only, text: text.to_owned() }),
            Err(expected) => Err(FaultError::Argument { text: text.to_owned(), expected }),
        }
    }

    /// Whether the fault concerns a call of this operation to this path and query.
    pub(super) fn concerns(&self, operation: &str, target: &str) -> bool {
        self.only.as_deref().is_none_or(|only| operation == only || target.contains(only))
    }

    /// What happens to the `nth` call (from 1) that the fault concerns, `elapsed` after it was set.
    pub(super) fn effect(&self, nth: u64, elapsed: Duration) -> Effect {
        match &self.kind {
            Kind::Generic { row, argument } => (GENERIC[*row].effect)(argument, nth, elapsed),
            Kind::Specific { .. } => Effect::Answer,
        }
    }

    /// The scenario of the upstream that this fault selects: its name and argument (empty if it has none).
    pub(super) fn scenario(&self) -> Option<(&'static str, &str)> {
        match &self.kind {
            Kind::Specific { name, word } => Some((name, word)),
            Kind::Generic { .. } => None,
        }
    }

    /// Whether the port itself must be closed. A narrowed `refused` cannot close it, so it hangs up instead.
    pub(super) fn closes_port(&self) -> bool {
        self.only.is_none() && matches!(&self.kind, Kind::Generic { row, .. } if GENERIC[*row].name == "refused")
    }
}

/// Every fault of an upstream with these scenarios: its text form and what it does.
pub(super) fn forms(scenarios: &'static [Scenario]) -> Vec<(String, &'static str)> {
    let generic = GENERIC.iter().map(|g| (form(g.name, g.arg), g.about));
    generic.chain(scenarios.iter().map(|s| (form(s.name, s.arg), s.about))).collect()
}

fn form(name: &str, arg: Arg) -> String {
    match arg {
        Arg::None => name.to_owned(),
        Arg::Duration => format!("{name}:DURATION"),
        Arg::Seconds(default) => format!("{name}[:SECONDS={default}]"),
        Arg::Count(default) => format!("{name}[:N={default}]"),
        Arg::Cycle => format!("{name}:K[/N]"),
        Arg::Word(what) => format!("{name}:{what}"),
    }
}

fn argument_of(arg: Arg, text: Option<&str>) -> Option<Argument> {
    match (arg, text) {
        (Arg::None, None) => Some(Argument::Absent),
        (Arg::Duration, Some(text)) => duration(text).map(Argument::Lasting),
        (Arg::Seconds(default), None) => Some(Argument::Lasting(Duration::from_secs(default))),
        (Arg::Seconds(_), Some(text)) => duration(text).map(Argument::Lasting),
        (Arg::Count(default), None) => Some(Argument::Count(default)),
        (Arg::Count(_), Some(text)) => number(text).map(Argument::Count),
        (Arg::Cycle, Some(text)) => cycle(text),
        (Arg::Word(_), Some(text)) if !text.is_empty() => Some(Argument::Word(text.to_owned())),
        _ => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    static ONE: &[Scenario] =
        &[Scenario { name: "ms_unavailable", arg: Arg::Word("COUNTRY"), about: "that member state is down" }];

    fn parse(text: &str) -> Result<Fault, FaultError> {
        Fault::parse("vies", ONE, text)
    }

    #[test]
    fn every_row_parses_from_its_own_form() {
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
    fn what_does_not_parse_says_what_would() {
        let unknown = parse("melted").unwrap_err().to_string();
        assert!(unknown.contains("ms_unavailable:COUNTRY") && unknown.contains("slow:DURATION"), "{unknown}");
        for text in
            ["slow", "slow:soon", "slow:1000001s", "deep_json:1000001", "ms_unavailable", "down:3", "flap:x", "flap:1/"]
        {
            assert!(matches!(parse(text), Err(FaultError::Argument { .. })), "{text}");
        }
    }

    #[test]
    fn flapping_follows_the_count_and_an_outage_the_clock() {
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
        assert!(fault.concerns("roller", "/enheter/1"));
        assert!(fault.concerns("other", "/enheter/1/roller?x=1"));
        assert!(!fault.concerns("entity", "/enheter/1"));
        assert!(parse("refused").unwrap().closes_port());
        assert!(!parse("refused@roller").unwrap().closes_port());
    }
}

//! The faults that every upstream can have, as one closed table.

use std::time::Duration;

use serde_json::json;

use super::argument::{Argument, Parameter};
use super::effect::Effect;
use crate::answer::{Answer, HTML_CHALLENGE, HTML_GATEWAY, HTML_MAINTENANCE, HTML_MOVED};

/// A fault that every upstream can have.
pub(super) struct Generic {
    pub(super) name: &'static str,
    pub(super) parameter: Parameter,
    pub(super) about: &'static str,
    /// From the argument, the number of the call since the fault was set (from 1) and the time since then.
    pub(super) effect: fn(&Argument, u64, Duration) -> Effect,
}

fn reply(answer: Answer) -> Effect {
    Effect::Reply(answer)
}

fn unavailable() -> Answer {
    Answer::text(503, "text/plain; charset=utf-8", "Service Unavailable")
}

fn too_many() -> Answer {
    Answer::json(429, json!({"error": "Too Many Requests"}))
}

/// Declares the rows of [`GENERIC`] without repeating field names.
macro_rules! generic {
    ($($name:literal $parameter:expr, $about:literal, $effect:expr;)*) => {
        /// The faults that every upstream can have.
        pub(super) static GENERIC: &[Generic] = &[$(Generic { name: $name, parameter: $parameter, about: $about, effect: $effect }),*];
    };
}

generic! {
    "ok" Parameter::None, "no fault", |_, _, _| Effect::Answer;
    "down" Parameter::None, "503 to every call: the service is dead behind its load balancer", |_, _, _| reply(unavailable());
    "refused" Parameter::None, "nothing listens on the port: connections are refused", |_, _, _| Effect::DropConnection;
    "hangup" Parameter::None, "the connection closes before the first byte of an answer", |_, _, _| Effect::DropConnection;
    "reset" Parameter::None, "the connection is reset (TCP RST) in the middle of the body", |_, _, _| Effect::Reset;
    "hang" Parameter::None, "the request is taken and never answered", |_, _, _| Effect::Hang;
    "slow" Parameter::Duration, "the right answer, this much later", |a, _, _| Effect::Delay(a.duration());
    "drip" Parameter::Duration, "the right answer in small pieces, this long apart", |a, _, _| Effect::Drip(a.duration());
    "flap" Parameter::Cycle, "503 for K calls, then healthy; K/N repeats: K failures, N answers", flap;
    "down_for" Parameter::Duration, "503 until this long after it was set, then healthy",
        |a, _, elapsed| if elapsed < a.duration() { reply(unavailable()) } else { Effect::Answer };
    "400" Parameter::None, "bad request", |_, _, _| reply(Answer::json(400, json!({"error": "Bad Request"})));
    "401" Parameter::None, "bad or expired credentials", |_, _, _| reply(Answer::json(401, json!({"error": "Unauthorized"})));
    "403" Parameter::None, "not allowed", |_, _, _| reply(Answer::json(403, json!({"error": "Forbidden"})));
    "403_waf_html" Parameter::None, "blocked by a firewall, as an HTML page", |_, _, _| reply(Answer::html(403, HTML_CHALLENGE));
    "404_html" Parameter::None, "the endpoint has moved", |_, _, _| reply(Answer::html(404, HTML_MOVED));
    "429" Parameter::None, "too many requests, without saying when to come back", |_, _, _| reply(too_many());
    "429_retry_after" Parameter::Seconds(5), "too many requests, Retry-After in seconds",
        |a, _, _| reply(too_many().header("retry-after", &a.duration().as_secs().to_string()));
    "429_http_date" Parameter::Seconds(5), "too many requests, Retry-After as an HTTP date this many seconds ahead",
        |a, _, _| reply(too_many().header("retry-after", &http_date(a.duration().as_secs())));
    "500" Parameter::None, "internal error, JSON body", |_, _, _| reply(Answer::json(500, json!({"error": "Internal Server Error"})));
    "502_html" Parameter::None, "a gateway's HTML page", |_, _, _| reply(Answer::html(502, HTML_GATEWAY));
    "503" Parameter::None, "unavailable", |_, _, _| reply(unavailable());
    "503_retry_after" Parameter::Seconds(30), "unavailable, Retry-After in seconds",
        |a, _, _| reply(unavailable().header("retry-after", &a.duration().as_secs().to_string()));
    "504" Parameter::None, "gateway timeout", |_, _, _| reply(Answer::text(504, "text/plain", "Gateway Timeout"));
    "200_html_maintenance" Parameter::None, "an HTML maintenance page with status 200", |_, _, _| reply(Answer::html(200, HTML_MAINTENANCE));
    "200_html_challenge" Parameter::None, "an HTML challenge of a firewall with status 200", |_, _, _| reply(Answer::html(200, HTML_CHALLENGE));
    "empty_body" Parameter::None, "status 200 and no body", |_, _, _| reply(Answer::text(200, "application/json", ""));
    "truncated_json" Parameter::None, "the first half of the body in a complete response", |_, _, _| Effect::Truncate;
    "wrong_shape" Parameter::None, "valid JSON of an undocumented shape",
        |_, _, _| reply(Answer::json(200, json!([{"unexpected": {"nested": [1, "two", null]}}, 7, true])));
    "deep_json" Parameter::Count(10_000), "an array nested this many levels deep", |a, _, _| reply(deep(a));
    "huge_body" Parameter::Count(50), "a valid JSON body of this many MiB, streamed", |a, _, _| reply(Answer::huge(a.count()));
    "gzip_bomb" Parameter::None, "a small compressed body that unpacks to 64 MiB", |_, _, _| reply(Answer::gzip_bomb());
    "redirect_private" Parameter::None, "a redirect to a link-local metadata address",
        |_, _, _| reply(Answer::text(302, "text/plain", "").header("location", "http://169.254.169.254/latest/meta-data/"));
    "not_found" Parameter::None, "the upstream's own answer for a company it does not know", |_, _, _| Effect::NotFound;
}

fn deep(argument: &Argument) -> Answer {
    let levels = argument.count() as usize;
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

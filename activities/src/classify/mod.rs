//! Judges an HTTP answer: is it an answer, a "no", or an outage?
//!
//! The rules of the source's row come first, then the defaults for HTTP statuses. [`flow`](crate::flow) calls [`judge`]
//! after each request; the result is the body for the parser or a [`SourceError`], which knows its verdict for the breaker.

use circuit_registry::{Verdict, http::parse_retry_after};
use jiff::{Timestamp, fmt::rfc2822};

use crate::spec::{Class, Reply, Rule, SourceError};

/// What an answer means: by the first rule that fits, else by its status alone.
///
/// # Errors
/// Everything that is not an answer to hand to a parser.
pub fn judge<'a>(rules: impl IntoIterator<Item = &'a Rule>, reply: &Reply, now: Timestamp) -> Result<(), SourceError> {
    let asked = asked_to_wait(reply, now);
    match rules.into_iter().find(|rule| rule.fits(reply)) {
        Some(rule) if rule.class == Class::Ok => Ok(()),
        Some(rule) => {
            let wait = if rule.class == Class::Throttled { rule.stay.length(asked, &reply.body, now) } else { asked };
            Err(SourceError::new(rule.class, rule.reason).after(wait).of(rule.scope))
        }
        None => by_status(reply.status).map_err(|error| error.after(asked)),
    }
}

/// What a bare status means. A refusal that no rule explains is no statement about the subject: "404" may be a moved
/// endpoint, so it is never read as "not found" unless the upstream's table says so.
fn by_status(status: u16) -> Result<(), SourceError> {
    let refused = |class| SourceError::new(class, format!("refused the request (HTTP {status})"));
    Err(match status {
        200..=299 => return Ok(()),
        401 | 407 => SourceError::new(Class::Denied, format!("does not accept the credentials (HTTP {status})")),
        403 | 451 => refused(Class::Denied),
        408 => SourceError::new(Class::Timeout, "gave up waiting for the request (HTTP 408)").judged(Verdict::Neutral),
        425 => refused(Class::Unavailable).judged(Verdict::Neutral),
        429 => SourceError::new(Class::Throttled, "asks for fewer requests (HTTP 429)"),
        300..=399 => SourceError::bad_shape(format!("has moved elsewhere (HTTP {status})")).judged(Verdict::Success),
        400..=499 => refused(Class::BadShape).judged(Verdict::Success),
        500..=599 => SourceError::unavailable(format!("is out of order (HTTP {status})")),
        _ => SourceError::bad_shape(format!("answered with HTTP {status}")),
    })
}

/// What `Retry-After` asks for. A date is taken relative to the answer's own `Date`, so that a wrong clock on either side
/// does not matter.
fn asked_to_wait(reply: &Reply, now: Timestamp) -> Option<std::time::Duration> {
    let date = |text: &str| rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok();
    let from = reply.header("date").and_then(date).unwrap_or(now);
    parse_retry_after(reply.header("retry-after")?, from.into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use circuit_registry::Classify;

    use super::*;
    use crate::spec::{Stay, on};

    fn judged(rules: &[Rule], reply: &Reply) -> Result<(), SourceError> {
        judge(rules, reply, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn bare_statuses() {
        use Verdict::{Failure, Neutral, Success};
        let throttled = Verdict::Throttled { retry_after: None };
        let table = [
            (400, Class::BadShape, Success),
            (401, Class::Denied, Neutral),
            (402, Class::BadShape, Success),
            (403, Class::Denied, Neutral),
            (404, Class::BadShape, Success),
            (407, Class::Denied, Neutral),
            (408, Class::Timeout, Neutral),
            (410, Class::BadShape, Success),
            (425, Class::Unavailable, Neutral),
            (429, Class::Throttled, throttled),
            (451, Class::Denied, Neutral),
            (301, Class::BadShape, Success),
            (500, Class::Unavailable, Failure),
            (502, Class::Unavailable, Failure),
            (503, Class::Unavailable, Failure),
            (504, Class::Unavailable, Failure),
        ];
        for (status, class, verdict) in table {
            let error = judged(&[], &Reply::new(status, "")).expect_err("no answer");
            assert_eq!((error.class, error.verdict()), (class, verdict), "{status}");
        }
        for status in [200, 201, 202, 204] {
            assert_eq!(judged(&[], &Reply::new(status, "")), Ok(()), "{status}");
        }
    }

    #[test]
    fn the_first_rule_that_fits_wins() {
        let rules = [
            on(404).with("GONE").means(Class::Business, "withdrawn"),
            on(404).json().means(Class::NotFound, "unknown"),
            on(0).html().means(Class::Unavailable, "a page"),
            on(0).plain("closed").means(Class::Throttled, "closed"),
        ];
        let class = |status, body| judged(&rules, &Reply::new(status, body)).expect_err("no answer").class;
        assert_eq!(class(404, r#"{"code":"GONE"}"#), Class::Business);
        assert_eq!(class(404, " {}"), Class::NotFound);
        assert_eq!(class(404, "<html>"), Class::Unavailable);
        assert_eq!(class(200, "\n<!doctype html>"), Class::Unavailable);
        assert_eq!(class(404, "nothing"), Class::BadShape);
        assert_eq!(class(200, "We are closed"), Class::Throttled);
        assert_eq!(judged(&rules, &Reply::new(200, r#"["closed"]"#)), Ok(()), "data may say anything");
        assert_eq!(judged(&rules, &Reply::new(200, "{}")), Ok(()));
    }

    #[test]
    fn a_stay_comes_from_the_answer_or_the_rule() {
        let rules = [on(432).means(Class::Throttled, "plan used up").stay(Stay::Seconds(60))];
        let verdict = |reply: &Reply| judged(&rules, reply).expect_err("throttled").verdict();
        let seconds = |n| Verdict::Throttled { retry_after: Some(Duration::from_secs(n)) };
        assert_eq!(verdict(&Reply::new(432, "")), seconds(60));
        assert_eq!(verdict(&Reply::new(432, "").with_header("retry-after", "5")), seconds(5));
        assert_eq!(verdict(&Reply::new(429, "").with_header("retry-after", "7")), seconds(7));

        let outage = judged(&rules, &Reply::new(503, "").with_header("retry-after", "8")).expect_err("an outage");
        assert_eq!((outage.verdict(), outage.retry_after), (Verdict::Failure, Some(Duration::from_secs(8))));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "2026-11-30T02:00:00Z".parse().expect("a time");
        let date = "Mon, 30 Nov 2026 02:05:00 GMT";
        let cases = [
            ("120", None, Some(120)),
            (" 0 ", None, Some(0)),
            (date, None, Some(300)),
            (date, Some("Mon, 30 Nov 2026 02:04:00 GMT"), Some(60)),
            ("Mon, 30 Nov 2026 01:00:00 GMT", None, Some(0)),
            ("soon", None, None),
            ("-5", None, None),
            ("1.5", None, None),
            ("", None, None),
        ];
        for (value, date, seconds) in cases {
            let reply = Reply::new(429, "").with_header("retry-after", value);
            let reply = date.map_or_else(|| reply.clone(), |date| reply.clone().with_header("date", date));
            assert_eq!(asked_to_wait(&reply, now), seconds.map(Duration::from_secs), "{value:?}");
        }
    }
}

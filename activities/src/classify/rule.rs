//! The rows of an upstream's table, and the defaults of HTTP under them.

use circuit_registry::Verdict;
use jiff::Timestamp;
use serde::Serialize;

use super::{Class, Scope, Stay, Trouble, retry_after};
use crate::client::Reply;

/// One row: an answer with this status and this text means that.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Rule {
    /// The status it is about; 0 for any.
    pub status: u16,
    /// What the body must look like.
    pub text: Text,
    /// What it then is. [`Class::Ok`] hands it to the parser.
    pub class: Class,
    /// Whose trouble it is.
    pub scope: Scope,
    /// How long to stay away, for [`Class::Throttled`].
    pub stay: Stay,
    /// Why, for the reader of the report.
    pub reason: &'static str,
}

/// What a body must look like for a rule to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Text {
    /// Anything.
    Any,
    /// Contains this text.
    With(&'static str),
    /// Contains this text, and begins neither like JSON nor like a page: no data that happens to quote it.
    Plain(&'static str),
    /// Begins like JSON.
    Json,
    /// Begins like a page.
    Html,
    /// Does not begin like a page; may be empty.
    NotHtml,
}

/// The beginning of a row: `on(404).with("NENALEZENO").means(Class::NotFound, "unknown")`.
#[must_use]
pub const fn on(status: u16) -> Rule {
    Rule { status, text: Text::Any, class: Class::Ok, scope: Scope::Service, stay: Stay::Asked, reason: "" }
}

impl Rule {
    /// Only where the body contains this text.
    #[must_use]
    pub const fn with(mut self, text: &'static str) -> Self {
        self.text = Text::With(text);
        self
    }

    /// Only where the body is plain text that contains this.
    #[must_use]
    pub const fn plain(mut self, text: &'static str) -> Self {
        self.text = Text::Plain(text);
        self
    }

    /// Only where the body begins like JSON.
    #[must_use]
    pub const fn json(mut self) -> Self {
        self.text = Text::Json;
        self
    }

    /// Only where the body begins like a page.
    #[must_use]
    pub const fn html(mut self) -> Self {
        self.text = Text::Html;
        self
    }

    /// Only where the body does not begin like a page.
    #[must_use]
    pub const fn not_html(mut self) -> Self {
        self.text = Text::NotHtml;
        self
    }

    /// What it means.
    #[must_use]
    pub const fn means(mut self, class: Class, reason: &'static str) -> Self {
        self.class = class;
        self.reason = reason;
        self
    }

    /// Whose trouble it is.
    #[must_use]
    pub const fn of(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// How long to stay away.
    #[must_use]
    pub const fn stay(mut self, stay: Stay) -> Self {
        self.stay = stay;
        self
    }

    /// Whether an answer is one that the rule is about.
    pub(crate) fn fits(&self, reply: &Reply) -> bool {
        (self.status == 0 || self.status == reply.status) && self.text.fits(&reply.body)
    }
}

impl Text {
    fn fits(self, body: &[u8]) -> bool {
        let first = || body.iter().find(|byte| !byte.is_ascii_whitespace());
        let contains = |text: &str| body.windows(text.len()).any(|window| window == text.as_bytes());
        match self {
            Self::Any => true,
            Self::With(text) => contains(text),
            Self::Plain(text) => !matches!(first(), Some(b'{' | b'[' | b'<')) && contains(text),
            Self::Json => matches!(first(), Some(b'{' | b'[')),
            Self::Html => matches!(first(), Some(b'<')),
            Self::NotHtml => !matches!(first(), Some(b'<')),
        }
    }
}

/// What an answer means: by the first rule that fits, else by its status alone.
///
/// # Errors
/// Everything that is not an answer to hand to a parser.
pub fn judge<'a>(rules: impl IntoIterator<Item = &'a Rule>, reply: &Reply, now: Timestamp) -> Result<(), Trouble> {
    let asked = reply.header("retry-after").and_then(|value| retry_after(value, reply.header("date"), now));
    match rules.into_iter().find(|rule| rule.fits(reply)) {
        Some(rule) if rule.class == Class::Ok => Ok(()),
        Some(rule) => {
            let wait = if rule.class == Class::Throttled { rule.stay.length(asked, &reply.body, now) } else { asked };
            Err(Trouble::new(rule.class, rule.reason).after(wait).of(rule.scope))
        }
        None => by_status(reply.status).map_err(|trouble| trouble.after(asked)),
    }
}

/// What a bare status means. A refusal that no rule explains is no statement about the subject: "404" may be a moved
/// endpoint, so it is never read as "not found" unless the upstream's table says so.
fn by_status(status: u16) -> Result<(), Trouble> {
    let refused = |class| Trouble::new(class, format!("refused the request (HTTP {status})"));
    Err(match status {
        200..=299 => return Ok(()),
        401 | 407 => Trouble::new(Class::Denied, format!("does not accept the credentials (HTTP {status})")),
        403 | 451 => refused(Class::Denied),
        408 => Trouble::new(Class::Timeout, "gave up waiting for the request (HTTP 408)").judged(Verdict::Neutral),
        425 => refused(Class::Unavailable).judged(Verdict::Neutral),
        429 => Trouble::new(Class::Throttled, "asks for fewer requests (HTTP 429)"),
        300..=399 => Trouble::bad_shape(format!("has moved elsewhere (HTTP {status})")).judged(Verdict::Success),
        400..=499 => refused(Class::BadShape).judged(Verdict::Success),
        500..=599 => Trouble::unavailable(format!("is out of order (HTTP {status})")),
        _ => Trouble::bad_shape(format!("answered with HTTP {status}")),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use circuit_registry::Classify;

    use super::*;

    fn judged(rules: &[Rule], reply: &Reply) -> Result<(), Trouble> {
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
            let trouble = judged(&[], &Reply::new(status, "")).expect_err("no answer");
            assert_eq!((trouble.class, trouble.verdict()), (class, verdict), "{status}");
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
}

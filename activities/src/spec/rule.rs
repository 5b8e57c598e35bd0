//! The rows of an upstream's table: an answer that looks like this means that.

use serde::Serialize;

use super::{Class, Reply, Scope, Stay};

/// One row: an answer with this status and this text means that.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Rule {
    /// The status it is about; 0 for any.
    pub status: u16,
    /// What the body must look like.
    pub body: BodyMatch,
    /// What it then is. [`Class::Ok`] hands it to the parser.
    pub class: Class,
    /// Whose failure it is.
    pub scope: Scope,
    /// How long to stay away, for [`Class::Throttled`].
    pub stay: Stay,
    /// Why, for the reader of the report.
    pub reason: &'static str,
}

/// What a body must look like for a rule to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyMatch {
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
    Rule { status, body: BodyMatch::Any, class: Class::Ok, scope: Scope::Service, stay: Stay::Asked, reason: "" }
}

impl Rule {
    /// Only where the body contains this text.
    #[must_use]
    pub const fn with(mut self, text: &'static str) -> Self {
        self.body = BodyMatch::With(text);
        self
    }

    /// Only where the body is plain text that contains this.
    #[must_use]
    pub const fn plain(mut self, text: &'static str) -> Self {
        self.body = BodyMatch::Plain(text);
        self
    }

    /// Only where the body begins like JSON.
    #[must_use]
    pub const fn json(mut self) -> Self {
        self.body = BodyMatch::Json;
        self
    }

    /// Only where the body begins like a page.
    #[must_use]
    pub const fn html(mut self) -> Self {
        self.body = BodyMatch::Html;
        self
    }

    /// Only where the body does not begin like a page.
    #[must_use]
    pub const fn not_html(mut self) -> Self {
        self.body = BodyMatch::NotHtml;
        self
    }

    /// What it means.
    #[must_use]
    pub const fn means(mut self, class: Class, reason: &'static str) -> Self {
        self.class = class;
        self.reason = reason;
        self
    }

    /// Whose failure it is.
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
        (self.status == 0 || self.status == reply.status) && self.body.fits(&reply.body)
    }
}

impl BodyMatch {
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

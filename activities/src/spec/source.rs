//! The row of an upstream. Rows are constants in [`crate::source`], one small file a source.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::{Operation, Request, Rule, SourceError};
use crate::parse::json;

/// An upstream: one breaker, one set of limits, one or more operations.
#[derive(Debug, Serialize)]
pub struct Source {
    /// Name of the source in findings, settings and the simulator.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// Name of its breaker in `breakers.yaml`.
    pub breaker: &'static str,
    /// Where it is.
    #[serde(rename = "bases", serialize_with = "as_list")]
    pub base: Base,
    /// Settings without which it is not asked at all.
    pub credentials: &'static [Credential],
    /// How its requests are authorised.
    #[serde(skip)]
    pub auth: Auth,
    /// The variable with a `User-Agent` for this source alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<&'static str>,
    /// How long one request may take.
    #[serde(skip)]
    pub timeout: Duration,
    /// What its answers mean, where HTTP alone does not say; consulted after the rules of the operation.
    #[serde(skip)]
    pub rules: &'static [Rule],
    /// A free and cheap call that finds out whether it is back, made before a half-open breaker lets the real call through.
    #[serde(skip)]
    pub probe: Option<Probe>,
    /// The breakers of all sources that share its account.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub account: &'static [&'static str],
    /// The published or observed limits, for people. The enforced ones are in `breakers.yaml`.
    pub limits: &'static str,
    /// Licence and terms of use that concern the reader of a report.
    pub terms: &'static str,
    /// The breaker whose parts it reaches too: a second way to the same places, which helps against failures on the first
    /// way and not against failures at the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts_of: Option<&'static str>,
    /// What can be asked.
    pub operations: &'static [Operation],
}

impl Source {
    /// A row with nothing in it, for `..Source::BLANK`.
    pub const BLANK: Self = Self {
        name: "",
        title: "",
        breaker: "",
        base: Base { env: "", default: "" },
        credentials: &[],
        auth: Auth::None,
        user_agent: None,
        timeout: Duration::from_secs(10),
        rules: &[],
        probe: None,
        account: &[],
        limits: "none published",
        terms: "",
        parts_of: None,
        operations: &[],
    };
}

/// How requests are authorised. Each text is the name of an environment variable; one that is not set sends nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// Not at all.
    None,
    /// `Authorization: Bearer …`.
    Bearer(&'static str),
    /// A header of the upstream's own.
    Header {
        /// Name of the header.
        name: &'static str,
        /// What comes before the key.
        prefix: &'static str,
        /// The variable with the key.
        env: &'static str,
    },
    /// A parameter of the query; it is added last and appears in no error.
    Query {
        /// Name of the parameter.
        name: &'static str,
        /// The variable with the key.
        env: &'static str,
    },
    /// HTTP Basic. A user whose variable is not set is sent by that name itself.
    Basic {
        /// The variable with the user, or the user.
        user: &'static str,
        /// The variable with the password.
        password: &'static str,
    },
}

impl Auth {
    /// The variables it reads.
    pub fn variables(self) -> impl Iterator<Item = &'static str> {
        let (first, second) = match self {
            Self::None => (None, None),
            Self::Bearer(env) | Self::Header { env, .. } | Self::Query { env, .. } => (Some(env), None),
            Self::Basic { user, password } => (Some(user), Some(password)),
        };
        first.into_iter().chain(second)
    }
}

/// A free and cheap call.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// What to ask.
    pub request: fn() -> Request,
    /// Whether the answer is a sign of life.
    pub read: fn(&[u8]) -> Result<(), SourceError>,
}

impl Probe {
    /// A call whose answer may be any JSON.
    #[must_use]
    pub const fn json(request: fn() -> Request) -> Self {
        Self { request, read: |body| json::parse(body).map(drop) }
    }
}

/// A base address of an upstream, replaceable through the environment.
#[derive(Debug, Serialize)]
pub struct Base {
    /// The variable that replaces it, such as `GLEIF_BASE_URL`.
    pub env: &'static str,
    /// The public address, without a slash at its end. Paths of requests are appended to it.
    pub default: &'static str,
}

/// A setting that a source needs.
#[derive(Debug, Serialize)]
pub struct Credential {
    /// Any one of these environment variables will do.
    pub any_of: &'static [&'static str],
    /// How to get it.
    pub obtain: &'static str,
}

/// Documents list the addresses of a source, and every source has one.
fn as_list<S: Serializer>(base: &Base, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq([base])
}

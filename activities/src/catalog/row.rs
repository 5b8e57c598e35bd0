//! The shape of a row. Rows are constants in [`crate::source`], one small file a source.

use std::time::Duration;

use serde::Serialize;

use crate::{
    classify::{Rule, Trouble},
    client::Request,
    flow::{Answer, Fallback, Flow},
    model::Subject,
    parse::json,
};

/// An upstream: one breaker, one set of limits, one or more operations.
#[derive(Debug, Serialize)]
pub struct Source {
    /// Name of the source in findings, settings and the simulator.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// Name of its breaker in `breakers.yaml`.
    pub breaker: &'static str,
    /// Where it is; the first is the one requests go to unless they say otherwise.
    pub bases: &'static [Base],
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
    /// The breaker whose parts it reaches too: a second way to the same places, which helps against trouble on the first
    /// way and not against trouble at the place.
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
        bases: &[],
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
    pub read: fn(&[u8]) -> Result<(), Trouble>,
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

/// A question that can be put to a source; shows under this name in the Temporal UI.
#[derive(Debug, Serialize)]
pub struct Operation {
    /// `source.question`, such as `gleif.record`.
    pub name: &'static str,
    /// What it answers, for people.
    pub answers: &'static str,
    /// Whose companies it knows.
    pub countries: Countries,
    /// What it can start from: any one of these is enough.
    pub needs: &'static [Need],
    /// What answers to this operation mean, before the rules of the source.
    #[serde(skip)]
    pub rules: &'static [Rule],
    /// How the answer is got.
    #[serde(skip)]
    pub flow: Flow,
    /// The part behind the upstream that the call is about; its breaker is `source:part`.
    #[serde(skip)]
    pub part: Option<fn(&Subject) -> Option<String>>,
    /// Who can stand in, in this order.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub fallbacks: &'static [Fallback],
    /// Costs money: never repeated unless it certainly did not reach the upstream.
    pub billed: bool,
    /// For how long an answer is as good as a new one, where the terms ask for caching or each answer costs money. It is
    /// given again without asking.
    #[serde(skip)]
    pub fresh: Option<Duration>,
}

/// The countries an operation covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Countries {
    /// All.
    Any,
    /// Those in the EU's VAT system.
    EuVat,
    /// These, by two-letter code.
    Only(&'static [&'static str]),
}

/// Something that must be known about a subject before a question makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// The number in the home register.
    Id,
    /// The name.
    Name,
    /// The legal entity identifier.
    Lei,
    /// The VAT number, given or derived from the number in the home register.
    Vat,
    /// The address.
    Address,
    /// The website.
    Website,
    /// Names of persons who act for it.
    Persons,
}

/// Whether a question makes sense for a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applies {
    /// It does.
    Yes,
    /// It does not, and why.
    No(String),
}

impl Need {
    /// True if the subject offers it.
    #[must_use]
    pub fn met_by(self, subject: &Subject) -> bool {
        self.of(subject).is_some()
    }

    /// What the subject has of it.
    #[must_use]
    pub fn of(self, subject: &Subject) -> Option<String> {
        match self {
            Self::Id => subject.id.clone(),
            Self::Name => subject.name.clone(),
            Self::Lei => subject.lei.clone(),
            Self::Vat => subject.vat_number().map(|(number, _)| number),
            Self::Address => subject.address.clone(),
            Self::Website => subject.website.clone(),
            Self::Persons => (!subject.persons.is_empty()).then(|| subject.persons.join(", ")),
        }
    }

    /// As in "the subject has no …".
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Id => "registration number",
            Self::Name => "name",
            Self::Lei => "LEI",
            Self::Vat => "VAT number",
            Self::Address => "address",
            Self::Website => "website",
            Self::Persons => "known representative",
        }
    }
}

impl Countries {
    /// True if companies of that subject's country are covered.
    #[must_use]
    pub fn cover(self, subject: &Subject) -> bool {
        match self {
            Self::Any => true,
            Self::EuVat => subject.country.in_eu_vat(),
            Self::Only(codes) => codes.contains(&subject.country.as_str()),
        }
    }
}

impl Operation {
    /// A row with nothing in it, for `..Operation::BLANK`.
    pub const BLANK: Self = Self {
        name: "",
        answers: "",
        countries: Countries::Any,
        needs: &[],
        rules: &[],
        flow: Flow::Single { request: |_| None, parse: |_| Ok(Answer::default()) },
        part: None,
        fallbacks: &[],
        billed: false,
        fresh: None,
    };

    /// Whether the question makes sense for the subject. Depends on nothing else, so a workflow may plan with it.
    /// Missing credentials are not its business: they differ from worker to worker, so the activity finds out.
    #[must_use]
    pub fn applies(&self, subject: &Subject) -> Applies {
        if !self.countries.cover(subject) {
            return Applies::No(format!("does not cover {}", subject.country));
        }
        if self.needs.is_empty() || self.needs.iter().any(|need| need.met_by(subject)) {
            return Applies::Yes;
        }
        let wanted: Vec<_> = self.needs.iter().map(|need| need.as_str()).collect();
        Applies::No(format!("the subject has no {}", wanted.join(" or ")))
    }
}

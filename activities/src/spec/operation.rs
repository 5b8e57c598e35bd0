//! A question that can be put to a source, and to which subjects it applies.

use std::time::Duration;

use serde::Serialize;

use super::{Answer, Fallback, Flow, Rule, Source};
use crate::model::Subject;

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
    /// The fallbacks, in this order.
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

    /// What the subject has.
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

/// An operation together with the source it belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The row of the source.
    pub source: &'static Source,
    /// The row of the operation.
    pub operation: &'static Operation,
}

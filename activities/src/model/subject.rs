//! The company under investigation, as the user describes it.

use serde::{Deserialize, Serialize};

use super::Country;

/// A company: a country and at least one thing to find it by. Strings are normalised (see [`Subject::normalised`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Home jurisdiction.
    pub country: Country,
    /// Number in the home register: orgnr, IČO, Y-tunnus, SIREN, KBO number …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Registered name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Legal entity identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lei: Option<String>,
    /// VAT number with its prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vat: Option<String>,
    /// Address on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Website.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website: Option<String>,
}

/// A subject that cannot be investigated as it stands; the text says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// Nothing to look for.
    #[error("the subject is empty: give a registration number, a name, an LEI or a VAT number")]
    Empty,
}

impl Subject {
    /// A subject of which only the country is known; fill in the fields that are.
    #[must_use]
    pub const fn new(country: Country) -> Self {
        Self { country, id: None, name: None, lei: None, vat: None, address: None, website: None }
    }
}

//! Company identifiers: read, normalise, check, display.
//!
//! A number that is malformed never reaches an upstream, because several of them answer a typo with "not found". A number
//! that is well formed but fails its checksum is another matter: registers contain a few of those. So the two are
//! different errors, and the second one keeps the number, for the caller who wants to ask the register all the same.

mod checksum;
mod kinds;
mod vat;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::Country;

/// The kinds of identifier that are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the table in `kinds` names each of them")]
pub enum Kind {
    Lei,
    BeKbo,
    BeEstablishment,
    Ico,
    CzDic,
    SkIcDph,
    FrSiren,
    FrSiret,
    FrTva,
    DkCvr,
    FiYTunnus,
    FiVat,
    NlKvk,
    NlRsin,
    NlBtw,
    NoOrgnr,
    NoVat,
    RoCui,
    RoTradeRegister,
    ChUid,
    ChVat,
    EeRegistrikood,
    EeKmkr,
    DeUstId,
    DeRegister,
    EuVat,
    Euid,
    PeppolId,
}

/// An identifier in its normal form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identifier {
    kind: Kind,
    value: String,
}

/// Why a text is not an identifier of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentifierError {
    /// Not the form of such a number at all.
    #[error("'{text}' is no {name}: expected {expected}")]
    Format {
        /// What was given, shortened.
        text: String,
        /// Name of the kind.
        name: &'static str,
        /// The form it should have.
        expected: &'static str,
    },
    /// The right form, but the check digits do not agree with the rest: most likely a typo.
    #[error("{name} {identifier} fails its checksum: a digit is probably mistyped")]
    Checksum {
        /// The number as read.
        identifier: Identifier,
        /// Name of the kind.
        name: &'static str,
    },
}

/// How one kind is read; the rows are in `kinds`.
struct Rule {
    kind: Kind,
    name: &'static str,
    expected: &'static str,
    /// To normal form, or `None` if the text cannot be one. Gets upper-case text without surrounding space.
    normalise: fn(&str) -> Option<String>,
    /// The check digits of a normal form. True where there are none.
    checksum: fn(&str) -> bool,
    /// As the register prints it.
    display: fn(&str) -> String,
}

impl Kind {
    fn rule(self) -> &'static Rule {
        let rule = &kinds::RULES[self as usize]; // the table is in the order of the enum
        debug_assert_eq!(rule.kind, self);
        rule
    }

    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.rule().name
    }

    /// The form it has, in words.
    #[must_use]
    pub fn expected(self) -> &'static str {
        self.rule().expected
    }

    /// Reads a text as an identifier of this kind. Case, spaces and the usual punctuation do not matter.
    ///
    /// # Errors
    /// [`IdentifierError::Format`] if it cannot be one, [`IdentifierError::Checksum`] if only its check digits are wrong.
    pub fn read(self, text: &str) -> Result<Identifier, IdentifierError> {
        let rule = self.rule();
        let format = || IdentifierError::Format {
            text: text.chars().take(40).collect(),
            name: rule.name,
            expected: rule.expected,
        };
        let value = (rule.normalise)(&text.trim().to_uppercase()).ok_or_else(format)?;
        let sound = (rule.checksum)(&value);
        let identifier = Identifier { kind: self, value };
        if sound { Ok(identifier) } else { Err(IdentifierError::Checksum { identifier, name: rule.name }) }
    }

    /// The kind of number that companies of that country are registered under, where it is known.
    #[must_use]
    pub fn of_register(country: Country) -> Option<Self> {
        Some(match country.as_str() {
            "BE" => Self::BeKbo,
            "CZ" | "SK" => Self::Ico,
            "FR" => Self::FrSiren,
            "DK" => Self::DkCvr,
            "FI" => Self::FiYTunnus,
            "NL" => Self::NlKvk,
            "NO" => Self::NoOrgnr,
            "RO" => Self::RoCui,
            "CH" => Self::ChUid,
            "EE" => Self::EeRegistrikood,
            "DE" => Self::DeRegister,
            _ => return None,
        })
    }

    /// The kind of VAT number with that two-letter prefix, where it has rules of its own.
    #[must_use]
    pub fn of_vat(prefix: &str) -> Self {
        match prefix {
            "CZ" => Self::CzDic,
            "SK" => Self::SkIcDph,
            "FR" => Self::FrTva,
            "FI" => Self::FiVat,
            "NL" => Self::NlBtw,
            "NO" => Self::NoVat,
            "CH" => Self::ChVat,
            "EE" => Self::EeKmkr,
            "DE" => Self::DeUstId,
            _ => Self::EuVat,
        }
    }
}

impl Identifier {
    /// What kind it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The normal form: what requests and comparisons use.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for Identifier {
    /// As the register prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&(self.kind.rule().display)(&self.value))
    }
}

/// Without spaces (also the narrow and the fixed ones) and the punctuation that registers print.
fn compact(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '.' | '-' | '/' | '_' | '\u{2010}'..='\u{2013}'))
        .collect()
}

#[cfg(test)]
mod tests;

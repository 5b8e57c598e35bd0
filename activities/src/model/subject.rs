//! The company under investigation, as the user describes it.

use serde::{Deserialize, Serialize};

use super::{Company, Country, Facts};
use crate::identifiers::{IdentifierError, Kind};

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
    /// Names of persons who act for it; at most [`Subject::PERSONS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persons: Vec<String>,
    /// The numbers are meant as they are written, also where their check digits are wrong: old registers contain such numbers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_written: bool,
}

/// A subject that cannot be investigated as it stands; the text says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// Nothing to look for.
    #[error("the subject is empty: give a registration number, a name, an LEI or a VAT number")]
    Empty,
    /// A number that is none.
    #[error(transparent)]
    Identifier(#[from] IdentifierError),
    /// A VAT number of a country in whose system this company cannot be.
    #[error("VAT number {vat} does not belong to a company of {country}")]
    ForeignVat {
        /// The number.
        vat: String,
        /// The country of the subject.
        country: Country,
    },
}

impl Subject {
    /// Most persons that are asked about: some sources charge by the person.
    pub const PERSONS: usize = 5;

    /// A subject of which only the country is known; fill in the fields that are.
    #[must_use]
    pub const fn new(country: Country) -> Self {
        let (id, name, lei, vat, address, website) = (None, None, None, None, None, None);
        Self { country, id, name, lei, vat, address, website, persons: Vec::new(), as_written: false }
    }

    /// The same with every identifier in its normal form and blank fields removed. Numbers whose checksum fails are kept
    /// and named in the list: the official register may know better, so the caller decides whether to go on.
    ///
    /// # Errors
    /// If nothing is left to look for, or a number does not have the form that the country's numbers have.
    pub fn normalised(self) -> Result<(Self, Vec<IdentifierError>), SubjectError> {
        let mut doubts = Vec::new();
        let mut read = |kind: Option<Kind>, text: Option<String>| -> Result<Option<String>, IdentifierError> {
            let Some(text) = filled(text) else { return Ok(None) };
            let Some(kind) = kind else { return Ok(Some(text)) };
            match kind.read(&text) {
                Ok(identifier) => Ok(Some(identifier.as_str().to_owned())),
                Err(IdentifierError::Checksum { identifier, name }) => {
                    let value = identifier.as_str().to_owned();
                    doubts.push(IdentifierError::Checksum { identifier, name });
                    Ok(Some(value))
                }
                Err(error) => Err(error),
            }
        };
        let country = self.country;
        let id = read(Kind::of_register(country), self.id)?;
        let lei = read(Some(Kind::Lei), self.lei)?;
        let given = filled(self.vat).map(|vat| vat.to_uppercase());
        let vat = match given {
            Some(vat) => read(Some(vat_kind(country, &vat)?), Some(vat))?,
            None => None,
        };
        let subject = Self {
            country,
            id,
            name: filled(self.name),
            lei,
            vat,
            address: filled(self.address),
            website: filled(self.website),
            persons: named(self.persons),
            as_written: self.as_written,
        };
        if [&subject.id, &subject.name, &subject.lei, &subject.vat].into_iter().all(Option::is_none) {
            return Err(SubjectError::Empty);
        }
        Ok((subject, doubts))
    }

    /// The same, with what a register knows about this very company and the user did not say. Only a record that carries
    /// the subject's own number or LEI is believed: a hit of a search by name may be somebody else.
    #[must_use]
    pub fn enriched(mut self, facts: &Facts) -> Self {
        let same = |company: &&Company| {
            let id =
                self.id.is_some() && company.id == self.id && company.country.as_deref() == Some(self.country.as_str());
            id || (self.lei.is_some() && company.lei == self.lei)
        };
        let Some(company) = facts.companies.iter().find(same).cloned() else { return self };
        self.name = self.name.or(company.name);
        self.lei = self.lei.or(company.lei);
        self.website = self.website.or(company.website);
        self.address = self.address.or_else(|| company.address.and_then(|address| address.line()));
        self
    }

    /// The VAT number, and whether it had to be derived from the number in the home register. In several countries one
    /// follows from the other; that a company has the former does not prove that it is registered for VAT.
    #[must_use]
    pub fn vat_number(&self) -> Option<(String, bool)> {
        if let Some(vat) = &self.vat {
            return Some((vat.clone(), false));
        }
        let id = self.id.as_deref()?;
        let derived = match self.country.as_str() {
            country @ ("BE" | "CZ" | "DK" | "RO") => format!("{country}{id}"),
            "FI" => format!("FI{}", id.replace('-', "")),
            "FR" => {
                let siren: u64 = id.parse().ok()?;
                format!("FR{:02}{id}", (12 + 3 * (siren % 97)) % 97)
            }
            _ => return None,
        };
        Some((derived, true))
    }
}

/// The text without surrounding space, unless nothing is left.
fn filled(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The first few names, each once.
fn named(persons: Vec<String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in persons.into_iter().filter_map(|name| filled(Some(name))) {
        if names.len() < Subject::PERSONS && !names.iter().any(|known| known.to_lowercase() == name.to_lowercase()) {
            names.push(name);
        }
    }
    names
}

/// Which rules a VAT number follows. Companies may be registered abroad, but not in a system that is neither the EU's nor
/// their own country's.
fn vat_kind(country: Country, vat: &str) -> Result<Kind, SubjectError> {
    let prefix: String = vat.chars().take(2).collect();
    let home = country.vat_prefix();
    match prefix.as_str() {
        "NO" | "CH" if prefix != home => Err(SubjectError::ForeignVat { vat: vat.to_owned(), country }),
        _ if prefix.chars().all(char::is_alphabetic) => Ok(Kind::of_vat(&prefix)),
        _ => Ok(Kind::of_vat(home)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Address;

    fn subject(country: &str, id: &str, vat: &str) -> Subject {
        let country = country.parse().expect(country);
        Subject { id: Some(id.into()), vat: Some(vat.into()), ..Subject::new(country) }
    }

    #[test]
    fn numbers_are_normalised_and_doubts_kept_apart_from_errors() {
        let (read, doubts) = subject("NO", " 923 609 016 ", "no923609016mva").normalised().expect("valid");
        assert_eq!((read.id.as_deref(), read.vat.as_deref()), (Some("923609016"), Some("NO923609016MVA")));
        assert!(doubts.is_empty());

        let (read, doubts) = subject("NO", "988077918", "").normalised().expect("a wrong checksum is no error here");
        assert_eq!((read.id.as_deref(), doubts.len()), (Some("988077918"), 1));

        assert!(matches!(subject("NO", "9236090", "").normalised(), Err(SubjectError::Identifier(_))));
        assert!(matches!(subject("SE", "1", "CHE-107.787.577 IVA").normalised(), Err(SubjectError::ForeignVat { .. })));
        assert_eq!(subject("NO", "  ", " ").normalised(), Err(SubjectError::Empty));
    }

    #[test]
    fn persons_are_few_and_each_is_named_once() {
        let names = ["Ola Eksempel", " ", "OLA EKSEMPEL ", "A B", "C D", "E F", "G H", "I J"];
        let subject = Subject { persons: names.map(str::to_owned).into(), ..subject("NO", "923609016", "") };
        let (read, _) = subject.normalised().expect("valid");
        assert_eq!(read.persons, ["Ola Eksempel", "A B", "C D", "E F", "G H"]);
    }

    #[test]
    fn a_register_adds_what_the_user_did_not_say() {
        let known = subject("NO", "923609016", "");
        let address =
            Address { street: Some("Forusbeen 50".into()), city: Some("STAVANGER".into()), ..Address::default() };
        let company = |id: &str, name: &str| Company {
            id: Some(id.into()),
            country: Some("NO".into()),
            name: Some(name.into()),
            address: Some(address.clone()),
            ..Company::default()
        };
        let facts =
            Facts { companies: vec![company("1", "OTHER"), company("923609016", "EQUINOR ASA")], ..Facts::default() };
        let enriched = known.clone().enriched(&facts);
        assert_eq!(enriched.name.as_deref(), Some("EQUINOR ASA"));
        assert_eq!(enriched.address.as_deref(), Some("Forusbeen 50, STAVANGER"));
        let named = Subject { name: Some("Given".into()), ..known.clone() };
        assert_eq!(named.enriched(&facts).name.as_deref(), Some("Given"), "the user's own word stays");
        let other = Facts { companies: vec![company("1", "OTHER")], ..Facts::default() };
        assert_eq!(known.clone().enriched(&other), known);
    }

    #[test]
    fn vat_numbers_follow_from_register_numbers_where_they_do() {
        let cases = [
            ("BE", "0202239951", Some("BE0202239951")),
            ("CZ", "27082440", Some("CZ27082440")),
            ("FI", "0112038-9", Some("FI01120389")),
            ("FR", "552032534", Some("FR27552032534")),
            ("DK", "24256790", Some("DK24256790")),
            ("RO", "14399840", Some("RO14399840")),
            ("NL", "17085815", None),
            ("NO", "923609016", None),
        ];
        for (country, id, vat) in cases {
            let (read, _) = subject(country, id, "").normalised().expect(id);
            assert_eq!(read.vat_number(), vat.map(|vat| (vat.to_owned(), true)), "{country} {id}");
            if let Some(vat) = vat {
                assert!(Kind::of_vat(country).read(vat).is_ok(), "{vat}");
            }
        }
        let (read, _) = subject("IE", "368047", "IE6388047V").normalised().expect("valid");
        assert_eq!(read.vat_number(), Some(("IE6388047V".to_owned(), false)));
    }
}

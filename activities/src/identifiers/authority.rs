//! The registration authorities of GLEIF: which register issued the number of an LEI record.
//!
//! From GLEIF's Registration Authorities List, for the registers that an investigation asks. The number in a record counts
//! for a register only if its authority is in this table and the number has the form and the check digits of the register.

use super::{Identifier, Kind};
use crate::model::Country;

/// Code of the authority, country, and the numbers that it issues. The trade register of Romania is missing: its records hold
/// fiscal codes and trade register numbers alike.
const AUTHORITIES: [(&str, Country, Kind); 13] = [
    ("RA000025", Country::new("BE"), Kind::BeKbo),
    ("RA000163", Country::new("CZ"), Kind::Ico),
    ("RA000170", Country::new("DK"), Kind::DkCvr),
    ("RA000181", Country::new("EE"), Kind::EeRegistrikood),
    ("RA000188", Country::new("FI"), Kind::FiYTunnus),
    ("RA000189", Country::new("FR"), Kind::FrSiren),
    ("RA000192", Country::new("FR"), Kind::FrSiren),
    ("RA000463", Country::new("NL"), Kind::NlKvk),
    ("RA000472", Country::new("NO"), Kind::NoOrgnr),
    ("RA000473", Country::new("NO"), Kind::NoOrgnr),
    ("RA000526", Country::new("SK"), Kind::Ico),
    ("RA000548", Country::new("CH"), Kind::ChUid),
    ("RA000549", Country::new("CH"), Kind::ChUid),
];

/// German courts, each an authority of its own, by the town that a user names.
const COURTS: [(&str, &str); 3] = [("RA000242", "FRANKFURT"), ("RA000259", "HAMBURG"), ("RA000304", "MÜNCHEN")];

/// The number in the home register, from an LEI record: `registered_as` as issued by `authority`, for a company of `country`.
#[must_use]
pub fn home_number(country: Country, authority: Option<&str>, registered_as: &str) -> Option<Identifier> {
    let kind = match authority.and_then(|code| AUTHORITIES.iter().find(|(known, ..)| *known == code)) {
        Some((_, home, kind)) if *home == country => *kind,
        Some(_) => return None,
        // A court is not in the table, and a number of the commercial register has an unmistakable form.
        None if country.as_str() == "DE" => Kind::DeRegister,
        None => return None,
    };
    kind.read(registered_as).ok()
}

/// True if the authority is the court of that town.
#[must_use]
pub fn is_court(authority: &str, town: &str) -> bool {
    let town = town.to_uppercase().replace("UE", "Ü");
    COURTS.iter().any(|(code, court)| *code == authority && town.starts_with(court))
}

/// A German register number without its court, and the court if it is named. `HRB 6684 MÜNCHEN` is both.
#[must_use]
pub fn without_court(number: &str) -> (String, Option<String>) {
    let words: Vec<&str> = number.split(' ').collect();
    let (number, court) = words.split_at(words.len().min(2));
    (number.join(" "), (!court.is_empty()).then(|| court.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(country: &str, authority: Option<&str>, number: &str) -> Option<String> {
        home_number(country.parse().expect(country), authority, number).map(|number| number.as_str().to_owned())
    }

    #[test]
    fn a_number_counts_for_the_register_that_issued_it() {
        assert_eq!(read("NO", Some("RA000472"), "923 609 016").as_deref(), Some("923609016"));
        assert_eq!(read("BE", Some("RA000025"), "0202.239.951").as_deref(), Some("0202239951"));
        assert_eq!(read("CH", Some("RA000548"), "CHE-191.546.434").as_deref(), Some("CHE191546434"));
        assert_eq!(read("DE", Some("RA000304"), "HRB 6684").as_deref(), Some("HRB 6684"));
        assert_eq!(read("NO", Some("RA000472"), "923609017"), None, "a wrong check digit");
        assert_eq!(read("NO", Some("RA000463"), "923609016"), None, "a register of another country");
        assert_eq!(read("NO", Some("RA999999"), "923609016"), None, "the form alone proves nothing");
        assert_eq!(read("RO", Some("RA000497"), "14399840"), None);
    }

    #[test]
    fn a_court_is_named_behind_the_number() {
        assert_eq!(without_court("HRB 6684 MÜNCHEN"), ("HRB 6684".into(), Some("MÜNCHEN".into())));
        assert_eq!(without_court("HRB 6684"), ("HRB 6684".into(), None));
        assert!(is_court("RA000304", "Muenchen") && is_court("RA000242", "Frankfurt am Main"));
        assert!(!is_court("RA000304", "Hamburg") && !is_court("RA999999", "München"));
    }
}

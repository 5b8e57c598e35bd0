//! Countries by their two-letter code.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// ISO 3166-1 alpha-2, officially assigned, plus `XK` (user-assigned, in use by the EU) and `XI` (Northern Ireland for VAT).
const CODES: &str = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ \
CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF \
GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY \
KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP \
NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY \
SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XI XK YE YT ZA ZM ZW";

/// The member states of the European Union, in whose VAT system a number can be checked.
const EU: &str = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK";

/// A country, as its two-letter code in upper case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Country([u8; 2]);

/// The text is no country code that we know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown country '{0}': a two-letter ISO 3166-1 code is needed, such as NO, CZ or FR")]
pub struct UnknownCountry(pub String);

impl Country {
    /// A country known when the program is written.
    ///
    /// # Panics
    /// At compile time, if the code is not two upper-case letters.
    #[must_use]
    pub const fn new(code: &str) -> Self {
        let bytes = code.as_bytes();
        assert!(bytes.len() == 2 && bytes[0].is_ascii_uppercase() && bytes[1].is_ascii_uppercase());
        Self([bytes[0], bytes[1]])
    }

    /// The code, in upper case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("??")
    }

    /// True for the member states of the European Union and for Northern Ireland, whose VAT numbers VIES knows.
    #[must_use]
    pub fn in_eu_vat(&self) -> bool {
        self.as_str() == "XI" || EU.split(' ').any(|code| code == self.as_str())
    }

    /// The country whose VAT numbers begin with that prefix.
    #[must_use]
    pub fn of_vat_prefix(prefix: &str) -> Option<Self> {
        prefix.parse().ok() // reads `EL` as Greece
    }

    /// The prefix of the country's VAT numbers: the code itself, except `EL` for Greece.
    #[must_use]
    pub fn vat_prefix(&self) -> &str {
        if self.as_str() == "GR" { "EL" } else { self.as_str() }
    }
}

impl FromStr for Country {
    type Err = UnknownCountry;

    /// Case and surrounding space do not matter; `UK` is read as `GB` and `EL` as `GR`.
    fn from_str(text: &str) -> Result<Self, UnknownCountry> {
        let code = match text.trim().to_ascii_uppercase().as_str() {
            "UK" => "GB".to_owned(),
            "EL" => "GR".to_owned(),
            other => other.to_owned(),
        };
        if code.len() == 2 && CODES.split(' ').any(|known| known == code) {
            let bytes = code.as_bytes();
            Ok(Self([bytes[0], bytes[1]]))
        } else {
            Err(UnknownCountry(text.chars().take(40).collect()))
        }
    }
}

impl TryFrom<String> for Country {
    type Error = UnknownCountry;
    fn try_from(text: String) -> Result<Self, UnknownCountry> {
        text.parse()
    }
}

impl From<Country> for String {
    fn from(country: Country) -> Self {
        country.as_str().to_owned()
    }
}

impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_leniently_and_unknown_ones_refused() {
        for (text, code) in [("no", "NO"), (" cz ", "CZ"), ("UK", "GB"), ("el", "GR"), ("XI", "XI")] {
            assert_eq!(text.parse::<Country>().expect(text).as_str(), code);
        }
        for text in ["", "N", "NOR", "ZZ", "N0", "D E", "šk", "  "] {
            assert!(text.parse::<Country>().is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn vat_area() {
        let [no, gr, xi] = ["NO", "GR", "XI"].map(|code| code.parse::<Country>().expect(code));
        assert!(!no.in_eu_vat() && gr.in_eu_vat() && xi.in_eu_vat());
        assert_eq!(gr.vat_prefix(), "EL");
        assert_eq!(EU.split(' ').count(), 27);
        assert!(EU.split(' ').all(|code| code.parse::<Country>().is_ok()));
    }
}

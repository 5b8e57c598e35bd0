//! What the Slovak sources share: the law's words in a company's name, lines with a postal code, the ban on fast readers.

use crate::{
    model::{Standing, Subject},
    spec::{Class, Rule, Stay, on},
};

/// Addresses that ask too often are barred for hours.
pub(super) const BARRED: Rule = on(403)
    .means(Class::Throttled, "has barred us, as it does with those who ask too often")
    .stay(Stay::Seconds(6 * 3600));

/// The law makes a company write its insolvency or liquidation into its name.
pub(super) fn standing(name: &str, dissolved: bool) -> Standing {
    let name = name.to_lowercase();
    let says = |words: &str| name.contains(words);
    if dissolved {
        Standing::Ceased
    } else if says("v konkurze") {
        Standing::Insolvent
    } else if says("v likvidácii") {
        Standing::Liquidation
    } else if says("v reštrukturalizácii") {
        Standing::Restructuring
    } else {
        Standing::Active
    }
}

/// Postal code and town, in either order: `851 01 Bratislava`, `Bratislava 851 01`.
pub(super) fn town(line: &str) -> (Option<String>, Option<String>) {
    let digit = |c: char| c.is_ascii_digit();
    let code: String = line.chars().filter(char::is_ascii_digit).collect();
    let ends = line.trim_matches(|c: char| digit(c) || c == ' ');
    // A digit inside the name of the town, as in `Bratislava 1`, makes more than five.
    if code.len() == 5 && !ends.contains(digit) {
        (Some(code), Some(ends.to_owned()).filter(|town| !town.is_empty()))
    } else {
        (None, Some(line.to_owned()).filter(|line| !line.is_empty()))
    }
}

/// The number of a subject, which every question about one company needs.
pub(super) fn number(subject: &Subject) -> Option<&str> {
    subject.id.as_deref()
}

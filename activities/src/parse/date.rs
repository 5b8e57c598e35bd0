//! Dates as registers write them: `19941003`, `28/11 - 1931`, `15.01.2002`, `2014-01-01T00:00:00`, `19 septembre 1992`.
//!
//! A date is a day of a calendar and never a moment, so nothing here knows an hour. Only [`today`] depends on a place: the
//! day that a register means by "today" is the one in its own country, however long that day is.

use jiff::{Timestamp, civil, tz::TimeZone};

use super::text::words;

/// The first date in a text, as ISO 8601; as precise as it is, so a month or day of zero is left out. `None` if there is
/// no date or the calendar has no such day.
#[must_use]
pub fn iso(text: &str) -> Option<String> {
    named(text).or_else(|| numbered(text))
}

/// The months, as English and French pages name them.
const MONTHS: [[&str; 2]; 12] = [
    ["january", "janvier"],
    ["february", "février"],
    ["march", "mars"],
    ["april", "avril"],
    ["may", "mai"],
    ["june", "juin"],
    ["july", "juillet"],
    ["august", "août"],
    ["september", "septembre"],
    ["october", "octobre"],
    ["november", "novembre"],
    ["december", "décembre"],
];

/// `September 19, 1992` or `1er août 2025`.
fn named(text: &str) -> Option<String> {
    let words = words(text);
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let month = |word: &str| i8::try_from(MONTHS.iter().position(|names| names.contains(&word))? + 1).ok();
    words.windows(3).find_map(|three| {
        let (month, day) = month(three[0]).map(|month| (month, three[1])).or(month(three[1]).zip(Some(three[0])))?;
        let year = Some(three[2]).filter(|year| year.len() == 4)?.parse().ok()?;
        civil::Date::new(year, month, day.trim_end_matches("er").parse().ok()?).ok().map(|date| date.to_string())
    })
}

fn numbered(text: &str) -> Option<String> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let (first, mut next) = (numbers.next()?, || numbers.next());
    let (year, month, day) = match first.len() {
        8 => (first.get(..4)?, first.get(4..6)?, first.get(6..)?),
        4 => (first, next()?, next()?),
        1 | 2 => {
            let (month, year) = (next()?, next().filter(|year| year.len() == 4)?);
            (year, month, first)
        }
        _ => return None,
    };
    let (year, month, day): (i16, i8, i8) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    let date = civil::Date::new(year, month.max(1), day.max(1)).ok()?;
    Some(match (month, day) {
        (0, _) => format!("{year:04}"),
        (_, 0) => format!("{year:04}-{month:02}"),
        _ => date.to_string(),
    })
}

/// The day of a moment, as files and their editions count them.
#[must_use]
pub fn day(at: Timestamp) -> civil::Date {
    at.to_zoned(TimeZone::UTC).date()
}

/// The day it is at that place. A machine without a time zone database is an hour or two off.
#[must_use]
pub fn today(zone: &str, now: Timestamp) -> civil::Date {
    now.to_zoned(TimeZone::get(zone).unwrap_or(TimeZone::UTC)).date()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_all_spellings() {
        let cases = [
            ("19941003", Some("1994-10-03")),
            ("19940000", Some("1994")),
            ("19941000", Some("1994-10")),
            ("28/11 - 1931", Some("1931-11-28")),
            ("1/6 - 2014", Some("2014-06-01")),
            ("INREGISTRAT din data 15.01.2002", Some("2002-01-15")),
            ("2014-01-01T00:00:00", Some("2014-01-01")),
            ("Since September 19, 1992", Some("1992-09-19")),
            ("Depuis le 1er août 2025", Some("2025-08-01")),
            ("(od: 17.09.1992)", Some("1992-09-17")),
            ("15.7.2025", Some("2025-07-15")),
            ("31 avril 2025", None),
            ("19 brumaire 1992", None),
            ("2014-02-30", None),
            ("31/02 - 2014", None),
            ("20149999", None),
            ("2014", None),
            ("1/2/14", None),
            ("", None),
            ("radiată", None),
        ];
        for (text, date) in cases {
            assert_eq!(iso(text).as_deref(), date, "{text}");
        }
    }

    #[test]
    fn a_day_begins_where_the_register_is() {
        let at = |text: &str| today("Europe/Bucharest", text.parse().expect(text)).to_string();
        if TimeZone::get("Europe/Bucharest").is_ok() {
            assert_eq!(at("2026-11-30T21:59:59Z"), "2026-11-30");
            assert_eq!(at("2026-11-30T22:00:00Z"), "2026-12-01");
            // The night the clocks go back: midnight comes an hour earlier by UTC than it will the day after.
            assert_eq!(
                (at("2026-10-24T21:00:00Z"), at("2026-10-25T21:30:00Z")),
                ("2026-10-25".into(), "2026-10-25".into())
            );
        }
    }
}

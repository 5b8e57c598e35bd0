//! The subject as registers describe it: each fact with who says so, and where sources disagree.

use osint_activities::model::{Accounts, Company, Finding, Standing, Subject};
use serde::Serialize;

use super::{Origin, folded, with_facts};
use crate::report::Report;

/// One fact about the subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What it is, such as `name`.
    pub label: &'static str,
    /// Its values. More than one, if sources write it differently.
    pub values: Vec<Stated>,
    /// True if the sources contradict each other.
    pub conflict: bool,
}

/// A value with those that state it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stated {
    /// The value, as the first source writes it.
    pub value: String,
    /// Who states it.
    pub origins: Vec<Origin>,
}

/// How two values of one kind of fact are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    /// By letters and digits. Different values contradict each other.
    Text,
    /// Dates of different precision agree if one begins with the other.
    Date,
    /// Sources use words of their own: different values say nothing.
    Loose,
}

type Read = fn(&Company) -> Vec<String>;

/// The facts, in the order of the page.
const FACTS: &[(&str, Compare, Read)] = &[
    ("name", Compare::Text, |it| it.name.iter().cloned().collect()),
    ("register number", Compare::Text, |it| it.id.iter().cloned().collect()),
    ("standing", Compare::Text, |it| standing(it.standing).map(str::to_owned).into_iter().collect()),
    ("status", Compare::Loose, |it| it.status.iter().cloned().collect()),
    ("legal form", Compare::Loose, |it| it.legal_form.iter().cloned().collect()),
    ("address", Compare::Loose, |it| {
        it.address.clone().and_then(osint_activities::model::Address::line).into_iter().collect()
    }),
    ("founded", Compare::Date, |it| it.founded.iter().cloned().collect()),
    ("dissolved", Compare::Date, |it| it.dissolved.iter().cloned().collect()),
    ("former name", Compare::Loose, |it| it.former_names.clone()),
    ("LEI", Compare::Text, |it| it.lei.iter().cloned().collect()),
    ("VAT number", Compare::Text, |it| it.vat.iter().cloned().collect()),
    ("EUID", Compare::Text, |it| it.euid.iter().cloned().collect()),
    ("activity", Compare::Loose, |it| it.activities.clone()),
    ("employees", Compare::Loose, |it| it.employees.map(|number| number.to_string()).into_iter().collect()),
    ("website", Compare::Loose, |it| it.website.iter().cloned().collect()),
    ("registration", Compare::Loose, |it| it.registrations.clone()),
];

/// The word for a standing; `None` if the source does not say.
pub(super) const fn standing(standing: Standing) -> Option<&'static str> {
    match standing {
        Standing::Active => Some("active"),
        Standing::Liquidation => Some("being wound up"),
        Standing::Insolvent => Some("insolvent"),
        Standing::Restructuring => Some("being restructured"),
        Standing::Ceased => Some("ceased"),
        Standing::Unknown => None,
    }
}

/// The records of the subject itself, with the findings they come from.
pub(super) fn records(report: &Report) -> Vec<(&Finding, &Company)> {
    let ours = |company: &&Company| is_subject(company, &report.subject);
    let all = with_facts(report).flat_map(|(finding, facts)| facts.companies.iter().map(move |it| (finding, it)));
    all.filter(|(_, company)| ours(company)).collect()
}

/// True if a record carries the subject's number, LEI or VAT number. A record that was found by its name alone may be a
/// namesake.
fn is_subject(company: &Company, subject: &Subject) -> bool {
    let same = |ours: &Option<String>, theirs: &Option<String>| match (ours, theirs) {
        (Some(ours), Some(theirs)) => folded(ours) == folded(theirs),
        _ => false,
    };
    let at_home = company.country.as_deref().is_none_or(|country| country == subject.country.as_str());
    (at_home && same(&subject.id, &company.id)) || same(&subject.lei, &company.lei) || same(&subject.vat, &company.vat)
}

/// What the sources say about the subject.
pub(super) fn facts(report: &Report) -> Vec<Fact> {
    let records = records(report);
    let of = |(label, compare, read): &(&'static str, Compare, Read)| {
        let mut values: Vec<Stated> = Vec::new();
        for (finding, company) in &records {
            for value in read(company) {
                add(&mut values, value, *compare, Origin::of(finding));
            }
        }
        let conflict = *compare != Compare::Loose && values.len() > 1;
        (!values.is_empty()).then_some(Fact { label, values, conflict })
    };
    let mut all: Vec<Fact> = FACTS.iter().filter_map(of).collect();
    all.extend(further(report));
    all
}

/// What sources say beside the record of the company.
fn further(report: &Report) -> Vec<Fact> {
    const LABELS: [&str; 5] = ["VAT registration", "group", "latest accounts", "notice", "website says"];
    let mut all = LABELS.map(|label| Fact { label, values: Vec::new(), conflict: false });
    for (finding, facts) in with_facts(report) {
        let mut say = |n: usize, value: String| add(&mut all[n].values, value, Compare::Loose, Origin::of(finding));
        if let Some(vat) = &facts.vat {
            say(0, format!("{} is {}", vat.number, if vat.valid { "valid" } else { "not valid" }));
        }
        for parent in &facts.parents {
            let what = match (&parent.company, &parent.exception) {
                (Some(company), _) => company.name.clone().unwrap_or_else(|| "a company without a name".to_owned()),
                (None, Some(why)) => format!("none reported, {why}"),
                (None, None) => "none reported".to_owned(),
            };
            say(1, format!("{} parent: {what}", parent.level));
        }
        facts.accounts.first().map(balance).into_iter().for_each(|text| say(2, text));
        for notice in facts.notices.iter().take(3) {
            let parts = [&notice.date, &notice.kind, &notice.text, &notice.publisher];
            say(3, parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(", "));
        }
        for page in facts.pages.iter().filter(|page| !page.states.is_empty()) {
            say(4, format!("{} ({})", page.states.join(", "), page.url));
        }
    }
    all.into_iter().filter(|fact| !fact.values.is_empty()).collect()
}

/// A set of accounts on one line.
fn balance(accounts: &Accounts) -> String {
    let currency = accounts.currency.as_deref().unwrap_or("without a stated currency");
    let amounts = [
        ("revenue", accounts.revenue),
        ("result", accounts.result),
        ("equity", accounts.equity),
        ("assets", accounts.assets),
    ];
    let amounts =
        amounts.iter().filter_map(|(name, amount)| amount.map(|amount| format!("{name} {}", grouped(amount))));
    let period = accounts.to.as_deref().or(accounts.filing.as_deref()).unwrap_or("no date");
    let amounts: Vec<String> = amounts.collect();
    if amounts.is_empty() { period.to_owned() } else { format!("{period}: {} {currency}", amounts.join(", ")) }
}

/// A whole amount with its digits in groups of three.
fn grouped(amount: f64) -> String {
    let digits = format!("{:.0}", amount.abs());
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if amount < 0.0 { format!("-{out}") } else { out }
}

fn add(values: &mut Vec<Stated>, value: String, compare: Compare, origin: Origin) {
    let (ours, precise) = (folded(&value), compare == Compare::Date);
    let same = |known: &&mut Stated| {
        let theirs = folded(&known.value);
        theirs == ours || (precise && (theirs.starts_with(&ours) || ours.starts_with(&theirs)))
    };
    match values.iter_mut().find(same) {
        Some(known) => {
            if precise && value.len() > known.value.len() {
                known.value = value;
            }
            if known.origins.iter().all(|each| each.operation != origin.operation) {
                known.origins.push(origin);
            }
        }
        None => values.push(Stated { value, origins: vec![origin] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_grouped() {
        assert_eq!(grouped(72_500_000_000.0), "72,500,000,000");
        assert_eq!((grouped(-1_234.6), grouped(12.0)), ("-1,235".to_owned(), "12".to_owned()));
    }

    #[test]
    fn dates_of_different_precision_agree() {
        let origin = |operation: &str| Origin { operation: operation.to_owned(), via: None, as_of: None };
        let mut values = Vec::new();
        for (value, source) in [("1972", "a.b"), ("1972-09-18", "c.d"), ("1995-03-12", "e.f")] {
            add(&mut values, value.to_owned(), Compare::Date, origin(source));
        }
        let read: Vec<_> = values.iter().map(|value| (value.value.as_str(), value.origins.len())).collect();
        assert_eq!(read, [("1972-09-18", 2), ("1995-03-12", 1)]);
    }
}

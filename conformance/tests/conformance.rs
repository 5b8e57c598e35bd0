//! Ours keeps the contract, and the page that says so says what is true today.
//!
//! Covers the cases of the table through the public interface, on a paused clock. The published crates are not tested here:
//! what they do is reported, not demanded.

use std::{fs, path::Path};

use breaker_conformance::{
    adapters,
    contract::{Outcome, cases::CASES, report, run},
};

fn outcomes() -> Vec<Outcome> {
    let ours = adapters::ours();
    CASES.iter().map(|case| run(ours.as_ref(), case)).collect()
}

#[test]
fn ours_passes_every_case() {
    for (case, outcome) in CASES.iter().zip(outcomes()) {
        assert_eq!(outcome, Outcome::Pass, "{} {}, {}", case.group, case.key, case.demand);
    }
}

/// The cells of a markdown row, without the empty ones at its ends.
fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

#[test]
fn the_page_lists_every_case_and_what_ours_does() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/conformance.md");
    let page = fs::read_to_string(page).expect("docs/conformance.md is there");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with('|')).map(cells).collect();
    for (case, outcome) in CASES.iter().zip(outcomes()) {
        let name = format!("{} {}", case.group, case.key);
        let row = rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name} is missing from the page"));
        assert_eq!(row[1..3], [case.demand, report::mark(&outcome)], "{name}: refresh docs/conformance.md");
    }
    let known = rows.iter().filter(|row| CASES.iter().any(|case| row[0].starts_with(&format!("{} ", case.group))));
    assert_eq!(known.count(), CASES.len(), "the page has cases that the table does not have");
}

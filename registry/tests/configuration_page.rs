//! The page `docs/configuration.md` says what the schema does: the same keys, defaults that hold, examples that parse, and
//! values that are refused.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use circuit_registry::{BreakersConfig, ConfigError, Policy};

/// What a block needs beside the key under test.
const CONTEXT: [(&str, &str); 3] =
    [("window", "calls: 100, failure_rate: 50%"), ("bulkhead", "max_concurrent: 8"), ("rate_limit", "per: 1s")];

/// The same for keys that cannot stand in that context.
const OWN_CONTEXT: [(&str, &str); 6] = [
    ("window.calls", "failure_rate: 50%"),
    ("window.time", "failure_rate: 50%"),
    ("window.failure_rate", "calls: 100"),
    ("window.slow_call", "calls: 100, slow_rate: 50%"),
    ("window.slow_rate", "calls: 100, slow_call: 1s"),
    ("rate_limit.per", "limit: 1"),
];

/// A row of a table about policies.
struct Row {
    key: String,
    default: Option<String>,
    refused: String,
    example: String,
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    fs::read_to_string(path).expect("the page")
}

fn code(cell: &str) -> Option<String> {
    Some(cell.strip_prefix('`')?.strip_suffix('`')?.to_owned())
}

/// Rows of tables with this many columns, whose first cell is a key.
fn rows(page: &str, columns: usize) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    page.lines().filter(|line| line.starts_with("| `")).map(cells).filter(|cells| cells.len() == columns).collect()
}

fn policies(page: &str) -> Vec<Row> {
    rows(page, 6)
        .into_iter()
        .map(|cells| Row {
            key: code(&cells[0]).expect("a key"),
            default: code(&cells[1]),
            refused: code(&cells[3]).expect("a refused value"),
            example: code(&cells[4]).expect("an example"),
        })
        .collect()
}

fn policy(entry: &str) -> Result<Arc<Policy>, ConfigError> {
    BreakersConfig::from_yaml(&format!("services: {{ s: {{ {entry} }} }}")).map(|config| config.policy("s"))
}

/// An entry with `key` at `value`, or without it.
fn entry(key: &str, value: Option<&str>) -> String {
    let Some((block, leaf)) = key.rsplit_once('.') else {
        return value.map(|value| format!("{key}: {value}")).unwrap_or_default();
    };
    let own = OWN_CONTEXT.iter().find(|(name, _)| *name == key).or(CONTEXT.iter().find(|(name, _)| *name == block));
    let context = own.map(|(_, context)| (*context).to_owned());
    let leaf = value.map(|value| format!("{leaf}: {value}"));
    let inside: Vec<String> = context.into_iter().chain(leaf).collect();
    match block.split_once('.') {
        Some((outer, inner)) => format!("{outer}: {{ {inner}: {{ {} }} }}", inside.join(", ")),
        None => format!("{block}: {{ {} }}", inside.join(", ")),
    }
}

/// The keys that the schema knows at a place, as the error of an unknown key lists them.
fn known(yaml: &str) -> BTreeSet<String> {
    let message = BreakersConfig::from_yaml(yaml).expect_err("an unknown key").to_string();
    let (_, keys) = message.split_once("valid keys here: ").unwrap_or_else(|| panic!("{yaml}: {message}"));
    keys.trim_end_matches(|c: char| !c.is_alphanumeric()).split(", ").map(str::to_owned).collect()
}

#[test]
fn the_page_has_the_keys_of_the_schema() {
    let page = page();
    let mut expected = BTreeSet::new();
    for key in known("x: 1") {
        match key.as_str() {
            "names" => expected.extend(known("names: { x: 1 }").into_iter().map(|key| format!("names.{key}"))),
            _ => drop(expected.insert(key)),
        }
    }
    let document: BTreeSet<_> = rows(&page, 3).iter().filter_map(|cells| code(&cells[0])).collect();
    let settings = ["memory", "file:breakers.state"];
    let document: BTreeSet<_> = document.into_iter().filter(|key| !settings.contains(&key.as_str())).collect();
    assert_eq!(document, expected);

    // A block that is also a word, such as `fleet: off`, has a row of its own. The others do not.
    let words = ["rate_limit", "on_open", "fleet"];
    let mut expected = BTreeSet::new();
    for key in known("defaults: { x: 1 }") {
        let block = format!("defaults: {{ {key}: {{ x: 1 }} }}");
        let message = BreakersConfig::from_yaml(&block).expect_err("not a value").to_string();
        let is_block = message.contains("valid keys here");
        if is_block && key == "fleet" {
            expected.extend(
                known("defaults: { fleet: { share: { x: 1 } } }").into_iter().map(|leaf| format!("fleet.share.{leaf}")),
            );
        } else if is_block {
            expected.extend(known(&block).into_iter().map(|leaf| format!("{key}.{leaf}")));
        }
        if !is_block || words.contains(&key.as_str()) {
            expected.insert(key);
        }
    }
    let documented: BTreeSet<_> = policies(&page).into_iter().map(|row| row.key).collect();
    assert_eq!(documented, expected);
}

#[test]
fn every_example_parses() {
    let page = page();
    for row in policies(&page) {
        let parsed = policy(&row.example).unwrap_or_else(|error| panic!("{}: {error}", row.key));
        assert_ne!(parsed, policy("").unwrap(), "{}: the example changes nothing", row.key);
    }
    for cells in rows(&page, 3) {
        if let Some(example) = code(&cells[2]) {
            BreakersConfig::from_yaml(&example).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
    let (_, rest) = page.split_once("```yaml\n").expect("an example");
    let (yaml, _) = rest.split_once("```").expect("its end");
    BreakersConfig::from_yaml(yaml).expect("the whole example");
}

#[test]
fn every_default_holds() {
    let mut checked = 0;
    for row in policies(&page()) {
        if let Some(default) = &row.default {
            let with = policy(&entry(&row.key, Some(default))).unwrap_or_else(|error| panic!("{}: {error}", row.key));
            assert_eq!(with, policy(&entry(&row.key, None)).unwrap(), "{}: {default}", row.key);
            checked += 1;
        }
    }
    assert!(checked >= 15, "only {checked}");
    let dynamic = |yaml| BreakersConfig::from_yaml(yaml).unwrap();
    assert_eq!(dynamic("names: { max_dynamic: 1024 }"), dynamic(""));
}

#[test]
fn every_refused_value_is_refused() {
    for row in policies(&page()) {
        let error = policy(&entry(&row.key, Some(&row.refused))).expect_err(&row.key);
        let root = row.key.split('.').next().expect("a key");
        assert!(error.to_string().contains(root), "{}: {error}", row.key);
    }
}

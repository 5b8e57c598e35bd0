//! `deploy/` and its documents: rules that Prometheus accepts, queries whose metrics and labels exist, a runbook for every alert.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use circuit_registry::{
    BreakersConfig, CircuitRegistry, Verdict,
    prometheus::register,
    store::{FileStore, Store},
};
use prometheus::{Registry, TextEncoder};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The labels of every metric that a worker exports.
fn exported() -> BTreeMap<String, BTreeSet<String>> {
    let yaml = "services: { vies: { fail_max: 1, window: { calls: 10, failure_rate: 50%, slow_call: 1s, slow_rate: 50% }, \
                bulkhead: { max_concurrent: 3 }, retry: { budget: 20% } } }";
    let store = FileStore::new("/nowhere/state");
    assert_eq!(store.kind(), "file");
    let config = BreakersConfig::from_yaml(yaml).expect("valid");
    let registry = CircuitRegistry::builder().config(config).measure_calls(true).store(store).build();
    registry.breaker("vies").try_acquire().expect("closed").settle(Verdict::Failure);
    registry.apply(registry.config());
    let metrics = Registry::new();
    register(&registry, &metrics).expect("names of its own");
    let page = TextEncoder::new().encode_to_string(&metrics.gather()).expect("text");
    let mut exported: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_once(['{', ' ']).expect("a sample");
        let labels = exported.entry(name.to_owned()).or_default();
        labels.extend(label_names(rest.split('}').next().unwrap_or_default()));
    }
    exported
}

/// The names before `=`, `!=` and `=~` in `a="1",b!="2"`.
fn label_names(selector: &str) -> Vec<String> {
    let outside_quotes: String = selector.split('"').step_by(2).collect();
    let names = outside_quotes.split(',').filter_map(|part| part.split(['=', '!']).next());
    names.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// The lists after `by`, of all its uses in a query.
fn grouped_by(query: &str) -> Vec<String> {
    let lists = query.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
    lists.flat_map(|list| list.split(',')).map(|label| label.trim().to_owned()).collect()
}

/// The metrics in a query, each with the labels that it selects by.
fn metrics_of(query: &str) -> Vec<(String, Vec<String>)> {
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut found = Vec::new();
    let mut rest = query;
    while let Some(start) = rest.find("circuit_breaker_") {
        // A recorded name begins before: `service:circuit_breaker_…`.
        let begin = rest[..start].rfind(|c: char| !in_name(c)).map_or(0, |at| at + 1);
        let tail = &rest[begin..];
        let end = tail.find(|c: char| !in_name(c)).unwrap_or(tail.len());
        let (name, after) = tail.split_at(end);
        let selector = after.strip_prefix('{').and_then(|after| after.split('}').next()).unwrap_or_default();
        found.push((name.to_owned(), label_names(selector)));
        rest = after;
    }
    found
}

/// Values of `expr:` and names of `record:` and `alert:` in a file of rules.
fn rules(path: &str, key: &str) -> Vec<String> {
    let text = text(path);
    let lines: Vec<&str> = text.lines().collect();
    let mut values = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let Some(value) = line.trim_start().trim_start_matches("- ").strip_prefix(&format!("{key}: ")) else {
            continue;
        };
        if value != "|" {
            values.push(value.to_owned());
            continue;
        }
        let deep = |line: &str| line.len() - line.trim_start().len();
        let block = lines[n + 1..].iter().take_while(|next| deep(next) > deep(line));
        values.push(block.map(|line| line.trim()).collect::<Vec<_>>().join(" "));
    }
    values
}

const ALERTS: &str = "deploy/prometheus/alerts.yaml";
const RECORDING: &str = "deploy/prometheus/recording.yaml";

#[test]
fn every_query_names_metrics_and_labels_that_exist() {
    let exported = exported();
    let recorded = rules(RECORDING, "record");
    let dashboard: Value = serde_json::from_str(&text("deploy/grafana/dashboard.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let shown = targets.map(|target| target["expr"].as_str().expect("a query").to_owned());
    let queries: Vec<String> = rules(ALERTS, "expr").into_iter().chain(rules(RECORDING, "expr")).chain(shown).collect();
    assert!(queries.len() >= 24, "only {} queries found", queries.len());
    let target = BTreeSet::from(["instance", "job"].map(str::to_owned));
    for query in &queries {
        let metrics = metrics_of(query);
        assert!(!metrics.is_empty(), "{query} names no metric");
        let mut known = target.clone();
        for (name, labels) in metrics {
            let Some(own) = exported.get(&name) else {
                assert!(recorded.contains(&name), "{name} is neither exported nor recorded: {query}");
                known.insert("service".to_owned());
                continue;
            };
            for label in labels {
                assert!(own.contains(&label), "{name} has no label '{label}': {query}");
            }
            known.extend(own.iter().cloned());
        }
        for label in grouped_by(query) {
            assert!(known.contains(&label), "nothing here has the label '{label}': {query}");
        }
    }
}

#[test]
fn every_alert_has_its_part_in_the_runbook() {
    let runbook = text("docs/runbook.md");
    let alerts = rules(ALERTS, "alert");
    assert!(alerts.len() >= 8, "{alerts:?}");
    for alert in &alerts {
        let part = runbook.split(&format!("\n## {alert}\n")).nth(1).unwrap_or_else(|| panic!("no part '{alert}'"));
        let part = part.split("\n## ").next().unwrap_or_default();
        for heading in ["**Means:**", "**Look at:**", "**Do:**", "**Worked:**"] {
            assert!(part.contains(heading), "{alert} has no {heading}");
        }
        let link = format!("runbook: docs/runbook.md#{}", alert.to_lowercase());
        assert!(text(ALERTS).contains(&link), "{link} is missing");
    }
}

#[test]
fn prometheus_accepts_the_rules_and_their_tests_pass() {
    let promtool = std::env::var("PROMTOOL").unwrap_or_else(|_| "promtool".to_owned());
    for arguments in
        [&["check", "rules", ALERTS, RECORDING][..], &["test", "rules", "deploy/prometheus/alerts_test.yaml"]]
    {
        let Ok(output) = Command::new(&promtool).args(arguments).current_dir(root()).output() else {
            assert!(std::env::var_os("CI").is_none(), "{promtool} cannot be run");
            eprintln!("NOT TESTED: {promtool} cannot be run; `make test` fetches it");
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
}

/// The page of metrics, from the table that the code carries.
fn metrics_page() -> String {
    let source = text("registry/src/integrations/prometheus.rs");
    let rows = source.lines().filter_map(|line| line.strip_prefix("#![doc = \"| `")?.strip_suffix("\"]"));
    let mut page = "# Metrics\n\n\
        A worker serves these on `/metrics` of its admin server, beside those of the Temporal SDK (`temporal_…`). Every series that\n\
        belongs to a breaker has the label `service`. Times are in seconds. [runbook.md](runbook.md) says what to do about them.\n\n\
        | metric | type | further labels | meaning |\n|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        page.push_str(&format!("| `{row}\n"));
    }
    page
}

#[test]
fn the_page_of_metrics_matches_the_code() {
    let page = metrics_page();
    assert!(page.lines().count() > 20, "the table was not found");
    if std::env::var_os("METRICS_PAGE").is_some() {
        fs::write(root().join("docs/metrics.md"), &page).expect("written");
    }
    assert!(text("docs/metrics.md") == page, "docs/metrics.md is out of date: run `make metrics`");
}

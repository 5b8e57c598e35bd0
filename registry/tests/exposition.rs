//! The metrics as Prometheus itself reads them: `promtool check metrics` on the text a scrape gets.

#![cfg(feature = "prometheus")]

use std::{
    io::Write,
    process::{Command, Stdio},
    time::Duration,
};

use circuit_registry::{BreakersConfig, CircuitRegistry, Override, Verdict, prometheus::register};
use prometheus::{Registry, TextEncoder};

/// A scrape in which every family has a series.
fn text() -> String {
    let config = BreakersConfig::from_yaml(
        "services:
           \"odd \\\"name\\\" \\\\ ü\": {}
           everything:
             fail_max: 1
             window: { calls: 10, failure_rate: 50%, slow_call: 1s, slow_rate: 50% }
             bulkhead: { max_concurrent: 3 }
             retry: { budget: 20% }",
    )
    .expect("valid configuration");
    let registry = CircuitRegistry::builder().config(config).measure_calls(true).build();
    let metrics = Registry::new();
    register(&registry, &metrics).expect("names of its own");
    for name in ["everything", "made on use"] {
        registry.breaker(name).try_acquire().expect("admitted").settle(Verdict::Failure);
    }
    registry.breaker("made on use").force_open(Override::new("alice", "why").lasting(Duration::from_secs(3600)));
    registry.apply(registry.config());
    TextEncoder::new().encode_to_string(&metrics.gather()).expect("text")
}

#[test]
fn an_override_shows_as_a_mode_and_not_as_a_probe() {
    let text = text();
    let has = |line: &str| assert!(text.lines().any(|found| found == line), "{line} is missing: {text}");
    has("circuit_breaker_mode{mode=\"force_open\",service=\"made on use\"} 1");
    has("circuit_breaker_mode{mode=\"enforce\",service=\"made on use\"} 0");
    has("circuit_breaker_seconds_until_probe{service=\"made on use\"} 0");
    has("circuit_breaker_config_last_reload_success 1");
}

#[test]
fn promtool_accepts_every_family() {
    let text = text();
    let documented = include_str!("../src/integrations/prometheus.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("#![doc = \"| `"));
    let mut families = 0;
    for name in documented.filter_map(|row| row.split('`').next()) {
        families += 1;
        // A registry without a store has nothing to say of one.
        let expected = !name.contains("_store_") && !name.contains("_fleet_");
        assert_eq!(text.contains(&format!("# TYPE {name} ")), expected, "{name} is documented");
    }
    assert!(families >= 16, "only {families} rows found");
    let promtool = std::env::var("PROMTOOL").unwrap_or_else(|_| "promtool".into());
    let child = Command::new(&promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{promtool}: {error}");
            eprintln!("NOT TESTED: {promtool} cannot be run ({error}); `make test` fetches it");
            return;
        }
    };
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("promtool reads");
    let output = child.wait_with_output().expect("promtool ends");
    let complaint = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaint.trim().is_empty(), "{complaint}\n{text}");
}

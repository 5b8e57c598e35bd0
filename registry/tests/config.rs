//! What `breakers.yaml` may say, and how it is refused: for every kind of bad input the line, the column, the key and the words. A
//! fuzzer looks further than these tables; what a running registry makes of a reload is tested elsewhere.

use std::{fs, num::NonZeroU32, path::PathBuf, time::Duration};

use circuit_registry::{
    BreakersConfig, CircuitRegistry, ConfigError, Verdict,
    policy::{LimitScope, Mode, OnOpen, Rate, Span, StatusVerdict},
};
use proptest::prelude::*;

/// Text, then where it is wrong (line, column, key), then part of the message.
type Bad = (&'static str, u64, u64, &'static str, &'static str);

fn assert_refused(table: &[Bad]) {
    for (yaml, line, column, key, message) in table {
        let error = BreakersConfig::from_yaml(yaml).expect_err(yaml);
        let place = error.place().expect("a place");
        assert_eq!((place.line, place.column, error.key()), (*line, *column, *key), "{yaml:?}: {error}");
        assert!(error.message().contains(message), "{yaml:?}: {error}");
        let shown = error.to_string();
        assert!(shown.starts_with(&format!("configuration:{line}:{column}: ")), "{shown}");
        assert!(!shown.contains('\n') && shown.len() < 1500, "{shown}");
    }
}

#[test]
fn a_fleet_is_off_or_shares_with_a_quorum_and_a_lease() {
    assert_refused(&[
        ("fleet: yes", 1, 8, "fleet", "expected one of off, share, not `yes`"),
        ("fleet: Share", 1, 8, "fleet", "not `Share`"),
        ("fleet: 2", 1, 8, "fleet", "not `2`"),
        ("fleet: [share]", 1, 8, "fleet", "a single value"),
        ("fleet:", 1, 6, "fleet", "has no value"),
        ("fleet: {}", 1, 8, "fleet", "needs `share`"),
        ("fleet: { mode: share }", 1, 10, "fleet.mode", "unknown key"),
        ("fleet: { share: yes }", 1, 17, "fleet.share", "expected a block of"),
        ("fleet: { share: [] }", 1, 17, "fleet.share", "expected a block of"),
        ("fleet:\n  share:\n    quorom: 2", 3, 5, "fleet.share.quorom", "valid keys here: quorum, lease"),
        ("fleet:\n  share:\n    quorum: 0", 3, 13, "fleet.share.quorum", "at least 1, not 0"),
        ("fleet: { share: { quorum: -1 } }", 1, 27, "fleet.share.quorum", "at least 1, not -1"),
        ("fleet: { share: { quorum: half } }", 1, 27, "fleet.share.quorum", "not `half`"),
        ("fleet: { share: { quorum: 1.5 } }", 1, 27, "fleet.share.quorum", "not `1.5`"),
        ("fleet: { share: { quorum: [2] } }", 1, 27, "fleet.share.quorum", "a single value"),
        ("fleet: { share: { lease: 10 } }", 1, 26, "fleet.share.lease", "with its unit"),
        ("fleet: { share: { lease: 0s } }", 1, 26, "fleet.share.lease", "longer than zero"),
        ("fleet: { share: { lease: 99ms } }", 1, 26, "fleet.share.lease", "must be at least 100ms"),
        ("fleet: share\nfleet: off", 2, 1, "fleet", "duplicate key; the first one is on line 1"),
        ("services: { s: { fleet: on } }", 1, 25, "services.s.fleet", "not `on`"),
        (
            "services:\n  s:\n    fleet: { share: { quorum: 2, leese: 1s } }",
            3,
            34,
            "services.s.fleet.share.leese",
            "lease",
        ),
        ("defaults: { fleet: { share: { quorum: 0 } } }", 1, 39, "defaults.fleet.share.quorum", "at least 1"),
        ("services: { s: { rate_limit: { scope: fleet } } }", 1, 30, "services.s.rate_limit", "needs `per`"),
        (
            "services: { s: { rate_limit: { per: 1s, scope: all } } }",
            1,
            48,
            "services.s.rate_limit.scope",
            "process, fleet",
        ),
    ]);
}

#[test]
fn a_number_is_a_whole_one_of_at_least_one() {
    assert_refused(&[
        ("services: { s: { fail_max: 0 } }", 1, 28, "services.s.fail_max", "must be at least 1, not 0"),
        ("services: { s: { fail_max: -1 } }", 1, 28, "services.s.fail_max", "must be at least 1, not -1"),
        ("services: { s: { fail_max: 4294967296 } }", 1, 28, "services.s.fail_max", "must be at most 4294967295"),
        (
            "services: { s: { fail_max: 99999999999999999999 } }",
            1,
            28,
            "services.s.fail_max",
            "not 99999999999999999999",
        ),
        (
            "services: { s: { fail_max: 1e9999 } }",
            1,
            28,
            "services.s.fail_max",
            "whole number of at least 1, not `1e9999`",
        ),
        ("services: { s: { fail_max: 3.5 } }", 1, 28, "services.s.fail_max", "not `3.5`"),
        ("services: { s: { fail_max: 0x10 } }", 1, 28, "services.s.fail_max", "not `0x10`"),
        ("services: { s: { fail_max: .nan } }", 1, 28, "services.s.fail_max", "not `.nan`"),
        ("services: { s: { fail_max: .inf } }", 1, 28, "services.s.fail_max", "not `.inf`"),
        ("services: { s: { fail_max: yes } }", 1, 28, "services.s.fail_max", "not `yes`"),
        ("services: { s: { fail_max: true } }", 1, 28, "services.s.fail_max", "not `true`"),
        ("services: { s: { fail_max: ٣ } }", 1, 28, "services.s.fail_max", "not `٣`"),
        ("services: { s: { fail_max: '' } }", 1, 28, "services.s.fail_max", "not ``"),
        ("services: { s: { fail_max: } }", 1, 26, "services.s.fail_max", "has no value"),
        ("services: { s: { fail_max: ~ } }", 1, 28, "services.s.fail_max", "has no value"),
        ("services: { s: { fail_max: [3] } }", 1, 28, "services.s.fail_max", "a single value"),
        ("services: { s: { fail_max: { a: 3 } } }", 1, 28, "services.s.fail_max", "a single value"),
        ("services: { s: { half_open: { permits: 0 } } }", 1, 40, "services.s.half_open.permits", "at least 1"),
        (
            "services: { s: { bulkhead: { max_concurrent: 0 } } }",
            1,
            46,
            "services.s.bulkhead.max_concurrent",
            "at least 1",
        ),
        ("services: { s: { retry: { max_attempts: 0 } } }", 1, 41, "services.s.retry.max_attempts", "at least 1"),
        ("names: { max_dynamic: 0 }", 1, 23, "names.max_dynamic", "at least 1"),
        ("defaults:\n  fail_max: 0\n", 2, 13, "defaults.fail_max", "at least 1"),
    ]);
}

#[test]
fn a_duration_has_a_unit_and_is_longer_than_nothing() {
    assert_refused(&[
        ("services: { s: { reset_timeout: 0s } }", 1, 33, "services.s.reset_timeout", "must be longer than zero"),
        ("services: { s: { reset_timeout: 0.1ns } }", 1, 33, "services.s.reset_timeout", "must be longer than zero"),
        ("services: { s: { reset_timeout: -5s } }", 1, 33, "services.s.reset_timeout", "must not be negative"),
        ("services: { s: { reset_timeout: 30 } }", 1, 33, "services.s.reset_timeout", "a duration with its unit"),
        ("services: { s: { reset_timeout: 30 parsecs } }", 1, 33, "services.s.reset_timeout", "not `30 parsecs`"),
        ("services: { s: { reset_timeout: s } }", 1, 33, "services.s.reset_timeout", "not `s`"),
        ("services: { s: { reset_timeout: nan s } }", 1, 33, "services.s.reset_timeout", "not `nan s`"),
        ("services: { s: { reset_timeout: .nan } }", 1, 33, "services.s.reset_timeout", "not `.nan`"),
        ("services: { s: { reset_timeout: -.inf } }", 1, 33, "services.s.reset_timeout", "not `-.inf`"),
        ("services: { s: { reset_timeout: 1e3s } }", 1, 33, "services.s.reset_timeout", "not `1e3s`"),
        ("services: { s: { reset_timeout: 99999999999w } }", 1, 33, "services.s.reset_timeout", "at most ten years"),
        ("services: { s: { timeout: 0ms } }", 1, 27, "services.s.timeout", "longer than zero"),
        ("services: { s: { throttle_max: 0h } }", 1, 32, "services.s.throttle_max", "longer than zero"),
        (
            "services: { s: { half_open: { max_wait: 0s } } }",
            1,
            41,
            "services.s.half_open.max_wait",
            "longer than zero",
        ),
        ("services: { s: { cache: { max_age: 0d } } }", 1, 36, "services.s.cache.max_age", "longer than zero"),
        ("services: { s: { on_open: { wait_max: 0s } } }", 1, 39, "services.s.on_open.wait_max", "longer than zero"),
        (
            "services: { s: { bulkhead: { max_concurrent: 1, max_wait: -1s } } }",
            1,
            59,
            "services.s.bulkhead.max_wait",
            "negative",
        ),
    ]);
}

#[test]
fn a_share_is_more_than_nothing_and_at_most_everything() {
    const KEY: &str = "services.s.window.failure_rate";
    assert_refused(&[
        (
            "services: { s: { window: { calls: 9, failure_rate: 0% } } }",
            1,
            52,
            KEY,
            "more than 0% and at most 100%, not 0%",
        ),
        ("services: { s: { window: { calls: 9, failure_rate: -1% } } }", 1, 52, KEY, "not -1%"),
        ("services: { s: { window: { calls: 9, failure_rate: 100.001% } } }", 1, 52, KEY, "not 100.001%"),
        ("services: { s: { window: { calls: 9, failure_rate: 1e400% } } }", 1, 52, KEY, "not 1e400%"),
        ("services: { s: { window: { calls: 9, failure_rate: NaN% } } }", 1, 52, KEY, "not NaN%"),
        ("services: { s: { window: { calls: 9, failure_rate: 0.5 } } }", 1, 52, KEY, "a percentage such as 50%"),
        (
            "services: { s: { window: { calls: 9, slow_call: 1s, slow_rate: 101% } } }",
            1,
            64,
            "services.s.window.slow_rate",
            "101%",
        ),
        ("services: { s: { half_open: { failure_rate: 200% } } }", 1, 45, "services.s.half_open.failure_rate", "200%"),
        ("services: { s: { reset_growth: { jitter: 101% } } }", 1, 42, "services.s.reset_growth.jitter", "101%"),
        ("services: { s: { retry: { budget: 101% } } }", 1, 35, "services.s.retry.budget", "101%"),
    ]);
}

/// Keys that are right one by one and make no sense together.
const SENSELESS: &[Bad] = &[
    ("services: { s: { window: { calls: 10 } } }", 1, 26, "services.s.window", "an empty window never trips"),
    ("services: { s: { window: {} } }", 1, 26, "services.s.window", "needs `calls: 100` or `time: 60s`"),
    ("services: { s: { window: } }", 1, 24, "services.s.window", "needs `calls: 100` or `time: 60s`"),
    ("services: { s: { window: { failure_rate: 50% } } }", 1, 26, "services.s.window", "needs `calls: 100` or"),
    ("services: { s: { window: { calls: 0, failure_rate: 50% } } }", 1, 35, "services.s.window.calls", "at least 1"),
    (
        "services: { s: { window: { time: 0s, failure_rate: 50% } } }",
        1,
        34,
        "services.s.window.time",
        "longer than zero",
    ),
    ("services: { s: { window: { calls: 9, time: 1s, failure_rate: 50% } } }", 1, 26, "services.s.window", "not both"),
    (
        "services: { s: { window: { calls: 1000001, failure_rate: 50% } } }",
        1,
        35,
        "services.s.window.calls",
        "at most 1000000",
    ),
    (
        "services: { s: { window: { calls: 9, minimum_calls: 10, failure_rate: 50% } } }",
        1,
        53,
        "services.s.window.minimum_calls",
        "at most `calls` (9)",
    ),
    ("services: { s: { window: { calls: 9, slow_call: 2s } } }", 1, 26, "services.s.window", "belong together"),
    ("services: { s: { window: { calls: 9, slow_rate: 50% } } }", 1, 26, "services.s.window", "belong together"),
    ("services: { s: { bulkhead: {} } }", 1, 28, "services.s.bulkhead", "needs `max_concurrent`"),
    ("services: { s: { cache: {} } }", 1, 25, "services.s.cache", "needs `max_age`"),
    ("services: { s: { on_open: sleep } }", 1, 27, "services.s.on_open", "degrade, wait, not `sleep`"),
    ("services: { s: { mode: enforced } }", 1, 24, "services.s.mode", "enforce, observe, force_open, force_closed"),
    ("services: { s: { status: { \"404\": fine } } }", 1, 35, "services.s.status.404", "success, failure, throttled"),
    ("services: { s: { status: { 600: success } } }", 1, 28, "services.s.status.600", "an HTTP status such as 404"),
    ("services: { s: { status: { 99: success } } }", 1, 28, "services.s.status.99", "an HTTP status"),
    ("services: { s: { status: { 6xx: success } } }", 1, 28, "services.s.status.6xx", "an HTTP status"),
    ("services: { s: { status: { 0404: success } } }", 1, 28, "services.s.status.0404", "an HTTP status"),
    ("services: { s: { rate_limit: 0/s } }", 1, 30, "services.s.rate_limit", "a rate such as 1/s"),
    ("services: { s: { rate_limit: 1 } }", 1, 30, "services.s.rate_limit", "a rate such as 1/s"),
    ("services: { s: { rate_limit: 1/0s } }", 1, 30, "services.s.rate_limit", "a rate such as 1/s"),
    ("services: { s: { rate_limit: -1/s } }", 1, 30, "services.s.rate_limit", "a rate such as 1/s"),
    (
        "services: { s: { rate_limit: 4294967295/ms } }",
        1,
        30,
        "services.s.rate_limit",
        "more than one call per nanosecond",
    ),
    ("services: { s: { rate_limit: { limit: 3 } } }", 1, 30, "services.s.rate_limit", "needs `per`"),
    (
        "services: { s: { reset_growth: { factor: 0.5 } } }",
        1,
        42,
        "services.s.reset_growth.factor",
        "between 1 and 1000",
    ),
    ("services: { s: { reset_growth: { factor: .nan } } }", 1, 42, "services.s.reset_growth.factor", "not `.nan`"),
    (
        "services: { s: { reset_growth: { factor: NaN } } }",
        1,
        42,
        "services.s.reset_growth.factor",
        "between 1 and 1000",
    ),
    (
        "services: { s: { retry: { base: 3s, cap: 2s } } }",
        1,
        42,
        "services.s.retry.cap",
        "must not be shorter than base",
    ),
    (
        "services: { s: { reset_timeout: 20m, reset_growth: { max: 10m } } }",
        1,
        33,
        "services.s.reset_timeout",
        "longer than reset_growth.max",
    ),
    (
        "defaults: { reset_timeout: 20m, reset_growth: { max: 10m } }\nservices: { s: {} }",
        1,
        28,
        "defaults.reset_timeout",
        "longer than reset_growth.max",
    ),
    ("services: { s: { activities: s } }", 1, 30, "services.s.activities", "a list of names"),
    ("services: { s: { activities: [''] } }", 1, 31, "services.s.activities", "must not be empty"),
    ("services:\n  a: { activities: [x] }\n  b: { activities: [x] }", 3, 6, "services.b", "already guarded by `a`"),
    ("services: { '': {} }", 1, 13, "services.", "needs a name"),
    ("services: { \"a\\nb\": {} }", 1, 13, "services.a\\nb", "control characters"),
];

#[test]
fn what_makes_no_sense_together_is_refused() {
    assert_refused(SENSELESS);
    let long = format!("services: {{ {}: {{}} }}", "x".repeat(201));
    assert!(BreakersConfig::from_yaml(&long).unwrap_err().message().contains("200 bytes"));
}

#[test]
fn an_unknown_key_is_refused_at_every_level() {
    assert_refused(&[
        ("service: {}", 1, 1, "service", "unknown key; valid keys here: defaults, services, names"),
        (
            "defaults: { failmax: 3 }",
            1,
            13,
            "defaults.failmax",
            "unknown key; valid keys here: fail_max, reset_timeout",
        ),
        ("services:\n  s:\n    fail_max: 3\n    Fail_max: 4\n", 4, 5, "services.s.Fail_max", "unknown key"),
        ("services: { s: { window: { call: 9 } } }", 1, 28, "services.s.window.call", "valid keys here: calls, time"),
        (
            "services: { s: { half_open: { permit: 9 } } }",
            1,
            31,
            "services.s.half_open.permit",
            "permits, failure_rate",
        ),
        ("services: { s: { reset_growth: { by: 2 } } }", 1, 34, "services.s.reset_growth.by", "factor, max, jitter"),
        ("services: { s: { bulkhead: { size: 9 } } }", 1, 30, "services.s.bulkhead.size", "max_concurrent, max_wait"),
        ("services: { s: { rate_limit: { every: 1s } } }", 1, 32, "services.s.rate_limit.every", "limit, per, scope"),
        ("services: { s: { retry: { attempts: 1 } } }", 1, 27, "services.s.retry.attempts", "max_attempts, base, cap"),
        ("services: { s: { on_open: { wait: 1s } } }", 1, 29, "services.s.on_open.wait", "wait_max"),
        ("services: { s: { cache: { ttl: 1s } } }", 1, 27, "services.s.cache.ttl", "max_age"),
        ("names: { max: 1 }", 1, 10, "names.max", "max_dynamic"),
    ]);
}

#[test]
fn a_duplicate_key_is_refused_at_every_level() {
    assert_refused(&[
        ("services: {}\nservices: {}", 2, 1, "services", "duplicate key; the first one is on line 1"),
        ("services:\n  s: {}\n\n  s: {}\n", 4, 3, "services.s", "the first one is on line 2"),
        ("services: { 404: {}, '404': {} }", 1, 22, "services.404", "duplicate key"),
        ("defaults: { fail_max: 3, fail_max: 3 }", 1, 26, "defaults.fail_max", "duplicate key"),
        ("services: { s: { window: { calls: 9, calls: 9 } } }", 1, 38, "services.s.window.calls", "duplicate key"),
        (
            "services: { s: { status: { 404: success, \"404\": success } } }",
            1,
            42,
            "services.s.status.404",
            "duplicate key",
        ),
    ]);
}

#[test]
fn a_value_of_the_wrong_shape_is_refused() {
    const BLOCK: &str = "expected a block of `key: value` entries";
    assert_refused(&[
        ("[]", 1, 1, "", BLOCK),
        ("3", 1, 1, "", BLOCK),
        ("services", 1, 1, "", BLOCK),
        ("services: []", 1, 11, "services", BLOCK),
        ("services: { s: 3 }", 1, 16, "services.s", BLOCK),
        ("services: { s: [] }", 1, 16, "services.s", BLOCK),
        ("defaults: x", 1, 11, "defaults", BLOCK),
        ("services: { s: { window: 100 } }", 1, 26, "services.s.window", BLOCK),
        ("services: { s: { status: [404] } }", 1, 26, "services.s.status", BLOCK),
        ("? [a, b]\n: 3\n", 1, 3, "", "a key must be a plain word"),
    ]);
}

#[test]
fn what_yaml_can_do_and_a_configuration_must_not_is_refused() {
    const ANCHORS: &str = "anchors and aliases are not accepted here";
    const MERGE: &str = "merge keys are not accepted here";
    assert_refused(&[
        ("services: { a: &x { fail_max: 3 }, b: *x }", 1, 19, "", ANCHORS),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", 1, 7, "", ANCHORS),
        ("services: { a: *nowhere }", 1, 16, "", ANCHORS),
        ("services:\n  a:\n    <<: { fail_max: 3 }", 3, 5, "services.a.<<", MERGE),
        ("services:\n  <<: { fail_max: 3 }", 2, 3, "services.<<", MERGE),
        ("<<: { services: {} }", 1, 1, "<<", MERGE),
        ("services: {}\n---\nservices: {}\n", 3, 1, "", "a second document"),
        ("services:\n\ta: {}\n", 2, 2, "", "tabs disallowed"),
        ("services: { s: { fail_max: 3 }\n", 1, 11, "", "unclosed bracket"),
        ("services: { s: {} }}", 1, 20, "", "not valid YAML"),
        ("services: \"\n", 1, 11, "", "unclosed quote"),
        ("\0", 1, 1, "", "not valid YAML"),
        ("services:\n  s: { fail_max: 3 }\n bad\n", 3, 2, "", "not valid YAML"),
    ]);
}

#[test]
fn depth_and_size_are_bounded() {
    let flow = format!("services: {}", "[".repeat(100_000));
    let block: String = (0..1000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    for deep in [flow, block] {
        let error = BreakersConfig::from_yaml(&deep).unwrap_err();
        assert_eq!(error.message(), "nested deeper than 32 levels");
    }
    let wide = format!("services: [{}]", "1,".repeat(300_000));
    assert_eq!(BreakersConfig::from_yaml(&wide).unwrap_err().message(), "has more than 200000 values");
    let long = format!("services: {{ s: {{ fail_max: {} }} }}", "9".repeat(1_000_000));
    assert!(BreakersConfig::from_yaml(&long).unwrap_err().to_string().len() < 2000);
    let large = "#".repeat(10 << 20);
    assert!(BreakersConfig::from_yaml(&large).unwrap_err().message().contains("larger than 1048576 bytes"));
}

/// A file that goes away with the test.
struct File(PathBuf);

impl File {
    fn of(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("circuit-registry-{}-{name}", std::process::id()));
        fs::write(&path, bytes).expect("a writable temporary directory");
        Self(path)
    }

    fn error(&self) -> ConfigError {
        BreakersConfig::load(&self.0).expect_err("a bad file")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_file_that_is_none_is_refused_by_its_name() {
    let large = File::of("large.yaml", &vec![b'#'; 10 << 20]).error();
    assert!(large.message().contains("larger than 1048576 bytes") && large.place().is_none(), "{large}");

    let latin1 = File::of("latin1.yaml", b"services:\n  # caf\xE9\n  s: {}\n");
    let error = latin1.error();
    let place = error.place().expect("a place");
    assert_eq!((place.line, place.column, error.message()), (2, 8, "is not UTF-8"));
    assert!(error.to_string().starts_with(&format!("{}:2:8: ", latin1.0.display())), "{error}");

    let directory = BreakersConfig::load(&std::env::temp_dir()).unwrap_err();
    assert!(directory.message().contains("is a directory"), "{directory}");
    let missing = BreakersConfig::load(&std::env::temp_dir().join("no-such/breakers.yaml")).unwrap_err();
    assert!(missing.message().contains("cannot be opened"), "{missing}");
    assert!(missing.to_string().contains("no-such/breakers.yaml: "), "{missing}");
}

#[test]
fn an_empty_file_is_a_configuration_without_services() {
    for text in [
        "",
        "  \n\n",
        "# only a comment\n",
        "---\n",
        "~",
        "{}",
        "defaults:\nservices:\nnames:\n",
        "\u{feff}",
        "---\n...\n",
    ] {
        let file = File::of("empty.yaml", text.as_bytes());
        assert_eq!(BreakersConfig::load(&file.0), Ok(BreakersConfig::default()), "{text:?}");
    }
}

#[test]
fn bom_line_ends_tabs_and_directives_do_not_matter() {
    let expected = BreakersConfig::from_yaml("services: { s: { fail_max: 3 } }").unwrap();
    for text in [
        "\u{feff}services: { s: { fail_max: 3 } }",
        "services:\r\n  s:\r\n    fail_max: 3\r\n",
        "services:\n  s:\n    fail_max:\t3\n",
        "%YAML 1.2\n---\nservices: { s: { fail_max: 3 } }\n...\n",
        "services:\n  's': { \"fail_max\": '3' }\n",
        "services:\n  s:\n    fail_max: |\n      3\n",
        "services: { s: { fail_max: !!int 3 } }",
        "{\"services\": {\"s\": {\"fail_max\": 3}}}",
    ] {
        assert_eq!(BreakersConfig::from_yaml(text).as_ref(), Ok(&expected), "{text:?}");
    }
}

#[test]
fn a_name_is_what_stands_there() {
    let names = ["0.50", "007", "0x1F", "1e3", "404", "<", "TRUE", "a b", "a:b", "null", "~", "ü"];
    let entries: Vec<_> =
        names.iter().map(|name| format!("  {name}: {{ activities: [{name}-x, 0{name}] }}\n")).collect();
    let config = BreakersConfig::from_yaml(&format!("services:\n{}", entries.concat())).unwrap();
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    assert_eq!(config.service_names().collect::<Vec<_>>(), sorted);
    assert_eq!(config.service_for_activity("0007"), Some("007"));
    assert_eq!(config.service_for_activity("7"), None);
}

const EVERY_KEY: &str = "
defaults:
  fail_max: 5                     # consecutive failures
  reset_timeout: 30s
services:
  tavily: { fail_max: 3, reset_timeout: 60s }
  credit_bureau:
    window: { calls: 100, minimum_calls: 20, failure_rate: 50%, slow_call: 2s, slow_rate: 60% }
    half_open: { permits: 10, failure_rate: 50%, max_wait: 60s }
    timeout: 2500ms
    bulkhead: { max_concurrent: 40 }
  everything:
    fail_max: 7
    window: { time: 60s, failure_rate: 12.5% }
    reset_growth: { factor: 2.5, max: 10m, jitter: 20% }
    rate_limit: 1/s
    retry: { max_attempts: 3, base: 100ms, cap: 2s, budget: 20% }
    on_open: { wait_max: 10m }
    mode: observe
    throttle_max: 1h
    status: { 404: success, \"4xx\": neutral, '500': throttled, 5xx: failure }
    cache: { max_age: 30d }
    activities: [lookup, search]
    bulkhead: { max_concurrent: 2, max_wait: 0s }
  fleet_wide: { rate_limit: { limit: 500, per: 1min, scope: fleet }, on_open: wait }
";

#[test]
fn every_key_is_read() {
    let config = BreakersConfig::from_yaml(EVERY_KEY).unwrap();
    let n = |n| NonZeroU32::new(n).unwrap();
    let percent = |n| Rate::percent(n).unwrap();
    let secs = Duration::from_secs;

    let tavily = config.policy("tavily");
    assert_eq!((tavily.trip.fail_max, tavily.open.reset_timeout), (Some(n(3)), secs(60)));
    assert_eq!(config.policy("unheard of").trip.fail_max, Some(n(5)));

    let bureau = config.policy("credit_bureau");
    let window = bureau.trip.window.as_ref().unwrap();
    assert_eq!((bureau.trip.fail_max, bureau.open.reset_timeout), (None, secs(30)), "the window replaces the count");
    assert_eq!((window.span, window.minimum_calls), (Span::Calls(n(100)), 20));
    assert_eq!(window.failure_rate, Some(percent(50)));
    assert_eq!(window.slow.map(|s| (s.call, s.rate)), Some((secs(2), percent(60))));
    assert_eq!(
        (bureau.half_open.permits, bureau.half_open.failure_rate, bureau.half_open.max_wait),
        (n(10), Some(percent(50)), secs(60))
    );
    assert_eq!(bureau.timeout, Some(Duration::from_millis(2500)));
    assert_eq!(bureau.bulkhead.map(|b| (b.max_concurrent, b.max_wait)), Some((n(40), secs(0))));

    let all = config.policy("everything");
    assert_eq!(all.trip.fail_max, Some(n(7)));
    assert_eq!(all.trip.window.as_ref().map(|w| (w.span, w.minimum_calls)), Some((Span::Time(secs(60)), 10)));
    assert_eq!(all.trip.window.as_ref().and_then(|w| w.failure_rate), Rate::from_ppm(125_000));
    assert_eq!((all.open.factor_milli, all.open.max, all.open.jitter), (2500, secs(600), percent(20)));
    assert_eq!(all.rate_limit.map(|r| (r.limit, r.per, r.scope)), Some((n(1), secs(1), LimitScope::Process)));
    let retry = all.retry.unwrap();
    assert_eq!((retry.max_attempts, retry.base, retry.cap), (n(3), Duration::from_millis(100), secs(2)));
    assert_eq!(retry.budget, Some(percent(20)));
    assert_eq!((all.on_open, all.mode, all.throttle_max), (OnOpen::WaitMax(secs(600)), Mode::Observe, secs(3600)));
    assert_eq!(all.status.get(404), Some(StatusVerdict::Success));
    assert_eq!(all.status.get(403), Some(StatusVerdict::Neutral));
    assert_eq!(all.status_verdict(500, None), Verdict::Throttled { retry_after: None });
    assert_eq!((all.status.get(502), all.status.get(200)), (Some(StatusVerdict::Failure), None));
    assert_eq!(all.cache_max_age, Some(secs(30 * 86_400)));
    assert_eq!(config.service_for_activity("search"), Some("everything"));

    let fleet = config.policy("fleet_wide");
    assert_eq!(fleet.rate_limit.map(|r| (r.limit, r.per, r.scope)), Some((n(500), secs(60), LimitScope::Fleet)));
    assert_eq!(fleet.on_open, OnOpen::Wait);
}

/// A fair part of the language, to be damaged.
const SEEDS: [&str; 3] = [
    "defaults: { fail_max: 5, reset_timeout: 30s }\nservices:\n  tavily: { fail_max: 3, reset_timeout: 60s }\n",
    "services:\n  s:\n    window: { calls: 100, minimum_calls: 20, failure_rate: 50%, slow_call: 2s, slow_rate: 60% }\n    half_open: { permits: 10, max_wait: 60s }\n    status: { \"404\": success, 4xx: neutral }\n",
    "services: { a: { rate_limit: 500/min, reset_growth: { factor: 2, max: 10m, jitter: 20% }, activities: [x, 'y'] } }\nnames: { max_dynamic: 9 }\n",
];

#[derive(Debug, Clone)]
enum Damage {
    Set(usize, u8),
    Insert(usize, Vec<u8>),
    Cut(usize, usize),
    Repeat(usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let telling = proptest::sample::select(b" \n\t:,-{}[]'\"#&*!|>%@`?~<0.9e\0\r\xFF\xC3xs".to_vec());
    prop_oneof![
        (any::<usize>(), telling.clone()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (any::<usize>(), proptest::collection::vec(telling, 1..6)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (any::<usize>(), 1..40_usize).prop_map(|(at, length)| Damage::Cut(at, length)),
        (any::<usize>(), 1..40_usize).prop_map(|(at, length)| Damage::Repeat(at, length)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Whatever the bytes: a configuration that a registry can go by, or an error with a place within the file.
    #[test]
    fn damaged_files_are_read_or_refused(seed in 0..SEEDS.len(), damages in proptest::collection::vec(damage(), 1..8)) {
        let mut bytes = SEEDS[seed].as_bytes().to_vec();
        for damage in damages {
            let within = |at: usize| at % bytes.len().max(1);
            match damage {
                Damage::Set(at, byte) if !bytes.is_empty() => { let at = within(at); bytes[at] = byte; }
                Damage::Insert(at, new) => { let at = within(at).min(bytes.len()); bytes.splice(at..at, new); }
                Damage::Cut(at, length) if !bytes.is_empty() => {
                    let at = within(at);
                    bytes.drain(at..(at + length).min(bytes.len()));
                }
                Damage::Repeat(at, length) if !bytes.is_empty() => {
                    let at = within(at);
                    let part = bytes[at..(at + length).min(bytes.len())].to_vec();
                    bytes.splice(at..at, part);
                }
                Damage::Set(..) | Damage::Cut(..) | Damage::Repeat(..) => {}
            }
        }
        let lines = bytes.iter().filter(|b| matches!(b, b'\n' | b'\r')).count() as u64 + 1;
        let outcome = match std::str::from_utf8(&bytes) {
            Ok(text) => BreakersConfig::from_yaml(text),
            Err(_) => BreakersConfig::load(&File::of("damaged.yaml", &bytes).0),
        };
        match outcome {
            Ok(config) => {
                let registry = CircuitRegistry::builder().config(config.clone()).log(false).build();
                for service in config.service_names().chain(["made:on:demand"]) {
                    drop(registry.breaker(service).try_acquire());
                }
                prop_assert!(registry.apply(config).is_empty());
            }
            Err(error) => {
                let place = error.place().expect("a place");
                prop_assert!((1..=lines).contains(&place.line) && place.column >= 1, "{}: not within {} lines", error, lines);
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}

//! `osint worker --print-config`: every setting, where it comes from, and no secret; and the errors for bad values.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::fixture::{osint, printed, variables};

const SECRETS: [(&str, &str); 6] = [
    ("OSINT_STORE", "redis://jane:s3cret-store@redis.internal/2?prefix=kyb"),
    ("TEMPORAL_API_KEY", "s3cret-api-key"),
    ("TEMPORAL_GRPC_META_AUTHORIZATION", "s3cret-header"),
    ("TAVILY_API_KEY", "s3cret-tavily"),
    ("TAVILY_BASE_URL", "https://jane:s3cret-user@proxy.internal/s3cret-path"),
    ("TEMPORAL_ADDRESS", "https://jane:s3cret-address@temporal.internal:7233"),
];

#[tokio::test]
async fn settings_are_printed_with_their_origin_and_no_secrets() {
    let key = BASE64_STANDARD.encode(*b"s3cret-key s3cret-key s3cret-key");
    let mut given = variables(&SECRETS);
    given.extend(variables(&[("OSINT_CODEC_KEY", &format!("2026-01:{key}")), ("OSINT_LOCAL_SLOTS", "17")]));
    let line = ["worker", "--print-config", "--activity-slots", "9", "--deployment", "kyb", "--build-id", "b7"];

    let text = osint(&given).args(line).output().await.unwrap();
    assert!(text.status.success(), "{}", printed(&text));
    let json = osint(&given).args(line).arg("--json").output().await.unwrap();
    for shown in [&text, &json] {
        let shown = printed(shown);
        assert!(!shown.contains("s3cret") && !shown.contains(&key) && !shown.contains("jane"), "{shown}");
    }

    let page: Value = serde_json::from_slice(&json.stdout).expect("one document");
    let row = |part: &str, name: &str| {
        let rows = page[part].as_array().expect("a list");
        let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} is missing: {rows:?}"));
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        (text("value"), text("from"))
    };
    let is = |value: &str, from: &str| (value.to_owned(), from.to_owned());
    assert_eq!(row("settings", "activity_slots"), is("9", "--activity-slots"));
    assert_eq!(row("settings", "local_slots"), is("17", "OSINT_LOCAL_SLOTS"));
    assert_eq!(row("settings", "grace"), is("10", "default"));
    assert_eq!(row("settings", "activities_per_second"), is("", "not set"));
    assert_eq!(row("settings", "store"), is("redis://***@redis.internal/2?prefix=kyb", "OSINT_STORE"));
    assert_eq!(row("temporal", "address"), is("https://temporal.internal:7233/", "TEMPORAL_ADDRESS"));
    assert_eq!(row("temporal", "api_key").0, "set");
    assert_eq!(row("temporal", "headers").0, "authorization");
    assert_eq!(row("codec", "key_ids"), is("2026-01", "OSINT_CODEC_KEY"));
    for name in ["task_queue", "admin", "workflow_slots", "cached_workflows", "deployment", "build_id", "versioning"] {
        row("settings", name);
    }
}

#[tokio::test]
async fn certificates_come_from_temporals_own_variables() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "not looked into before it connects").unwrap();
        path.display().to_string()
    };
    let given = variables(&[
        ("TEMPORAL_TLS_CLIENT_CERT_PATH", &file("cert.pem")),
        ("TEMPORAL_TLS_CLIENT_KEY_PATH", &file("key.pem")),
        ("TEMPORAL_TLS_SERVER_CA_CERT_PATH", &file("ca.pem")),
        ("TEMPORAL_TLS_SERVER_NAME", "temporal.internal"),
    ]);
    let output = osint(&given).args(["worker", "--print-config", "--json"]).output().await.unwrap();
    let page: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed(&output)));
    let rows = page["temporal"].as_array().expect("a list");
    let value = |name: &str| rows.iter().find(|row| row["name"] == name).expect("a row")["value"].clone();
    assert_eq!(
        (value("tls"), value("client_certificate"), value("api_key")),
        ("on".into(), "set".into(), "not set".into())
    );

    let half = variables(&[("TEMPORAL_TLS_CLIENT_CERT_PATH", &file("cert.pem"))]);
    let output = osint(&half).args(["worker", "--print-config"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(printed(&output).contains("client key"), "{}", printed(&output));
}

#[tokio::test]
async fn a_bad_value_is_named_and_the_users_mistake() {
    for (flags, pairs, named) in [
        (vec!["--activity-slots", "none"], vec![], "--activity-slots"),
        (vec![], vec![("OSINT_ACTIVITY_SLOTS", "0")], "OSINT_ACTIVITY_SLOTS"),
        (vec![], vec![("OSINT_GRACE", "soon")], "OSINT_GRACE"),
        (vec![], vec![("OSINT_ACTIVITIES_PER_SECOND", "-3")], "OSINT_ACTIVITIES_PER_SECOND"),
        (vec![], vec![("OSINT_ADMIN", "localhost")], "OSINT_ADMIN"),
        (vec!["--deployment", "kyb"], vec![], "--build-id"),
        (vec!["--workflow-pollers", "1"], vec![], "--workflow-pollers"),
        (vec![], vec![("OSINT_STORE", "mongodb://s3cret@x")], "OSINT_STORE"),
        (vec![], vec![("OSINT_CODEC_KEY", "s3cret")], "OSINT_CODEC_KEY"),
        (vec![], vec![("OSINT_CODEC_KEY_FILE", "/nowhere")], "OSINT_CODEC_KEY_FILE"),
        (vec![], vec![("TAVILY_BASE_URL", "s3cret")], "TAVILY_BASE_URL"),
        (vec!["--address", "s3cret:port"], vec![], "--address"),
        (vec!["--json"], vec![], "--print-config"),
    ] {
        let line = ["worker"].into_iter().chain((named != "--print-config").then_some("--print-config"));
        let output = osint(&variables(&pairs)).args(line).args(flags).output().await.unwrap();
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{named}: {text}");
        assert!(text.contains(named), "{named} is not named: {text}");
        assert!(!text.contains("s3cret") || named == "--address", "{named}: {text}");
    }
}

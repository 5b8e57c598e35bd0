//! `rediss://`, with a certificate that only this test trusts: the client is a child process, whose environment names it.

use circuit_registry_testing::redis_server::{Server, free_port};
use std::{env, fs, process::Command};

use circuit_registry::State;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use crate::Process;

const STORE: &str = "BREAKER_TEST_TLS_STORE";
const YAML: &str = "fleet: share\nservices: { s: { fail_max: 1, reset_timeout: 60s } }";

/// Does nothing unless it is a child's only test.
#[tokio::test]
async fn the_child() {
    let Ok(store) = env::var(STORE) else { return };
    let process = Process::start(&store, YAML).await;
    process.fail(1).await;
    process.breaker().stored().await.expect("stored");
    let other = Process::start(&store, YAML).await;
    assert_eq!(other.state(), State::Open);
    println!("shared over TLS");
}

#[tokio::test]
async fn breakers_are_shared_over_tls() {
    let folder = TempDir::new().expect("a temporary folder");
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    fs::write(&certificate, cert.pem()).expect("written");
    fs::write(&key, signing_key.serialize_pem()).expect("written");
    let port = free_port().to_string();
    let files = [certificate.display().to_string(), key.display().to_string()];
    let arguments =
        ["--tls-port", &port, "--tls-auth-clients", "no", "--tls-cert-file", &files[0], "--tls-key-file", &files[1]];
    let _server = Server::with(&arguments).await;
    let mut child = Command::new(env::current_exe().expect("this program has a path"));
    child.args(["--exact", "tls::the_child", "--nocapture"]);
    child.env("SSL_CERT_FILE", &certificate).env(STORE, format!("rediss://localhost:{port}"));
    let output = tokio::task::spawn_blocking(move || child.output()).await.expect("joined").expect("it runs");
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output_text.contains("shared over TLS"), "{output_text}");
}

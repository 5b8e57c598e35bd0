//! Statuses, `Retry-After` and redirects of real answers over HTTP.

use std::time::Duration;

use circuit_registry::{BreakersConfig, CallError, CircuitRegistry, Classify, State, Verdict};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// A server that gives every request this answer. Returns its address.
async fn server(head: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}/", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = socket.read(&mut request).await;
            let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    address
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().build().expect("a client")
}

fn registry(policy: &str) -> CircuitRegistry {
    let yaml = format!("services: {{ s: {{ fail_max: 3, reset_timeout: 60s, {policy} }} }}");
    CircuitRegistry::new(BreakersConfig::from_yaml(&yaml).expect("valid"))
}

/// Sends three requests, and returns the state of the breaker and the time until its probe.
async fn three(registry: &CircuitRegistry, address: &str) -> (State, Option<Duration>) {
    let client = client();
    for _ in 0..3 {
        if let Err(CallError::Upstream(error)) = registry.send("s", client.get(address)).await {
            panic!("a status is no error: {error}");
        }
    }
    let view = registry.breaker("s").view();
    (view.state, view.retry_in)
}

#[tokio::test]
async fn a_status_of_5xx_is_a_failure_and_the_answer_comes_back() {
    let address = server("503 Service Unavailable").await;
    let registry = registry("");
    let answer = registry.send("s", client().get(&address)).await.expect("an answer");
    assert_eq!(answer.status(), 503);
    assert_eq!(three(&registry, &address).await.0, State::Open);
}

#[tokio::test]
async fn the_policys_statuses_outrank_the_table() {
    let down = server("503 Service Unavailable").await;
    assert_eq!(three(&registry("status: { '503': success }"), &down).await.0, State::Closed);
    let missing = server("404 Not Found").await;
    assert_eq!(three(&registry(""), &missing).await.0, State::Closed);
    assert_eq!(three(&registry("status: { '404': failure }"), &missing).await.0, State::Open);
}

#[tokio::test]
async fn retry_after_is_kept() {
    for head in ["503 Service Unavailable\r\nretry-after: 600", "429 Too Many Requests\r\nretry-after: 600"] {
        let (state, retry_in) = three(&registry(""), &server(head).await).await;
        assert_eq!(state, State::Open, "{head}");
        assert!(retry_in.is_some_and(|time| time > Duration::from_secs(590)), "{head}: {retry_in:?}");
    }
}

#[tokio::test]
async fn a_redirect_loop_is_neutral() {
    let address = server("302 Found\r\nlocation: /").await;
    let registry = registry("");
    for _ in 0..5 {
        let error = registry.send("s", client().get(&address)).await.expect_err("too many");
        let CallError::Upstream(error) = error else { panic!("{error}") };
        assert!(error.is_redirect());
        assert_eq!(error.verdict(), Verdict::Neutral);
    }
    assert_eq!(registry.breaker("s").view().calls.neutral, 5);
}

#[tokio::test]
async fn no_connection_is_a_failure() {
    let registry = registry("");
    for _ in 0..3 {
        registry.send("s", client().get("http://127.0.0.1:1/")).await.expect_err("no server");
    }
    assert_eq!(registry.breaker("s").view().state, State::Open);
}

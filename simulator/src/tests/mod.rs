//! The simulator over real sockets. What matters is what a client's kernel and HTTP stack see, so nothing is mocked here.
//! How the clients read these answers is tested in `osint-activities`.

use std::error::Error;
use std::io;
use std::time::Duration;

use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

use super::{FaultError, SetFaultError, Simulator};

mod faults;
mod rows;
mod upstreams;

async fn start() -> Simulator {
    Simulator::start("127.0.0.1:0".parse().unwrap()).await.unwrap()
}

/// A client that adds nothing: no redirects, no proxy, and no certificates, which take long to load.
fn client() -> Client {
    let agent = "simulator-tests/1.0 (tests@example.org)";
    let plain = Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().tls_certs_only([]);
    plain.user_agent(agent).build().unwrap()
}

async fn fetch(simulator: &Simulator, source: &str, path: &str) -> Response {
    let url = format!("{}{path}", simulator.base_url(source).unwrap());
    client().get(url).send().await.unwrap()
}

async fn get(simulator: &Simulator, source: &str, path: &str) -> (u16, Value) {
    body(fetch(simulator, source, path).await).await
}

/// Sends JSON with an authorization header.
async fn post(simulator: &Simulator, source: &str, path: &str, authorization: &str, request: Value) -> (u16, Value) {
    let url = format!("{}{path}", simulator.base_url(source).unwrap());
    let request = client().post(url).header("authorization", authorization).json(&request);
    body(request.send().await.unwrap()).await
}

async fn body(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// The system's error at the bottom of a client's error.
fn kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    let mut source: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        source = error.source();
    }
    None
}

#[tokio::test]
async fn every_fixture_is_served_by_an_upstream() {
    let mut files = Vec::new();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let served: Vec<_> = crate::upstreams::UPSTREAMS.iter().flat_map(|row| row.fixtures).map(|f| f.path).collect();
    let shared = |file: &&String| file.starts_with("html/") || *file == "bomb.gz";
    let stray: Vec<_> = files.iter().filter(|file| !shared(file) && !served.contains(&file.as_str())).collect();
    assert!(stray.is_empty(), "no upstream serves {stray:?}");
    for fixture in crate::upstreams::UPSTREAMS.iter().flat_map(|row| row.fixtures) {
        // Below `files/` are downloads, some of them one document a line.
        if fixture.path.ends_with(".json") && !fixture.path.contains("/files/") {
            let parsed = serde_json::from_slice::<Value>(fixture.bytes);
            assert!(parsed.is_ok(), "{}: {:?}", fixture.path, parsed.err());
        }
    }
}

#[tokio::test]
async fn the_environment_names_every_upstream_once() {
    let simulator = start().await;
    let env = simulator.env();
    let mut names: Vec<_> = env.iter().map(|(name, _)| name).collect();
    names.dedup();
    assert_eq!(names.len(), simulator.sources().count());
    assert!(env.contains(&("GLEIF_BASE_URL".to_owned(), simulator.base_url("gleif").unwrap())));
    assert!(env.iter().all(|(_, url)| url.starts_with("http://127.0.0.1:") && !url.ends_with('/')));
    simulator.shutdown().await;
}

#[tokio::test]
async fn shutting_down_frees_every_port() {
    let simulator = start().await;
    let addresses: Vec<_> = simulator.env().into_iter().map(|(_, url)| url).collect();
    let control = simulator.addr();
    // An open, idle connection must not keep a port alive.
    let client = client();
    client.get(format!("{}/lei-records", addresses[0])).send().await.unwrap().bytes().await.unwrap();
    simulator.shutdown().await;
    for url in addresses {
        let address = url.trim_start_matches("http://").split('/').next().unwrap().to_owned();
        tokio::net::TcpListener::bind(address).await.unwrap();
    }
    tokio::net::TcpListener::bind(control).await.unwrap();
}

#[tokio::test]
async fn the_error_of_a_taken_port_names_it() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let error = Simulator::start(taken.local_addr().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("the control API"), "{error}");
}

#[tokio::test]
async fn the_control_api_sets_faults_and_counts_calls() {
    let simulator = start().await;
    let (control, client) = (format!("http://{}/_control", simulator.addr()), client());
    let put =
        |upstream: &str, body: &str| client.put(format!("{control}/faults/{upstream}")).body(body.to_owned()).send();

    for body in ["503", "\"503\"", "{\"fault\": \"503\"}"] {
        assert_eq!(put("gleif", body).await.unwrap().status(), StatusCode::NO_CONTENT, "{body}");
        assert_eq!(get(&simulator, "gleif", "/lei-records").await.0, 503, "{body}");
        client.delete(format!("{control}/faults/gleif")).send().await.unwrap();
    }
    assert_eq!(get(&simulator, "gleif", "/lei-records").await.0, 200);
    let (_, calls) = body(client.get(format!("{control}/calls")).send().await.unwrap()).await;
    assert_eq!(calls["gleif"]["total"], 4);
    assert_eq!(calls["gleif"]["operations"], json!({"search": 4}));
    assert_eq!(calls["gleif"]["statuses"], json!({"200": 1, "503": 3}));
    assert_eq!(calls["no_brreg"]["total"], 0);

    let (status, error) = body(put("glief", "down").await.unwrap()).await;
    assert_eq!(status, 404);
    assert!(error["error"].as_str().unwrap().contains("gleif, "), "{error}");
    let (status, error) = body(put("gleif", "melted").await.unwrap()).await;
    assert_eq!(status, 400);
    assert!(error["error"].as_str().unwrap().contains("503_retry_after"), "{error}");

    put("no_brreg", "slow:5ms").await.unwrap();
    let (_, faults) = body(client.get(format!("{control}/faults")).send().await.unwrap()).await;
    assert_eq!(faults, json!({"no_brreg": "slow:5ms"}));
    let (_, overview) = body(client.get(&control).send().await.unwrap()).await;
    let row = overview["upstreams"].as_array().unwrap().iter().find(|row| row["name"] == "no_brreg").unwrap();
    assert_eq!((&row["env"], &row["fault"]), (&json!("NO_BRREG_BASE_URL"), &json!("slow:5ms")));
    assert!(row["faults"].get("gone").is_some() && row["faults"].get("reset").is_some());

    client.delete(format!("{control}/faults")).send().await.unwrap();
    client.delete(format!("{control}/calls")).send().await.unwrap();
    assert_eq!(simulator.calls("gleif").unwrap().total, 0);
    assert_eq!(simulator.fault("no_brreg").unwrap(), None);
    simulator.shutdown().await;
}

#[tokio::test]
async fn an_unknown_name_lists_the_valid_ones() {
    let simulator = start().await;
    let error = simulator.set_fault("nobody", "down").await.unwrap_err();
    assert!(matches!(error, SetFaultError::Fault(FaultError::UnknownUpstream { .. })), "{error}");
    assert!(simulator.calls("nobody").unwrap_err().to_string().contains("no_brreg"));
    simulator.shutdown().await;
}

/// The timeout for a call that must get no answer; any answer would come within it.
const PATIENCE: Duration = Duration::from_millis(400);

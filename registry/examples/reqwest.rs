//! HTTP through a breaker: statuses judged by the policy, Retry-After respected.
//!
//! `cargo run -p circuit-registry --features reqwest --example reqwest -- http://example.org`. Over `https`, a program adds a TLS
//! feature of reqwest's, such as `rustls`.

use circuit_registry::{BreakersConfig, CircuitRegistry};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: reqwest URL")?;
    let config =
        BreakersConfig::from_yaml(r#"services: { site: { fail_max: 3, timeout: 5s, status: { "404": failure } } }"#)?;
    let registry = CircuitRegistry::new(config);
    let client = reqwest::Client::builder().user_agent("circuit-registry example").build()?;
    for _ in 0..4 {
        match registry.send("site", client.get(&url)).await {
            Ok(response) => println!("{}", response.status()),
            Err(error) => println!("{error}"),
        }
    }
    println!("{:?}", registry.breaker("site"));
    Ok(())
}

//! HTTP through a breaker: statuses judged by the policy, Retry-After respected.
//!
//! `cargo run -p circuit-registry --features reqwest --example reqwest -- https://example.org`

use circuit_registry::{BreakersConfig, CircuitRegistry, SystemWallClock, Verdict, WallClock, http::parse_retry_after};
use reqwest::{Response, header::RETRY_AFTER};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: reqwest URL")?;
    let config =
        BreakersConfig::from_yaml(r#"services: { site: { fail_max: 3, timeout: 5s, status: { "404": success } } }"#)?;
    let breaker = CircuitRegistry::new(config).breaker("site");
    let policy = breaker.policy();
    let judge = |result: &Result<Response, reqwest::Error>| match result {
        Ok(response) => {
            let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
            let wait = header.and_then(|value| parse_retry_after(value, SystemWallClock.now()));
            policy.status_verdict(response.status().as_u16(), wait)
        }
        Err(error) if error.is_builder() => Verdict::Neutral, // our own mistake
        Err(_) => Verdict::Failure,
    };
    let client = reqwest::Client::builder().user_agent("circuit-registry example").build()?;
    for _ in 0..4 {
        match breaker.call_with(client.get(&url).send(), judge).await {
            Ok(response) => println!("{}", response.status()),
            Err(error) => println!("{error}"),
        }
    }
    println!("{breaker:?}");
    Ok(())
}

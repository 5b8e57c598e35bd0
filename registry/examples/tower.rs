//! A breaker in a tower stack.
//!
//! `cargo run -p circuit-registry --features tower --example tower`

use std::io;

use circuit_registry::{BreakersConfig, CircuitRegistry, tower::BreakerLayer};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = CircuitRegistry::new(BreakersConfig::from_yaml("services: { register: { fail_max: 2 } }")?);
    let inner = service_fn(|name: &'static str| async move {
        if name.is_empty() { Err(io::Error::other("the register fell over")) } else { Ok(format!("{name}: found")) }
    });
    let layer = BreakerLayer::new(registry.breaker("register"));
    let mut service = ServiceBuilder::new().layer(layer).service(inner);
    for name in ["Equinor ASA", "", "", "Equinor ASA"] {
        match service.ready().await?.call(name).await {
            Ok(answer) => println!("{answer}"),
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}

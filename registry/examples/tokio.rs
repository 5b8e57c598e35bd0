//! A service dies and comes back: what its callers see.
//!
//! `cargo run -p circuit-registry --example tokio`

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use circuit_registry::{BreakersConfig, CallError, CircuitRegistry};

static UP: AtomicBool = AtomicBool::new(true);

/// Stands for whatever is asked over a network.
async fn ask() -> Result<&'static str, io::Error> {
    if UP.load(Ordering::Relaxed) { Ok("Equinor ASA") } else { Err(io::Error::from(io::ErrorKind::ConnectionRefused)) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = BreakersConfig::from_yaml("services: { register: { fail_max: 3, reset_timeout: 500ms } }")?;
    let registry = CircuitRegistry::new(config);
    for (call, up) in [true, false, false, false, false, true, true, true].into_iter().enumerate() {
        UP.store(up, Ordering::Relaxed);
        let heard = match registry.call("register", ask()).await {
            Ok(answer) => format!("answer: {answer}"),
            Err(CallError::Rejected(rejection)) => format!("{rejection} ({:?} to go)", rejection.retry_in),
            Err(CallError::TimedOut { after, .. }) => format!("no answer within {after:?}"),
            Err(CallError::Upstream(error)) => format!("failed: {error}"),
        };
        println!("call {call}, service {}: {heard}", if up { "up" } else { "down" });
        if call == 5 {
            tokio::time::sleep(Duration::from_millis(500)).await; // until the probe is due
        }
    }
    println!("{:?}", registry.breaker("register"));
    Ok(())
}

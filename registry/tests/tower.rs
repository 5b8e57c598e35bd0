//! The tower layer, as a stack uses it.

#![cfg(feature = "tower")]

use std::{convert::Infallible, io};

use circuit_registry::{
    BreakersConfig, CallError, CircuitRegistry, RejectReason, Rejection, State, Verdict, tower::BreakerLayer,
};
use tower::{Layer, Service, ServiceExt, service_fn};

fn registry() -> CircuitRegistry {
    CircuitRegistry::new(BreakersConfig::from_yaml("services: { s: { fail_max: 2 } }").expect("valid"))
}

#[tokio::test]
async fn errors_classify_themselves() {
    let registry = registry();
    let inner = service_fn(|up: bool| async move { if up { Ok("answer") } else { Err(io::Error::other("down")) } });
    let mut service = BreakerLayer::new(registry.breaker("s")).layer(inner);
    assert_eq!(service.ready().await.unwrap().call(true).await.unwrap(), "answer");
    for _ in 0..2 {
        let result = service.ready().await.unwrap().call(false).await;
        assert!(matches!(result, Err(CallError::Upstream(_))));
    }
    let result = service.ready().await.expect("ready, to say no").call(true).await;
    assert!(matches!(result, Err(CallError::Rejected(Rejection { reason: RejectReason::Open, .. }))));
}

#[tokio::test]
async fn answers_can_be_judged() {
    let registry = registry();
    let inner = service_fn(|status: u16| async move { Ok::<_, Infallible>(status) });
    let by_status = |result: &Result<u16, Infallible>| match result {
        Ok(500..) => Verdict::Failure,
        _ => Verdict::Success,
    };
    let mut service = BreakerLayer::judged_by(registry.breaker("s"), by_status).layer(inner);
    for status in [503, 200, 503, 503] {
        assert_eq!(registry.breaker("s").view().state, State::Closed);
        assert_eq!(service.ready().await.unwrap().call(status).await.unwrap(), status);
    }
    assert_eq!(registry.breaker("s").view().state, State::Open);
}

//! The tower layer, as a stack uses it.

#![cfg(feature = "tower")]

use std::{
    convert::Infallible,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use circuit_registry::{
    BreakersConfig, CallError, CircuitRegistry, RejectReason, Rejection, State, Verdict, tower::BreakerLayer,
};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, buffer::BufferLayer, service_fn};

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

/// Requests that a service got, counted in its `call` and not in its future.
fn counting(
    sent: &Arc<AtomicUsize>,
) -> impl Service<(), Response = (), Error = io::Error, Future: Send> + Clone + Send + 'static {
    let sent = sent.clone();
    service_fn(move |()| {
        sent.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Err(io::Error::other("down")))
    })
}

#[tokio::test]
async fn a_rejected_request_never_reaches_the_inner_call() {
    let (registry, sent) = (registry(), Arc::new(AtomicUsize::new(0)));
    let layer = BreakerLayer::new(registry.breaker("s"));
    let mut service = ServiceBuilder::new().layer(layer).service(counting(&sent));
    for _ in 0..50 {
        let _ = service.ready().await.expect("ready").call(()).await;
    }
    assert_eq!(sent.load(Ordering::Relaxed), 2, "two failures open it");
}

#[tokio::test]
async fn a_rejected_request_is_not_sent_through_a_buffer() {
    let (registry, sent) = (registry(), Arc::new(AtomicUsize::new(0)));
    let layer = BreakerLayer::judged_by(registry.breaker("s"), |result: &Result<(), tower::BoxError>| match result {
        Ok(()) => Verdict::Success,
        Err(_) => Verdict::Failure,
    });
    let mut service = ServiceBuilder::new().layer(layer).layer(BufferLayer::new(8)).service(counting(&sent));
    for _ in 0..50 {
        let _ = service.ready().await.expect("ready").call(()).await;
    }
    assert_eq!(sent.load(Ordering::Relaxed), 2);
}

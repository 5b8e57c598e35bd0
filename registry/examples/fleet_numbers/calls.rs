//! What a call costs while its store is in trouble, beside what it costs without one.

use circuit_registry_testing::{
    proxy::{Network, Proxy},
    redis_server::Server,
};
use std::{io, time::Duration};

use circuit_registry::{Breaker, BreakersConfig, CircuitRegistry};
use tokio::time::Instant;

use crate::{Report, registry};

/// Calls of one kind in one round.
const CALLS: usize = 100_000;
const ROUNDS: usize = 31;

/// Two services: one that is well, and one that is open all the time.
const YAML: &str = "fleet: share\nservices: { well: {}, open: { fail_max: 1, reset_timeout: 1h } }";

pub(crate) async fn measure(report: &mut Report) {
    let plain = CircuitRegistry::builder().config(BreakersConfig::from_yaml(YAML).expect("valid")).log(false).build();
    sicken(&plain).await;
    for trouble in ["answering", "frozen", "killed", "answering after 5 s"] {
        let mut server = Server::start().await;
        let proxy = Proxy::to(server.port).await;
        let stored = registry(CircuitRegistry::builder(), &proxy.address(), YAML);
        let sync_task = tokio::spawn(stored.restore().await.run(std::future::pending()));
        sicken(&stored).await;
        stored.breaker("open").stored().await.expect("stored");
        match trouble {
            "frozen" => server.signal("-STOP"),
            "killed" => server.kill(),
            "answering after 5 s" => proxy.set(Network::Slow(Duration::from_secs(5))),
            _ => {}
        }
        for service in ["well", "open"] {
            let (without, with) = (plain.breaker(service), stored.breaker(service));
            let (mut ratios, mut nanos) = (Vec::new(), Vec::new());
            let mut refused = 0;
            for _ in 0..ROUNDS {
                let (base, _) = round(&without).await;
                let (beside, wrong) = round(&with).await;
                refused += wrong;
                ratios.push(beside as f64 / base as f64);
                nanos.push(beside);
            }
            ratios.sort_by(f64::total_cmp);
            nanos.sort_unstable();
            let ratio = ratios[ROUNDS / 2];
            let what = format!("p99 of a call, service {service}, Redis {trouble}");
            report.line(
                &what,
                &format!("{ratio:.3} x ({} ns)", nanos[ROUNDS / 2]),
                "at most 1.1 x without a store",
                ratio <= 1.1,
            );
            let what = format!("calls with another outcome, service {service}, Redis {trouble}");
            report.line(&what, &refused.to_string(), "none", refused == 0);
        }
        sync_task.abort();
    }
}

async fn sicken(registry: &CircuitRegistry) {
    let _ = registry.call("open", async { Err::<(), _>(io::Error::other("down")) }).await;
}

/// The 99th percentile in nanoseconds, and the number of calls that did not end like the first.
async fn round(breaker: &Breaker) -> (u64, usize) {
    let mut times = Vec::with_capacity(CALLS);
    let expected = breaker.call(async { Ok::<(), io::Error>(()) }).await.is_ok();
    let mut wrong = 0;
    for _ in 0..CALLS {
        let start = Instant::now();
        let result = breaker.call(async { Ok::<(), io::Error>(()) }).await;
        times.push(start.elapsed().as_nanos() as u64);
        wrong += usize::from(result.is_ok() != expected);
    }
    times.sort_unstable();
    (times[CALLS * 99 / 100].max(1), wrong)
}

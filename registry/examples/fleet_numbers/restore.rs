//! How long a start takes with many breakers to restore, and what Redis hears while nothing happens.

use circuit_registry_testing::redis_server::Server;
use std::{io, time::Duration};

use circuit_registry::{CircuitRegistry, State};
use tokio::time::Instant;

use crate::{Report, registry};

const BREAKERS: usize = 10_000;
const CALLS: u64 = 100_000;

pub(crate) async fn measure(report: &mut Report) {
    let server = Server::start().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = format!("file:{}", folder.path().join("breakers.state").display());
    for (kind, setting, fleet) in [
        ("file", file, "off"),
        ("Redis", server.address(), "off"),
        ("Redis, shared", format!("{}?prefix=shared", server.address()), "share"),
    ] {
        let yaml = format!(
            "fleet: {fleet}\nnames: {{ max_dynamic: {} }}\ndefaults: {{ fail_max: 1, reset_timeout: 1h }}",
            2 * BREAKERS
        );
        let first = registry(CircuitRegistry::builder(), &setting, &yaml);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let sync_task = tokio::spawn(first.restore().await.run(async { drop(stopped.await) }));
        for i in 0..BREAKERS {
            let _ = first.call(&format!("upstream-{i}"), async { Err::<(), _>(io::Error::other("down")) }).await;
        }
        first.breaker("upstream-0").stored().await.expect("stored");
        drop(stop);
        sync_task.await.expect("it ends in order");
        let second = registry(CircuitRegistry::builder(), &setting, &yaml);
        let start = Instant::now();
        let sync_task = second.restore().await;
        let took = start.elapsed();
        drop(sync_task);
        let open = second.views().iter().filter(|view| view.state == State::Open).count();
        let what = format!("restoring {open} open breakers from {kind}");
        let kept = open == BREAKERS && took <= Duration::from_secs(1);
        report.line(&what, &format!("{:.0} ms", took.as_secs_f64() * 1e3), "10000 within 1 s", kept);
    }
    steady(report, &server).await;
}

async fn steady(report: &mut Report, server: &Server) {
    let yaml = "fleet: share\nservices: { s: {} }";
    let registry = registry(CircuitRegistry::builder(), &server.address(), yaml);
    let sync_task = tokio::spawn(registry.restore().await.run(std::future::pending()));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let mut redis = server.look().await;
    let mut commands = async || {
        let stats: String = redis::cmd("INFO").arg("stats").query_async(&mut redis).await.expect("it answers");
        let count = stats.lines().find_map(|line| line.strip_prefix("total_commands_processed:")?.trim().parse().ok());
        count.unwrap_or(0_u64)
    };
    let before = commands().await;
    let start = Instant::now();
    for i in 0..CALLS {
        let _ = registry.call("s", async { Ok::<(), io::Error>(()) }).await;
        if i % 100 == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    let (during, took) = (commands().await - before, start.elapsed());
    tokio::time::sleep(took).await;
    let idle = commands().await - before - during;
    let extra = during.saturating_sub(idle);
    let what = format!("commands at Redis for {CALLS} calls, beyond those without any");
    // One visit a second, of some commands each, may fall on either side.
    report.line(&what, &extra.to_string(), "none per call", extra <= 20);
    sync_task.abort();
}

//! The worker's admin server: its pages for Prometheus, orchestrators and operators are true.

use std::{
    collections::HashSet,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use circuit_registry::{BreakersConfig, CircuitRegistry, policy::Mode};
use osint_tests::{
    test_env::{TestEnv, equinor},
    wait::eventually,
};
use osint_worker::{
    dev::{DevStack, server::DevServerOptions},
    error::CliError,
    run::{Settings, run_until},
};
use serde_json::Value;

const BREAKERS: &str = "defaults: { fail_max: 1 }\nservices:\n  tavily: {}\n  never_called: {}\n";

/// Status and body of a page.
async fn get(url: &str) -> Option<(u16, String)> {
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().ok()?;
    let answer = http.get(url).send().await.ok()?;
    Some((answer.status().as_u16(), answer.text().await.ok()?))
}

/// Status and answer to an override.
async fn post(url: &str, order: &'static str) -> Option<(u16, String)> {
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().ok()?;
    let port = url.split(['/', ':']).find_map(|part| part.parse().ok())?;
    let token = osint_worker::admin::local_token(port)?;
    let request = http.post(url).header("content-type", "application/json").bearer_auth(token.secret());
    let answer = request.body(order).send().await.ok()?;
    Some((answer.status().as_u16(), answer.text().await.ok()?))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_pages_show_the_workers_state() -> Result<(), CliError> {
    let env = TestEnv::start().await?;
    let admin = env
        .with_worker(BREAKERS, async |bench| {
            let page = |path: &str| format!("http://{}/{path}", bench.admin);
            eventually("the worker is ready", async || get(&page("ready")).await.filter(|(status, _)| *status == 200))
                .await;
            assert_eq!(get(&page("live")).await.expect("a page").0, 200);

            bench.simulator.set_fault("tavily", "down").await.map_err(CliError::failure)?;
            bench.investigate(equinor()).await?;
            bench.simulator.clear_all().await.map_err(CliError::failure)?;

            let (status, metrics) = get(&page("metrics")).await.expect("a page");
            assert_eq!(status, 200);
            for line in
                ["circuit_breaker_state{service=\"tavily\"} 1", "circuit_breaker_state{service=\"never_called\"} 0"]
            {
                assert!(metrics.lines().any(|found| found == line), "{line} is missing: {metrics}");
            }
            assert!(metrics.lines().any(|line| line.starts_with("temporal_num_pollers{")), "the SDK's half is missing");
            let types: Vec<&str> = metrics.lines().filter(|line| line.starts_with("# TYPE ")).collect();
            let distinct: HashSet<&str> = types.iter().copied().collect();
            assert_eq!(types.len(), distinct.len(), "a family is on the page twice");

            let (status, breakers) = get(&page("breakers")).await.expect("a page");
            assert_eq!(status, 200);
            let list: Vec<Value> = serde_json::from_str(&breakers).expect("a list");
            let tavily = list.iter().find(|breaker| breaker["service"] == "tavily").expect("the breaker");
            assert_eq!(tavily["state"], "open");
            assert!(tavily["retry_in_ms"].is_u64());

            let order = r#"{ "order": "open", "who": "alice", "why": "maintenance" }"#;
            let (status, text) = post(&page("breakers/never_called"), order).await.expect("an answer");
            assert!(status == 200 && text.contains("in force in this process only"), "it has no store: {text}");
            assert_eq!(bench.registry.breaker("never_called").view().mode, Mode::ForceOpen, "and obeys");
            Ok(bench.admin)
        })
        .await?;
    assert!(get(&format!("http://{admin}/live")).await.is_none(), "the port outlives the worker");
    env.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_server_a_worker_is_alive_but_not_ready() -> Result<(), CliError> {
    let registry = CircuitRegistry::new(BreakersConfig::default());
    let stack = DevStack::start(DevServerOptions::default(), &[]).await?;
    let (activities, client) = (stack.activities(&registry)?, stack.server.client().await?);
    let DevStack { server, simulator } = stack;
    let admin = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let settings = Settings { admin, grace: Duration::from_secs(1), ..Settings::default() };
    run_until(client, registry, activities, settings, async move |admin| {
        let admin = admin.expect("an admin server was asked for");
        let page = |path: &str| format!("http://{admin}/{path}");
        eventually("the worker is ready", async || get(&page("ready")).await.filter(|(status, _)| *status == 200))
            .await;
        server.stop().await;
        let (_, why) =
            eventually("the worker notices", async || get(&page("ready")).await.filter(|(status, _)| *status == 503))
                .await;
        assert!(why.contains("Temporal server"), "{why}");
        assert_eq!(get(&page("live")).await.expect("a page").0, 200);
        Ok(())
    })
    .await?;
    simulator.shutdown().await;
    Ok(())
}

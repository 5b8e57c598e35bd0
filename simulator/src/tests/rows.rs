//! What holds for every upstream.

use super::*;
use crate::upstreams::UPSTREAMS;

#[tokio::test]
async fn every_upstream_fails_alone() {
    let simulator = start().await;
    let client = client();
    for row in UPSTREAMS {
        let url = simulator.base_url(row.name).unwrap();
        simulator.set_fault(row.name, "refused").await.unwrap();
        assert!(client.get(&url).send().await.unwrap_err().is_connect(), "{}", row.name);
        simulator.set_fault(row.name, "502_html").await.unwrap();
        assert_eq!(client.get(&url).send().await.unwrap().status(), 502, "{}", row.name);
        simulator.clear(row.name).await.unwrap();
        assert_ne!(client.get(&url).send().await.unwrap().status(), 502, "{}", row.name);
        let calls = simulator.calls(row.name).unwrap();
        assert_eq!((calls.total, calls.operations["unrouted"]), (2, 2), "{}", row.name);
    }
    simulator.shutdown().await;
}

#[tokio::test]
async fn every_published_rate_can_be_enforced() {
    let simulator = start().await;
    let client = client();
    for row in UPSTREAMS {
        let Some(rate) = &row.rate else { continue };
        simulator.set_fault(row.name, "enforce_rate").await.unwrap();
        let refusal = (rate.refusal)();
        let url = simulator.base_url(row.name).unwrap();
        let mut refused = false;
        // A slow machine may take longer than a second for a few calls, but not for fifty too many.
        for _ in 0..rate.calls + 50 {
            let response = client.get(&url).send().await.unwrap();
            let status = response.status().as_u16();
            refused |= status == refusal.status() && response.bytes().await.unwrap() == refusal.body();
        }
        assert!(refused, "{}", row.name);
    }
    simulator.shutdown().await;
}

#[test]
fn names_of_faults_and_operations_are_unique() {
    for row in UPSTREAMS {
        let generic = crate::fault::forms(&[]);
        for scenario in row.scenarios {
            let clash = generic.iter().any(|(form, _)| form.split([':', '[']).next() == Some(scenario.name));
            assert!(!clash, "{}: {} hides a generic fault", row.name, scenario.name);
        }
        let enforced = row.scenarios.iter().any(|scenario| scenario.name == "enforce_rate");
        assert_eq!(enforced, row.rate.is_some(), "{}", row.name);
        let mut operations: Vec<_> = row.routes.iter().map(|route| route.operation).collect();
        operations.sort_unstable();
        operations.dedup();
        assert_eq!(operations.len(), row.routes.len(), "{}", row.name);
    }
}

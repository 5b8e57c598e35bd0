//! Every fallback with every fault, while the source itself is down. The report shows the source's own error then, and the
//! fallback's outcome counts for the fallback's breaker.

use tokio::time::{Duration, Instant};

use circuit_registry::CallContext;

use super::{
    Bench, ONLY,
    matrix::{FAULTS, expected, somebody},
    observed::{Heard, Outcome, heard},
    scenarios::{ALZA, NOKIA, PROXIMUS, Row, described},
};
use crate::{
    catalog::{self},
    model::{Query, Status, Subject},
    spec::{Class, Entry, Fallback},
};

use Class::Unavailable;
use Heard::{Failure, Nothing, Stay};
use Outcome::{Instead, Unanswered};

/// Fallback, scenario, operation, whom it is about, outcome, what the fallback's breaker heard.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // Both interfaces reach the same member state; a failure of an interface is an outage of that interface.
    ("vies_soap", "ms_unavailable:BE", "vies.check", PROXIMUS, Unanswered(Unavailable), Nothing),
    ("vies_soap", "ms_unavailable:DE", "vies.check", PROXIMUS, Instead("vies_soap"), Nothing),
    ("vies_soap", "soap_fault:MS_UNAVAILABLE", "vies.check", PROXIMUS, Unanswered(Unavailable), Nothing),
    ("vies_soap", "soap_fault:SERVICE_UNAVAILABLE", "vies.check", PROXIMUS, Unanswered(Unavailable), Failure),
    ("vies_soap", "soap_fault_500:SERVICE_UNAVAILABLE", "vies.check", PROXIMUS, Unanswered(Unavailable), Failure),
    ("vies_soap", "soap_fault_500:SOMETHING_NEW", "vies.check", PROXIMUS, Unanswered(Unavailable), Nothing),
    ("vies_soap", "soap_fault:IP_BLOCKED", "vies.check", PROXIMUS, Unanswered(Unavailable), Stay),
    ("vatsense", "412", "vies.check", NOKIA, Unanswered(Unavailable), Failure),
    ("nbb_official", "silent_empty:2", "nbb.deposits", PROXIMUS, Instead("nbb_official"), Nothing),
    ("nbb_official", "silent_empty:2", "nbb.accounts", PROXIMUS, Instead("nbb_official"), Nothing),
    // "There is a record: yes or no" needs the base entry alone.
    ("cz_ares", "vr_down", "cz_isir.insolvency", ALZA, Instead("cz_ares"), Nothing),
    ("cz_ares", "moved", "cz_isir.insolvency", ALZA, Unanswered(Unavailable), Nothing),
    ("cz_ares", "moved", "vies.check", ALZA, Unanswered(Unavailable), Nothing),
    ("opensanctions_feed", "stale_index", "opensanctions.match", NOKIA, Instead("opensanctions_feed"), Nothing),
    ("opensanctions_feed", "checksum_mismatch", "opensanctions.match", NOKIA, Unanswered(Unavailable), Failure),
];

/// The result of one attempt while the source is down, and what the fallback's breaker recorded.
async fn observe(bench: &Bench, entry: Entry, by: &Fallback, query: &Query, patience: Duration) -> (Outcome, Heard) {
    let context = CallContext::attempt(1).with_deadline(Instant::now() + patience);
    let outcome = match context.scope(bench.activities.investigate(entry, query, ONLY, None)).await {
        Ok(finding) if finding.via.as_deref() == Some(by.via) => Instead(by.via),
        Ok(finding) => Outcome::Found(finding.status),
        Err(failed) => Unanswered(failed.details.class.unwrap_or(Class::Ok)),
    };
    (outcome, heard(&bench.registry.breaker(by.source.breaker).view()))
}

/// The source and all its other fallbacks are down.
async fn leave_alone(bench: &Bench, entry: Entry, by: &Fallback) {
    bench.fault(entry.source.name, "down").await;
    for other in entry.operation.fallbacks.iter().filter(|other| other.via != by.via) {
        bench.fault(other.source.name, "down").await;
    }
}

async fn clear(bench: &Bench, entry: Entry) {
    for name in entry.operation.fallbacks.iter().map(|by| by.source.name).chain([entry.source.name]) {
        bench.simulator.clear(name).await.expect(name);
    }
}

/// Every operation with each of its fallbacks.
fn pairs() -> impl Iterator<Item = (Entry, &'static Fallback)> {
    let pairs = |entry: &Entry| {
        let entry = *entry;
        let others = entry.operation.fallbacks.iter().filter(move |by| by.source.name != entry.source.name);
        others.map(move |by| (entry, by))
    };
    catalog::operations().iter().flat_map(pairs)
}

/// Somebody whom both know.
fn known_to_both(entry: Entry, by: &Fallback) -> Subject {
    match (entry.operation.name, by.source.name) {
        ("vies.check", "cz_ares" | "ro_anaf") => somebody(by.source.name),
        (name, _) => somebody(name),
    }
}

#[tokio::test]
async fn every_fallback_with_every_fault() {
    let mut bench = Bench::with_fallbacks().await;
    let mut wrong = Vec::new();
    for (entry, by) in pairs() {
        let name = entry.operation.name;
        let query = Query::from(known_to_both(entry, by));
        leave_alone(&bench, entry, by).await;
        for (fault, ..) in FAULTS {
            // Only for those who hang; the others have their answer long before.
            if *fault == "hang" {
                bench.forget_and_hurry()
            } else {
                bench.forget()
            }
            bench.fault(by.source.name, fault).await;
            let patience = Duration::from_secs(60);
            let got = observe(&bench, entry, by, &query, patience).await;
            let (outcome, heard) = expected(by.source.name, fault);
            let outcome = match outcome {
                // A fallback without a record proves nothing about a register that is down.
                Outcome::Found(Status::Complete | Status::Partial) => Instead(by.via),
                _ => Unanswered(Unavailable),
            };
            if got != (outcome, heard) {
                wrong.push(format!("{name} by {} with {fault}: {got:?}, expected {:?}", by.via, (outcome, heard)));
            }
        }
        clear(&bench, entry).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn every_scenario_of_every_fallback() {
    let mut bench = Bench::with_fallbacks().await;
    let mut wrong = Vec::new();
    for (upstream, fault, operation, about, outcome, heard) in ROWS {
        let entry = catalog::operation(operation).unwrap_or_else(|| panic!("no operation {operation}"));
        let by = entry.operation.fallbacks.iter().find(|by| by.source.name == *upstream).expect(upstream);
        bench.forget();
        leave_alone(&bench, entry, by).await;
        bench.fault(upstream, fault).await;
        let got = observe(&bench, entry, by, &Query::from(described(*about)), Duration::from_secs(60)).await;
        if got != (*outcome, *heard) {
            wrong.push(format!("{operation} by {upstream} with {fault}: {got:?}, expected {:?}", (outcome, heard)));
        }
        clear(&bench, entry).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_fallback_belongs_to_an_operation() {
    for source in catalog::fallbacks() {
        assert!(pairs().any(|(_, by)| by.source.name == source.name), "{}", source.name);
    }
}

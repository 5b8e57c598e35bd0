//! What the simulator and the rest of the crate must agree on, and what holds for every row.

use super::*;
use crate::identifiers::Kind;
use crate::simulator::upstreams::UPSTREAMS;

#[tokio::test]
async fn every_base_of_the_catalog_is_simulated_at_the_same_path() {
    let simulator = start().await;
    let path = |url: &str| url.splitn(4, '/').nth(3).unwrap_or("").to_owned();
    for base in crate::catalog::sources().iter().map(|source| &source.base) {
        let simulated = simulator.env().into_iter().find(|(name, _)| name == base.env);
        let url = simulated.unwrap_or_else(|| panic!("{} is not simulated", base.env)).1;
        assert_eq!(path(&url), path(base.default), "{}", base.env);
    }
    simulator.shutdown().await;
}

/// Where the name of a fixture is the number of a company.
const NUMBERED: &[(&str, Kind)] = &[
    ("ch_zefix/firms/", Kind::ChUid),
    ("ch_zefix_official/", Kind::ChUid),
    ("cz_ares/", Kind::Ico),
    ("cz_isir/", Kind::Ico),
    ("cz_justice/deeds/", Kind::Ico),
    ("dk_cvr/companies/", Kind::DkCvr),
    ("dk_cvr_datafordeler/", Kind::DkCvr),
    ("fi_ytj/", Kind::FiYTunnus),
    ("fr_inpi/", Kind::FrSiren),
    ("fr_insee/units/", Kind::FrSiren),
    ("gleif/records/", Kind::Lei),
    ("kbo/entities/", Kind::BeKbo),
    ("kbo/establishments/", Kind::BeKbo),
    ("nbb/companies/", Kind::BeKbo),
    ("nbb/deposits/", Kind::BeKbo),
    ("nl_kvk/profiles/", Kind::NlKvk),
    ("no_brreg/", Kind::NoOrgnr),
    ("peppol_verify/", Kind::BeKbo),
    ("recherche_entreprises/", Kind::FrSiren),
    ("registry_sk/persons/", Kind::Ico),
    ("registry_sk_rpo/", Kind::Ico),
    ("ro_anaf/", Kind::RoCui),
];

#[test]
fn every_company_of_the_fixtures_has_a_sound_number() {
    for (folder, kind) in NUMBERED {
        let files = UPSTREAMS.iter().flat_map(|row| row.fixtures).filter(|file| file.path.starts_with(folder));
        let numbers: Vec<_> = files.filter_map(|file| file.path.rsplit('/').next()?.split('.').next()).collect();
        assert!(!numbers.is_empty(), "{folder}");
        for number in numbers {
            assert!(kind.read(number).is_ok(), "{folder}{number}: {:?}", kind.read(number));
        }
    }
    let vies = UPSTREAMS.iter().flat_map(|row| row.fixtures).find(|file| file.path == "vies/numbers.json").unwrap();
    for number in serde_json::from_slice::<serde_json::Map<String, Value>>(vies.bytes).unwrap().keys() {
        assert!(Kind::EuVat.read(number).is_ok(), "{number}");
    }
}

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
fn faults_and_operations_have_names_of_their_own() {
    for row in UPSTREAMS {
        let generic = super::super::fault::forms(&[]);
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

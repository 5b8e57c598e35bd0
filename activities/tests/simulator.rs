//! What the sources and the simulator must agree on: base URLs, and numbers of companies.

use std::{fs, path::Path};

use osint_activities::{catalog, identifiers::Kind};
use osint_simulator::Simulator;
use serde_json::{Map, Value};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../simulator/fixtures");

#[tokio::test]
async fn every_base_of_the_catalog_is_simulated_at_the_same_path() {
    let simulator = Simulator::start(([127, 0, 0, 1], 0).into()).await.expect("a simulator");
    let path = |url: &str| url.splitn(4, '/').nth(3).unwrap_or("").to_owned();
    for base in catalog::sources().iter().map(|source| &source.base) {
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
        let numbers = numbers_below(&Path::new(FIXTURES).join(folder));
        assert!(!numbers.is_empty(), "{folder}");
        for number in numbers {
            assert!(kind.read(&number).is_ok(), "{folder}{number}: {:?}", kind.read(&number));
        }
    }
    let vies = fs::read(Path::new(FIXTURES).join("vies/numbers.json")).expect("VAT numbers");
    for number in serde_json::from_slice::<Map<String, Value>>(&vies).expect("an object").keys() {
        assert!(Kind::EuVat.read(number).is_ok(), "{number}");
    }
}

/// The names of the files in a folder and the folders below it, up to the first dot.
fn numbers_below(folder: &Path) -> Vec<String> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of fixtures") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            numbers.extend(numbers_below(&path));
        } else {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name in UTF-8");
            numbers.extend(name.split('.').next().map(str::to_owned));
        }
    }
    numbers
}

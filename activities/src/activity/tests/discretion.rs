//! What upstreams tell of people and a finding has no use for: telephone numbers, mail addresses, days of birth.

use super::{Bench, matrix::somebody};
use crate::catalog;

/// Source, one of its fixtures, and what is in there and must not come out.
#[rustfmt::skip]
const PERSONAL: &[(&str, &[u8], &[&str])] = &[
    ("kbo", include_bytes!("../../../../simulator/fixtures/kbo/entities/0202239951.en.html"), &["+32 2 000", "desk@"]),
    ("no_brreg", include_bytes!("../../../../simulator/fixtures/no_brreg/roles/923609016.json"), &["1968-02-29", "1970-01-01", "1965-11-11"]),
    ("cz_ares", include_bytes!("../../../../simulator/fixtures/cz_ares/vr/27082440.json"), &["1980-01-01", "1975-05-05"]),
    ("dk_cvr", include_bytes!("../../../../simulator/fixtures/dk_cvr/companies/24256790.json"), &["00000000"]),
    ("ro_anaf", include_bytes!("../../../../simulator/fixtures/ro_anaf/vat/14399840.json"), &["021000000"]),
    ("peppol_directory", include_bytes!("../../../../simulator/fixtures/peppol_directory/participants.json"), &["+32 2 000", "desk@"]),
    ("crawl4ai", include_bytes!("../../../../simulator/fixtures/crawl4ai/pages/www.equinor.com/legal.json"), &["ola@", "+47 00", "Ola Eksempel"]),
    ("brightdata_enrichment", include_bytes!("../../../../simulator/fixtures/brightdata/gd_l1vijqt9jfj7olije/equinor.json"), &["desk@"]),
];

#[tokio::test]
async fn what_a_finding_has_no_use_for_stays_with_the_upstream() {
    let bench = Bench::new().await;
    for (source, fixture, personal) in PERSONAL {
        let fixture = String::from_utf8_lossy(fixture);
        for text in *personal {
            assert!(fixture.contains(text), "{source} does not say {text}: has the search gone blind?");
        }
        let mut answered = 0;
        for entry in catalog::operations().iter().filter(|entry| entry.source.name == *source) {
            let finding = bench.run(entry.operation.name, &somebody(entry.operation.name)).await.expect(source);
            answered += usize::from(finding.data.is_some());
            let finding = serde_json::to_string(&finding.data).expect("facts");
            for text in *personal {
                assert!(!finding.contains(text), "{} tells {text}: {finding}", entry.operation.name);
            }
            assert!(!finding.contains('@'), "{} tells a mail address: {finding}", entry.operation.name);
        }
        assert!(answered > 0, "{source} has given no facts");
    }
}

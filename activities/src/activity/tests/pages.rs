//! Registers that are read from pages, and their fallbacks.

use super::*;
use crate::spec::Class;

fn proximus() -> Subject {
    subject("BE", "0202239951", "PROXIMUS")
}

fn eset() -> Subject {
    subject("SK", "31333532", "ESET, spol. s r.o.")
}

fn name(finding: &Finding) -> Option<&str> {
    finding.data.as_ref()?.companies.first()?.name.as_deref()
}

#[tokio::test]
async fn a_barred_address_waits_for_hours_and_fallbacks_answer_partly() {
    let mut bench =
        Bench::with_policies("services:\n  kbo: { fail_max: 3, reset_timeout: 60s, throttle_max: 12h }\n").await;
    bench.fault("kbo", "blocked").await;
    for (via, known) in [("nbb", "PROXIMUS"), ("gleif", "Proximus"), ("peppol_directory", "PROXIMUS")] {
        bench.forget();
        let finding = bench.run("kbo.entity", &proximus()).await.unwrap_or_else(|f| panic!("{via}: {:?}", f.details));
        assert_eq!((finding.status, finding.via.as_deref()), (Status::Partial, Some(via)), "{:?}", finding.reason);
        assert!(name(&finding).is_some_and(|name| name.to_lowercase().contains(&known.to_lowercase())), "{via}");
        assert!(finding.reason.is_some_and(|reason| reason.contains("barred")), "{via}");
        bench.fault(via, "down").await;
    }
    let failed = bench.run("kbo.establishments", &proximus()).await.expect_err("no fallback");
    assert_eq!(failed.details.reason, Reason::Open);
    let view = bench.registry.breaker("kbo").view();
    assert!(view.retry_in.is_some_and(|wait| wait > Duration::from_secs(5 * 3600)), "{view:?}");
    bench.forget();
    let failed = bench.run("kbo.entity", &proximus()).await.expect_err("no fallback is left");
    assert_eq!(failed.details.class, Some(Class::Throttled), "and the register's own error is reported");
}

#[tokio::test]
async fn a_page_that_says_no_is_an_answer() {
    let bench = Bench::new().await;
    for (id, status) in [("0417497106", Status::NotFound), ("0431150351", Status::NeedsReview)] {
        for operation in ["kbo.entity", "kbo.establishments"] {
            let finding = bench.run(operation, &subject("BE", id, "")).await.expect("an answer");
            assert_eq!((finding.status, finding.via), (status, None), "{operation} {id}");
        }
    }
    let finding = bench.run("kbo.establishments", &subject("BE", "0403199702", "")).await.expect("an answer");
    assert_eq!(finding.status, Status::NotFound);
    let bankrupt = bench.run("kbo.entity", &subject("BE", "0999000129", "")).await.expect("an answer");
    let standing = bankrupt.data.map(|facts| facts.companies[0].standing);
    assert_eq!(standing, Some(crate::model::Standing::Insolvent), "whose empty fields are full of \"no data\"");
    assert_eq!(bench.registry.breaker("kbo").view().consecutive_failures, 0);
}

#[tokio::test]
async fn the_slovak_register_is_asked_in_three_places() {
    let mut bench = Bench::new().await;
    for operation in ["registry_sk.entity", "registry_sk.search"] {
        let finding = bench.run(operation, &eset()).await.expect("a finding");
        assert_eq!(
            (finding.status, finding.via.as_deref(), name(&finding)),
            (Status::Complete, None, eset().name.as_deref())
        );
    }
    bench.fault("registry_sk", "500").await;
    for (via, status) in [("registry_sk_html", Status::Complete), ("registry_sk_rpo", Status::Partial)] {
        for operation in ["registry_sk.entity", "registry_sk.search"] {
            bench.forget();
            let finding = bench.run(operation, &eset()).await.unwrap_or_else(|f| panic!("{via}: {:?}", f.details));
            assert_eq!((finding.status, finding.via.as_deref()), (status, Some(via)), "{operation}");
            assert_eq!(name(&finding), eset().name.as_deref(), "{operation} by {via}");
            assert_eq!(bench.registry.breaker("registry_sk").view().consecutive_failures, 1);
        }
        bench.fault(via, "200_html_maintenance").await;
    }
    let failed = bench.run("registry_sk.entity", &eset()).await.expect_err("no fallback is left");
    assert_eq!(failed.details.class, Some(Class::Unavailable));
}

#[tokio::test]
async fn of_two_files_of_one_number_the_newest_is_read() {
    let bench = Bench::new().await;
    let finding = bench.run("registry_sk.entity", &subject("SK", "35757442", "")).await.expect("a finding");
    let facts = finding.data.expect("an extract");
    assert_eq!(facts.companies[0].registrations[0], "court file: Sa 1973, Mestský súd Bratislava III");
    assert_eq!(facts.officers[0].role.as_deref(), Some("predseda predstavenstva"));
    let finding = bench.run("sk_ruz.unit", &subject("SK", "99000105", "")).await.expect("an answer");
    assert_eq!((finding.status, finding.data), (Status::NotFound, None), "deleted by the register");
}

#[tokio::test]
async fn a_challenge_is_no_answer_and_the_older_site_has_none() {
    let mut bench = Bench::new().await;
    let alza = subject("CZ", "27082440", "Alza.cz a.s.");
    for (fault, class) in [("200_html_challenge", Class::Unavailable), ("403_waf_html", Class::Throttled)] {
        bench.forget();
        bench.fault("cz_justice", fault).await;
        let finding = bench.run("cz_justice.deeds", &alza).await.expect("a finding");
        assert_eq!((finding.status, finding.via.as_deref()), (Status::Complete, Some("cz_justice_legacy")), "{fault}");
        assert!(finding.data.is_some_and(|facts| !facts.notices.is_empty() && !facts.accounts.is_empty()));
        bench.forget();
        bench.fault("cz_justice_legacy", "200_html_challenge").await;
        let failed = bench.run("cz_justice.deeds", &alza).await.expect_err("both are closed to robots");
        assert_eq!(failed.details.class, Some(class), "{fault}");
        bench.simulator.clear("cz_justice_legacy").await.expect("an upstream");
    }
    bench.simulator.clear("cz_justice").await.expect("an upstream");
    bench.forget();
    let finding = bench.run("cz_justice.deeds", &subject("CZ", "00000001", "")).await.expect("an answer");
    assert_eq!((finding.status, finding.via), (Status::NotFound, None));
}

//! Credits are money: the simulator counts them as the vendor does.

use super::*;

fn siemens() -> Subject {
    subject("DE", "HRB 6684 Muenchen", "Siemens AG")
}

fn credits(bench: &Bench) -> u64 {
    bench.simulator.calls("northdata").expect("calls").counters.get("credits").copied().unwrap_or_default()
}

#[tokio::test]
async fn a_company_costs_one_credit_and_searching_none() {
    let bench = Bench::new().await;
    let finding = bench.run("northdata.company", &siemens()).await.expect("a company");
    let facts = finding.data.expect("facts");
    assert_eq!((facts.companies.len(), facts.officers.len(), credits(&bench)), (1, 2, 1));
    let again = bench.run("northdata.company", &siemens()).await.expect("a company");
    assert_eq!((again.status, again.attempts, credits(&bench)), (Status::Complete, 0, 1), "paid for already");
    assert!(again.as_of.is_some() && again.data == Some(facts));
    bench.run("northdata.search", &siemens()).await.expect("suggestions");
    let unknown = subject("DE", "HRB 1 Ulm", "Nobody GmbH");
    assert_eq!(bench.run("northdata.company", &unknown).await.expect("a finding").status, Status::NotFound);
    assert_eq!(credits(&bench), 1);
}

#[tokio::test]
async fn a_call_that_was_charged_is_not_made_again() {
    let bench = Bench::new().await;
    bench.fault("northdata", "reset").await; // the answer is under way, so the credit is gone
    let failed = bench.run("northdata.company", &siemens()).await.expect_err("a broken answer");
    assert_eq!((failed.details.reason, credits(&bench)), (Reason::Declined, 1));
    bench.fault("northdata", "refused").await;
    let failed = bench.run("northdata.company", &siemens()).await.expect_err("no company");
    assert_eq!(failed.details.reason, Reason::Failed, "never arrived, so another attempt is free");
    let failed = bench.run("northdata.search", &siemens()).await.expect_err("no company");
    assert_eq!(failed.details.reason, Reason::Failed);
}

#[tokio::test]
async fn the_probe_of_a_half_open_breaker_is_free() {
    let bench = Bench::with_policies("services:\n  northdata: { fail_max: 1, reset_timeout: 20ms }\n").await;
    bench.fault("northdata", "500").await;
    bench.run("northdata.company", &siemens()).await.expect_err("an outage");
    while bench.state("northdata") != State::HalfOpen {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bench.run("northdata.company", &siemens()).await.expect_err("still out of order");
    let calls = bench.simulator.calls("northdata").expect("calls");
    assert_eq!((calls.operations.get("suggest"), calls.operations.get("company")), (Some(&1), Some(&1)));
    while bench.state("northdata") != State::HalfOpen {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bench.simulator.clear("northdata").await.expect("healthy again");
    bench.run("northdata.company", &siemens()).await.expect("a company");
    assert_eq!((credits(&bench), bench.state("northdata")), (1, State::Closed), "the probe closed it and cost nothing");
}

#[tokio::test]
async fn shapes_and_plans_make_no_outage() {
    let mut bench = Bench::new().await;
    for fault in ["shape_array", "shape_items"] {
        bench.forget();
        bench.fault("northdata", fault).await;
        assert_eq!(bench.run("northdata.company", &siemens()).await.expect(fault).status, Status::Complete);
    }
    bench.fault("northdata", "censored").await;
    let finding = bench.run("northdata.search", &siemens()).await.expect("a finding");
    assert_eq!((finding.status, finding.data), (Status::NeedsReview, None), "hidden is not unknown");
    assert_eq!(bench.state("northdata"), State::Closed);
}

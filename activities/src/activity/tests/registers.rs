//! The national registers: limits, tokens and fallbacks.

use super::*;

#[tokio::test]
async fn the_steps_of_one_flow_wait_their_turn_under_a_rate_limit() {
    let bench = Bench::with_policies("services:\n  ch_zefix: { rate_limit: 1/50ms }\n").await;
    let swiss_re = subject("CH", "CHE191546434", "");
    let finding = bench.run("ch_zefix.company", &swiss_re).await.expect("both steps, one after the other");
    assert_eq!((finding.status, bench.calls("ch_zefix")), (Status::Complete, 2));

    // No activity sleeps for a minute in a slot of the worker, and none waits before the first step.
    let bench = Bench::with_policies("services:\n  ch_zefix: { rate_limit: 1/min }\n").await;
    for calls in [1, 1] {
        let failed = bench.run("ch_zefix.company", &swiss_re).await.expect_err("no room");
        assert_eq!((failed.details.reason, bench.calls("ch_zefix")), (Reason::RateLimited, calls));
    }
}

#[tokio::test]
async fn an_expired_token_costs_one_log_in_for_all_callers() {
    let bench = Bench::new().await;
    bench.fault("fr_inpi", "token_expires:2").await;
    let danone = subject("FR", "552032534", "DANONE");
    let run = async || bench.run("fr_inpi.company", &danone).await.expect("a finding").status;
    assert_eq!((run().await, run().await), (Status::Complete, Status::Complete));
    assert_eq!(tokio::join!(run(), run()), (Status::Complete, Status::Complete));
    let calls = bench.simulator.calls("fr_inpi").expect("calls");
    assert_eq!((calls.counters["logins"], calls.operations["company"]), (2, 6), "two calls found it worn out");
    assert_eq!(bench.registry.breaker("fr_inpi").view().consecutive_failures, 0);
}

#[tokio::test]
async fn what_must_not_be_passed_on_is_not() {
    let bench = Bench::new().await;
    for (id, operation) in [
        ("999000300", "fr_inpi.company"),
        ("999000300", "fr_inpi.documents"),
        ("999000102", "fr_insee.unit"),
        ("999000102", "fr_insee.head_office"),
    ] {
        let finding = bench.run(operation, &subject("FR", id, "")).await.expect(operation);
        assert_eq!((finding.status, finding.data, finding.via), (Status::NeedsReview, None, None), "{operation}");
    }
    let list = bench.simulator.calls("fr_inpi").expect("calls").operations.get("attachments").copied();
    assert_eq!((list, bench.calls("recherche_entreprises")), (None, 0), "nor asked for elsewhere");
}

#[tokio::test]
async fn official_services_are_the_fallback_for_public_ones() {
    let bench = Bench::with_fallbacks().await;
    let cases = [
        ("dk_cvr", "quota:0", "dk_cvr.company", subject("DK", "24256790", ""), "dk_cvr_datafordeler"),
        ("ch_zefix", "502_html", "ch_zefix.company", subject("CH", "CHE191546434", ""), "ch_zefix_official"),
        ("ch_zefix", "429", "ch_zefix.search", subject("CH", "", "Swiss Re"), "ch_zefix_official"),
    ];
    for (source, fault, operation, subject, via) in cases {
        let direct = bench.run(operation, &subject).await.expect(operation);
        bench.fault(source, fault).await;
        let instead = bench.run(operation, &subject).await.expect(operation);
        assert_eq!((instead.status, instead.via.as_deref()), (Status::Complete, Some(via)), "{operation}");
        let company = |finding: Finding| finding.data.map(|facts| facts.companies[0].clone()).expect("a company");
        let (direct, instead) = (company(direct), company(instead));
        assert_eq!((direct.name, direct.id), (instead.name, instead.id), "{operation}");
        bench.simulator.clear(source).await.expect(source);
    }
}

#[tokio::test]
async fn no_request_is_sent_from_a_used_quota_until_midnight() {
    let bench = Bench::with_policies("services:\n  dk_cvr: { throttle_max: 25h }\n").await;
    bench.fault("dk_cvr", "quota:1").await;
    let novo = subject("DK", "24256790", "NOVO NORDISK A/S");
    bench.run("dk_cvr.company", &novo).await.expect("the last answer of the day");
    for operation in ["dk_cvr.company", "dk_cvr.search", "dk_cvr.company"] {
        bench.run(operation, &novo).await.expect_err("no answers left");
    }
    assert_eq!((bench.calls("dk_cvr"), bench.state("dk_cvr")), (2, State::Open));
    let left = bench.registry.breaker("dk_cvr").view().retry_in.expect("a time");
    assert!(left <= Duration::from_secs(25 * 3600), "{left:?}");
}

#[tokio::test]
async fn one_request_a_second_is_kept_by_a_flow_of_two() {
    // The upstream measures arrivals, which are not as regular as departures; hence a little more than its second.
    let bench = Bench::with_policies("services:\n  ro_anaf: { rate_limit: 1/1500ms }\n").await;
    bench.fault("ro_anaf", "enforce_rate").await;
    let finding = bench.run("ro_anaf.accounts", &subject("RO", "14399840", "")).await.expect("never refused");
    assert_eq!(finding.status, Status::Complete);
}

#[tokio::test]
async fn the_probe_of_a_billed_register_is_the_search() {
    let bench = Bench::with_policies("services:\n  nl_kvk: { fail_max: 1, reset_timeout: 20ms }\n").await;
    let asml = subject("NL", "17085815", "");
    bench.fault("nl_kvk", "refused").await;
    bench.run("nl_kvk.names", &asml).await.expect_err("no company");
    bench.fault("nl_kvk", "ipd:IPD9999").await;
    while bench.state("nl_kvk") != State::HalfOpen {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bench.run("nl_kvk.names", &asml).await.expect_err("still out of order");
    let calls = bench.simulator.calls("nl_kvk").expect("calls");
    assert_eq!((calls.operations.get("names"), calls.operations.get("search")), (None, Some(&1)), "{calls:?}");
}

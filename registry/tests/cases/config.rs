//! What a reload changes, and what it leaves alone.

use std::time::Duration;

use circuit_registry::{BreakersConfig, CircuitRegistry, State, Verdict};

use crate::{Case, config};

#[tokio::test(start_paused = true)]
async fn a_reload_changes_the_next_opening_and_not_this_one() {
    let case = Case::three();
    case.trip();
    case.at(30.0).await;
    case.registry.apply(config("services: { s: { fail_max: 3, reset_timeout: 90s } }"));
    assert_eq!((case.state(), case.retry_in()), (State::Open, Duration::from_secs(30)));
    case.at(60.0).await;
    case.fail();
    assert_eq!(case.retry_in(), Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn a_lower_limit_opens_at_the_next_failure() {
    let case = Case::of("services: { s: { fail_max: 5 } }");
    (0..4).for_each(|_| case.fail());
    case.registry.apply(config("services: { s: { fail_max: 3 } }"));
    assert_eq!((case.state(), case.failures()), (State::Closed, 4), "a reload opens nothing by itself");
    case.fail();
    assert_eq!(case.state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_comes_and_goes_keeps_its_state() {
    let case = Case::three();
    case.trip();
    for yaml in ["{}", "services: { other: {} }", crate::THREE] {
        case.registry.apply(config(yaml));
        assert_eq!(case.registry.breaker("s").view().retry_in, Some(Duration::from_secs(60)), "{yaml}");
        assert_eq!(case.registry.breaker("s").view().generation, case.s.view().generation);
    }
}

#[tokio::test(start_paused = true)]
async fn evidence_outlives_a_change_of_the_windows_size() {
    let window = |calls: u32| {
        format!(
            "services: {{ s: {{ fail_max: off, window: {{ calls: {calls}, minimum_calls: 10, failure_rate: 50% }} }} }}"
        )
    };
    let case = Case::of(&window(20));
    (0..9).for_each(|_| case.fail());
    case.registry.apply(config(&window(100)));
    assert_eq!(case.s.view().window_calls, Some(9));
    case.fail();
    assert_eq!(case.state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn a_bad_file_is_named_by_line_and_key_and_changes_nothing() {
    let case = Case::three();
    case.trip();
    let file = std::env::temp_dir().join(format!("breakers-{}-wrong.yaml", std::process::id()));
    for (line, key) in [
        ("{ fail_max: 0 }", "services.s.fail_max"),
        ("{ window: { calls: 10, failure_rate: 101% } }", "services.s.window.failure_rate"),
        ("{ fail_maxx: 3 }", "services.s.fail_maxx"),
        ("{ fail_max: 3, fail_max: 4 }", "services.s.fail_max"),
        ("{ window: { calls: 10 } }", "services.s.window"),
    ] {
        std::fs::write(&file, format!("defaults: {{}}\nservices:\n  s: {line}\n")).unwrap();
        let error = BreakersConfig::load(&file).expect_err(line);
        assert_eq!((error.file(), error.key()), (Some(file.as_path()), key));
        assert_eq!(error.place().map(|p| p.line), Some(3), "{error}");
        assert!(error.to_string().starts_with(&format!("{}:3:", file.display())), "{error}");
        case.registry.reload_failed(&error);
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(case.registry.reloads(), (0, 5));
    assert_eq!(case.registry.config(), config(crate::THREE));
    assert_eq!(case.retry_in(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn names_are_bounded_and_open_breakers_are_never_forgotten() {
    let registry = CircuitRegistry::new(config("defaults: { fail_max: 1, reset_timeout: 60s }"));
    registry.breaker("sick").try_acquire().unwrap().settle(Verdict::Failure);
    registry.breaker("half-open").try_acquire().unwrap().settle(Verdict::Failure);
    for i in 0..100_000 {
        registry.breaker(&format!("dynamic-{i}")).try_acquire().unwrap().settle(Verdict::Success);
        if i == 50_000 {
            tokio::time::advance(Duration::from_secs(60)).await;
            registry.breaker("sick").try_acquire().unwrap().settle(Verdict::Failure);
            registry.breaker("half-open").try_acquire().unwrap().settle(Verdict::Neutral);
        }
    }
    let views = registry.views();
    assert!(views.len() <= 1024, "{}", views.len());
    assert!(views.iter().any(|v| v.service == "sick" && v.state == State::Open));
    assert!(views.iter().any(|v| v.service == "half-open" && v.state == State::HalfOpen));
    assert!(views.iter().any(|v| v.service == "dynamic-99999"), "the newest is remembered");
}

#[tokio::test(start_paused = true)]
async fn an_override_that_has_ended_keeps_no_name_alive() {
    use circuit_registry::Override;
    let registry = CircuitRegistry::new(config("names: { max_dynamic: 8 }"));
    for i in 0..8 {
        registry
            .breaker(&format!("held-{i}"))
            .force_open(Override::new("alice", "why").lasting(Duration::from_secs(1)));
    }
    tokio::time::advance(Duration::from_secs(2)).await;
    let _ = registry.breaker("new");
    assert!(registry.views().iter().any(|v| v.service == "new"));
}

#[tokio::test(start_paused = true)]
async fn a_member_inherits_the_policy_and_not_the_state() {
    let registry = CircuitRegistry::new(config("services: { vies: { fail_max: 1, reset_timeout: 77s } }"));
    registry.breaker("vies:DE").try_acquire().unwrap().settle(Verdict::Failure);
    assert_eq!(registry.breaker("vies:DE").view().retry_in, Some(Duration::from_secs(77)));
    assert_eq!(registry.breaker("vies:BE").view().state, State::Closed);
    assert_eq!(registry.breaker("vies").view().state, State::Closed);
}

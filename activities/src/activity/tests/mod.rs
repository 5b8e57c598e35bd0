//! The engine against the simulator: real sockets, real breakers, no workflow.

mod crawler;
mod discretion;
mod eba_register;
mod fallbacks;
mod jobs;
mod kept;
mod matrix;
mod northdata;
mod observed;
mod opensanctions;
mod pages;
mod peppol;
mod registers;
mod scenarios;

use std::time::Duration;

use circuit_registry::{BreakersConfig, State, temporal::Reason};
use osint_simulator::Simulator;

use super::*;
use crate::{
    guard::Names,
    model::{Status, Subject},
    spec::Settings,
};

const ONLY: AttemptInfo = AttemptInfo { attempt: 1, last: true };

struct Bench {
    simulator: Simulator,
    registry: CircuitRegistry,
    activities: Activities,
    policies: BreakersConfig,
}

impl Bench {
    async fn new() -> Self {
        Self::with_policies("").await
    }

    /// With credentials for the fallbacks, too.
    async fn with_fallbacks() -> Self {
        Self::start("", |_| true).await
    }

    /// Breakers that have seen nothing yet.
    fn forget(&mut self) {
        self.start_over(self.policies.clone());
    }

    /// Breakers that have seen nothing yet, and give an upstream up after a tenth of a second.
    fn forget_and_hurry(&mut self) {
        let yaml = "defaults: { fail_max: 3, reset_timeout: 30s, timeout: 100ms }";
        self.start_over(BreakersConfig::from_yaml(yaml).expect("policies"));
    }

    fn start_over(&mut self, policies: BreakersConfig) {
        self.registry = CircuitRegistry::new(policies);
        self.activities = Activities::new(self.registry.clone(), self.activities.client.clone());
    }

    async fn with_policies(services: &str) -> Self {
        let lent =
            |name: &str| catalog::fallbacks().iter().any(|s| s.credentials.iter().any(|c| c.any_of.contains(&name)));
        Self::start(services, |name| !lent(name)).await
    }

    async fn start(services: &str, allowed: impl Fn(&str) -> bool) -> Self {
        let simulator = Simulator::start(([127, 0, 0, 1], 0).into()).await.expect("a simulator");
        let known = [simulator.env(), simulator.credentials()].concat();
        let known = |name: &str| known.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let settings = Settings::read(|name| known(name).filter(|_| allowed(name)));
        let client = Client::with_names(settings.expect("settings"), Names::none()).expect("a client");
        let yaml = format!("defaults: {{ fail_max: 3, reset_timeout: 30s }}\n{services}");
        let policies = BreakersConfig::from_yaml(&yaml).expect("policies");
        let registry = CircuitRegistry::new(policies.clone());
        let activities = Activities::new(registry.clone(), client);
        Self { simulator, registry, activities, policies }
    }

    async fn run(&self, operation: &str, subject: &Subject) -> Result<Finding, Failed> {
        let entry = catalog::operation(operation).unwrap_or_else(|| panic!("no operation {operation}"));
        self.activities.investigate(entry, &Query::from(subject.clone()), ONLY, None).await
    }

    async fn fault(&self, source: &str, fault: &str) {
        self.simulator.set_fault(source, fault).await.unwrap_or_else(|e| panic!("{source} {fault}: {e}"));
    }

    fn state(&self, breaker: &str) -> State {
        self.registry.breaker(breaker).view().state
    }

    fn calls(&self, source: &str) -> u64 {
        self.simulator.calls(source).expect(source).total
    }
}

fn subject(country: &str, id: &str, name: &str) -> Subject {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Subject { id: known(id), name: known(name), ..Subject::new(country.parse().expect(country)) }
}

fn equinor() -> Subject {
    let address = Some("Forusbeen 50, 4035 Stavanger".to_owned());
    let (website, persons) = (Some("https://www.equinor.com".to_owned()), vec!["Ola Eksempel".to_owned()]);
    Subject { address, website, persons, ..subject("NO", "923609016", "EQUINOR ASA") }
}

fn with_lei() -> Subject {
    Subject { lei: Some("OW6OFBNCKXC4US5C7523".to_owned()), ..equinor() }
}

#[test]
fn every_row_fits_into_the_registration() {
    assert!(catalog::operations().len() <= CAPACITY);
    let mut definitions = ActivityDefinitions::default();
    let settings = Settings::default();
    let client = Client::new(settings).expect("a client");
    definitions.register_activities(Activities::new(CircuitRegistry::new(BreakersConfig::default()), client));
    let registered = format!("{definitions:?}");
    for entry in catalog::operations() {
        assert!(
            registered.contains(&format!("{:?}", entry.operation.name)),
            "{} is not registered",
            entry.operation.name
        );
    }
}

#[tokio::test]
async fn a_healthy_investigation_answers_every_operation_that_applies() {
    let bench = Bench::new().await;
    let subjects = [
        with_lei(),
        subject("CZ", "27082440", "Alza.cz a.s."),
        subject("CZ", "99000105", "Vzorový úpadce s.r.o."),
        subject("BE", "0202239951", "PROXIMUS"),
        subject("FI", "0112038-9", "Nokia Oyj"),
        subject("DE", "HRB 6684 Muenchen", "Siemens AG"),
        subject("BE", "0403199702", "BNP Paribas Fortis"),
        subject("SK", "31333532", "ESET, spol. s r.o."),
        subject("EE", "12417834", "Bolt Technology OÜ"),
        subject("DK", "24256790", "NOVO NORDISK A/S"),
        subject("NL", "17085815", "ASML Holding N.V."),
        subject("FR", "552032534", "DANONE"),
        subject("FR", "999000201", "EXEMPLE EN LIQUIDATION"),
        subject("RO", "14399840", "DANTE INTERNATIONAL SA"),
        subject("CH", "CHE191546434", "Swiss Re AG"),
    ];
    let mut answered = std::collections::HashSet::new();
    for subject in &subjects {
        for entry in catalog::operations() {
            let finding = bench.run(entry.operation.name, subject).await;
            if entry.operation.name == "cz_ubo.owners"
                && let Err(closed) = &finding
            {
                assert_eq!(
                    closed.details.class,
                    Some(crate::spec::Class::Denied),
                    "closed, and not one with no officers"
                );
                answered.insert(entry.operation.name);
                continue;
            }
            let finding = finding.unwrap_or_else(|f| panic!("{}: {:?}", entry.operation.name, f.details));
            if matches!(finding.status, Status::Complete) {
                assert!(finding.data.is_some() && finding.attempts == 1 && finding.started_at.is_some());
                answered.insert(entry.operation.name);
            }
        }
    }
    let silent: Vec<_> = catalog::operations()
        .iter()
        .map(|entry| entry.operation.name)
        .filter(|name| !answered.contains(name))
        .collect();
    assert!(silent.is_empty(), "never complete: {silent:?}");
}

#[tokio::test]
async fn no_request_if_not_applicable_or_without_credentials() {
    let bench = Bench::new().await;
    let finding = bench.run("cz_ares.entity", &equinor()).await.expect("a finding");
    assert_eq!((finding.status, finding.attempts), (Status::NotApplicable, 0));

    let without = Activities::new(bench.registry.clone(), Client::new(Settings::default()).expect("a client"));
    for name in ["tavily.adverse_media", "opensanctions.match", "nominatim.search"] {
        let entry = catalog::operation(name).expect(name);
        let finding = without.investigate(entry, &Query::from(equinor()), ONLY, None).await.expect("a finding");
        assert_eq!((finding.status, finding.attempts), (Status::Skipped, 0), "{name}");
        assert!(finding.reason.is_some_and(|reason| reason.contains("is not set")), "{name}");
    }
    assert!(["cz_ares", "tavily", "opensanctions", "nominatim"].iter().all(|source| bench.calls(source) == 0));
}

#[tokio::test]
async fn an_outage_opens_the_breaker_and_spares_the_upstream() {
    let bench = Bench::new().await;
    bench.fault("no_brreg", "500").await;
    for _ in 0..3 {
        let failed = bench.run("no_brreg.entity", &equinor()).await.expect_err("an outage");
        assert_eq!(failed.details.reason, Reason::Failed);
    }
    for _ in 0..5 {
        let failed = bench.run("no_brreg.roles", &equinor()).await.expect_err("an open breaker");
        assert_eq!((failed.details.reason, failed.details.service.as_str()), (Reason::Open, "no_brreg"));
        assert!(failed.details.retry_in_ms.is_some_and(|wait| wait <= 30_000));
    }
    assert_eq!(bench.calls("no_brreg"), 3);
    assert_eq!(bench.state("gleif"), State::Closed);
}

#[tokio::test]
async fn outages_inside_a_200_count_and_answers_inside_a_500_do_not() {
    let bench = Bench::new().await;
    for fault in ["200_html_maintenance", "truncated_json", "wrong_shape"] {
        bench.fault("fi_ytj", fault).await;
        bench.run("fi_ytj.company", &subject("FI", "0112038-9", "")).await.expect_err(fault);
    }
    assert_eq!(bench.state("fi_ytj"), State::Open);

    // The accounts of a bank: 500 for ever, and no reason to give up on anybody else.
    let bank = subject("NO", "984851006", "DNB BANK ASA");
    for _ in 0..5 {
        let finding = bench.run("no_brreg.accounts", &bank).await.expect("an answer of a kind");
        assert_eq!(finding.status, Status::NeedsReview);
    }
    assert_eq!(bench.state("no_brreg"), State::Closed);
    let finding = bench.run("no_brreg.accounts", &equinor()).await.expect("a finding");
    assert_eq!(finding.status, Status::Complete);
}

#[tokio::test]
async fn a_member_state_that_is_down_stops_only_itself() {
    let bench = Bench::new().await;
    bench.fault("vies", "ms_unavailable:DE").await;
    let german = Subject { vat: Some("DE811569869".into()), ..subject("DE", "", "SAP SE") };
    for _ in 0..3 {
        let failed = bench.run("vies.check", &german).await.expect_err("an outage");
        assert_eq!(
            (failed.details.class, failed.details.service.as_str()),
            (Some(crate::spec::Class::Unavailable), "vies:DE")
        );
    }
    assert_eq!(
        (bench.state("vies:DE"), bench.state("vies"), bench.state("vies:FI")),
        (State::Open, State::Closed, State::Closed)
    );
    let finding = bench.run("vies.check", &subject("FI", "0112038-9", "")).await.expect("a finding");
    assert_eq!(finding.status, Status::Complete);
    let failed = bench.run("vies.check", &german).await.expect_err("an open breaker");
    assert_eq!(failed.details.reason, Reason::Open);

    for upstream in ["vies", "vies_soap", "fi_ytj", "cz_ares"] {
        bench.fault(upstream, "reset").await;
    }
    for country in [("FI", "0112038-9"), ("CZ", "27082440"), ("BE", "0202239951")] {
        bench.run("vies.check", &subject(country.0, country.1, "")).await.expect_err("a broken connection");
    }
    assert_eq!((bench.state("vies"), bench.state("vies:FI")), (State::Open, State::Closed));
}

#[tokio::test]
async fn an_unknown_code_is_never_an_invalid_number() {
    let bench = Bench::new().await;
    for fault in ["user_error:SOMETHING_NEW", "error_wrapper:SOMETHING_NEW"] {
        bench.fault("vies", fault).await;
        let failed = bench.run("vies.check", &subject("BE", "0202239951", "")).await.expect_err("no answer");
        assert_eq!(failed.details.class, Some(crate::spec::Class::Unavailable), "{fault}");
    }
}

#[tokio::test]
async fn a_fallback_answers_for_a_failed_source_and_is_named() {
    let bench = Bench::with_fallbacks().await;
    let finnish = subject("FI", "0112038-9", "");
    bench.fault("vies", "ms_unavailable:FI").await;
    let finding = bench.run("vies.check", &finnish).await.expect("a finding");
    assert_eq!((finding.status, finding.via.as_deref()), (Status::Complete, Some("vatsense")));
    assert!(finding.reason.is_some_and(|reason| reason.contains("MS_UNAVAILABLE")), "and why it had to");
    assert_eq!(bench.registry.breaker("vies:FI").view().consecutive_failures, 1, "the outage counts all the same");

    // While somebody will try again, the source's own answer is worth waiting for.
    let entry = catalog::operation("vies.check").expect("a row");
    let first = AttemptInfo { attempt: 1, last: false };
    let failed =
        bench.activities.investigate(entry, &Query::from(finnish.clone()), first, None).await.expect_err("a retry");
    assert_eq!(failed.details.reason, Reason::Failed);

    bench.fault("vatsense", "412").await;
    let finding = bench.run("vies.check", &finnish).await.expect("a finding");
    assert_eq!(finding.via.as_deref(), Some("fi_ytj"), "the next in the row");
    bench.fault("fi_ytj", "down").await;
    let failed = bench.run("vies.check", &finnish).await.expect_err("both are down");
    assert_eq!((failed.details.service.as_str(), bench.state("vies:FI")), ("vies:FI", State::Open));
    let view = bench.registry.breaker("vatsense").view();
    assert_eq!(view.consecutive_failures, 2);
}

#[tokio::test]
async fn the_older_interface_helps_only_when_the_newer_one_fails() {
    let bench = Bench::new().await;
    let belgian = subject("BE", "0202239951", "");
    bench.fault("vies", "502_html").await;
    let finding = bench.run("vies.check", &belgian).await.expect("a finding");
    assert_eq!((finding.status, finding.via.as_deref()), (Status::Complete, Some("vies_soap")));
    assert!(finding.data.and_then(|facts| facts.vat).is_some_and(|vat| vat.valid));
    for fault in ["soap_fault:MS_UNAVAILABLE", "soap_fault_500:MS_UNAVAILABLE", "ms_unavailable:BE"] {
        bench.fault("vies_soap", fault).await;
        bench.run("vies.check", &belgian).await.expect_err(fault);
    }
    assert_eq!((bench.state("vies"), bench.state("vies_soap")), (State::Open, State::Closed));
    assert_eq!(bench.state("vies:BE"), State::Open, "the member state is the same on both ways");
    let asked = bench.calls("vies_soap");
    bench.run("vies.check", &belgian).await.expect_err("an open breaker");
    assert_eq!(bench.calls("vies_soap"), asked);

    let bench = Bench::new().await;
    bench.fault("vies", "error_wrapper:IP_BLOCKED").await;
    bench.run("vies.check", &belgian).await.expect_err("blocked");
    assert_eq!(bench.calls("vies_soap"), 0, "whose address is blocked does not try the other door");
}

#[tokio::test]
async fn another_register_answers_for_a_silent_insolvency_register() {
    let bench = Bench::new().await;
    bench.fault("cz_isir", "code:SERVER1").await;
    for (number, note) in [("99000105", "a record exists"), ("27082440", "no record")] {
        let finding = bench.run("cz_isir.insolvency", &subject("CZ", number, "")).await.expect("a finding");
        assert_eq!((finding.status, finding.via.as_deref()), (Status::Partial, Some("cz_ares")));
        assert!(finding.data.is_some_and(|facts| facts.notes[0].contains(note)), "{number}");
    }
}

#[tokio::test]
async fn the_official_service_is_the_fallback_for_the_site() {
    let bench = Bench::with_fallbacks().await;
    let belgian = subject("BE", "0202239951", "");
    bench.fault("nbb", "500").await;
    bench.fault("nbb_official", "silent_empty:2").await;
    for operation in ["nbb.deposits", "nbb.accounts"] {
        let finding = bench.run(operation, &belgian).await.expect("a finding");
        assert_eq!((finding.status, finding.via.as_deref()), (Status::Complete, Some("nbb_official")), "{operation}");
        assert!(finding.data.is_some_and(|facts| facts.accounts[0].to.as_deref() == Some("2024-12-31")), "{operation}");
    }
}

#[tokio::test]
async fn used_up_plans_and_blocks_open_for_as_long_as_they_last() {
    let bench =
        Bench::with_policies("services:\n  tavily: { fail_max: 3, reset_timeout: 60s, throttle_max: 40d }\n").await;
    bench.fault("tavily", "432").await;
    let failed = bench.run("tavily.adverse_media", &equinor()).await.expect_err("no credits");
    assert_eq!(failed.details.reason, Reason::Throttled);
    assert_eq!(bench.state("tavily"), State::Open);
    bench.run("tavily.adverse_media", &equinor()).await.expect_err("an open breaker");
    assert_eq!(bench.calls("tavily"), 1);

    bench.fault("nominatim", "blocked").await;
    bench.run("nominatim.search", &equinor()).await.expect_err("blocked");
    let view = bench.registry.breaker("nominatim").view();
    assert_eq!(view.state, State::Open);
    assert!(view.retry_in.is_some_and(|wait| wait > Duration::from_secs(3000)), "{view:?}");
}

#[tokio::test]
async fn a_billed_call_is_repeated_only_if_it_never_arrived() {
    let bench = Bench::new().await;
    bench.fault("tavily", "500").await;
    let failed = bench.run("tavily.adverse_media", &equinor()).await.expect_err("an outage");
    assert_eq!(failed.details.reason, Reason::Declined);
    bench.fault("tavily", "refused").await;
    let failed = bench.run("tavily.adverse_media", &equinor()).await.expect_err("no company");
    assert_eq!(failed.details.reason, Reason::Failed);
}

#[tokio::test]
async fn a_half_open_breaker_sends_the_free_call_first() {
    let bench = Bench::with_policies("services:\n  tavily: { fail_max: 1, reset_timeout: 20ms }\n").await;
    bench.fault("tavily", "refused").await;
    bench.run("tavily.adverse_media", &equinor()).await.expect_err("no company");
    bench.fault("tavily", "500").await;
    while bench.state("tavily") != State::HalfOpen {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bench.run("tavily.adverse_media", &equinor()).await.expect_err("still out of order");
    let calls = bench.simulator.calls("tavily").expect("calls");
    assert_eq!(calls.operations.get("search"), None, "the search that costs credits was not the probe: {calls:?}");
    assert_eq!(calls.operations.get("usage"), Some(&1));
}

#[tokio::test]
async fn odd_names_reach_upstreams_escaped() {
    let bench = Bench::new().await;
    for name in ["Novo Nordisk A/S", "\"Quoted\" +", "AND OR Ltd AND"] {
        let finding = bench.run("opensanctions.match", &subject("DK", "", name)).await.expect("an answer");
        assert_eq!(finding.status, Status::Complete, "{name}: {:?}", finding.reason);
    }
}

#[tokio::test]
async fn parents_are_reported_or_their_absence_is() {
    let bench = Bench::new().await;
    let exception = bench.run("gleif.direct_parent", &equinor()).await.expect("a finding");
    let parent = |finding: &Finding| finding.data.as_ref().map(|facts| facts.parents[0].clone()).expect("a parent");
    assert!(parent(&exception).exception.is_some() && parent(&exception).company.is_none());
    let child = Subject { lei: Some("98450073EGD581D89F03".into()), ..subject("NO", "", "x") };
    let reported = bench.run("gleif.ultimate_parent", &child).await.expect("a finding");
    assert_eq!(parent(&reported).company.and_then(|company| company.lei).as_deref(), Some("OW6OFBNCKXC4US5C7523"));
}

#[tokio::test]
async fn not_found_and_withdrawn_are_answers() {
    let bench = Bench::new().await;
    let cases = [
        ("no_brreg.entity", "NO", "999999999", Status::NotFound),
        ("no_brreg.entity", "NO", "989000500", Status::NeedsReview),
        ("cz_ares.entity", "CZ", "00000001", Status::NotFound),
        ("fi_ytj.company", "FI", "9999999-9", Status::NotFound),
        ("gleif.record", "NO", "999999999", Status::NotFound),
    ];
    for (operation, country, id, status) in cases {
        let finding = bench.run(operation, &subject(country, id, "")).await;
        let finding = finding.unwrap_or_else(|failed| panic!("{operation} {id}: {:?}", failed.details));
        assert_eq!((finding.status, finding.data.is_none()), (status, true), "{operation} {id}");
    }
    bench.fault("cz_ares", "moved").await;
    let failed = bench.run("cz_ares.entity", &subject("CZ", "27082440", "")).await.expect_err("a moved endpoint");
    assert_eq!(failed.details.reason, Reason::Declined);
    assert_eq!(bench.state("cz_ares"), State::Closed);
}

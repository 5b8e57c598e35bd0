//! The cases that are about more than one breaker and its calls.

use std::{
    collections::BTreeSet,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use circuit_registry::{Breaker, BreakersConfig, CallContext, Override, State, WallClock};

use super::{
    World,
    check::{Result, same, seconds},
    fleet,
};
use crate::{contract::Sick, speed::once};

/// Group, key and code of a case.
type Case = (&'static str, &'static str, fn() -> Result);

const CASES: &[Case] = &[
    ("Time", "a", wall_clock_set_back),
    ("Time", "b", fleet::a_day_of_uptime),
    ("Time", "c", ten_thousand_failed_probes),
    ("Time", "e", fleet::a_clock_ten_minutes_ahead),
    ("Metrics", "b", every_service_has_its_series),
    ("Metrics", "d", counters_go_on_after_a_reload),
    ("Control", "c", observe_only),
    ("Config", "a", a_new_reset_timeout),
    ("Config", "b", a_lower_fail_max),
    ("Config", "c", bad_values),
    ("Config", "d", a_hundred_thousand_names),
    ("Composition", "a", a_rejection_costs_no_retry_token),
    ("Composition", "b", a_hundred_jittered_openings),
    ("Fleet", "c", fleet::an_opening_observed_late),
    ("Fleet", "d", fleet::a_lost_key),
    ("Fleet", "e", fleet::a_half_open_snapshot),
];

pub(super) fn run(group: &str, key: &str) -> Option<Result> {
    CASES.iter().find(|case| (case.0, case.1) == (group, key)).map(|case| case.2())
}

const BASE: &str = "{ fail_max: 3, reset_timeout: 60s }";

/// One world and the breaker of its service `upstream`.
struct Scene {
    world: World,
    breaker: Breaker,
}

impl Scene {
    fn new(entry: &str) -> Self {
        Self::of(World::new(entry))
    }

    fn of(world: World) -> Self {
        let breaker = world.within(|| world.registry.breaker("upstream"));
        Self { world, breaker }
    }

    /// One call that succeeds or fails; whether it was admitted.
    fn call(&self, outcome: std::result::Result<(), Sick>) -> bool {
        call(&self.world, &self.breaker, outcome)
    }

    fn fail(&self, times: u32) {
        for _ in 0..times {
            self.call(Err(Sick::Ill));
        }
    }

    fn state(&self) -> State {
        self.world.within(|| self.breaker.view().state)
    }

    fn retry_in(&self) -> Option<Duration> {
        self.world.within(|| self.breaker.view().retry_in)
    }

    fn reload(&self, entry: &str) {
        let config = BreakersConfig::from_yaml(&format!("services:\n  upstream: {entry}\n")).expect("a valid policy");
        self.world.within(|| self.world.registry.apply(config));
    }
}

fn call(world: &World, breaker: &Breaker, outcome: std::result::Result<(), Sick>) -> bool {
    let result = world.within(|| once(breaker.call(async { outcome })));
    !result.is_err_and(|error| error.rejection().is_some())
}

/// A wall clock that can be set back an hour.
#[derive(Clone, Default)]
struct Settable(Arc<AtomicBool>);

impl WallClock for Settable {
    fn now(&self) -> SystemTime {
        let noon = SystemTime::UNIX_EPOCH + seconds(1_700_000_000);
        if self.0.load(Ordering::SeqCst) { noon - seconds(3600) } else { noon }
    }
}

fn wall_clock_set_back() -> Result {
    let wall = Settable::default();
    let yaml = format!("services:\n  upstream: {BASE}\n");
    let scene = Scene::of(World::with(&yaml, |builder| builder.wall_clock(wall.clone())));
    scene.fail(3);
    wall.0.store(true, Ordering::SeqCst);
    scene.world.advance(seconds(59));
    same("state at t=59", State::Open, scene.state())?;
    scene.world.advance(seconds(1));
    same("state at t=60", State::HalfOpen, scene.state())?;
    same("a call at t=60 is admitted", true, scene.call(Ok(())))
}

fn ten_thousand_failed_probes() -> Result {
    let cap = seconds(600);
    let scene = Scene::new("{ fail_max: 3, reset_timeout: 60s, reset_growth: { factor: 2, max: 10m } }");
    scene.fail(3);
    for probe in 0..10_000 {
        let wait = scene.retry_in().ok_or("no retry_in while open")?;
        if wait > cap || wait < seconds(60) {
            return Err(format!(
                "after {probe} failed probes: expected an open time in [60 s, 600 s], observed {wait:?}"
            ));
        }
        scene.world.advance(wait);
        same("the probe is admitted", true, scene.call(Err(Sick::Ill)))?;
    }
    same("open time after 10 000 failed probes", Some(cap), scene.retry_in())
}

fn every_service_has_its_series() -> Result {
    let world = World::with("services:\n  northdata: { fail_max: 3 }\n  vies: { fail_max: 4 }\n", |builder| builder);
    let metrics = prometheus::Registry::new();
    circuit_registry::prometheus::register(&world.registry, &metrics).map_err(|error| error.to_string())?;
    same("series", vec![("northdata".into(), 0.0), ("vies".into(), 0.0)], states(&world, &metrics))
}

/// `circuit_breaker_state` by service, as a scrape finds it.
fn states(world: &World, metrics: &prometheus::Registry) -> Vec<(String, f64)> {
    let families = world.within(|| metrics.gather());
    families
        .iter()
        .filter(|family| family.name() == "circuit_breaker_state")
        .flat_map(|family| family.get_metric())
        .filter_map(|series| {
            let label = series.get_label().iter().find(|label| label.name() == "service")?;
            Some((label.value().to_owned(), series.get_gauge().get_value()))
        })
        .collect()
}

fn counters_go_on_after_a_reload() -> Result {
    let scene = Scene::new(BASE);
    scene.fail(4);
    let before = scene.world.within(|| scene.breaker.view().calls);
    same("counters before (failures, rejections)", (3, 1), (before.failure, before.rejected()))?;
    scene.reload("{ fail_max: 2, reset_timeout: 90s }");
    scene.fail(1);
    let after = scene.world.within(|| scene.breaker.view().calls);
    same("counters after (failures, rejections)", (3, 2), (after.failure, after.rejected()))
}

fn observe_only() -> Result {
    let scene = Scene::new(BASE);
    scene.world.within(|| scene.breaker.observe_only(Override::new("the case", "a dry run")));
    for failure in 1..=10 {
        if !scene.call(Err(Sick::Ill)) {
            return Err(format!("expected failure {failure} to be admitted, observed a rejection"));
        }
    }
    scene.world.registry.flush_observers();
    same("would-open events", 1, scene.world.heard.would_open())?;
    same("openings", 0, scene.world.heard.openings())
}

fn a_new_reset_timeout() -> Result {
    let scene = Scene::new(BASE);
    scene.fail(3);
    scene.world.advance(seconds(10));
    scene.reload("{ fail_max: 3, reset_timeout: 90s }");
    same("this opening, at t=10", Some(seconds(50)), scene.retry_in())?;
    scene.world.advance(seconds(50));
    same("the probe at t=60 is admitted", true, scene.call(Err(Sick::Ill)))?;
    same("the next opening", Some(seconds(90)), scene.retry_in())
}

fn a_lower_fail_max() -> Result {
    let scene = Scene::new("{ fail_max: 5, reset_timeout: 60s }");
    scene.fail(4);
    scene.reload(BASE);
    same("state after the reload", State::Closed, scene.state())?;
    scene.fail(1);
    same("state after the next failure", State::Open, scene.state())
}

/// What is wrong, the line it is on, and the key to blame.
const BAD: &[(&str, u64, &str)] = &[
    ("services:\n  upstream:\n    fail_max: 0\n", 3, "services.upstream.fail_max"),
    (
        "services:\n  upstream:\n    window: { calls: 10, minimum_calls: 1, failure_rate: 101% }\n",
        3,
        "services.upstream.window.failure_rate",
    ),
    ("services:\n  upstream:\n    fail_maxx: 3\n", 3, "services.upstream.fail_maxx"),
    ("services:\n  upstream:\n    fail_max: 3\n    fail_max: 4\n", 4, "services.upstream.fail_max"),
    ("services:\n  upstream:\n    window: {}\n", 3, "services.upstream.window"),
];

fn bad_values() -> Result {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("breakers.yaml");
    let scene = Scene::new(BASE);
    for (yaml, line, key) in BAD {
        fs::write(&file, yaml).map_err(|error| error.to_string())?;
        let Err(error) = BreakersConfig::load(&file) else { return Err(format!("expected an error, loaded {yaml:?}")) };
        same("file", Some(file.as_path()), error.file())?;
        same(yaml, Some(*line), error.place().map(|place| place.line))?;
        same(yaml, *key, error.key())?;
        let text = error.to_string();
        if !(text.contains("breakers.yaml") && text.contains(&format!(":{line}:")) && text.contains(key)) {
            return Err(format!("expected file, line and key in the text, observed {text:?}"));
        }
    }
    scene.fail(3);
    same("the running policy still opens on three", State::Open, scene.state())
}

fn a_hundred_thousand_names() -> Result {
    let world = World::with("defaults: { fail_max: 3, reset_timeout: 60s }\nnames: { max_dynamic: 500 }\n", |b| b);
    let first = world.within(|| world.registry.breaker("dynamic-open"));
    for _ in 0..3 {
        call(&world, &first, Err(Sick::Ill));
    }
    drop(first);
    for name in 0..100_000 {
        let name = format!("dynamic-{name}");
        let result = world.within(|| once(world.registry.call(&name, async { Ok::<_, Sick>(()) })));
        result.map_err(|error| error.to_string())?;
    }
    let known = world.within(|| world.registry.views());
    if known.len() > 500 {
        return Err(format!("expected at most 500 breakers, observed {}", known.len()));
    }
    same("the open breaker's state", State::Open, world.within(|| world.registry.breaker("dynamic-open").view().state))
}

fn a_rejection_costs_no_retry_token() -> Result {
    let scene = Scene::new("{ fail_max: 3, reset_timeout: 60s, retry: { max_attempts: 3, budget: 20% } }");
    for _ in 0..50 {
        scene.call(Ok(()));
    }
    scene.fail(3);
    let balance = || scene.world.within(|| scene.breaker.view().budget_balance);
    let before = balance();
    if before.is_none_or(|tokens| tokens == 0) {
        return Err(format!("expected tokens to lose, observed {before:?}"));
    }
    for _ in 0..100 {
        let retry = CallContext::attempt(2).scope(scene.breaker.call(async { Ok::<_, Sick>(()) }));
        let result = scene.world.within(|| once(retry));
        if !result.is_err_and(|error| error.rejection().is_some_and(|refusal| refusal.reason.as_str() == "open")) {
            return Err("expected an open rejection, observed something else".into());
        }
    }
    same("tokens after a hundred rejected retries", before, balance())
}

fn a_hundred_jittered_openings() -> Result {
    let entry = "{ fail_max: 3, reset_timeout: 60s, reset_growth: { jitter: 20% } }";
    let services: String = (0..100).map(|number| format!("  service-{number}: {entry}\n")).collect();
    let world = World::with(&format!("services:\n{services}"), |builder| builder);
    let mut waits = BTreeSet::new();
    for number in 0..100 {
        let breaker = world.within(|| world.registry.breaker(&format!("service-{number}")));
        for _ in 0..3 {
            call(&world, &breaker, Err(Sick::Ill));
        }
        waits.insert(world.within(|| breaker.view().retry_in).ok_or("no retry_in while open")?);
    }
    let (first, last) = (waits.first().copied().unwrap_or_default(), waits.last().copied().unwrap_or_default());
    if first < seconds(60) || last > seconds(72) {
        return Err(format!("expected all in [60 s, 72 s], observed {first:?} to {last:?}"));
    }
    // Spread: a quarter of the breakers in each quarter of the interval, give or take what chance may do.
    let quarters = [60, 63, 66, 69].map(|from| {
        let quarter = seconds(from)..seconds(from + 3);
        waits.iter().filter(|wait| quarter.contains(*wait)).count()
    });
    if quarters.iter().any(|&share| share < 5) {
        return Err(format!("expected them spread over the interval, observed {quarters:?} per quarter"));
    }
    Ok(())
}

//! Ours, through the calls that everybody uses: `Breaker::call` and `CircuitRegistry::call`.

use std::{fmt::Write, hint::black_box, sync::Arc};

use circuit_registry::{BreakersConfig, CallContext, CircuitRegistry, Classify, Verdict};

use super::{
    Form, Scene, Sick, Subject, once,
    windows::{LARGEST, SPAN, Windowed},
};
use crate::{awaited, repeat};

/// What the tables call us.
pub const NAME: &str = "circuit-registry";

impl Classify for Sick {
    fn verdict(&self) -> Verdict {
        Verdict::Failure
    }
}

async fn work() -> Result<u64, Sick> {
    Ok(black_box(7))
}

/// A silent registry of one service with that policy.
fn registry_of(policy: &str) -> CircuitRegistry {
    registry(&format!("services:\n  upstream: {policy}\n"))
}

fn registry(yaml: &str) -> CircuitRegistry {
    let config = BreakersConfig::from_yaml(yaml).expect("the benchmarks configure valid policies");
    CircuitRegistry::builder().config(config).log(false).build()
}

fn trip(registry: &CircuitRegistry, service: &str) {
    while once(registry.call(service, async { Err::<u64, Sick>(Sick) })).is_err_and(|error| error.rejection().is_none())
    {
    }
}

const CONSECUTIVE: &str = "{ fail_max: 5, reset_timeout: 24h }";

/// `Breaker::call`.
pub fn calls(scene: Scene) -> Subject {
    let registry = registry_of(CONSECUTIVE);
    if scene == Scene::Rejected {
        trip(&registry, "upstream");
    }
    let breaker = registry.breaker("upstream");
    Subject::new(NAME, Form::Future, scene, move |n| awaited!(n, breaker.call(work())))
}

/// The same with a name too long to be copied by value: a rejection shares it.
pub fn calls_of_a_long_name(scene: Scene) -> Subject {
    const LONG: &str = "a-service-with-a-name-longer-than-most";
    let registry = registry(&format!("services:\n  {LONG}: {CONSECUTIVE}\n"));
    if scene == Scene::Rejected {
        trip(&registry, LONG);
    }
    let breaker = registry.breaker(LONG);
    Subject::new("circuit-registry, long name", Form::Future, scene, move |n| awaited!(n, breaker.call(work())))
}

/// The same with what else a policy may ask for, on tokio's timer where it needs one.
pub fn policies() -> Vec<Subject> {
    let runtime =
        Arc::new(tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime for its timer"));
    [
        ("timeout", "timeout: 2500ms"),
        ("bulkhead", "bulkhead: { max_concurrent: 40 }"),
        ("retry budget", "retry: { max_attempts: 3, budget: 20% }"),
        ("rate limit", "rate_limit: 1000000/ms"),
        (
            "all of them",
            "timeout: 2500ms, bulkhead: { max_concurrent: 40 }, retry: { budget: 20% }, rate_limit: 1000000/ms",
        ),
    ]
    .into_iter()
    .map(|(name, keys)| {
        let breaker = registry_of(&format!("{{ fail_max: 5, reset_timeout: 24h, {keys} }}")).breaker("upstream");
        let runtime = Arc::clone(&runtime);
        Subject::new(format!("circuit-registry, {name}"), Form::Future, Scene::Closed, move |n| {
            let _timer = runtime.enter();
            awaited!(n, breaker.call(work()))
        })
    })
    .collect()
}

/// The same within a [`CallContext`], as in a Temporal activity. From then on every call of the process looks for one, so
/// this is measured last.
pub fn calls_in_context(scene: Scene) -> Subject {
    let registry = registry_of(CONSECUTIVE);
    if scene == Scene::Rejected {
        trip(&registry, "upstream");
    }
    let breaker = registry.breaker("upstream");
    Subject::new("circuit-registry, in a call context", Form::Future, scene, move |n| {
        once(CallContext::attempt(1).scope(async { repeat!(n, breaker.call(work()).await) }))
    })
}

/// `CircuitRegistry::call` with a number of services configured, and with a name that has no entry of its own.
pub fn lookups() -> Vec<Subject> {
    let mut subjects: Vec<Subject> = [1, 100, 10_000]
        .into_iter()
        .map(|services| {
            let registry = registry(&many(services));
            let name = format!("s{:05}", services / 2);
            Subject::new(format!("registry.call, {services} services"), Form::Future, Scene::Closed, move |n| {
                awaited!(n, registry.call(black_box(&name), work()))
            })
        })
        .collect();
    let registry = registry(&many(100));
    subjects.push(Subject::new("registry.call, dynamic name", Form::Future, Scene::Closed, move |n| {
        awaited!(n, registry.call(black_box("dynamic:DE"), work()))
    }));
    subjects
}

/// A configuration with `services` services.
pub fn many(services: usize) -> String {
    let mut yaml = String::from("services:\n");
    for service in 0..services {
        writeln!(yaml, "  s{service:05}: {CONSECUTIVE}").expect("a string takes everything");
    }
    yaml
}

/// Our windows.
pub const WINDOWS: [Windowed; 3] = [
    Windowed { name: "circuit-registry, count", build: || windowed(&count_window()) },
    Windowed { name: "circuit-registry, time", build: || windowed(&time_window("")) },
    Windowed {
        name: "circuit-registry, time, slow calls",
        build: || windowed(&time_window(", slow_call: 2s, slow_rate: 60%")),
    },
];

/// The policy with the largest count window that is measured.
pub fn count_window() -> String {
    window(&format!("calls: {LARGEST}"))
}

/// The policy with a time window that holds everything measured.
pub fn time_window(more: &str) -> String {
    window(&format!("time: {}s{more}", SPAN.as_secs()))
}

fn window(span: &str) -> String {
    format!("{{ fail_max: off, window: {{ {span}, minimum_calls: 100, failure_rate: 50% }}, reset_timeout: 24h }}")
}

fn windowed(policy: &str) -> Subject {
    let breaker = registry_of(policy).breaker("upstream");
    Subject::new(NAME, Form::Future, Scene::Closed, move |n| awaited!(n, breaker.call(work())))
}

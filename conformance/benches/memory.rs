//! Allocations per call, and bytes per breaker, counted by the allocator itself.
//!
//! Apart from the timings, because a counting allocator slows every crate that allocates.

use std::alloc::System;

use breaker_conformance::speed::{
    Scene, Subject, ours,
    rivals::rivals,
    targets::{Target, print},
    windows,
};
use circuit_registry::{BreakersConfig, CircuitRegistry};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CALLS: u32 = 1000;
const MANY: usize = 10_000;

fn main() {
    let mut targets = Vec::new();
    println!(
        "\n## Allocations per call\n\n| breaker | form | closed | bytes | rejected | bytes |\n|---|---|---:|---:|---:|---:|"
    );
    // Ours before the others are built: the runtime behind tower-resilience's timer allocates when it likes.
    for scene in [Scene::Closed, Scene::Rejected] {
        let (count, _) = allocations(&ours::calls(scene));
        targets.push(Target::at_most(format!("allocations, {scene:?}"), "per call", count, 0.0));
    }
    for subject in ours::lookups() {
        let (count, _) = allocations(&subject);
        targets.push(Target::at_most(format!("allocations, {}", subject.name), "per call", count, 0.0));
    }

    let of = |scene| [ours::calls(scene)].into_iter().chain(rivals(scene));
    for (closed, rejected) in of(Scene::Closed).zip(of(Scene::Rejected)) {
        let (a, b) = (allocations(&closed), allocations(&rejected));
        println!("| {} | {:?} | {:.0} | {:.0} | {:.0} | {:.0} |", closed.name, closed.form, a.0, a.1, b.0, b.1);
    }

    println!("\n## Memory\n\n| registry | bytes |\n|---|---:|");
    let many = live_bytes(&ours::many(MANY));
    let configured = live_bytes(&ours::many(2 * MANY)).saturating_sub(many) as f64 / MANY as f64;
    let dynamic = dynamic_breaker();
    println!("| {MANY} breakers and their configuration | {many} |");
    println!("| each of them, its policy and its entry in the configuration included | {configured:.0} |");
    println!("| a breaker that goes by the defaults | {dynamic:.0} |");
    targets.push(Target::at_most("memory per breaker, consecutive policy", "bytes", dynamic, 1024.0));
    targets.push(Target::at_most("memory of 10 000 breakers", "MiB", many as f64 / 1_048_576.0, 16.0));
    let empty = live_bytes("services: {}");
    for (kind, policy) in [("count window of 100 000", ours::count_window()), ("time window", ours::time_window(""))] {
        let yaml = format!("services:\n  upstream: {policy}\n");
        println!("| one breaker, {kind}, empty | {} |", live_bytes(&yaml).saturating_sub(empty));
    }
    for windowed in &ours::WINDOWS {
        let subject = (windowed.build)();
        let filling = growth(&subject);
        let full = growth(&subject);
        println!("| {}: growth over its first {} calls | {filling:.0} |", windowed.name, windows::LARGEST);
        let what = format!("{}: growth over the next 100 000 calls", windowed.name);
        targets.push(Target::at_most(what, "bytes", full, 0.0));
    }
    println!();
    print(&targets);
}

/// Allocations and bytes per call, once the first calls have made what is made once.
fn allocations(subject: &Subject) -> (f64, f64) {
    subject.calls(CALLS);
    let region = Region::new(ALLOCATOR);
    subject.calls(CALLS);
    let change = region.change();
    (change.allocations as f64 / f64::from(CALLS), change.bytes_allocated as f64 / f64::from(CALLS))
}

fn growth(subject: &Subject) -> f64 {
    let region = Region::new(ALLOCATOR);
    subject.calls(windows::LARGEST);
    let change = region.change();
    change.bytes_allocated as f64 - change.bytes_deallocated as f64
}

/// What each breaker adds that is made on first use.
fn dynamic_breaker() -> f64 {
    let yaml = format!("names: {{ max_dynamic: {} }}\n", 2 * MANY);
    let config = BreakersConfig::from_yaml(&yaml).expect("a valid configuration");
    let registry = CircuitRegistry::builder().config(config).log(false).build();
    let names: Vec<String> = (0..MANY).map(|number| format!("service-{number:05}")).collect();
    let region = Region::new(ALLOCATOR);
    for name in &names {
        drop(registry.breaker(name));
    }
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated) as f64 / MANY as f64
}

/// What a registry of that configuration holds.
fn live_bytes(yaml: &str) -> usize {
    let region = Region::new(ALLOCATOR);
    let config = BreakersConfig::from_yaml(yaml).expect("a valid configuration");
    let registry = CircuitRegistry::builder().config(config).log(false).build();
    let change = region.change();
    drop(registry);
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

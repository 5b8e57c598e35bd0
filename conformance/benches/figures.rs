//! Prints the figures of every breaker, and the ratios against the targets.

use breaker_conformance::speed::{
    Form, Subject,
    measure::{Cost, Effort, measure},
    rivals::{Scene, floors, rivals},
};
use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    for scene in [Scene::Closed, Scene::Rejected] {
        let mut subjects = floors();
        subjects.extend(rivals(scene));
        let costs = measure(&subjects, Effort::STANDARD);
        table(scene, &subjects, &costs);
    }
}

fn allocations(subject: &Subject) -> (f64, f64) {
    (subject.run)(1000);
    let region = Region::new(ALLOCATOR);
    (subject.run)(1000);
    let change = region.change();
    (change.allocations as f64 / 1000.0, change.bytes_allocated as f64 / 1000.0)
}

fn table(scene: Scene, subjects: &[Subject], costs: &[Cost]) {
    println!("\n{scene:?}: ns per call and thread; over = less the bare call of the same form");
    println!(
        "{:42} {:8} {:>8} {:>8} {:>8} {:>8} {:>6} {:>7} {:>7}",
        "", "form", "1 thr", "over", "2 thr", "over", "2/1", "allocs", "bytes"
    );
    for (subject, cost) in subjects.iter().zip(costs) {
        let floor = costs[usize::from(subject.form == Form::Closure)];
        let (allocs, bytes) = allocations(subject);
        println!(
            "{:42} {:8} {:8.2} {:8.2} {:8.2} {:8.2} {:6.2} {:7.2} {:7.1}",
            subject.name,
            format!("{:?}", subject.form),
            cost.one,
            cost.one - floor.one,
            cost.two,
            cost.two - floor.two,
            cost.two / cost.one,
            allocs,
            bytes
        );
    }
}

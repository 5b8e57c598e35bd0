//! A call through a breaker in good times, and a rejected one, allocate nothing: counted by the allocator.
//!
//! One test alone in its program, because the allocator counts for all threads. Does not cover what happens when a breaker
//! changes state, nor names that are met for the first time.

use std::alloc::System;

use breaker_conformance::speed::{Scene, Subject, ours};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn allocations(subject: &Subject, calls: u32) -> usize {
    let region = Region::new(ALLOCATOR);
    subject.calls(calls);
    region.change().allocations
}

#[test]
fn closed_and_rejected_calls_and_look_ups_allocate_nothing() {
    let mut subjects = ours::lookups();
    for scene in [Scene::Closed, Scene::Rejected] {
        subjects.push(ours::calls(scene));
        subjects.push(ours::calls_of_a_long_name(scene));
        subjects.push(ours::calls_in_context(scene));
    }
    subjects.extend(ours::policies());
    for subject in &subjects {
        subject.calls(1); // what is made on first use is made
        assert_eq!(allocations(subject, 1000), 0, "{}, {:?}", subject.name, subject.scene);
    }
    let control = Subject::new("a box", subjects[0].form, Scene::Closed, |calls| {
        (0..calls).map(|call| u32::from(*std::hint::black_box(Box::new(call)) < calls)).sum()
    });
    assert_eq!(allocations(&control, 10), 10, "the allocator does not count");
}

//! Every configured service has exactly one state, from the start and across reloads.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use circuit_registry::{BreakersConfig, CircuitRegistry};
use proptest::{
    collection::{btree_set, vec},
    prelude::*,
    sample::select,
};

use crate::{Verdict, config};

fn configured(names: &BTreeSet<&str>) -> BreakersConfig {
    let entries: Vec<_> = names.iter().map(|name| format!("\"{name}\": {{}}")).collect();
    config(&format!("services: {{ {} }}\nnames: {{ max_dynamic: 4 }}", entries.join(", ")))
}

proptest! {
    #[test]
    fn every_configured_service_is_there_once(sets in vec(btree_set(select(vec!["a", "b", "c", "a:x", "d"]), 0..5), 1..8),
                                              used in vec(select(vec!["a", "a:x", "a:y", "e", "f", "g", "h", "i"]), 0..20)) {
        let registry = CircuitRegistry::new(configured(&sets[0]));
        let check = |set: &BTreeSet<&str>| {
            let views = registry.views();
            for name in set {
                prop_assert_eq!(views.iter().filter(|v| v.service == *name).count(), 1, "{}", name);
            }
            let distinct: BTreeSet<_> = views.iter().map(|v| v.service.clone()).collect();
            prop_assert_eq!(distinct.len(), views.len());
            prop_assert!(views.len() <= set.len() + 4 + 5, "unbounded: {}", views.len());
            Ok(())
        };
        check(&sets[0])?;
        for set in &sets {
            registry.apply(configured(set));
            check(set)?;
            for name in &used {
                if let Ok(call) = registry.breaker(name).try_acquire() {
                    call.settle(Verdict::Success);
                }
            }
            check(set)?;
        }
    }
}

/// A name that changes sides, from made on use to configured and back, is never gone while someone looks.
#[test]
fn a_scrape_during_a_reload_misses_nobody() {
    let (with, without) = (config("services: { always: {}, sometimes: {} }"), config("services: { always: {} }"));
    let registry = CircuitRegistry::new(without.clone());
    let handle = registry.breaker("sometimes");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let views = registry.views();
                    for name in ["always", "sometimes"] {
                        assert_eq!(views.iter().filter(|v| v.service == name).count(), 1, "{name}");
                    }
                    assert_eq!(registry.breaker("sometimes").view().calls, handle.view().calls);
                }
            });
        }
        for _ in 0..500 {
            registry.apply(with.clone());
            registry.apply(without.clone());
        }
        over.store(true, Ordering::Relaxed);
    });
    handle.try_acquire().unwrap().settle(Verdict::Success);
    assert_eq!(registry.breaker("sometimes").view().calls.success, 1, "it is the same breaker still");
}

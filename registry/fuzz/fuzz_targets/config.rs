//! Any text is a configuration or an error with a place in it; never a panic, and never a configuration that a registry
//! cannot take.

#![no_main]

use circuit_registry::{BreakersConfig, CircuitRegistry};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // YAML also ends a line at a lone carriage return.
    let lines = text.matches(['\n', '\r']).count() as u64 + 1;
    match BreakersConfig::from_yaml(text) {
        Ok(config) => {
            let registry = CircuitRegistry::new(config.clone());
            for service in config.service_names().chain(["made:on:demand"]) {
                // Refused or not: with this policy a call can be decided.
                drop(registry.breaker(service).try_acquire());
            }
            assert!(registry.apply(config).is_empty(), "the same configuration twice is a change");
        }
        Err(error) => {
            assert!(!error.message().is_empty());
            if let Some(place) = error.place() {
                assert!(
                    (1..=lines).contains(&place.line) && place.column >= 1,
                    "{error}: no such place in {lines} lines"
                );
            }
        }
    }
});

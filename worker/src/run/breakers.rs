//! The breakers of a worker: their store, their history, and what is measured of them.

use std::path::PathBuf;

use circuit_registry::{BreakersConfig, CircuitRegistry, store};

use crate::{admin::Journal, error::CliError};

/// The breakers of a process, and what happened to them.
#[derive(Debug, Clone)]
pub struct Breakers {
    /// The breakers.
    pub registry: CircuitRegistry,
    /// Their history. With a store in a file it is kept beside that file.
    pub journal: Journal,
}

impl Breakers {
    /// Breakers that go by `config` and are kept in the store of this setting, such as `file:PATH`. `memory` stores nothing.
    ///
    /// # Errors
    /// When the setting names no store (the user's mistake).
    pub fn open(config: BreakersConfig, setting: &str) -> Result<Self, CliError> {
        let store = match setting {
            "memory" => None,
            other => {
                let opened = store::open(other);
                Some(opened.map_err(|error| CliError::user(format!("--store (OSINT_STORE): {error}")))?)
            }
        };
        let journal = setting.strip_prefix("file:").map_or_else(Journal::default, |path| {
            let mut history = PathBuf::from(path).into_os_string();
            history.push(".history");
            Journal::in_file(&PathBuf::from(history))
        });
        let builder = CircuitRegistry::builder().config(config).measure_calls(true).observer(journal.clone());
        let registry = match store {
            None => {
                tracing::info!("nothing is stored: breakers and overrides end with this process");
                builder.build()
            }
            Some(store) => builder.store(store).build(),
        };
        Ok(Self { registry, journal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_no_store_and_a_file_has_its_history_beside_it() {
        let open = |setting: &str| Breakers::open(BreakersConfig::default(), setting);
        assert!(open("memory").expect("valid").registry.store_errors().is_none());
        assert_eq!(open("elsewhere").expect_err("no store").code(), 2);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("breakers.state");
        let breakers = open(&format!("file:{}", file.display())).expect("valid");
        assert_eq!(breakers.registry.store_errors().map(|(kind, _)| kind), Some("file"));
        assert!(folder.path().join("breakers.state.history").exists());
    }
}

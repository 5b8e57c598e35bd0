//! What a reload of the configuration changed.

use super::config::BreakersConfig;

/// What a reload changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ConfigDiff {
    /// Services that are configured now and were not.
    pub added: Vec<String>,
    /// Services whose policy is another now.
    pub changed: Vec<String>,
    /// Services that go by the defaults now.
    pub removed: Vec<String>,
    /// The defaults are others now.
    pub defaults_changed: bool,
    /// The number of names made on first use is bounded otherwise now.
    pub max_dynamic_changed: bool,
}

impl ConfigDiff {
    /// What changes from `old` to `new`.
    pub(crate) fn between(old: &BreakersConfig, new: &BreakersConfig) -> Self {
        let mut diff = Self {
            defaults_changed: old.defaults != new.defaults,
            max_dynamic_changed: old.max_dynamic != new.max_dynamic,
            ..Self::default()
        };
        for (name, policy) in &new.services {
            match old.services.get(name) {
                None => diff.added.push(name.clone()),
                Some(before) if before != policy => diff.changed.push(name.clone()),
                Some(_) => {}
            }
        }
        diff.removed = old.services.keys().filter(|name| !new.services.contains_key(*name)).cloned().collect();
        diff
    }

    /// Nothing changed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.changed.is_empty()
            && self.removed.is_empty()
            && !self.defaults_changed
            && !self.max_dynamic_changed
    }
}

//! What a reload of the configuration changed.

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
}

impl ConfigDiff {
    /// Nothing changed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty() && !self.defaults_changed
    }
}

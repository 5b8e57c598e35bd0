//! Settings by the names that the rows of the catalog give.

use std::collections::BTreeMap;

use super::{fallbacks, sources};
use crate::spec::{CACHE, CONTACT, Settings, SettingsError, Source};

impl Settings {
    /// From the environment of the process.
    ///
    /// # Errors
    /// If an address is none, or a value cannot be sent.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// From pairs, as in tests.
    ///
    /// # Errors
    /// If an address is none, or a value cannot be sent.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, SettingsError> {
        let pairs: BTreeMap<_, _> = pairs.into_iter().collect();
        Self::read(|name| pairs.get(name).map(|value| (*value).to_owned()))
    }

    /// From anything that knows values by the names of the catalog. An empty value is no value.
    ///
    /// # Errors
    /// If an address is none, or a value cannot be sent.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        Self::collect(variables(), lookup)
    }
}

/// Every variable that a source reads.
fn variables() -> impl Iterator<Item = &'static str> {
    let of = |source: &'static Source| {
        let credentials = source.credentials.iter().flat_map(|credential| credential.any_of.iter().copied());
        [source.base.env].into_iter().chain(credentials).chain(source.auth.variables()).chain(source.user_agent)
    };
    sources().iter().copied().chain(fallbacks().iter().copied()).flat_map(of).chain([CONTACT, CACHE])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{gleif, nominatim, tavily};

    #[test]
    fn missing_credentials_are_named_and_blank_ones_are_missing() {
        let settings = Settings::from_pairs([("TAVILY_API_KEY", "  ")]).expect("settings");
        assert_eq!(settings.missing(&tavily::SOURCE).map(|c| c.any_of), Some(&["TAVILY_API_KEY"][..]));
        assert!(settings.missing(&gleif::SOURCE).is_none());
        assert!(settings.missing(&nominatim::SOURCE).is_some());
        let settings =
            Settings::from_pairs([("NOMINATIM_USER_AGENT", "acme-kyb (ops@example.org)")]).expect("settings");
        assert!(settings.missing(&nominatim::SOURCE).is_none());
        assert_eq!(settings.user_agent(nominatim::SOURCE.user_agent), "acme-kyb (ops@example.org)");
    }

    #[test]
    fn the_identity_names_the_contact() {
        let settings = Settings::from_pairs([("OSINT_CONTACT", "ops@example.org")]).expect("settings");
        assert!(settings.user_agent(None).ends_with("(+ops@example.org)"));
        assert!(Settings::default().user_agent(None).contains("https://"));
    }

    #[test]
    fn unusable_values_are_refused_by_name_and_never_shown() {
        let refused = |name, value| Settings::from_pairs([(name, value)]).expect_err(value).to_string();
        assert!(refused("GLEIF_BASE_URL", "api.gleif.org").contains("GLEIF_BASE_URL"));
        assert!(refused("GLEIF_BASE_URL", "file:///etc/passwd").contains("GLEIF_BASE_URL"));
        let error = refused("TAVILY_API_KEY", "se\ncret");
        assert!(error.contains("TAVILY_API_KEY") && !error.contains("cret"));
        let settings = Settings::from_pairs([("TAVILY_API_KEY", "secret")]).expect("settings");
        assert!(!format!("{settings:?}").contains("secret"));
    }
}

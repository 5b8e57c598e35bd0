//! What the environment says: addresses, credentials, and whom an upstream may write to.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use crate::catalog::{self, Base, Credential, Source};

/// The variable with a mail address or web page at which an upstream's operator reaches us.
pub const CONTACT: &str = "OSINT_CONTACT";

/// The variable with a folder for answers that are to outlive the process. They name people: it is for the worker alone.
pub const CACHE: &str = "OSINT_CACHE";

/// Settings by the name of their environment variable. Values are not shown by `Debug`: most of them are secret.
#[derive(Clone, Default)]
pub struct Settings(Arc<BTreeMap<String, SecretString>>);

/// A setting that cannot be used; the text names the variable and not its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Not an address.
    #[error("{0} is not an http or https address")]
    Address(String),
    /// Cannot be sent in a header.
    #[error("{0} contains characters that cannot be sent")]
    Unsendable(String),
}

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
        let mut values = BTreeMap::new();
        for name in names() {
            let Some(value) = lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
            else {
                continue;
            };
            if name.ends_with("_BASE_URL") {
                let address = Url::parse(&value).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
                if address.is_none_or(|url| url.cannot_be_a_base()) {
                    return Err(SettingsError::Address(name.to_owned()));
                }
            } else if reqwest::header::HeaderValue::from_str(&value).is_err() {
                return Err(SettingsError::Unsendable(name.to_owned()));
            }
            values.insert(name.to_owned(), SecretString::from(value));
        }
        Ok(Self(Arc::new(values)))
    }

    /// A credential, if it is set.
    #[must_use]
    pub fn credential(&self, env: &str) -> Option<&SecretString> {
        self.0.get(env)
    }

    /// Where a base address points.
    #[must_use]
    pub fn base(&self, base: &Base) -> &str {
        self.0.get(base.env).map_or(base.default, ExposeSecret::expose_secret)
    }

    /// Whether the operator has chosen where a base address points.
    #[must_use]
    pub fn is_chosen(&self, base: &Base) -> bool {
        self.0.contains_key(base.env)
    }

    /// The folder for answers that are to outlive the process.
    #[must_use]
    pub fn cache(&self) -> Option<PathBuf> {
        self.0.get(CACHE).map(|folder| PathBuf::from(folder.expose_secret()))
    }

    /// The first credential of a source that is not set.
    #[must_use]
    pub fn missing(&self, source: &Source) -> Option<&'static Credential> {
        source.credentials.iter().find(|credential| !credential.any_of.iter().any(|env| self.0.contains_key(*env)))
    }

    /// How we introduce ourselves, unless the source has a variable for a text of its own.
    #[must_use]
    pub fn user_agent(&self, own: Option<&str>) -> String {
        if let Some(text) = own.and_then(|env| self.0.get(env)) {
            return text.expose_secret().to_owned();
        }
        let contact = self.0.get(CONTACT).map_or(env!("CARGO_PKG_REPOSITORY"), ExposeSecret::expose_secret);
        concat!("osint-activities/", env!("CARGO_PKG_VERSION")).to_owned() + " (+" + contact + ")"
    }
}

/// Every variable that a source reads.
fn names() -> impl Iterator<Item = &'static str> {
    let of = |source: &'static Source| {
        let bases = source.bases.iter().map(|base| base.env);
        let credentials = source.credentials.iter().flat_map(|credential| credential.any_of.iter().copied());
        bases.chain(credentials).chain(source.auth.variables()).chain(source.user_agent)
    };
    catalog::sources().iter().copied().chain(catalog::stand_ins().iter().copied()).flat_map(of).chain([CONTACT, CACHE])
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
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

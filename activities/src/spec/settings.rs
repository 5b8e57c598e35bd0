//! What the environment says: addresses, credentials, and whom an upstream may write to.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use super::{Base, Credential, Source};

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
    /// From anything that knows values by these names. An empty value is no value.
    ///
    /// # Errors
    /// If an address is none, or a value cannot be sent.
    pub(crate) fn collect(
        names: impl Iterator<Item = &'static str>,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let mut values = BTreeMap::new();
        for name in names {
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

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

//! `osint worker --print-config`: the worker's settings, and where each value comes from.
//!
//! The list comes from the definition of the command line, so no setting is missing. Secrets are left out: a store is shown as
//! its kind and place, a key as its id, another credential as "set".

use std::{env, path::Path};

use clap::{
    ArgMatches, Command,
    error::{ContextKind, ContextValue},
    parser::ValueSource,
};
use osint_activities::{catalog, spec::Settings};
use serde::Serialize;

use crate::{
    error::CliError,
    temporal::{
        codec::{self, Codec},
        connect::{Target, options},
    },
};

/// What replaces a secret.
const HIDDEN: &str = "***";

/// Flags that control this page. They are not listed on it.
const ABOUT_THE_PAGE: [&str; 5] = ["print_config", "json", "help", "version", "verbose"];

/// Flags that the rows of the Temporal connection show in more detail.
const TEMPORAL: [&str; 2] = ["address", "namespace"];

/// One setting of the command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Given {
    name: String,
    /// `null`: not set, and there is no default.
    value: Option<String>,
    from: String,
}

impl Given {
    fn new(name: &str, value: Option<String>, from: &str) -> Self {
        Self { name: name.to_owned(), value, from: from.to_owned() }
    }
}

/// The settings of a subcommand, as they were given.
pub(super) fn given(command: &Command, matches: &ArgMatches, sub: &str) -> Vec<Given> {
    let (Some(command), Some(matches)) = (command.find_subcommand(sub), matches.subcommand_matches(sub)) else {
        return Vec::new();
    };
    let shown = |id: &str| !ABOUT_THE_PAGE.contains(&id) && !TEMPORAL.contains(&id);
    command
        .get_arguments()
        .filter(|argument| shown(argument.get_id().as_str()))
        .map(|argument| {
            let id = argument.get_id().as_str();
            let raw =
                matches.get_raw(id).map(|mut values| values.next().unwrap_or_default().to_string_lossy().into_owned());
            let value = if id == "store" { raw.map(|store| without_secrets(&store)) } else { raw };
            let variable = argument.get_env().map(|name| name.to_string_lossy().into_owned());
            let from = match (matches.value_source(id), &value) {
                (Some(ValueSource::CommandLine), _) => format!("--{}", argument.get_long().unwrap_or(id)),
                (Some(ValueSource::EnvVariable), _) => variable.unwrap_or_default(),
                (_, Some(_)) => "default".to_owned(),
                (_, None) => "not set".to_owned(),
            };
            Given::new(id, value, &from)
        })
        .collect()
}

/// A store's setting without user, password and options. Only the option `prefix` is shown.
fn without_secrets(store: &str) -> String {
    let Some((scheme, rest)) = store.split_once("://") else { return store.to_owned() };
    let (rest, options) = rest.split_once('?').map_or((rest, None), |(rest, options)| (rest, Some(options)));
    let place = rest.rsplit_once('@').map_or_else(|| rest.to_owned(), |(_, place)| format!("{HIDDEN}@{place}"));
    match options {
        Some(options) if options.starts_with("prefix=") && !options.contains('&') => {
            format!("{scheme}://{place}?{options}")
        }
        Some(_) => format!("{scheme}://{place}?{HIDDEN}"),
        None => format!("{scheme}://{place}"),
    }
}

/// Adds the name of the environment variable to the error if the value came from one. The user may not know the flag.
pub(super) fn name_variable(mut error: clap::Error, command: &Command) -> clap::Error {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return error };
    let flag = flag.split([' ', '=']).next().unwrap_or_default().trim_start_matches("--").to_owned();
    let given = |word: &str| word == format!("--{flag}") || word.starts_with(&format!("--{flag}="));
    if env::args().any(|word| given(&word)) {
        return error;
    }
    let all = command.get_subcommands().chain([command]).flat_map(Command::get_arguments);
    let mut variables =
        all.filter(|argument| argument.get_long() == Some(&flag)).filter_map(|argument| argument.get_env());
    if let Some(variable) = variables.find(|variable| env::var_os(variable).is_some()) {
        let tip = format!("the value comes from the environment variable {}", variable.to_string_lossy());
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// All settings.
#[derive(Debug, Serialize)]
pub(super) struct Effective {
    settings: Vec<Given>,
    temporal: Vec<Given>,
    codec: Vec<Given>,
    sources: Vec<Given>,
}

/// Collects the worker's settings.
///
/// # Errors
/// When a setting cannot be used.
pub(super) fn effective(given: &[Given], target: &Target, breakers: Option<&Path>) -> Result<Effective, CliError> {
    let mut settings = given.to_vec();
    if let Some(config) = settings.iter_mut().find(|setting| setting.name == "config" && setting.value.is_none()) {
        *config = match breakers {
            Some(file) => Given::new("config", Some(file.display().to_string()), "found here"),
            None => Given::new("config", None, "the thresholds that the program was shipped with"),
        };
    }
    let codec: Vec<_> = Codec::from_env()?.ids().map(str::to_owned).collect();
    let from = [codec::KEYS, codec::KEYS_FILE].into_iter().find(|name| is_set(name));
    let ids = (!codec.is_empty()).then(|| codec.join(", "));
    let codec = vec![Given::new("key_ids", ids, from.unwrap_or("not set: nothing is encrypted"))];
    Ok(Effective { settings, temporal: temporal(target)?, codec, sources: sources()? })
}

fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn temporal(target: &Target) -> Result<Vec<Given>, CliError> {
    let (connection, client) = options(target)?;
    let mut address = connection.target.clone();
    // Neither fails for an address that has a host, and one without a host has been refused.
    let _ = address.set_username("");
    let _ = address.set_password(None);
    let from = |flag: Option<&str>, flag_name: &str, variable: &str| match flag {
        Some(_) => flag_name.to_owned(),
        None if is_set(variable) => variable.to_owned(),
        None => "temporal.toml or default".to_owned(),
    };
    let set = |yes: bool| Some(if yes { "set" } else { "not set" }.to_owned());
    let tls = connection.tls_options.as_ref();
    let mutual = tls.is_some_and(|tls| tls.client_tls_options.is_some());
    let elsewhere = "TEMPORAL_* or temporal.toml";
    let mut headers: Vec<_> = connection.headers.iter().flatten().map(|(name, _)| name.clone()).collect();
    headers.sort_unstable();
    Ok(vec![
        Given::new(
            "address",
            Some(address.to_string()),
            &from(target.address.as_deref(), "--address", "TEMPORAL_ADDRESS"),
        ),
        Given::new(
            "namespace",
            Some(client.namespace.clone()),
            &from(target.namespace.as_deref(), "--namespace", "TEMPORAL_NAMESPACE"),
        ),
        Given::new("tls", Some(if tls.is_some() { "on" } else { "off" }.to_owned()), elsewhere),
        Given::new("client_certificate", set(mutual), elsewhere),
        Given::new("api_key", set(connection.api_key.is_some()), elsewhere),
        Given::new("headers", (!headers.is_empty()).then(|| headers.join(", ")), elsewhere),
    ])
}

/// The base addresses that were replaced, and the credentials that are set.
fn sources() -> Result<Vec<Given>, CliError> {
    let settings = Settings::from_env().map_err(CliError::user)?;
    let mut rows = Vec::new();
    for source in catalog::sources() {
        for base in [&source.base].into_iter().filter(|base| is_set(base.env)) {
            rows.push(Given::new(source.name, Some(origin(settings.base(base))), base.env));
        }
        let names = source.credentials.iter().flat_map(|credential| credential.any_of.iter());
        for name in names.filter(|name| settings.credential(name).is_some()) {
            rows.push(Given::new(source.name, Some("set".to_owned()), name));
        }
    }
    Ok(rows)
}

/// An address without user, password, path and query, which may hold secrets.
fn origin(address: &str) -> String {
    reqwest::Url::parse(address).map_or_else(|_| HIDDEN.to_owned(), |url| url.origin().ascii_serialization())
}

impl Effective {
    /// Prints it, for programs or for people.
    pub(super) fn print(&self, json: bool) -> Result<(), CliError> {
        if json { super::print_json(self) } else { super::print(&self.text()) }
    }

    fn text(&self) -> String {
        let parts = [
            ("worker", &self.settings),
            ("temporal", &self.temporal),
            ("codec", &self.codec),
            ("sources", &self.sources),
        ];
        let mut text = String::new();
        for (title, rows) in parts.into_iter().filter(|(_, rows)| !rows.is_empty()) {
            text.push_str(title);
            text.push('\n');
            for Given { name, value, from } in rows {
                let value = value.as_deref().unwrap_or("-");
                text.push_str(&format!("  {name:<28} {value:<36} {from}\n"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_shown_without_its_secrets() {
        for (store, shown) in [
            ("memory", "memory"),
            ("file:/var/lib/breakers.state", "file:/var/lib/breakers.state"),
            ("redis://host:6379/2", "redis://host:6379/2"),
            ("redis://:hunter2@host", "redis://***@host"),
            ("rediss://joe:hun@ter2@host/1?prefix=kyb", "rediss://***@host/1?prefix=kyb"),
            ("redis://host?password=hunter2&prefix=kyb", "redis://host?***"),
        ] {
            assert_eq!(without_secrets(store), shown);
        }
    }

    #[test]
    fn an_address_of_a_source_is_shown_without_its_path() {
        assert_eq!(origin("https://key:secret@proxy.internal/v1/token"), "https://proxy.internal");
    }
}

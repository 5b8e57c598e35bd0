//! `osint sources`: the catalog.

use std::io::stdout;

use clap::Args;
use osint_activities::{
    catalog::{self, sources},
    model::{Country, Subject},
    spec::{Base, Countries, Operation, Source},
};

use super::output::width;
use crate::{
    error::CliError,
    report::{Paint, page::wrap},
};

/// Arguments of `osint sources`.
#[derive(Debug, Args)]
pub(super) struct Sources {
    /// Print the catalog as JSON
    #[arg(long)]
    json: bool,
    /// Print the whole catalog as the page docs/upstreams.md
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Only sources that have a question about companies of this country
    #[arg(long, value_name = "CODE", conflicts_with = "markdown")]
    country: Option<Country>,
}

impl Sources {
    /// True if the source has a question about companies of the chosen country.
    fn covers(&self, source: &Source) -> bool {
        self.country.is_none_or(|country| {
            source.operations.iter().any(|operation| operation.countries.cover(&Subject::new(country)))
        })
    }

    /// Prints the catalog.
    pub(super) fn run(self) -> Result<(), CliError> {
        let chosen: Vec<&Source> = sources().iter().copied().filter(|source| self.covers(source)).collect();
        match (self.json, self.markdown) {
            (true, _) => super::print_json(&chosen),
            (_, true) => super::print(&catalog::page()),
            _ => super::print(&page(&chosen, Paint::of(&stdout()), width(), |name| std::env::var_os(name).is_some())),
        }
    }
}

/// The sources. `set` says whether an environment variable has a value.
fn page(sources: &[&Source], paint: Paint, width: usize, set: impl Fn(&str) -> bool) -> String {
    let mut out = String::new();
    let line = |label: &str, text: &str| {
        let parts = wrap(text, width.saturating_sub(12)).into_iter().enumerate();
        parts.map(|(n, part)| format!("{:<12}{part}\n", if n == 0 { label } else { "" })).collect::<String>()
    };
    for source in sources {
        out.push_str(&format!("{}  {}\n", paint.bold(source.name), source.title));
        out.push_str(&line("  limits", source.limits));
        out.push_str(&line("  needs", &needs(source, &set)));
        out.push_str(&line("  base URL", &base(source, &set)));
        for operation in source.operations {
            let text = format!("{} ({}): {}", operation.name, coverage(operation), operation.answers);
            out.push_str(&line("  asks", &text));
        }
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// The credentials, each with whether it is set.
fn needs(source: &Source, set: &impl Fn(&str) -> bool) -> String {
    if source.credentials.is_empty() {
        return "nothing".to_owned();
    }
    let each = source.credentials.iter().map(|credential| {
        let names = credential.any_of.join(" or ");
        let state = if credential.any_of.iter().any(|name| set(name)) { "set" } else { "not set" };
        format!("{names}: {state} ({})", credential.obtain)
    });
    each.collect::<Vec<_>>().join("; ")
}

/// The address, and the variable that changes it.
fn base(source: &Source, set: &impl Fn(&str) -> bool) -> String {
    let Base { env, default } = source.base;
    let state = if set(env) { "set" } else { "not set" };
    format!("{default}, or {env} ({state})")
}

fn coverage(operation: &Operation) -> String {
    match operation.countries {
        Countries::Any => "any country".to_owned(),
        Countries::EuVat => "EU VAT area".to_owned(),
        Countries::Only(codes) => codes.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_and_operation_is_on_the_page() {
        let page = page(sources(), Paint::PLAIN, 100, |name| name == "OPENSANCTIONS_API_KEY");
        for source in sources() {
            assert!(
                page.contains(source.name) && source.operations.iter().all(|operation| page.contains(operation.name))
            );
            assert!(page.contains(source.base.env), "{}", source.name);
        }
        assert!(page.contains("OPENSANCTIONS_API_KEY: set") && page.contains("TAVILY_API_KEY: not set"), "{page}");
    }

    #[test]
    fn a_country_leaves_the_sources_that_cover_it() {
        let of = |code: &str| {
            let command = Sources { json: false, markdown: false, country: code.parse().ok() };
            sources().iter().filter(|source| command.covers(source)).map(|source| source.name).collect::<Vec<_>>()
        };
        let french = of("FR");
        assert!(french.contains(&"fr_insee") && french.contains(&"vies") && french.contains(&"gleif"));
        assert!(!french.contains(&"no_brreg") && of("NO").contains(&"no_brreg"));
    }

    #[test]
    fn the_json_has_the_documented_keys() {
        let json = serde_json::to_value(sources()).expect("serialisable");
        for source in json.as_array().expect("a list") {
            for key in ["name", "breaker", "operations", "limits", "credentials"] {
                assert!(source.get(key).is_some(), "{key} is missing");
            }
            assert!(source["operations"].as_array().is_some_and(|list| list.iter().all(|one| one["name"].is_string())));
        }
    }
}

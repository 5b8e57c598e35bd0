//! `osint sources`: the catalog.

use std::io::stdout;

use clap::Args;
use osint_activities::{
    catalog::{self, sources},
    spec::{Countries, Operation, Source},
};

use crate::{
    error::CliError,
    report::{Paint, Table},
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
}

impl Sources {
    /// Prints the catalog.
    pub(super) fn run(self) -> Result<(), CliError> {
        match (self.json, self.markdown) {
            (true, _) => super::print_json(&sources()),
            (_, true) => super::print(&catalog::page()),
            _ => super::print(&page(Paint::of(&stdout()))),
        }
    }
}

fn page(paint: Paint) -> String {
    let mut out = String::new();
    for source in sources() {
        out.push_str(&format!("{}  {}\n", paint.bold(source.name), source.title));
        out.push_str(&format!("  limits: {}\n  needs:  {}\n", source.limits, needs(source)));
        let mut table = Table::new(&[]);
        for operation in source.operations {
            table.row([operation.name.to_owned(), coverage(operation), operation.answers.to_owned()]);
        }
        out.push_str(&table.render(paint, 2));
        out.push('\n');
    }
    out.trim_end().to_owned()
}

fn needs(source: &Source) -> String {
    if source.credentials.is_empty() {
        return "nothing".to_owned();
    }
    let each = source.credentials.iter().map(|credential| {
        let names = credential.any_of.join(" or ");
        format!("{names} ({})", credential.obtain)
    });
    each.collect::<Vec<_>>().join("; ")
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
        let page = page(Paint::PLAIN);
        for source in sources() {
            assert!(
                page.contains(source.title) && source.operations.iter().all(|operation| page.contains(operation.name))
            );
        }
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

//! The catalog as a page for people: `docs/upstreams.md`. Everything on it is read from the rows, so it cannot be out of date
//! for longer than a test run.

use std::fmt::Write;

use super::{fallbacks, sources};
use crate::spec::{BodyMatch, Class, Countries, Credential, Operation, Rule, Scope, Source};

const HEAD: &str = "\
# Upstreams

Made from the rows of the catalog by `make upstreams`; a test compares the two, so edit the rows. Thresholds and enforced limits
are in [`breakers.yaml`](../breakers.yaml), and [adding-a-source.md](adding-a-source.md) says how a row comes about.

The classes of an answer, and what the breaker hears of each: `ok`, `not_found` and `business` (it answered, though not with
what was hoped for) are successes; `throttled` opens the breaker for as long as it says; `denied` is neutral; `unavailable`,
`timeout` and `bad_shape` are failures. An answer that no rule of its source names is judged by its HTTP status.
";

/// The page, in Markdown.
#[must_use]
pub fn page() -> String {
    let mut out = HEAD.to_owned();
    let operations: usize = sources().iter().map(|source| source.operations.len()).sum();
    let _ = writeln!(out, "\n{} sources with {operations} operations:\n", sources().len());
    out.push_str("| source | what it is | operations | free probe | needs |\n|---|---|---|---|---|\n");
    for source in sources() {
        let (probe, needs) = (probe(source).map_or("–", |_| "yes"), variables(source));
        let (name, title, count) = (source.name, source.title, source.operations.len());
        let _ = writeln!(out, "| [{name}](#{name}) | {title} | {count} | {probe} | {needs} |");
    }
    sources().iter().for_each(|source| section(&mut out, source));
    out.push_str("\n# Fallbacks\n\nAsked only when the source has no answer. They have breakers of their own.\n");
    fallbacks().iter().for_each(|source| section(&mut out, source));
    out
}

fn section(out: &mut String, source: &Source) {
    let _ = writeln!(out, "\n## {}\n\n{}.\n", source.name, source.title);
    let mut line = |name: &str, text: &str| {
        if !text.is_empty() {
            let _ = writeln!(out, "- **{name}**: {text}");
        }
    };
    line("address", &format!("`{}` (`{}`)", source.base.default, source.base.env));
    if source.breaker != source.name {
        line("breaker", &format!("`{}`", source.breaker));
    }
    let account: Vec<_> = source.account.iter().map(|name| format!("`{name}`")).collect();
    line("shares its account with", &account.join(", "));
    for credential in source.credentials {
        line("needs", &format!("{}: {}", named(credential), credential.obtain));
    }
    line("limits", source.limits);
    line(
        "probe",
        &probe(source).map_or_else(|| "none: the first call is the probe".to_owned(), |call| format!("`{call}`")),
    );
    line("terms", source.terms);
    if !source.operations.is_empty() {
        out.push_str("\n| operation | answers | countries | from | falls back on |\n|---|---|---|---|---|\n");
        source.operations.iter().for_each(|operation| row(out, operation));
    }
    rules(out, source);
}

fn row(out: &mut String, operation: &Operation) {
    let needs: Vec<_> = operation.needs.iter().map(|need| need.as_str()).collect();
    let fallbacks: Vec<_> =
        operation.fallbacks.iter().map(|fallback| format!("{}: {}", fallback.via, fallback.proves)).collect();
    let billed = if operation.billed { " (billed)" } else { "" };
    let (name, answers) = (operation.name, operation.answers);
    let (countries, needs, fallbacks) = (countries(operation.countries), needs.join(" or "), fallbacks.join("; "));
    let _ = writeln!(out, "| `{name}`{billed} | {answers} | {countries} | {needs} | {fallbacks} |");
}

fn rules(out: &mut String, source: &Source) {
    let own = source.operations.iter().flat_map(|operation| operation.rules.iter().map(|rule| (operation.name, rule)));
    let rules: Vec<_> = own.chain(source.rules.iter().map(|rule| ("", rule))).collect();
    if rules.is_empty() {
        return;
    }
    out.push_str("\n| status | body | means | because it |\n|---|---|---|---|\n");
    for (operation, rule) in rules {
        let status = if rule.status == 0 { "any".to_owned() } else { rule.status.to_string() };
        let only = if operation.is_empty() { String::new() } else { format!(" of `{operation}`") };
        let (body, means, reason) = (body(rule.body), means(rule), rule.reason);
        let _ = writeln!(out, "| {status}{only} | {body} | {means} | {reason} |");
    }
}

fn means(rule: &Rule) -> String {
    let class = serde_json::to_value(rule.class).ok().and_then(|class| class.as_str().map(str::to_owned));
    let class = class.unwrap_or_default();
    match rule.scope {
        _ if rule.class == Class::Ok => "the parser decides".to_owned(),
        Scope::Service => class,
        Scope::Part => format!("{class}, of the part behind it"),
        Scope::Subject => format!("{class}, of this subject alone"),
        Scope::Account => format!("{class}, of the whole account"),
    }
}

fn body(text: BodyMatch) -> String {
    match text {
        BodyMatch::Any => "any".to_owned(),
        BodyMatch::With(text) => format!("with `{}`", text.replace('|', "\\|")),
        BodyMatch::Plain(text) => format!("plain text with `{text}`"),
        BodyMatch::Json => "JSON".to_owned(),
        BodyMatch::Html => "a page".to_owned(),
        BodyMatch::NotHtml => "no page".to_owned(),
    }
}

fn countries(countries: Countries) -> String {
    match countries {
        Countries::Any => "any".to_owned(),
        Countries::EuVat => "EU VAT area".to_owned(),
        Countries::Only(codes) => codes.join(", "),
    }
}

fn probe(source: &Source) -> Option<String> {
    source.probe.map(|probe| (probe.request)().target())
}

fn variables(source: &Source) -> String {
    source.credentials.iter().map(named).collect::<Vec<_>>().join(", ")
}

fn named(credential: &Credential) -> String {
    credential.any_of.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_operation_and_limit_is_on_the_page() {
        let page = page();
        for source in sources().iter().chain(fallbacks()) {
            assert!(
                page.contains(&format!("\n## {}\n", source.name)) && page.contains(source.limits),
                "{}",
                source.name
            );
            for operation in source.operations {
                assert!(page.contains(&format!("| `{}`", operation.name)), "{}", operation.name);
            }
        }
    }

    #[test]
    fn no_cell_breaks_its_table() {
        for line in page().lines().filter(|line| line.starts_with('|')) {
            assert!(line.ends_with('|') && !line.contains("\n"), "{line}");
            let columns = line.replace("\\|", "").matches('|').count();
            assert!(matches!(columns, 5 | 6), "{columns} in {line}");
        }
    }
}

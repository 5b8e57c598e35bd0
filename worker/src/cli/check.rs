//! `osint check`: checks a file of breakers and shows its thresholds.

use std::{
    collections::BTreeSet,
    fs,
    io::stdout,
    path::{Path, PathBuf},
};

use circuit_registry::{
    BreakersConfig,
    policy::{LimitScope, Mode, Policy},
};
use clap::Args;
use osint_activities::catalog::{fallbacks, sources};

use crate::{
    error::CliError,
    report::{Paint, Table},
    words::{self, nearest},
};

/// Arguments of `osint check`.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The file to check; without it, the file of --config or OSINT_CONFIG, else ./breakers.yaml
    file: Option<PathBuf>,
    /// Show what changes from this file to the one that is checked
    #[arg(long, value_name = "OLD")]
    diff: Option<PathBuf>,
}

impl Check {
    /// Reads the file and prints the thresholds that it means.
    ///
    /// `given` is the file of `--config` or `OSINT_CONFIG`.
    pub(super) fn run(self, given: Option<&Path>) -> Result<(), CliError> {
        let file = self.file.as_deref().or(given).unwrap_or(Path::new(super::DEFAULT_FILE));
        let config = load(file)?;
        if let Some(old) = &self.diff {
            return super::print(&changes(&load(old)?, &config));
        }
        let configured: BTreeSet<&str> = config.service_names().collect();
        let mut table = Table::new(&["SERVICE", "OPENS AFTER", "FOR", "AND"]);
        for service in &configured {
            table.row(row(service, &config.policy(service)));
        }
        table.row(row("(any other)", &config.policy("")));
        let services = match configured.len() {
            1 => "1 service".to_owned(),
            n => format!("{n} services"),
        };
        let mut page = format!("{}: valid, {services}\n\n{}", file.display(), table.render(Paint::of(&stdout()), 2));
        let breakers = known_breakers();
        let defaulted: Vec<&str> = breakers.difference(&configured).copied().collect();
        if !defaulted.is_empty() {
            page.push_str(&format!(
                "\n  breakers of sources that have no entry and follow the defaults: {}\n",
                defaulted.join(", ")
            ));
        }
        for warning in warnings(&config, &breakers) {
            page.push_str(&format!("\n  warning: {warning}\n"));
        }
        super::print(&page)
    }
}

/// Reads a file. One without content is refused, as a reload of a running worker refuses it.
fn load(file: &Path) -> Result<BreakersConfig, CliError> {
    let hint = |error: CliError| error.hint("correct it and run `osint check` again");
    let config = BreakersConfig::load(file).map_err(|error| hint(CliError::user(error)))?;
    let empty = fs::read(file).is_ok_and(|bytes| bytes.iter().all(u8::is_ascii_whitespace));
    if empty { Err(hint(CliError::user(format!("{}: is empty", file.display())))) } else { Ok(config) }
}

/// The breakers of all sources, and of those that are asked in their place.
fn known_breakers() -> BTreeSet<&'static str> {
    sources().iter().chain(fallbacks()).map(|source| source.breaker).collect()
}

/// What is valid and probably not meant.
fn warnings(config: &BreakersConfig, known: &BTreeSet<&str>) -> Vec<String> {
    let mut warnings = Vec::new();
    for service in config.service_names() {
        let family = service.split(':').next().unwrap_or(service);
        if !known.contains(service) && !known.contains(family) {
            let near = nearest(service, known.iter().copied());
            let meant = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
            warnings.push(format!("no source has a breaker '{service}'{meant}"));
        }
        let policy = config.policy(service);
        let reset = policy.open.reset_timeout;
        if let Some(timeout) = policy.timeout.filter(|timeout| reset < *timeout) {
            warnings.push(format!(
                "{service}: reset_timeout {reset:?} is shorter than timeout {timeout:?}, so a probe may start before a call \
                 of the time before has ended"
            ));
        }
    }
    warnings
}

/// What changes from one configuration to another, a line for each threshold.
fn changes(old: &BreakersConfig, new: &BreakersConfig) -> String {
    let names: BTreeSet<&str> = old.service_names().chain(new.service_names()).collect();
    let mut lines = Vec::new();
    for service in std::iter::once("").chain(names) {
        let name = if service.is_empty() { "(any other)" } else { service };
        let (before, after) = (old.policy(service), new.policy(service));
        for (key, read) in words::THRESHOLDS {
            let (before, after) = (read(&before), read(&after));
            if before != after {
                let show = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
                lines.push(format!("{name}: {key} {} -> {}", show(before), show(after)));
            }
        }
        if before != after && !lines.iter().any(|line| line.starts_with(&format!("{name}: "))) {
            lines.push(format!("{name}: changed in what this list does not show"));
        }
    }
    if lines.is_empty() { "nothing changes".to_owned() } else { lines.join("\n") }
}

fn row(service: &str, policy: &Policy) -> [String; 4] {
    [service.to_owned(), trips(policy), open_time(policy), extras(policy)]
}

fn trips(policy: &Policy) -> String {
    let mut ways = Vec::new();
    if let Some(failures) = policy.trip.fail_max {
        ways.push(format!("{failures} failures in a row"));
    }
    ways.extend(policy.trip.window.iter().flat_map(words::window));
    ways.join(" or ")
}

fn open_time(policy: &Policy) -> String {
    let open = &policy.open;
    if open.factor_milli == 1000 {
        return format!("{:?}", open.reset_timeout);
    }
    format!("{:?}, growing ×{} up to {:?}", open.reset_timeout, f64::from(open.factor_milli) / 1000.0, open.max)
}

fn extras(policy: &Policy) -> String {
    let mut extras = Vec::new();
    if policy.mode != Mode::Enforce {
        extras.push(policy.mode.as_str().to_owned());
    }
    if let Some(timeout) = policy.timeout {
        extras.push(format!("{timeout:?} per call"));
    }
    if let Some(bulkhead) = policy.bulkhead {
        extras.push(format!("{} at once", bulkhead.max_concurrent));
    }
    if let Some(rate) = policy.rate_limit {
        let whose = if rate.scope == LimitScope::Fleet { " in the fleet" } else { "" };
        extras.push(format!("{} per {:?}{whose}", rate.limit, rate.per));
    }
    if policy.half_open.permits.get() > 1 {
        extras.push(format!("{} probes", policy.half_open.permits));
    }
    extras.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(yaml: &str) -> BreakersConfig {
        BreakersConfig::from_yaml(yaml).expect("valid")
    }

    #[test]
    fn a_misspelt_service_and_a_short_reset_are_warned_of() {
        let known = BTreeSet::from(["tavily", "vies"]);
        let found = warnings(
            &config("services: { tavilly: {}, vies: { timeout: 30s, reset_timeout: 5s }, 'vies:DE': {} }"),
            &known,
        );
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0], "no source has a breaker 'tavilly'; did you mean tavily?");
        assert!(found[1].starts_with("vies: reset_timeout 5s is shorter than timeout 30s"), "{found:?}");
    }

    #[test]
    fn the_shipped_file_has_no_warnings() {
        let known = known_breakers();
        let found = warnings(&config(super::super::SHIPPED), &known);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_difference_names_key_old_and_new() {
        let (old, new) =
            (config("services: { vies: {} }"), config("services: { vies: { fail_max: 3, throttle_max: 2h } }"));
        assert_eq!(changes(&old, &new), "vies: fail_max 5 -> 3");
        assert_eq!(changes(&new, &new), "nothing changes");
        let throttle = config("services: { vies: { throttle_max: 2h } }");
        assert!(changes(&old, &throttle).contains("vies: changed in what"), "{}", changes(&old, &throttle));
    }

    #[test]
    fn thresholds_are_shown_in_words() {
        let yaml = "defaults: { fail_max: 5, reset_timeout: 30s }\nservices:\n  bureau:\n    \
            window: { calls: 100, minimum_calls: 20, failure_rate: 50%, slow_call: 2s, slow_rate: 60% }\n    \
            fail_max: off\n    half_open: { permits: 10 }\n    timeout: 2500ms\n    bulkhead: { max_concurrent: 40 }\n";
        let config = BreakersConfig::from_yaml(yaml).expect("valid");
        assert_eq!(
            row("bureau", &config.policy("bureau")),
            [
                "bureau",
                "50 % failed of 100 calls or 60 % of 100 calls slower than 2s",
                "30s",
                "2.5s per call, 40 at once, 10 probes"
            ]
        );
        assert_eq!(row("x", &config.policy("x"))[1..3], ["5 failures in a row", "30s"]);
    }
}

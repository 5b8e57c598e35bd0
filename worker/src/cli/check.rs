//! `osint check`: checks a file of breakers and shows its thresholds.

use std::{collections::BTreeSet, io::stdout, path::PathBuf};

use circuit_registry::{
    BreakersConfig,
    policy::{LimitScope, Mode, Policy},
};
use clap::Args;
use osint_activities::catalog::sources;

use crate::{
    error::CliError,
    report::{Paint, Table},
    words,
};

/// Arguments of `osint check`.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The file to check
    #[arg(default_value = super::DEFAULT_FILE)]
    file: PathBuf,
}

impl Check {
    /// Reads the file and prints the thresholds that it means.
    pub(super) fn run(self) -> Result<(), CliError> {
        let config = BreakersConfig::load(&self.file)
            .map_err(|error| CliError::user(error).hint("correct it and run `osint check` again"))?;
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
        let mut page =
            format!("{}: valid, {services}\n\n{}", self.file.display(), table.render(Paint::of(&stdout()), 2));
        let breakers: BTreeSet<&str> = sources().iter().map(|source| source.breaker).collect();
        let defaulted: Vec<&str> = breakers.difference(&configured).copied().collect();
        if !defaulted.is_empty() {
            page.push_str(&format!(
                "\n  breakers of sources that have no entry and follow the defaults: {}\n",
                defaulted.join(", ")
            ));
        }
        super::print(&page)
    }
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

    #[test]
    fn thresholds_are_shown_in_words() {
        let yaml = "defaults: { fail_max: 5, reset_timeout: 30s }\nservices:\n  bureau:\n    \
            window: { calls: 100, minimum_calls: 20, failure_rate: 50%, slow_call: 2s, slow_rate: 60% }\n    \
            half_open: { permits: 10 }\n    timeout: 2500ms\n    bulkhead: { max_concurrent: 40 }\n";
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

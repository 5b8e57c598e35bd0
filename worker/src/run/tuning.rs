//! How much work a worker takes on, how fast, and which version it reports.
//!
//! The defaults are the SDK's own. Three settings limit a process: *slots* (tasks that run at once), *pollers* (open requests
//! for tasks) and *rates*. A source's own limits belong in `breakers.yaml`.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use temporalio_common::{
    WorkerDeploymentVersion,
    worker::{VersioningBehavior, WorkerDeploymentOptions},
};
use temporalio_sdk::runtime::{
    PollerBehavior,
    worker_tuner::{FixedSizeSlotSupplier, TunerHolder},
};

use crate::error::CliError;

/// A number of tasks per second: more than zero, possibly a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate(f64);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().parse::<f64>() {
            Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(Self(rate)),
            _ => Err("expected a number above 0, such as 20 or 0.5".to_owned()),
        }
    }
}

/// What happens to a running workflow when another version of the worker is deployed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Versioning {
    /// It ends on the version on which it began.
    #[default]
    Pinned,
    /// It moves on to the current version.
    AutoUpgrade,
}

/// The settings.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Load")]
pub struct Tuning {
    /// Activities that may run at once
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = positive(), env = "OSINT_ACTIVITY_SLOTS")]
    pub activity_slots: u32,
    /// Workflow tasks that may run at once
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = positive(), env = "OSINT_WORKFLOW_SLOTS")]
    pub workflow_slots: u32,
    /// Local activities that may run at once
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = positive(), env = "OSINT_LOCAL_SLOTS")]
    pub local_slots: u32,
    /// Requests for activities that may be open at once
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = positive(), env = "OSINT_ACTIVITY_POLLERS")]
    pub activity_pollers: u32,
    /// Requests for workflow tasks that may be open at once; at least 2 while workflows are cached
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = positive(), env = "OSINT_WORKFLOW_POLLERS")]
    pub workflow_pollers: u32,
    /// Workflows whose state is kept between their tasks; with 0, each task replays the whole history
    #[arg(long, value_name = "N", default_value_t = 1000, env = "OSINT_CACHED_WORKFLOWS")]
    pub cached_workflows: u32,
    /// Activities that this worker starts per second at most; without it, no limit
    #[arg(long, value_name = "RATE", env = "OSINT_ACTIVITIES_PER_SECOND")]
    pub activities_per_second: Option<Rate>,
    /// Activities that the server hands out from this queue per second at most, to all its workers together. Workers with
    /// different values overrule each other; any value turns eager activities off
    #[arg(long, value_name = "RATE", env = "OSINT_QUEUE_ACTIVITIES_PER_SECOND")]
    pub queue_activities_per_second: Option<Rate>,
    /// Name of the worker deployment; turns worker versioning on, so that this worker takes tasks only once its version is
    /// made current (`temporal worker deployment set-current-version`)
    #[arg(long, value_name = "NAME", requires = "build_id", env = "OSINT_DEPLOYMENT", help_heading = "Version")]
    pub deployment: Option<String>,
    /// Id of this build; without it, a checksum of the program
    #[arg(long, value_name = "ID", env = "OSINT_BUILD_ID", help_heading = "Version")]
    pub build_id: Option<String>,
    /// What happens to running workflows when another version is deployed
    #[arg(long, value_enum, default_value_t, value_name = "HOW", env = "OSINT_VERSIONING", help_heading = "Version")]
    pub versioning: Versioning,
}

fn positive() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=100_000)
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            activity_slots: 100,
            workflow_slots: 100,
            local_slots: 100,
            activity_pollers: 5,
            workflow_pollers: 5,
            cached_workflows: 1000,
            activities_per_second: None,
            queue_activities_per_second: None,
            deployment: None,
            build_id: None,
            versioning: Versioning::default(),
        }
    }
}

impl Tuning {
    /// Checks the settings together.
    ///
    /// # Errors
    /// When two settings do not go together (the user's mistake).
    pub fn check(&self) -> Result<(), CliError> {
        if self.cached_workflows > 0 && self.workflow_pollers < 2 {
            return Err(CliError::user("--workflow-pollers (OSINT_WORKFLOW_POLLERS) must be at least 2")
                .hint("one of them asks for tasks of cached workflows; or cache none with --cached-workflows 0"));
        }
        Ok(())
    }

    pub(crate) fn slots(&self) -> TunerHolder {
        let slots = |n: u32| FixedSizeSlotSupplier::new(count(n));
        TunerHolder::builder()
            .workflow_task_slot_supplier(slots(self.workflow_slots))
            .activity_task_slot_supplier(slots(self.activity_slots))
            .local_activity_task_slot_supplier(slots(self.local_slots))
            .nexus_task_slot_supplier(slots(1))
            .build()
    }

    /// `None` keeps the SDK's default, which lets the server scale the pollers.
    pub(crate) fn workflow_polls(&self) -> Option<PollerBehavior> {
        polls(self.workflow_pollers, Self::default().workflow_pollers)
    }

    pub(crate) fn activity_polls(&self) -> Option<PollerBehavior> {
        polls(self.activity_pollers, Self::default().activity_pollers)
    }

    pub(crate) fn cache(&self) -> usize {
        count(self.cached_workflows)
    }

    pub(crate) fn rates(&self) -> (Option<f64>, Option<f64>) {
        let per_second = |rate: Option<Rate>| rate.map(|Rate(rate)| rate);
        (per_second(self.activities_per_second), per_second(self.queue_activities_per_second))
    }

    /// The version that this worker reports; `None` keeps the SDK's checksum of the program.
    pub(crate) fn version(&self) -> Option<WorkerDeploymentOptions> {
        let build = self.build_id.clone()?;
        let Some(deployment) = &self.deployment else { return Some(WorkerDeploymentOptions::from_build_id(build)) };
        let version = WorkerDeploymentVersion::builder().deployment_name(deployment.as_str()).build_id(build).build();
        let behaviour = match self.versioning {
            Versioning::Pinned => VersioningBehavior::Pinned,
            Versioning::AutoUpgrade => VersioningBehavior::AutoUpgrade,
        };
        let options = WorkerDeploymentOptions::new(version).use_worker_versioning(true);
        Some(options.default_versioning_behavior(behaviour).build())
    }
}

fn polls(asked: u32, default: u32) -> Option<PollerBehavior> {
    (asked != default).then(|| PollerBehavior::SimpleMaximum(count(asked)))
}

/// A `u32` fits into a `usize` on every platform that we support.
fn count(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        tuning: Tuning,
    }

    fn read(line: &str) -> Result<Tuning, String> {
        let words = std::iter::once("worker").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.tuning).map_err(|error| error.to_string())
    }

    #[test]
    fn the_flags_have_the_same_defaults_as_the_type() {
        assert_eq!(read("").expect("valid"), Tuning::default());
        assert!(Tuning::default().check().is_ok());
    }

    #[test]
    fn a_bad_value_names_its_flag() {
        for (line, flag) in [
            ("--activity-slots 0", "--activity-slots"),
            ("--local-slots many", "--local-slots"),
            ("--activities-per-second 0", "--activities-per-second"),
            ("--activities-per-second NaN", "--activities-per-second"),
            ("--queue-activities-per-second=-1", "--queue-activities-per-second"),
            ("--deployment kyb", "--build-id"),
            ("--versioning sideways", "--versioning"),
        ] {
            let error = read(line).expect_err(line);
            assert!(error.contains(flag), "{line}: {error}");
        }
    }

    #[test]
    fn a_cache_needs_a_second_poller() {
        let one = |cached_workflows| Tuning { workflow_pollers: 1, cached_workflows, ..Tuning::default() };
        assert_eq!(one(1).check().expect_err("too few").code(), 2);
        assert!(one(0).check().is_ok());
    }

    #[test]
    fn only_a_deployment_turns_versioning_on() {
        let version = |line: &str| read(line).expect("valid").version();
        assert_eq!(version(""), None);
        let alone = version("--build-id 7").expect("a version");
        assert!(!alone.use_worker_versioning && alone.version.build_id == "7");
        let both = version("--deployment kyb --build-id 7 --versioning auto-upgrade").expect("a version");
        assert!(both.use_worker_versioning && both.version.deployment_name == "kyb");
        assert_eq!(both.default_versioning_behavior, Some(VersioningBehavior::AutoUpgrade));
    }
}

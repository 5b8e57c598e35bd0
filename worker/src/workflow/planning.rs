//! Local activities that put what may differ from worker to worker into the history: the plans and the breakers' states.
//!
//! Each takes a moment and sends no request, so it runs as a local activity: no task on the server, one marker in the
//! history. A replay reads the marker. A worker with a larger catalog or with other breakers replays old investigations
//! unchanged.
//!
//! The activity names are older than the names of the functions. Saved histories hold them, so they stay.

#![allow(missing_docs, reason = "the SDK's macros make constants that cannot be documented")]

use std::{collections::BTreeSet, sync::Arc};

use circuit_registry::CircuitRegistry;
use osint_activities::{
    catalog,
    model::{Finding, Subject},
};
use serde::{Deserialize, Serialize};
use temporalio_common::error::ApplicationFailure;
use temporalio_sdk::activities::{ActivityContext, ActivityError, activities};

use super::plan::{admit, plan_first, plan_further};
use crate::report::{BreakerStatus, Plan};

/// The planning activities of one worker.
#[derive(Debug)]
pub struct PlanningActivities {
    registry: CircuitRegistry,
}

/// All rounds so far with their findings: what the next round is planned from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FirstRound {
    /// The plan of the last round, with the questions of all rounds.
    pub plan: Plan,
    /// The findings, in the order of the plan's questions.
    pub findings: Vec<Finding>,
}

/// Selects the breakers that guard an investigation's questions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerFilter {
    /// Names of breakers.
    names: BTreeSet<String>,
    /// The parts of a source that matter here. `vies:DE` is a part of `vies` and matters for German companies only.
    parts: BTreeSet<String>,
}

impl BreakerFilter {
    /// Selects the breakers of the questions of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let names = plan.questions.iter().map(|question| question.breaker.clone()).collect();
        let country = plan.subject.country;
        let parts = [country.as_str(), country.vat_prefix()].into_iter().chain(plan.subject.vat_prefix());
        let parts = parts.map(str::to_owned).collect();
        Self { names, parts }
    }

    fn includes(&self, service: &str) -> bool {
        let part_of = |(whole, part): (&str, &str)| self.names.contains(whole) && self.parts.contains(part);
        self.names.contains(service) || service.split_once(':').is_some_and(part_of)
    }
}

impl PlanningActivities {
    /// Activities that read the breakers of `registry`.
    #[must_use]
    pub const fn new(registry: CircuitRegistry) -> Self {
        Self { registry }
    }
}

#[activities]
impl PlanningActivities {
    /// Checks the subject and plans the first round. When it refuses the subject, no source has been asked yet.
    #[activity(name = "investigation.open_file")]
    pub async fn plan(self: Arc<Self>, _ctx: ActivityContext, subject: Subject) -> Result<Plan, ActivityError> {
        match admit(subject) {
            Ok(subject) => Ok(plan_first(subject, catalog::operations())),
            Err(error) => {
                let failure = ApplicationFailure::builder(error).type_name("InvalidSubject".to_owned());
                Err(ActivityError::application(failure.non_retryable(true).build()))
            }
        }
    }

    /// Plans the next round from the findings so far.
    #[activity(name = "investigation.read_file")]
    pub async fn replan(self: Arc<Self>, _ctx: ActivityContext, first: FirstRound) -> Result<Plan, ActivityError> {
        Ok(plan_further(&first.plan, &first.findings, catalog::operations()))
    }

    /// The state of the breakers that `filter` selects, in alphabetical order.
    #[activity(name = "investigation.read_breakers")]
    pub async fn read_breakers(
        self: Arc<Self>,
        _ctx: ActivityContext,
        filter: BreakerFilter,
    ) -> Result<Vec<BreakerStatus>, ActivityError> {
        let mut states: Vec<_> = self.registry.views().iter().map(BreakerStatus::from).collect();
        states.retain(|state| filter.includes(&state.service));
        states.sort_by(|a, b| a.service.cmp(&b.service));
        Ok(states)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::plan::plan, *};

    #[test]
    fn the_filter_selects_the_part_of_the_subjects_country() {
        let subject = Subject { vat: Some("EL094259216".into()), ..Subject::new("GR".parse().expect("a country")) };
        let filter = BreakerFilter::of(&plan(subject, catalog::operations()));
        for (service, concerned) in [("vies", true), ("vies:EL", true), ("vies:DE", false), ("no_brreg", false)] {
            assert_eq!(filter.includes(service), concerned, "{service}");
        }
    }
}

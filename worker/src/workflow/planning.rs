//! The investigation's own desk work: local activities that put what may differ from worker to worker into the history.
//!
//! None takes more than a moment or talks to anybody, so they run as local activities: no task on the server, one marker in
//! the history each. A replay reads the marker. A worker with a larger catalog or with other breakers replays old
//! investigations unchanged.

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

use super::plan::{Plan, admit, plan, plan_further};
use crate::report::BreakerState;

/// The desk of one worker.
#[derive(Debug)]
pub struct Desk {
    registry: CircuitRegistry,
}

/// A round of questions and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The plan.
    pub plan: Plan,
    /// The findings, in the order of the plan's questions.
    pub findings: Vec<Finding>,
}

/// The breakers that concern an investigation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Concern {
    /// Names of breakers.
    names: BTreeSet<String>,
    /// Parts of a source that concern it: of `vies`, `vies:DE` concerns a German company only.
    parts: BTreeSet<String>,
}

impl Concern {
    /// The breakers behind the questions of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let names = plan.questions.iter().map(|question| question.breaker.clone()).collect();
        let country = plan.subject.country;
        let parts = [country.as_str(), country.vat_prefix()].map(str::to_owned).into();
        Self { names, parts }
    }

    fn includes(&self, service: &str) -> bool {
        let part_of = |(whole, part): (&str, &str)| self.names.contains(whole) && self.parts.contains(part);
        self.names.contains(service) || service.split_once(':').is_some_and(part_of)
    }
}

impl Desk {
    /// A desk that reads the breakers of `registry`.
    #[must_use]
    pub const fn new(registry: CircuitRegistry) -> Self {
        Self { registry }
    }
}

#[activities]
impl Desk {
    /// Checks the subject and plans the first round. Nobody has been asked when this refuses.
    #[activity(name = "investigation.open_file")]
    pub async fn open_file(self: Arc<Self>, _ctx: ActivityContext, subject: Subject) -> Result<Plan, ActivityError> {
        match admit(subject) {
            Ok(subject) => Ok(plan(subject, catalog::operations())),
            Err(error) => {
                let failure = ApplicationFailure::builder(error).type_name("InvalidSubject".to_owned());
                Err(ActivityError::application(failure.non_retryable(true).build()))
            }
        }
    }

    /// Reads what the first round has brought and plans the second.
    #[activity(name = "investigation.read_file")]
    pub async fn read_file(self: Arc<Self>, _ctx: ActivityContext, round: Round) -> Result<Plan, ActivityError> {
        Ok(plan_further(&round.plan, &round.findings, catalog::operations()))
    }

    /// The state of the breakers that concern an investigation, in alphabetical order.
    #[activity(name = "investigation.read_breakers")]
    pub async fn read_breakers(
        self: Arc<Self>,
        _ctx: ActivityContext,
        concern: Concern,
    ) -> Result<Vec<BreakerState>, ActivityError> {
        let mut states: Vec<_> = self.registry.views().iter().map(BreakerState::from).collect();
        states.retain(|state| concern.includes(&state.service));
        states.sort_by(|a, b| a.service.cmp(&b.service));
        Ok(states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_concerns_its_own_country() {
        let subject = Subject { vat: Some("EL094259216".into()), ..Subject::new("GR".parse().expect("a country")) };
        let concern = Concern::of(&plan(subject, catalog::operations()));
        for (service, concerned) in [("vies", true), ("vies:EL", true), ("vies:DE", false), ("no_brreg", false)] {
            assert_eq!(concern.includes(service), concerned, "{service}");
        }
    }
}

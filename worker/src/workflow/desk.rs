//! The investigation's own desk work: local activities that put what may differ from worker to worker into the history.
//!
//! Both take well under a millisecond and talk to nobody, so they run as local activities: no task on the server, one marker
//! in the history. A replay reads the marker. A worker with a larger catalog or with other breakers replays old
//! investigations unchanged.

#![allow(missing_docs, reason = "the SDK's macros make constants that cannot be documented")]

use std::sync::Arc;

use circuit_registry::CircuitRegistry;
use osint_activities::{catalog, model::Subject};
use temporalio_common::error::ApplicationFailure;
use temporalio_sdk::activities::{ActivityContext, ActivityError, activities};

use super::plan::{Plan, admit, plan};
use crate::report::BreakerState;

/// Activity type of [`Desk::open_file`].
pub const OPEN_FILE: &str = "investigation.open_file";

/// Activity type of [`Desk::read_breakers`].
pub const READ_BREAKERS: &str = "investigation.read_breakers";

/// The desk of one worker.
#[derive(Debug)]
pub struct Desk {
    registry: CircuitRegistry,
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
    /// Checks the subject and plans the questions. Nothing has been asked when this refuses.
    #[activity(name = OPEN_FILE)]
    pub async fn open_file(self: Arc<Self>, _ctx: ActivityContext, subject: Subject) -> Result<Plan, ActivityError> {
        match admit(subject) {
            Ok(subject) => Ok(plan(subject, catalog::operations())),
            Err(error) => {
                let failure = ApplicationFailure::builder(error).type_name("InvalidSubject".to_owned());
                Err(ActivityError::application(failure.non_retryable(true).build()))
            }
        }
    }

    /// The breakers that guard the named ones' calls, with their parts: `vies` also brings `vies:DE`.
    #[activity(name = READ_BREAKERS)]
    pub async fn read_breakers(
        self: Arc<Self>,
        _ctx: ActivityContext,
        names: Vec<String>,
    ) -> Result<Vec<BreakerState>, ActivityError> {
        let concerned = |service: &str| {
            let whole = service.split_once(':').map_or(service, |(whole, _)| whole);
            names.iter().any(|name| name == service || name == whole)
        };
        let mut states: Vec<_> = self.registry.views().iter().map(BreakerState::from).collect();
        states.retain(|state| concerned(&state.service));
        states.sort_by(|a, b| a.service.cmp(&b.service));
        Ok(states)
    }
}

//! The workflows, and the small activities that only they use.
//!
//! A simple rule keeps workflows deterministic. Two workers, or two versions of one, may have different catalogs and
//! different breakers. Such data enters a workflow only through an activity, so the history holds it. The workflow itself
//! only computes over that data.

pub mod attributes;
mod degraded;
mod input;
pub mod investigation;
pub mod plan;
mod planning;

pub use input::InvestigationInput;
pub use investigation::InvestigationWorkflow;
pub use plan::{admit, plan, plan_further};
pub use planning::{BreakerFilter, FirstRound, PlanningActivities};

//! The workflows, and the small activities that only they use.
//!
//! Determinism is kept by a simple division: whatever may differ between two workers or two versions of one (the catalog,
//! the state of the breakers) enters a workflow through an activity and is therefore in its history. What is left in the
//! workflow is bookkeeping over data it has been given.

mod desk;
mod finding;
pub mod investigation;
pub mod plan;

pub use desk::{Concern, Desk, Round};
pub use investigation::{InvestigationWorkflow, Step};
pub use plan::{Plan, Question, Wanting, admit, plan, plan_further, warnings};

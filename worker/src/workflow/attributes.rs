//! Search attributes of an investigation. They are plain text on the server, so they hold nothing about the subject.
//!
//! A workflow that sets an attribute unknown to the server is stuck for ever. So the starter finds out whether the server
//! knows them, and gives the first one with the start; the workflow sets them only if it has that one.

use temporalio_common::search_attributes::SearchAttributeKey;

use crate::report::{Report, insight::VerdictWord};

/// The verdict: `running`, `complete`, `complete_as_far_as_it_applies` or `partial`.
pub const VERDICT: SearchAttributeKey<String> = SearchAttributeKey::keyword("OsintVerdict");

/// The sources without a full answer.
pub const DEGRADED_BY: SearchAttributeKey<Vec<String>> = SearchAttributeKey::keyword_list("OsintDegradedBy");

/// The value of [`VERDICT`] until there is a report.
pub const RUNNING: &str = "running";

/// The word of a verdict in a search.
#[must_use]
pub const fn word(verdict: VerdictWord) -> &'static str {
    match verdict {
        VerdictWord::Complete => "complete",
        VerdictWord::CompleteAsFarAsItApplies => "complete_as_far_as_it_applies",
        VerdictWord::Partial => "partial",
    }
}

/// The sources of a report that gave no full answer.
#[must_use]
pub fn degraded_by(report: &Report) -> Vec<String> {
    let mut sources: Vec<String> = report.coverage.gaps.iter().map(|gap| gap.source.clone()).collect();
    sources.sort();
    sources.dedup();
    sources
}

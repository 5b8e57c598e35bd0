//! What came of one attempt: what the workflow learns, and what the breakers heard.

use circuit_registry::{BreakerView, CallContext, State};
use tokio::time::{Duration, Instant};

use super::{Bench, ONLY};
use crate::{
    model::{Query, Status},
    spec::{Class, Entry},
};

/// What the workflow learns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    /// No answer, for this reason.
    Unanswered(Class),
    /// A finding.
    Found(Status),
    /// A finding of this fallback.
    Instead(&'static str),
}

/// What the breaker of the source recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Heard {
    /// A failure.
    Failure,
    /// An order to stay away.
    Stay,
    /// Nothing that counts against the upstream.
    Nothing,
    /// Nothing that counts against the upstream, but a failure of the part behind it.
    PartFailure,
}

/// Makes the only attempt there is, with breakers that have heard nothing before.
pub(super) async fn observe(bench: &Bench, entry: Entry, query: &Query, patience: Duration) -> (Outcome, Heard) {
    let context = CallContext::attempt(1).with_deadline(Instant::now() + patience);
    let outcome = match context.scope(bench.activities.investigate(entry, query, ONLY, None)).await {
        Ok(finding) => match entry.operation.fallbacks.iter().find(|known| Some(known.via) == finding.via.as_deref()) {
            Some(fallback) => Outcome::Instead(fallback.via),
            None => Outcome::Found(finding.status),
        },
        Err(failed) => Outcome::Unanswered(failed.details.class.unwrap_or(Class::Ok)),
    };
    let view = |name: &str| bench.registry.breaker(name).view();
    let breaker = entry.source.breaker;
    let part =
        entry.operation.part.and_then(|part| part(&query.subject)).map(|part| view(&format!("{breaker}:{part}")));
    let heard = match (heard(&view(breaker)), part.as_ref().map(heard)) {
        (Heard::Nothing, Some(Heard::Failure)) => Heard::PartFailure,
        (own, _) => own,
    };
    (outcome, heard)
}

pub(super) fn heard(view: &BreakerView) -> Heard {
    match (view.state, view.consecutive_failures) {
        (State::Open, _) => Heard::Stay,
        (_, 0) => Heard::Nothing,
        _ => Heard::Failure,
    }
}

//! The Czech register of beneficial owners, which is closed to the public.
//!
//! A row without a request: the report must say *why* it names no owners, and must not read as "there are none". Asking
//! would change nothing and only knock at a closed door once per investigation. Nothing here opens or closes a breaker.

use circuit_registry::CallError;

use crate::spec::{Base, Class, Confidence, Countries, Flow, Need, Operation, Scope, Source, SourceError};

/// The row.
pub static SOURCE: Source = Source {
    name: "cz_ubo",
    title: "Czech register of beneficial owners",
    breaker: "cz_ubo",
    base: Base { env: "CZ_UBO_BASE_URL", default: "https://esm.justice.cz" },
    limits: "closed to the public",
    terms: "since 17 December 2025 for obliged entities with an account of their own only",
    operations: &[Operation {
        name: "cz_ubo.owners",
        answers: "why beneficial owners cannot be looked up",
        countries: Countries::Only(&["CZ"]),
        needs: &[Need::Id],
        flow: Flow::Steps(|_| Box::pin(async { Err(CallError::Upstream(closed())) })),
        ..Operation::BLANK
    }],
    confidence: Confidence::B,
    ..Source::BLANK
};

fn closed() -> SourceError {
    let reason = "is not publicly accessible since 2025-12-17: beneficial owners are unknown, which does not mean none";
    SourceError::new(Class::Denied, reason).of(Scope::Subject)
}

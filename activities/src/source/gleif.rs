//! GLEIF: who a legal entity identifier belongs to, and who consolidates whom.

use crate::catalog::{Base, Countries, Need, Operation, Source};

/// The row.
pub static SOURCE: Source = Source {
    name: "gleif",
    title: "GLEIF, the register of legal entity identifiers",
    breaker: "gleif",
    bases: &[Base { env: "GLEIF_BASE_URL", default: "https://api.gleif.org/api/v1" }],
    credentials: &[],
    limits: "60 requests a minute",
    terms: "CC0",
    operations: &[
        Operation {
            name: "gleif.record",
            answers: "the LEI record",
            countries: Countries::Any,
            needs: &[Need::Lei, Need::Id],
        },
        Operation {
            name: "gleif.search",
            answers: "LEI records of companies with that name",
            countries: Countries::Any,
            needs: &[Need::Name],
        },
        Operation {
            name: "gleif.direct_parent",
            answers: "the direct consolidating parent, or why none is reported",
            countries: Countries::Any,
            needs: &[Need::Lei, Need::Id],
        },
        Operation {
            name: "gleif.ultimate_parent",
            answers: "the ultimate consolidating parent, or why none is reported",
            countries: Countries::Any,
            needs: &[Need::Lei, Need::Id],
        },
    ],
};

//! OpenSanctions: sanctions, politically exposed persons and debarments, by the match API.

use crate::catalog::{Base, Countries, Credential, Need, Operation, Source};

/// The row.
pub static SOURCE: Source = Source {
    name: "opensanctions",
    title: "OpenSanctions, watch lists",
    breaker: "opensanctions",
    bases: &[Base { env: "OPENSANCTIONS_BASE_URL", default: "https://api.opensanctions.org" }],
    credentials: &[Credential {
        any_of: &["OPENSANCTIONS_API_KEY"],
        obtain: "create a key at https://www.opensanctions.org/api/, or run yente and set OPENSANCTIONS_BASE_URL with any key",
    }],
    limits: "by contract",
    terms: "CC BY-NC 4.0; commercial use needs a licence",
    operations: &[Operation {
        name: "opensanctions.match",
        answers: "watch-list entries that resemble the company",
        countries: Countries::Any,
        needs: &[Need::Name],
    }],
};

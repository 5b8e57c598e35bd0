//! VIES: whether a VAT number is registered. The Commission's service relays to one service per member state.

use crate::catalog::{Base, Countries, Need, Operation, Source};

/// The row.
pub static SOURCE: Source = Source {
    name: "vies",
    title: "VIES, VAT numbers of the EU",
    breaker: "vies",
    bases: &[Base { env: "VIES_BASE_URL", default: "https://ec.europa.eu/taxation_customs/vies/rest-api" }],
    credentials: &[],
    limits: "undisclosed; concurrency per member state, shared by all users",
    terms: "free; no service level",
    operations: &[Operation {
        name: "vies.check",
        answers: "whether the VAT number is registered, and to whom",
        countries: Countries::EuVat,
        needs: &[Need::Vat],
    }],
};

//! YTJ: the Finnish business information system, as open data of the patent and registration office.

use crate::catalog::{Base, Countries, Need, Operation, Source};

/// The row.
pub static SOURCE: Source = Source {
    name: "fi_ytj",
    title: "YTJ, Finnish business information system",
    breaker: "fi_ytj",
    bases: &[Base { env: "FI_YTJ_BASE_URL", default: "https://avoindata.prh.fi/opendata-ytj-api/v3" }],
    credentials: &[],
    limits: "none published; 429 when asked too fast",
    terms: "CC BY 4.0",
    operations: &[Operation {
        name: "fi_ytj.company",
        answers: "the register entry",
        countries: Countries::Only(&["FI"]),
        needs: &[Need::Id, Need::Name],
    }],
};

//! ARES: the Czech aggregate of business registers.

use crate::catalog::{Base, Countries, Need, Operation, Source};

/// The row.
pub static SOURCE: Source = Source {
    name: "cz_ares",
    title: "ARES, Czech business registers",
    breaker: "cz_ares",
    bases: &[Base { env: "CZ_ARES_BASE_URL", default: "https://ares.gov.cz/ekonomicke-subjekty-v-be/rest" }],
    credentials: &[],
    limits: "500 requests a minute; no repeated identical queries",
    terms: "free; terms of the Ministry of Finance",
    operations: &[
        Operation {
            name: "cz_ares.entity",
            answers: "the entry, with the registers it appears in",
            countries: Countries::Only(&["CZ"]),
            needs: &[Need::Id],
        },
        Operation {
            name: "cz_ares.search",
            answers: "entities with that name",
            countries: Countries::Only(&["CZ"]),
            needs: &[Need::Name],
        },
        Operation {
            name: "cz_ares.public_register",
            answers: "court file, officers and owners",
            countries: Countries::Only(&["CZ"]),
            needs: &[Need::Id],
        },
    ],
};

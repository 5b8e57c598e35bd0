//! Brønnøysund: the Norwegian register of entities and the register of accounts.

use crate::catalog::{Base, Countries, Need, Operation, Source};

/// The row.
pub static SOURCE: Source = Source {
    name: "no_brreg",
    title: "Brønnøysund Register Centre",
    breaker: "no_brreg",
    bases: &[Base { env: "NO_BRREG_BASE_URL", default: "https://data.brreg.no" }],
    credentials: &[],
    limits: "none published",
    terms: "NLOD",
    operations: &[
        Operation {
            name: "no_brreg.entity",
            answers: "the register entry",
            countries: Countries::Only(&["NO"]),
            needs: &[Need::Id],
        },
        Operation {
            name: "no_brreg.roles",
            answers: "board, management and other roles",
            countries: Countries::Only(&["NO"]),
            needs: &[Need::Id],
        },
        Operation {
            name: "no_brreg.accounts",
            answers: "key figures of the last annual accounts",
            countries: Countries::Only(&["NO"]),
            needs: &[Need::Id],
        },
    ],
};

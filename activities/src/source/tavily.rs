//! Tavily: press search for adverse media.

use crate::catalog::{Base, Countries, Credential, Need, Operation, Source};

/// The row.
pub static SOURCE: Source = Source {
    name: "tavily",
    title: "Tavily, adverse-media search",
    breaker: "tavily",
    bases: &[Base { env: "TAVILY_BASE_URL", default: "https://api.tavily.com" }],
    credentials: &[Credential { any_of: &["TAVILY_API_KEY"], obtain: "create a key at https://app.tavily.com" }],
    limits: "100 requests a minute with a development key, 1000 with a production key; credits per search",
    terms: "commercial; results belong to their publishers",
    operations: &[Operation {
        name: "tavily.adverse_media",
        answers: "articles that mention the company together with fraud, sanctions or investigations",
        countries: Countries::Any,
        needs: &[Need::Name],
    }],
};

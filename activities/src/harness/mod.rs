//! Runs whole flows without a network, on answers from a script.
//!
//! The tests corrupt the recorded answers of healthy upstreams; the fuzzer makes answers up. Every flow of the catalog,
//! fallbacks included, runs from its first request to its result through [`flow`](crate::flow) and [`Client`]. A new source
//! needs no change here.

use circuit_registry::{BreakersConfig, CallError, CircuitRegistry};

use crate::{
    catalog,
    client::{Client, Script},
    editions::EditionCache,
    flow::{Guarded, Means},
    guard::Names,
    model::{Query, Subject},
    spec::{Answer, Entry, Flow, Reply, Session, Settings, Source, SourceError},
};

/// A route to an answer: an operation by its own source, or by a fallback.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The operation.
    pub entry: Entry,
    /// The source, or the fallback as the finding's `via` names it.
    pub by: &'static str,
    /// Who is asked.
    pub source: &'static Source,
    /// How.
    pub flow: Flow,
}

/// All routes of the catalog.
pub fn routes() -> impl Iterator<Item = Route> {
    catalog::operations().iter().flat_map(|&entry| {
        let own = Route { entry, by: entry.source.name, source: entry.source, flow: entry.operation.flow };
        let others = entry.operation.fallbacks.iter();
        let others =
            others.map(move |fallback| Route { entry, by: fallback.via, source: fallback.source, flow: fallback.flow });
        std::iter::once(own).chain(others)
    })
}

impl Route {
    /// As in `vies.check by vatsense`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} by {}", self.entry.operation.name, self.by)
    }
}

/// Companies of many countries, with nearly every field filled. Each route can be asked about one of them, and the
/// simulator has an answer.
#[must_use]
pub fn companies() -> Vec<Subject> {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let subject = |(country, id, vat, lei, name): &(&str, &str, &str, &str, &str)| {
        Some(Subject {
            id: given(id),
            vat: given(vat),
            lei: given(lei),
            name: given(name),
            address: given("Karakaari 7, 02610 Espoo"),
            website: given("https://www.equinor.com"),
            persons: vec!["Ola Eksempel".to_owned()],
            ..Subject::new(country.parse().ok()?)
        })
    };
    COMPANIES.iter().filter_map(subject).collect()
}

/// Country, number, VAT number, LEI, name.
#[rustfmt::skip]
const COMPANIES: &[(&str, &str, &str, &str, &str)] = &[
    ("FI", "0112038-9", "FI01120389", "549300A0JPRWG1KI7U06", "Nokia Oyj"),
    ("BE", "0202239951", "BE0202239951", "", "PROXIMUS"),
    ("BE", "0403199702", "BE0403199702", "", "BNP Paribas Fortis"),
    ("CH", "CHE191546434", "", "", "Swiss Re AG"),
    ("CZ", "27082440", "CZ27082440", "", "Alza.cz a.s."),
    ("CZ", "99000105", "", "", "Vzorový úpadce s.r.o."),
    ("DE", "HRB 6684 Muenchen", "DE129273398", "", "Siemens AG"),
    ("DK", "24256790", "DK24256790", "", "Novo Nordisk A/S"),
    ("EE", "12417834", "", "", "Bolt Technology OÜ"),
    ("FR", "552032534", "FR27552032534", "", "DANONE"),
    ("FR", "999000201", "", "", "EXEMPLE EN LIQUIDATION"),
    ("NL", "17085815", "", "", "ASML Holding N.V."),
    ("NO", "923609016", "", "OW6OFBNCKXC4US5C7523", "EQUINOR ASA"),
    ("RO", "14399840", "RO14399840", "", "DANTE INTERNATIONAL SA"),
    ("SK", "31333532", "SK2020317068", "", "ESET, spol. s r.o."),
];

/// Runs flows on scripts. Its breakers never open, so that one failure does not hide what the next answer would do.
#[derive(Debug, Clone)]
pub struct Harness {
    registry: CircuitRegistry,
    client: Client,
    script: Script,
}

impl Harness {
    /// A harness with a value for every credential, so that every source can be asked.
    ///
    /// # Errors
    /// If a client cannot be set up on this machine.
    pub fn new() -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let settings = Settings::read(|name| (!name.ends_with("_BASE_URL")).then(|| "scripted".to_owned()))?;
        let script = Script::default();
        let client = Client::with_names(settings, Names::none())?;
        let registry = CircuitRegistry::new(BreakersConfig::from_yaml("defaults: { mode: force_closed }")?);
        Ok(Self { registry, client, script })
    }

    /// The companies for which a route sends a request. For the others it has an answer without one.
    pub async fn asked_about(&self, route: &Route) -> Vec<Query> {
        let mut asked = Vec::new();
        for query in companies().into_iter().map(Query::from) {
            // The result does not matter here, only whether a request was sent.
            let _ = self.run(route, &query, Vec::new()).await;
            if self.script.asked() > 0 {
                asked.push(query);
            }
        }
        asked
    }

    /// Goes one route with these answers.
    ///
    /// # Errors
    /// As the flow.
    pub async fn run(
        &self,
        route: &Route,
        query: &Query,
        replies: Vec<Reply>,
    ) -> Result<Answer, CallError<SourceError>> {
        self.script.restart(replies);
        let client = self.client.clone().scripted(self.script.clone());
        follow(&self.registry, &client, route, query).await
    }
}

async fn follow(
    registry: &CircuitRegistry,
    client: &Client,
    route: &Route,
    query: &Query,
) -> Result<Answer, CallError<SourceError>> {
    let editions = EditionCache::new(None); // nothing has been kept yet
    let means = Means { registry, client, editions: &editions, on_job: None };
    let guarded = Guarded::new(means, route.source, route.entry.operation, query);
    Session::new(&guarded).follow(&route.flow).await
}

#[cfg(test)]
mod tests;

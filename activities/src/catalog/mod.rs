//! Every source and every operation, as rows: what a plan, a document or a dashboard may know without asking anybody.

mod page;
mod settings;

use std::sync::LazyLock;

pub use page::page;

use crate::{
    source,
    spec::{Entry, Source},
};

/// All sources, in the order of a report.
static SOURCES: &[&Source] = &[
    &source::northdata::SOURCE,
    &source::gleif::SOURCE,
    &source::vies::SOURCE,
    &source::kbo::SOURCE,
    &source::no_brreg::SOURCE,
    &source::cz_ares::SOURCE,
    &source::dk_cvr::SOURCE,
    &source::nl_kvk::SOURCE,
    &source::nl_kvk_open::SOURCE,
    &source::ee_ariregister::SOURCE,
    &source::cz_justice::SOURCE,
    &source::cz_isir::SOURCE,
    &source::cz_ubo::SOURCE,
    &source::nbb::SOURCE,
    &source::registry_sk::SOURCE,
    &source::sk_ruz::SOURCE,
    &source::fi_ytj::SOURCE,
    &source::fr_insee::SOURCE,
    &source::fr_inpi::SOURCE,
    &source::fr_bodacc::SOURCE,
    &source::ro_anaf::SOURCE,
    &source::ch_zefix::SOURCE,
    &source::nominatim::SOURCE,
    &source::tavily::SOURCE,
    &source::opensanctions::SOURCE,
    &source::opensanctions_feed::SOURCE,
    &source::eba_register::SOURCE,
    &source::peppol_directory::SOURCE,
    &source::peppol_verify::SOURCE,
    &source::crawl4ai::SOURCE,
    &source::brightdata::ENRICHMENT,
    &source::brightdata::SOCIAL,
    &source::brightdata::PERSON,
];

#[rustfmt::skip] // one line each, as above
static FALLBACKS: &[&Source] = &[
    &source::vies_soap::SOURCE,
    &source::vatsense::SOURCE,
    &source::nbb_official::SOURCE,
    &source::cz_justice_legacy::SOURCE,
    &source::registry_sk_html::SOURCE,
    &source::registry_sk_rpo::SOURCE,
    &source::ch_zefix::OFFICIAL,
    &source::recherche_entreprises::SOURCE,
    &source::dk_cvr::DATAFORDELER,
];

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let rows = |source: &'static Source| source.operations.iter().map(move |operation| Entry { source, operation });
    SOURCES.iter().copied().flat_map(rows).collect()
});

/// All sources, in the order of a report.
#[must_use]
pub fn sources() -> &'static [&'static Source] {
    SOURCES
}

/// Services that are asked only in the place of a source that has no answer. They have breakers of their own.
#[must_use]
pub fn fallbacks() -> &'static [&'static Source] {
    FALLBACKS
}

/// All operations, source by source. The order is part of nothing: a plan names operations, never their index.
#[must_use]
pub fn operations() -> &'static [Entry] {
    &ENTRIES
}

/// The source of that name.
#[must_use]
pub fn source(name: &str) -> Option<&'static Source> {
    SOURCES.iter().copied().find(|source| source.name == name)
}

/// The operation of that name, such as `gleif.record`.
#[must_use]
pub fn operation(name: &str) -> Option<Entry> {
    ENTRIES.iter().copied().find(|entry| entry.operation.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use circuit_registry::BreakersConfig;

    use super::*;

    #[test]
    fn names_are_unique_and_operations_carry_their_sources_name() {
        let mut seen = HashSet::new();
        for entry in operations() {
            let (source, name) = (entry.source.name, entry.operation.name);
            assert!(seen.insert(name), "{name} appears twice");
            assert_eq!(name.split_once('.').map(|(prefix, _)| prefix), Some(source), "{name}");
            assert!(operation(name).is_some_and(|found| found.source.name == source));
        }
        let names: HashSet<_> = sources().iter().map(|source| source.name).collect();
        assert_eq!(names.len(), sources().len());
    }

    #[test]
    fn every_source_has_a_base_and_every_base_its_own_variable() {
        let mut seen = HashSet::new();
        for source in sources() {
            assert!(!source.operations.is_empty(), "{}", source.name);
            let base = &source.base;
            {
                assert!(seen.insert(base.env), "{} appears twice", base.env);
                assert!(base.env.ends_with("_BASE_URL") && base.default.starts_with("http"), "{}", base.env);
                assert!(!base.default.ends_with('/'), "{}", base.default);
            }
        }
    }

    #[test]
    fn every_breaker_has_its_policy() {
        let config = BreakersConfig::from_yaml(include_str!("../../../breakers.yaml")).expect("the shipped policies");
        let named: Vec<_> = config.service_names().collect();
        for source in sources().iter().chain(fallbacks()) {
            assert!(named.contains(&source.breaker), "{} has no entry", source.breaker);
        }
    }

    #[test]
    fn a_half_open_breaker_of_a_billed_source_has_a_free_probe() {
        for Entry { source, operation } in operations() {
            assert!(!operation.billed || source.probe.is_some(), "{}", operation.name);
        }
    }
}

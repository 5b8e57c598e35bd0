//! Nominatim: where an address is, by OpenStreetMap.

use crate::catalog::{Base, Countries, Credential, Need, Operation, Source};

/// The row.
pub static SOURCE: Source = Source {
    name: "nominatim",
    title: "Nominatim, geocoding by OpenStreetMap",
    breaker: "nominatim",
    bases: &[Base { env: "NOMINATIM_BASE_URL", default: "https://nominatim.openstreetmap.org" }],
    credentials: &[Credential {
        any_of: &["OSINT_CONTACT", "NOMINATIM_USER_AGENT"],
        obtain: "the usage policy wants to know whom to write to: set OSINT_CONTACT to a mail address or web page of yours",
    }],
    limits: "1 request a second over the whole application",
    terms: "© OpenStreetMap contributors, ODbL; attribution must be shown",
    operations: &[Operation {
        name: "nominatim.search",
        answers: "coordinates of the address",
        countries: Countries::Any,
        needs: &[Need::Address],
    }],
};

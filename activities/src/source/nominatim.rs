//! Nominatim: where an address is, by OpenStreetMap.
//!
//! A gift with conditions: one request a second for the whole application, a name and a contact in the `User-Agent`, and
//! the attribution shown. It blocks clients that ignore this, so without a contact it is not asked, and about the same
//! address not twice.

use std::time::Duration;

use crate::{
    model::{Facts, Place, Subject},
    parse::json::{self, Node, lacks},
    spec::{
        Answer, Base, Class, Countries, Credential, Flow, Need, Operation, Probe, Request, Source, SourceError, Stay,
        on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "nominatim",
    title: "Nominatim, geocoding by OpenStreetMap",
    breaker: "nominatim",
    base: Base { env: "NOMINATIM_BASE_URL", default: "https://nominatim.openstreetmap.org" },
    credentials: &[Credential {
        any_of: &["OSINT_CONTACT", "NOMINATIM_USER_AGENT"],
        obtain: "the usage policy wants to know whom to write to: set OSINT_CONTACT to a mail address or web page of yours",
    }],
    user_agent: Some("NOMINATIM_USER_AGENT"),
    rules: &[
        on(403)
            .means(Class::Throttled, "has blocked us, as it does with those who ask too often")
            .stay(Stay::Seconds(3600)),
        on(400).json().means(Class::Business, "does not accept the address"),
    ],
    probe: Some(Probe { request: || Request::get("/status").query("format", "json"), read: alive }),
    limits: "1 request a second over the whole application",
    terms: "© OpenStreetMap contributors, ODbL; attribution must be shown",
    operations: &[Operation {
        name: "nominatim.search",
        answers: "coordinates of the address",
        countries: Countries::Any,
        needs: &[Need::Address],
        flow: Flow::Single { request, parse: places },
        fresh: Some(Duration::from_secs(30 * 86_400)), // the usage policy asks for results to be kept
        ..Operation::BLANK
    }],
    ..Source::BLANK
};

fn request(subject: &Subject) -> Option<Request> {
    let address = subject.address.as_deref()?;
    let search = Request::get("/search").query("q", address).query("format", "jsonv2");
    let search = search.query("limit", "1").query("addressdetails", "1");
    Some(search.query("countrycodes", subject.country.as_str().to_lowercase()))
}

/// The status page answers 200 whatever it has to say.
fn alive(body: &[u8]) -> Result<(), SourceError> {
    let document = json::parse(body)?;
    match Node::root(&document).get("status").count() {
        Some(0) => Ok(()),
        Some(_) => Err(SourceError::unavailable("reports that its database is down")),
        None => Err(lacks("status")),
    }
}

fn places(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    if !document.is_array() {
        return Err(SourceError::bad_shape("answered without a list of places"));
    }
    let places = Node::root(&document).items().map(place).collect::<Result<Vec<_>, _>>()?;
    if places.is_empty() {
        return Err(SourceError::not_found("does not know the address"));
    }
    Ok(Facts { places, ..Facts::default() }.into())
}

fn place(item: Node<'_>) -> Result<Place, SourceError> {
    let degrees = |name: &'static str, most: f64| {
        item.get(name).number().filter(|degrees| degrees.abs() <= most).ok_or_else(|| lacks(name))
    };
    let kind = [item.get("category").text().or_else(|| item.get("class").text()), item.get("type").text()];
    Ok(Place {
        latitude: degrees("lat", 90.0)?,
        longitude: degrees("lon", 180.0)?,
        kind: Some(kind.into_iter().flatten().collect::<Vec<_>>().join("/")).filter(|kind| !kind.is_empty()),
        label: item.get("display_name").text(),
        attribution: item.get("licence").text(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    fn first() -> Vec<u8> {
        let places = json::parse(include_bytes!("../../../simulator/fixtures/nominatim/places.json")).expect("places");
        format!("[{}]", places[0]).into_bytes()
    }

    #[test]
    fn coordinates_are_texts_and_are_read_all_the_same() {
        let place = places(&first()).expect("places").facts.places.remove(0);
        assert!(place.latitude.abs() > 1.0 && place.longitude.abs() > 1.0);
        assert!(place.attribution.is_some_and(|text| text.contains("OpenStreetMap")));
        assert_survives_corruption("nominatim.search", places, &first());
    }

    #[test]
    fn nowhere_is_an_empty_list_and_nonsense_is_no_place() {
        assert_eq!(places(b"[]").expect_err("nowhere").class, Class::NotFound);
        for body in [&b"{}"[..], br#"[{"lat":"x","lon":"1"}]"#, br#"[{"lat":"91","lon":"1"}]"#, b"[1]", b"null"] {
            assert_eq!(places(body).expect_err("nonsense").class, Class::BadShape);
        }
    }

    #[test]
    fn the_status_page_can_say_no_with_a_200() {
        assert!(alive(br#"{"status":0,"message":"OK"}"#).is_ok());
        assert!(alive(br#"{"status":700,"message":"Database connection failed"}"#).is_err());
        assert!(alive(b"{}").is_err());
    }
}

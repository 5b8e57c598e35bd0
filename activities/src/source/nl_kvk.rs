//! KVK: the Dutch business register. Profiles are billed, searching is not.
//!
//! It answers in codes, and a code says more than the status it comes with: a 404 may be "no result" or "was deregistered", a
//! 500 may be "in five minutes". The parts embedded in a profile may be missing.

use crate::{
    model::{Address, Company, Standing, Subject},
    parse::json::{self, Node},
    source::nl_kvk_open,
    spec::{
        Answer, Auth, Base, Class, Confidence, Countries, Credential, Fallback, Flow, Need, Operation, Probe, Request,
        Rule, Source, SourceError, Stay, on, sift,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "nl_kvk",
    title: "KVK, Dutch business register",
    breaker: "nl_kvk",
    base: Base { env: "NL_KVK_BASE_URL", default: "https://api.kvk.nl/api" },
    credentials: &[Credential {
        any_of: &["KVK_API_KEY"],
        obtain: "subscribe at https://developers.kvk.nl, which has a public key for tests as well",
    }],
    auth: Auth::Header { name: "apikey", prefix: "", env: "KVK_API_KEY" },
    rules: CODES,
    probe: Some(Probe::json(|| Request::get(SEARCH).query("kvkNummer", "17085815"))),
    limits: "100 requests a second; a volume by contract; each profile is billed",
    terms: "by contract; addresses marked as shielded must not be shown",
    operations: &[
        Operation {
            name: "nl_kvk.company",
            answers: "the basic profile: names, activities, owner and main branch",
            needs: &[Need::Id],
            flow: Flow::Single { request: |s| asking("/v1/basisprofielen", s), parse: profile },
            fallbacks: &[Fallback {
                via: "nl_kvk_open",
                proves: "the open data of the register answered instead, which has no names",
                source: &nl_kvk_open::SOURCE,
                flow: nl_kvk_open::FLOW,
            }],
            billed: true,
            ..DUTCH
        },
        Operation {
            name: "nl_kvk.names",
            answers: "the statutory name and all trade names",
            needs: &[Need::Id],
            flow: Flow::Single { request: |s| asking("/v1/naamgevingen/kvknummer", s), parse: names },
            billed: true,
            ..DUTCH
        },
        Operation {
            name: "nl_kvk.search",
            answers: "companies of that name",
            needs: &[Need::Name],
            flow: Flow::Single {
                request: |s| {
                    Some(Request::get(SEARCH).query("naam", s.name.as_deref()?).query("resultatenPerPagina", "20"))
                },
                parse: hits,
            },
            ..DUTCH
        },
    ],
    confidence: Confidence::A,
    ..Source::BLANK
};

const SEARCH: &str = "/v2/zoeken";

const DUTCH: Operation = Operation { countries: Countries::Only(&["NL"]), ..Operation::BLANK };

const DEREGISTERED: &str = "does not deliver this product: the company was deregistered";
const LATER: &str = "cannot deliver at the moment and asks to come back in five minutes";
const NO_NUMBER: &str = "does not accept the number";
const NO_QUESTION: &str = "does not accept the question";

/// What the codes of KVK mean, whatever status they come with.
static CODES: &[Rule] = &[
    on(0).with("\"IPD5200\"").means(Class::NotFound, "knows no such company"),
    on(0).with("\"IPD0005\"").means(Class::Business, DEREGISTERED),
    on(0).with("\"IPD0007\"").means(Class::Business, DEREGISTERED),
    on(0).with("\"IPD0004\"").means(Class::Business, NO_NUMBER),
    on(0).with("\"IPD0006\"").means(Class::Business, NO_NUMBER),
    on(0).with("\"IPD0010\"").means(Class::Business, NO_NUMBER),
    on(0).with("\"IPD1998\"").means(Class::Business, NO_QUESTION),
    on(0).with("\"IPD1999\"").means(Class::Business, NO_QUESTION),
    on(0).with("\"IPD1002\"").means(Class::Throttled, LATER).stay(Stay::Seconds(300)),
    on(0).with("\"IPD1003\"").means(Class::Throttled, LATER).stay(Stay::Seconds(300)),
    on(0).with("\"IPD9999\"").means(Class::Unavailable, "has a technical problem"),
];

fn asking(path: &'static str, subject: &Subject) -> Option<Request> {
    Some(Request::get(path).segment(subject.id.as_deref()?))
}

fn blank(number: String) -> Company {
    Company { id: Some(number), country: Some("NL".to_owned()), ..Company::default() }
}

fn profile(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let profile = Node::root(&document);
    let (branch, owner) = (profile.at("_embedded.hoofdvestiging"), profile.at("_embedded.eigenaar"));
    let statutory = profile.get("statutaireNaam").text();
    let ended = profile.at("materieleRegistratie.datumEinde").date();
    let others = profile.get("handelsnamen").items().filter_map(|item| item.get("naam").text());
    let trade: Vec<_> = others.filter(|name| Some(name) != statutory.as_ref()).collect();
    let label = |item: Node<'_>| item.joined(&["sbiCode", "sbiOmschrijving"], " ");
    let form = owner.get("uitgebreideRechtsvorm").text().or_else(|| owner.get("rechtsvorm").text());
    Ok(Company {
        name: Some(profile.require_any(&["statutaireNaam", "naam"])?),
        // A profile states the end and nothing else: without one it may still be insolvent.
        standing: if ended.is_some() { Standing::Ceased } else { Standing::Unknown },
        status: ended.is_none().then(|| "not deregistered".to_owned()),
        website: [branch, owner].into_iter().find_map(|place| place.get("websites").texts().into_iter().next()),
        entered: profile.get("formeleRegistratiedatum").date(),
        legal_form: form,
        address: visiting(if branch.get("adressen").exists() { branch } else { owner }),
        founded: profile.at("materieleRegistratie.datumAanvang").date(),
        dissolved: ended,
        activities: profile.get("sbiActiviteiten").items().filter_map(label).collect(),
        employees: profile.get("totaalWerkzamePersonen").count(),
        registrations: trade.into_iter().map(|name| format!("trade name: {name}")).collect(),
        ..blank(profile.require_text("kvkNummer")?)
    }
    .into())
}

/// The visiting address, unless it is shielded.
fn visiting(place: Node<'_>) -> Option<Address> {
    let open = |address: &Node<'_>| {
        let shielded = address.get("indAfgeschermd").text().is_some_and(|shielded| shielded.eq_ignore_ascii_case("ja"));
        address.get("type").text().as_deref() == Some("bezoekadres") && !shielded
    };
    let address = place.get("adressen").items().find(open)?;
    let country = address.get("land").text().filter(|country| country != "Nederland");
    Some(Address {
        street: address.joined(&["straatnaam", "huisnummer", "huisletter", "huisnummerToevoeging"], " "),
        postal_code: address.get("postcode").text(),
        city: address.get("plaats").text(),
        country: country.or_else(|| Some("NL".to_owned())),
    })
}

fn names(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let entry = Node::root(&document);
    let branches = entry.get("vestigingen").items();
    let trade =
        branches.flat_map(|branch| branch.get("handelsnamen").items()).filter_map(|item| item.get("naam").text());
    let mut registrations: Vec<_> = trade.map(|name| format!("trade name: {name}")).collect();
    registrations.dedup();
    let name = Some(entry.require_any(&["statutaireNaam", "naam"])?);
    Ok(Company { name, registrations, ..blank(entry.require_text("kvkNummer")?) }.into())
}

fn hits(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let list = Node::root(&document).require_list("resultaten")?;
    let companies = sift("hits", list, hit)?;
    let total = Node::root(&document).get("totaal").count();
    Ok(Answer::listing(companies.read)?.of_total(companies.listed, total).noting(companies.note))
}

fn hit(hit: Node<'_>) -> Result<Company, SourceError> {
    let address = hit.at("adres.binnenlandsAdres");
    Ok(Company {
        name: Some(hit.require_text("naam")?),
        address: address.exists().then(|| Address {
            street: address.joined(&["straatnaam", "huisnummer"], " "),
            postal_code: address.get("postcode").text(),
            city: address.get("plaats").text(),
            country: Some("NL".to_owned()),
        }),
        ..blank(hit.require_text("kvkNummer")?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const PROFILE: &str = include_str!("../../../simulator/fixtures/nl_kvk/profiles/17085815.json");

    fn read(parse: fn(&[u8]) -> Result<Answer, SourceError>, body: &str) -> Company {
        parse(body.as_bytes()).expect("a company").facts.companies.remove(0)
    }

    #[test]
    fn a_profile_is_read_whole() {
        let company = read(profile, PROFILE);
        assert_eq!((company.name.as_deref(), company.id.as_deref()), (Some("ASML Holding N.V."), Some("17085815")));
        assert_eq!((company.founded.as_deref(), company.employees), (Some("1994-10-03"), Some(100)));
        assert_eq!(company.legal_form.as_deref(), Some("NaamlozeVennootschap"));
        assert_eq!(company.activities, ["7010 Concerndiensten binnen eigen concern"]);
        assert_eq!(company.address.and_then(Address::line).as_deref(), Some("De Run 6501, 5504DR Veldhoven"));
        assert_survives_corruption("nl_kvk.company", profile, PROFILE.as_bytes());
    }

    #[test]
    fn a_profile_without_its_parts_and_one_that_ended_are_read() {
        let bare = r#"{"kvkNummer":17085815,"naam":"X","handelsnamen":{"naam":"Y"},"totaalWerkzamePersonen":"7",
            "materieleRegistratie":{"datumAanvang":"19940000","datumEinde":"20240131"}}"#;
        let company = read(profile, bare);
        assert_eq!((company.standing, company.dissolved.as_deref()), (Standing::Ceased, Some("2024-01-31")));
        assert_eq!((company.founded.as_deref(), company.employees, company.address), (Some("1994"), Some(7), None));
        assert_eq!(company.registrations, ["trade name: Y"]);
    }

    #[test]
    fn a_shielded_address_is_not_shown() {
        let shielded = PROFILE.replace(r#""indAfgeschermd": "Nee""#, r#""indAfgeschermd": "Ja""#);
        assert_ne!(shielded, PROFILE);
        assert_eq!(read(profile, &shielded).address, None);
    }

    #[test]
    fn names_and_hits_are_read() {
        let naming = r#"{"kvkNummer":"17085815","statutaireNaam":"ASML Holding N.V.","vestigingen":[{"handelsnamen":[{"naam":"ASML"}]}]}"#;
        assert_eq!(read(names, naming).registrations, ["trade name: ASML"]);
        assert_survives_corruption("nl_kvk.names", names, naming.as_bytes());

        let list = r#"{"totaal":1,"resultaten":[{"kvkNummer":"17085815","naam":"ASML Holding N.V.","adres":{"binnenlandsAdres":
            {"straatnaam":"De Run","plaats":"Veldhoven"}}}]}"#;
        assert_eq!(read(hits, list).address.and_then(Address::line).as_deref(), Some("De Run, Veldhoven"));
        assert_survives_corruption("nl_kvk.search", hits, list.as_bytes());
    }
}

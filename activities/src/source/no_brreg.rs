//! Brønnøysund: the Norwegian register of entities and the register of accounts.
//!
//! "Deleted" is a 200 with a date, "withdrawn by law" a 410, "unknown" a 404. The register of accounts answers 500 for every
//! bank, insurer and foundation, for ever: that says something about them and nothing about the register.

use crate::{
    model::{Accounts, Address, Company, Facts, Officer, Standing, Subject},
    parse::json::{self, Node, lacks},
    spec::{Answer, Base, Class, Countries, Flow, Need, Operation, Probe, Request, Scope, Source, SourceError, on},
};

/// The row.
pub static SOURCE: Source = Source {
    name: "no_brreg",
    title: "Brønnøysund Register Centre",
    breaker: "no_brreg",
    base: Base { env: "NO_BRREG_BASE_URL", default: "https://data.brreg.no" },
    rules: &[
        on(410).means(Class::Business, "has withdrawn this entity from disclosure, by law or by order of a court"),
        on(404).not_html().means(Class::NotFound, "knows no such number"),
    ],
    probe: Some(Probe::json(|| Request::get("/enhetsregisteret/api/enheter/974760673"))),
    terms: "NLOD",
    operations: &[
        Operation {
            name: "no_brreg.entity",
            answers: "the register entry",
            flow: Flow::Single { request: |s| asking("/enhetsregisteret/api/enheter", s, None), parse: entity },
            ..NORWEGIAN
        },
        Operation {
            name: "no_brreg.search",
            answers: "companies of that name",
            needs: &[Need::Name],
            flow: Flow::Single { request: by_name, parse: hits },
            ..NORWEGIAN
        },
        Operation {
            name: "no_brreg.roles",
            answers: "board, management and other roles",
            flow: Flow::Single {
                request: |s| asking("/enhetsregisteret/api/enheter", s, Some("roller")),
                parse: roles,
            },
            ..NORWEGIAN
        },
        Operation {
            name: "no_brreg.accounts",
            answers: "key figures of the last annual accounts",
            rules: &[
                on(500)
                    .json()
                    .means(
                        Class::Business,
                        "cannot show the accounts of this entity, as of banks, insurers and foundations",
                    )
                    .of(Scope::Subject),
                on(404).not_html().means(Class::NotFound, "has no accounts of this entity"),
            ],
            flow: Flow::Single { request: |s| asking("/regnskapsregisteret/regnskap", s, None), parse: accounts },
            ..NORWEGIAN
        },
    ],
    ..Source::BLANK
};

const NORWEGIAN: Operation = Operation { countries: Countries::Only(&["NO"]), needs: &[Need::Id], ..Operation::BLANK };

fn asking(path: &'static str, subject: &Subject, tail: Option<&str>) -> Option<Request> {
    let request = Request::get(path).segment(subject.id.as_deref()?);
    Some(match tail {
        Some(tail) => request.segment(tail),
        None => request,
    })
}

fn by_name(subject: &Subject) -> Option<Request> {
    let search = Request::get("/enhetsregisteret/api/enheter").query("navn", subject.name.as_deref()?);
    Some(search.query("size", "20"))
}

/// Reads a search. One without hits has no list at all, and says so in its count.
fn hits(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let found = Node::root(&document);
    if !found.get("_embedded").exists() && found.at("page.totalElements").count() == Some(0) {
        return Err(SourceError::not_found("knows no company of that name"));
    }
    let entities = found.require("_embedded")?.require_list("enheter")?;
    let companies = entities.into_iter().map(company).collect::<Result<Vec<_>, _>>()?;
    if companies.is_empty() {
        return Err(lacks("enheter"));
    }
    Ok(Facts { companies, ..Facts::default() }.into())
}

fn entity(body: &[u8]) -> Result<Answer, SourceError> {
    let company = company(Node::root(&json::parse(body)?))?;
    Ok(company.into())
}

fn company(entity: Node<'_>) -> Result<Company, SourceError> {
    let text = |path: &str| entity.at(path).text();
    let set = |name: &str| entity.get(name).flag() == Some(true);
    let deleted = text("slettedato");
    let standing = if deleted.is_some() {
        Standing::Ceased
    } else if set("konkurs") {
        Standing::Insolvent
    } else if set("underAvvikling") || set("underTvangsavviklingEllerTvangsopplosning") {
        Standing::Liquidation
    } else {
        Standing::Active
    };
    let registers = [
        ("registrertIMvaregisteret", "VAT register"),
        ("registrertIForetaksregisteret", "register of business enterprises"),
    ];
    let address = entity.get("forretningsadresse");
    let activities = ["naeringskode1", "naeringskode2", "naeringskode3"].map(|code| entity.get(code)).into_iter();
    Ok(Company {
        id: Some(entity.require_text("organisasjonsnummer")?),
        name: Some(entity.require_text("navn")?),
        country: Some("NO".to_owned()),
        vat: set("registrertIMvaregisteret")
            .then(|| text("organisasjonsnummer").map(|id| format!("NO{id}MVA")))
            .flatten(),
        standing,
        legal_form: text("organisasjonsform.beskrivelse").or_else(|| text("organisasjonsform.kode")),
        address: address.exists().then(|| Address {
            street: Some(address.get("adresse").texts().join(", ")).filter(|lines| !lines.is_empty()),
            postal_code: address.get("postnummer").text(),
            city: address.get("poststed").text(),
            country: address.get("landkode").text(),
        }),
        founded: text("stiftelsesdato").or_else(|| text("registreringsdatoEnhetsregisteret")),
        dissolved: deleted,
        activities: activities.filter_map(labelled).collect(),
        employees: entity.get("antallAnsatte").count(),
        website: text("hjemmeside"),
        registrations: registers
            .into_iter()
            .filter_map(|(field, name)| {
                Some(format!("{name}: {}", if entity.get(field).flag()? { "yes" } else { "no" }))
            })
            .collect(),
        ..Company::default()
    })
}

fn labelled(code: Node<'_>) -> Option<String> {
    let label = code.get("beskrivelse").text();
    Some([code.get("kode").text()?, label.unwrap_or_default()].join(" ").trim().to_owned())
}

/// Reads the groups of roles. Roles that ended and persons who died are left out.
fn roles(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let mut officers = Vec::new();
    for group in Node::root(&document).require_list("rollegrupper")? {
        let since = group.get("sistEndret").text();
        for role in group.require_list("roller")? {
            let ended = ["avregistrert", "fratraadt"].iter().any(|field| role.get(field).flag() == Some(true));
            if ended || role.at("person.erDoed").flag() == Some(true) {
                continue;
            }
            let person = role.get("person");
            let names = ["fornavn", "mellomnavn", "etternavn"].map(|part| person.get("navn").get(part).text());
            let person_name = names.into_iter().flatten().collect::<Vec<_>>().join(" ");
            let company_name = role.at("enhet.navn").texts().join(" ");
            officers.push(Officer {
                name: [person_name, company_name].into_iter().find(|name| !name.is_empty()),
                company_id: role.at("enhet.organisasjonsnummer").text(),
                role: role.at("type.beskrivelse").text().or_else(|| role.at("type.kode").text()),
                birth_year: person.get("fodselsdato").text().and_then(|date| date.get(..4)?.parse().ok()),
                since: since.clone(),
            });
        }
    }
    Ok(Facts { officers, ..Facts::default() }.into())
}

/// Reads the accounts: a list, newest first or not.
fn accounts(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let list: Vec<_> = Node::root(&document).items().collect();
    let mut accounts = list.into_iter().map(year).collect::<Result<Vec<_>, _>>()?;
    if accounts.is_empty() {
        return Err(SourceError::not_found("has no accounts of this entity"));
    }
    accounts.sort_by(|a, b| b.to.cmp(&a.to));
    Ok(Facts { accounts, ..Facts::default() }.into())
}

fn year(entry: Node<'_>) -> Result<Accounts, SourceError> {
    let period = entry.require("regnskapsperiode")?;
    let amount = |path: &str| entry.at(path).number();
    Ok(Accounts {
        from: period.get("fraDato").text(),
        to: Some(period.require_text("tilDato")?),
        currency: entry.get("valuta").text(),
        revenue: amount("resultatregnskapResultat.driftsresultat.driftsinntekter.sumDriftsinntekter"),
        result: amount("resultatregnskapResultat.aarsresultat"),
        equity: amount("egenkapitalGjeld.egenkapital.sumEgenkapital"),
        assets: amount("eiendeler.sumEiendeler"),
        filing: entry.get("journalnr").text(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const ENTITY: &[u8] = include_bytes!("../../../simulator/fixtures/no_brreg/entities/923609016.json");
    const DELETED: &[u8] = include_bytes!("../../../simulator/fixtures/no_brreg/deleted/989000101.json");
    const ROLES: &[u8] = include_bytes!("../../../simulator/fixtures/no_brreg/roles/923609016.json");
    const ACCOUNTS: &[u8] = include_bytes!("../../../simulator/fixtures/no_brreg/accounts/923609016.json");

    #[test]
    fn an_entity_is_read_whole() {
        let company = entity(ENTITY).expect("an entity").facts.companies.remove(0);
        assert_eq!(company.name.as_deref(), Some("EQUINOR ASA"));
        assert_eq!((company.standing, company.vat.as_deref()), (Standing::Active, Some("NO923609016MVA")));
        assert!(company.employees.is_some() && company.activities[0].starts_with("06.100"));
        assert_eq!(entity(DELETED).expect("an entity").facts.companies[0].standing, Standing::Ceased);
        assert_survives_corruption("no_brreg.entity", entity, ENTITY);
    }

    #[test]
    fn a_search_without_hits_has_no_list_but_a_total() {
        let one = std::str::from_utf8(ENTITY).expect("a text");
        let found = format!(r#"{{"_embedded":{{"enheter":[{one}]}},"page":{{"totalElements":1}}}}"#);
        let read = hits(found.as_bytes()).expect("a hit").facts.companies;
        assert_eq!((read.len(), read[0].id.as_deref()), (1, Some("923609016")));
        assert_eq!(hits(br#"{"page":{"totalElements":0}}"#).expect_err("none").class, Class::NotFound);
        for lost in [r#"{"page":{"totalElements":1}}"#, "{}", r#"{"_embedded":{}}"#, r#"{"_embedded":{"enheter":[]}}"#]
        {
            assert_eq!(hits(lost.as_bytes()).expect_err("no list").class, Class::BadShape, "{lost}");
        }
        assert_survives_corruption("no_brreg.search", hits, found.as_bytes());
    }

    #[test]
    fn roles_are_read_without_those_that_ended() {
        let officers = roles(ROLES).expect("roles").facts.officers;
        assert!(officers.iter().any(|officer| officer.role.as_deref() == Some("Styrets leder")));
        assert!(officers.iter().all(|officer| officer.name.is_some() && officer.role.is_some()));
        let ended =
            br#"{"rollegrupper":[{"roller":[{"avregistrert":true},{"fratraadt":true},{"person":{"erDoed":true}},
            {"type":{"kode":"REVI"},"enhet":{"organisasjonsnummer":"976389387","navn":["REVISOR","AS"]}}]}]}"#;
        let officers = roles(ended).expect("roles").facts.officers;
        assert_eq!((officers.len(), officers[0].name.as_deref()), (1, Some("REVISOR AS")));
        assert_survives_corruption("no_brreg.roles", roles, ROLES);
    }

    #[test]
    fn accounts_are_read_newest_first() {
        let read = accounts(ACCOUNTS).expect("accounts").facts.accounts;
        assert!(read[0].revenue.is_some() && read[0].equity.is_some() && read[0].currency.is_some());
        let two = br#"[{"regnskapsperiode":{"tilDato":"2022-12-31"}},{"regnskapsperiode":{"tilDato":"2023-12-31"}}]"#;
        assert_eq!(accounts(two).expect("accounts").facts.accounts[0].to.as_deref(), Some("2023-12-31"));
        assert_eq!(accounts(b"[]").expect_err("none").class, Class::NotFound);
        assert_eq!(accounts(b"[1]").expect_err("odd").class, Class::BadShape);
        assert_survives_corruption("no_brreg.accounts", accounts, ACCOUNTS);
    }
}

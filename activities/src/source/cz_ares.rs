//! ARES: the Czech aggregate of business registers.
//!
//! It has two kinds of 404. `NENALEZENO` is an answer; the framework's own "Not Found" means that the endpoint has moved.
//! In the public register nearly every field is either a plain value or a list of dated values, of which those without an
//! end date are the current ones.

use circuit_registry::CallError;
use futures::future::BoxFuture;
use serde_json::json;

use super::vies;
use crate::{
    model::{Address, Company, Facts, Officer, Owner, Standing, Status, Subject, VatCheck},
    parse::json::{self as reader, Node},
    spec::{
        Answer, Base, Class, Confidence, Countries, Flow, Need, Operation, Probe, Request, Session, Source,
        SourceError, Stay, on, sift,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "cz_ares",
    title: "ARES, Czech business registers",
    breaker: "cz_ares",
    base: Base { env: "CZ_ARES_BASE_URL", default: "https://ares.gov.cz/ekonomicke-subjekty-v-be/rest" },
    rules: &[
        on(404).with("NENALEZENO").means(Class::NotFound, "knows no such number"),
        on(400)
            .with("VYSTUP_PRILIS_MNOHO_VYSLEDKU")
            .means(Class::Business, "has too many companies of that name to list them"),
        on(400).with("CHYBA_VSTUPU").means(Class::Business, "does not accept the question"),
        // It counts requests and bars a client that exceeds its terms: an hour away is cheaper than a longer bar.
        on(403)
            .means(Class::Throttled, "has barred us, as it does with those who ask too often")
            .stay(Stay::Seconds(3600)),
    ],
    probe: Some(Probe::json(|| Request::get("/ekonomicke-subjekty/27082440"))),
    limits: "500 requests a minute; no repeated identical queries",
    terms: "free; terms of the Ministry of Finance",
    operations: &[
        Operation {
            name: "cz_ares.entity",
            answers: "the entry, with the registers it appears in",
            needs: &[Need::Id],
            flow: Flow::Single { request: |s| by_number("/ekonomicke-subjekty", s), parse: entity },
            ..CZECH
        },
        Operation {
            name: "cz_ares.search",
            answers: "entities with that name",
            needs: &[Need::Name],
            flow: Flow::Single { request: by_name, parse: hits },
            ..CZECH
        },
        Operation {
            name: "cz_ares.public_register",
            answers: "court file, officers and owners",
            needs: &[Need::Id],
            flow: Flow::Single { request: |s| by_number("/ekonomicke-subjekty-vr", s), parse: public_register },
            ..CZECH
        },
    ],
    confidence: Confidence::A,
    ..Source::BLANK
};

const CZECH: Operation = Operation { countries: Countries::Only(&["CZ"]), ..Operation::BLANK };

fn by_number(path: &'static str, subject: &Subject) -> Option<Request> {
    Some(Request::get(path).segment(subject.id.as_deref()?))
}

fn by_name(subject: &Subject) -> Option<Request> {
    let name = subject.name.as_deref()?;
    let document = json!({"obchodniJmeno": name, "start": 0, "pocet": 10, "razeni": []});
    Some(Request::post("/ekonomicke-subjekty/vyhledat", &document))
}

fn entity(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    Ok(company(Node::root(&document))?.into())
}

/// Whether the insolvency register has a record, for when it cannot be asked itself.
pub(super) const INSOLVENCY: Flow =
    Flow::Single { request: |subject| by_number("/ekonomicke-subjekty", subject), parse: insolvency };

/// The state of the entity in one of the registers behind the aggregate: `None` if it was never there. Words that are not
/// documented are not guessed at.
fn state_in(entity: Node<'_>, register: &'static str) -> Result<Option<String>, SourceError> {
    let state = entity.require("seznamRegistraci")?.require_text(register)?;
    match state.as_str() {
        "NEEXISTUJICI" => Ok(None),
        "AKTIVNI" | "BUDOUCI" | "HISTORICKY" | "LOGICKY_SMAZANY" | "POZASTAVENY" | "ZANIKLY" => {
            Ok(Some(state.to_lowercase()))
        }
        _ => Err(reader::lacks(register)),
    }
}

fn insolvency(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    let note = |register, name: &str| {
        let state = state_in(Node::root(&document), register)?;
        let answer = state.map_or_else(|| "no record".to_owned(), |state| format!("a record exists ({state})"));
        Ok(format!("{name}: {answer}"))
    };
    let notes = vec![note("stavZdrojeIr", "insolvency register")?, note("stavZdrojeCeu", "bankruptcy register")?];
    Ok(Answer { status: Status::Partial, ..Facts { notes, ..Facts::default() }.into() })
}

/// Whether the Czech VAT register knows the number, in the place of VIES.
pub(super) fn vat_check<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    let request = |number: &str| {
        let ico = number.strip_prefix("CZ").filter(|ico| ico.len() == 8)?; // longer ones are those of persons
        Some(Request::get("/ekonomicke-subjekty").segment(ico))
    };
    vies::nationally(session, request, vat)
}

fn vat(body: &[u8], number: &str) -> Result<VatCheck, SourceError> {
    let document = reader::parse(body)?;
    let entity = Node::root(&document);
    let company = company(entity)?;
    if company.vat.as_deref().is_some_and(|known| known != number) {
        return Err(SourceError::business("knows the company under another VAT number, such as that of a group"));
    }
    let valid = match state_in(entity, "stavZdrojeDph")?.as_deref() {
        Some("aktivni") => true,
        None | Some("zanikly" | "historicky" | "logicky_smazany") => false,
        Some(_) => return Err(SourceError::business("finds the registration neither in force nor ended")),
    };
    Ok(VatCheck { valid, name: company.name, address: company.address.and_then(Address::line), ..VatCheck::default() })
}

fn hits(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    let list = Node::root(&document).require_list("ekonomickeSubjekty")?;
    let companies = sift("hits", list, company)?;
    if companies.read.is_empty() {
        return Err(SourceError::not_found("has no company of that name"));
    }
    let total = Node::root(&document).get("pocetCelkem").count();
    let answer = Answer::from(Facts { companies: companies.read, ..Facts::default() });
    Ok(answer.of_total(companies.listed, total).noting(companies.note))
}

/// The registers behind the aggregate, by the field that tells the entity's state in each.
const REGISTERS: [(&str, &str); 6] = [
    ("stavZdrojeVr", "public register"),
    ("stavZdrojeRes", "statistical register"),
    ("stavZdrojeRzp", "trade register"),
    ("stavZdrojeDph", "VAT register"),
    ("stavZdrojeIr", "insolvency register"),
    ("stavZdrojeCeu", "bankruptcy register"),
];

/// What the state of a record means for the company.
const STATES: &[(&str, Standing)] =
    &[("AKTIVNI", Standing::Active), ("ZANIKLY", Standing::Ceased), ("HISTORICKY", Standing::Ceased)];

/// Czech law puts a procedure behind the name.
fn suffix(name: &str) -> Standing {
    let name = name.to_lowercase();
    let ends = |words: &[&str]| words.iter().any(|word| name.ends_with(word));
    if ends(&["v likvidaci", "\u{201e}v likvidaci\u{201c}"]) {
        Standing::Liquidation
    } else if ends(&["v konkursu", "v konkurzu", "v úpadku"]) {
        Standing::Insolvent
    } else {
        Standing::Active
    }
}

/// A VAT number as the register writes one; `Skupinove_DPH` in its place says that a group has one.
fn vat_of(entity: Node<'_>) -> Option<String> {
    let text = entity.get("dic").text()?;
    let digits = text.strip_prefix("CZ")?;
    ((8..=10).contains(&digits.len()) && digits.chars().all(|c| c.is_ascii_digit())).then_some(text)
}

fn company(entity: Node<'_>) -> Result<Company, SourceError> {
    let text = |path: &str| entity.at(path).text();
    let registrations = entity.get("seznamRegistraci");
    let states = REGISTERS.iter().filter_map(|(field, name)| {
        let state = registrations.get(field).text().filter(|state| state != "NEEXISTUJICI")?;
        Some(format!("{name}: {}", state.to_lowercase()))
    });
    let dissolved = text("datumZaniku");
    let state = registrations.get("stavZdrojeRes").text().or_else(|| registrations.get("stavZdrojeVr").text());
    let ended = if dissolved.is_some() { Standing::Ceased } else { Standing::Active };
    let procedure = ["stavZdrojeIr", "stavZdrojeCeu"].into_iter().filter_map(|field| registrations.get(field).text());
    // A live record in the insolvency register is no insolvency yet, and no reason to call the company active.
    let standing = procedure
        .map(|state| if state == "NEEXISTUJICI" { Standing::Active } else { Standing::Unknown })
        .fold(Standing::of(&state.unwrap_or_default(), STATES).and(ended), Standing::and)
        .and(suffix(&entity.get("obchodniJmeno").text().unwrap_or_default()));
    let seat = entity.get("sidlo");
    Ok(Company {
        id: Some(entity.require_text("ico").or_else(|_| entity.require_text("icoId"))?),
        name: Some(entity.require_text("obchodniJmeno")?),
        country: Some("CZ".to_owned()),
        vat: vat_of(entity),
        standing,
        legal_form: text("pravniForma"),
        address: seat.exists().then(|| Address {
            street: seat.get("textovaAdresa").text(),
            postal_code: seat.get("psc").text(),
            city: seat.get("nazevObce").text(),
            country: seat.get("kodStatu").text(),
        }),
        founded: text("datumVzniku"),
        dissolved,
        activities: entity.get("czNace").texts(),
        registrations: states.collect(),
        ..Company::default()
    })
}

/// The entries of a field that are in force: a plain value, or dated ones without an end.
fn current(field: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    field.items().filter(|item| !item.get("datumVymazu").exists())
}

/// A plain value, or the value of the first dated entry in force.
fn value(field: Node<'_>) -> Option<String> {
    current(field).find_map(|item| item.get("hodnota").text().or_else(|| item.text()))
}

fn public_register(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    let records = Node::root(&document).require_list("zaznamy")?;
    let primary = |record: &&Node<'_>| record.get("primarniZaznam").flag() == Some(true);
    let Some(record) = records.iter().find(primary).or_else(|| records.first()).copied() else {
        return Err(SourceError::not_found("has no entry in the public register"));
    };
    let mut facts = Facts::default();
    let file = current(record.get("spisovaZnacka")).find_map(|file| {
        let part = |name: &str| file.get(name).text();
        Some(format!("court file: {} {} / {}", part("oddil")?, part("vlozka")?, part("soud").unwrap_or_default()))
    });
    facts.companies.push(Company {
        id: value(record.get("ico")).or_else(|| Node::root(&document).get("icoId").text()),
        name: Some(value(record.get("obchodniJmeno")).ok_or_else(|| reader::lacks("obchodniJmeno"))?),
        country: Some("CZ".to_owned()),
        standing: Standing::of(&record.get("stavSubjektu").text().unwrap_or_default(), STATES)
            .and(suffix(&value(record.get("obchodniJmeno")).unwrap_or_default())),
        former_names: record
            .get("obchodniJmeno")
            .items()
            .filter(|name| name.get("datumVymazu").exists())
            .filter_map(|name| name.get("hodnota").text())
            .collect(),
        signing: current(record.get("statutarniOrgany")).find_map(|organ| value(organ.get("zpusobJednani"))),
        status: record.get("stavSubjektu").text(),
        legal_form: value(record.get("pravniForma")),
        registrations: file.into_iter().collect(),
        ..Company::default()
    });
    // The supervisory board, procuration and liquidators are in the second list.
    for body in current(record.get("statutarniOrgany")).chain(current(record.get("ostatniOrgany"))) {
        facts.officers.extend(current(body.get("clenoveOrganu")).filter_map(|member| {
            let (name, company_id) = holder(member)?;
            let born = member.at("fyzickaOsoba.datumNarozeni").text();
            Some(Officer {
                name: Some(name),
                company_id,
                role: member.at("clenstvi.funkce.nazev").text().or_else(|| body.get("nazevOrganu").text()),
                birth_year: born.and_then(|date| date.get(..4)?.parse().ok()),
                since: ["clenstvi.funkce.vznikFunkce", "clenstvi.clenstvi.vznikClenstvi"]
                    .into_iter()
                    .find_map(|path| member.at(path).text()),
                role_code: member.get("typAngazma").text(),
                entered: member.get("datumZapisu").text(),
            })
        }));
    }
    for body in current(record.get("akcionari")) {
        facts.owners.extend(current(body.get("clenoveOrganu")).filter_map(|member| owner(member, member, None)));
    }
    for body in current(record.get("spolecnici")) {
        facts.owners.extend(current(body.get("spolecnik")).filter_map(|partner| {
            let share = current(partner.get("podil")).find_map(share);
            owner(partner.get("osoba"), partner, share)
        }));
    }
    Ok(facts.into())
}

/// Name of the person or company, and the number of the company.
fn holder(of: Node<'_>) -> Option<(String, Option<String>)> {
    let (person, company) = (of.get("fyzickaOsoba"), of.get("pravnickaOsoba"));
    let names = ["titulPredJmenem", "jmeno", "prijmeni", "titulZaJmenem"].map(|part| person.get(part).text());
    let name = names.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let name = if name.is_empty() { company.get("obchodniJmeno").text()? } else { name };
    Some((name, company.get("ico").text()))
}

fn owner(of: Node<'_>, entry: Node<'_>, share: Option<String>) -> Option<Owner> {
    let (name, company_id) = holder(of)?;
    let country =
        of.at("pravnickaOsoba.adresa.kodStatu").text().or_else(|| of.at("fyzickaOsoba.statniObcanstvi").text());
    Some(Owner {
        name: Some(name),
        company_id,
        country,
        share,
        entered: entry.get("datumZapisu").text(),
        ..Owner::default()
    })
}

fn share(share: Node<'_>) -> Option<String> {
    let size = share.get("velikostPodilu");
    let value = size.get("hodnota").text()?;
    Some(match size.get("typObnos").text().as_deref() {
        Some("PROCENTA") => format!("{value} %"),
        _ => value.replace(';', "/"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const ENTITY: &[u8] = include_bytes!("../../../simulator/fixtures/cz_ares/entities/27082440.json");
    const REGISTER: &[u8] = include_bytes!("../../../simulator/fixtures/cz_ares/vr/27082440.json");
    const PARTNERS: &[u8] = include_bytes!("../../../simulator/fixtures/cz_ares/vr/26168685.json");

    #[test]
    fn an_entity_is_read_whole() {
        let company = entity(ENTITY).expect("an entity").facts.companies.remove(0);
        assert_eq!(company.name.as_deref(), Some("Alza.cz a.s."));
        assert_eq!((company.standing, company.vat.as_deref()), (Standing::Active, Some("CZ27082440")));
        let postal_code = company.address.and_then(|address| address.postal_code);
        assert_eq!(postal_code.as_deref(), Some("17000"), "a number in the source");
        assert!(company.registrations.iter().any(|r| r == "VAT register: aktivni"));
        assert_survives_corruption("cz_ares.entity", entity, ENTITY);
    }

    #[test]
    fn other_registers_are_noted_by_state_or_the_answer_fails() {
        let answer = insolvency(ENTITY).expect("states");
        assert_eq!(
            (answer.status, answer.facts.notes[0].as_str()),
            (Status::Partial, "insolvency register: no record")
        );
        let with = |from: &str, to: &str| String::from_utf8_lossy(ENTITY).replace(from, to).into_bytes();
        let bankrupt = with(r#""stavZdrojeIr": "NEEXISTUJICI""#, r#""stavZdrojeIr": "AKTIVNI""#);
        let answer = insolvency(&bankrupt).expect("states").facts.notes.remove(0);
        assert_eq!(answer, "insolvency register: a record exists (aktivni)");
        for odd in [with("NEEXISTUJICI", "NOVY"), with("stavZdrojeIr", "x"), b"{}".to_vec()] {
            assert_eq!(insolvency(&odd).expect_err("no state").class, Class::BadShape);
        }
        assert_survives_corruption("cz_isir.insolvency", insolvency, ENTITY);

        let number = "CZ27082440";
        assert!(vat(ENTITY, number).is_ok_and(|check| check.valid && check.name.as_deref() == Some("Alza.cz a.s.")));
        let dph = r#""stavZdrojeDph": "AKTIVNI""#;
        for (state, valid) in
            [("NEEXISTUJICI", Some(false)), ("ZANIKLY", Some(false)), ("BUDOUCI", None), ("NEW", None)]
        {
            let body = with(dph, &format!(r#""stavZdrojeDph": "{state}""#));
            assert_eq!(vat(&body, number).ok().map(|check| check.valid), valid, "{state}");
        }
        assert!(vat(ENTITY, "CZ699001234").is_err(), "a group's number is another number");
        let parse =
            |body: &[u8]| vat(body, "CZ27082440").map(|check| Facts { vat: Some(check), ..Facts::default() }.into());
        assert_survives_corruption("vies.check", parse, ENTITY);
    }

    #[test]
    fn a_word_in_place_of_a_vat_number_is_dropped() {
        let with = |dic: &str| String::from_utf8_lossy(ENTITY).replace("CZ27082440", dic).into_bytes();
        let company = |body: &[u8]| entity(body).expect("an entity").facts.companies.remove(0);
        assert_eq!(company(&with("Skupinove_DPH")).vat, None);
        let winding_up = String::from_utf8_lossy(ENTITY).replace("Alza.cz a.s.", "Alza.cz a.s. v likvidaci");
        assert_eq!(company(winding_up.as_bytes()).standing, Standing::Liquidation);
        let insolvent = String::from_utf8_lossy(ENTITY)
            .replace(r#""stavZdrojeIr": "NEEXISTUJICI""#, r#""stavZdrojeIr": "AKTIVNI""#);
        assert_eq!(company(insolvent.as_bytes()).standing, Standing::Unknown);
    }

    #[test]
    fn hits_are_a_list_or_no_answer() {
        let list = format!(r#"{{"pocetCelkem":1,"ekonomickeSubjekty":[{}]}}"#, String::from_utf8_lossy(ENTITY));
        assert_eq!(hits(list.as_bytes()).expect("hits").facts.companies.len(), 1);
        assert_eq!(hits(br#"{"pocetCelkem":0,"ekonomickeSubjekty":[]}"#).expect_err("none").class, Class::NotFound);
        assert_eq!(hits(br#"{"pocetCelkem":0}"#).expect_err("no list").class, Class::BadShape);
        assert_survives_corruption("cz_ares.search", hits, list.as_bytes());
    }

    #[test]
    fn the_public_register_names_officers_and_owners() {
        let facts = public_register(REGISTER).expect("an entry").facts;
        assert_eq!(facts.companies[0].name.as_deref(), Some("Alza.cz a.s."));
        assert!(!facts.officers.is_empty() && facts.officers.iter().all(|officer| officer.name.is_some()));
        assert!(!facts.owners.is_empty());
        let partners = public_register(PARTNERS).expect("an entry").facts;
        assert!(partners.owners.is_empty() || partners.owners.iter().any(|owner| owner.share.is_some()));
        assert_survives_corruption("cz_ares.public_register", public_register, REGISTER);
        assert_survives_corruption("cz_ares.public_register", public_register, PARTNERS);
    }

    #[test]
    fn what_has_ended_is_left_out_and_both_shapes_are_read() {
        let body = r#"{"icoId":"1","zaznamy":[{"primarniZaznam":false},{"primarniZaznam":true,
            "ico":[{"hodnota":"27082440","datumZapisu":"2003-08-26"}],"pravniForma":"121",
            "obchodniJmeno":[{"hodnota":"Old","datumVymazu":"2010-01-01"},{"hodnota":"New"}],
            "statutarniOrgany":[{"nazevOrganu":"board","clenoveOrganu":[
                {"datumVymazu":"2020-01-01","fyzickaOsoba":{"jmeno":"Jan","prijmeni":"Minulý"}},
                {"fyzickaOsoba":{"jmeno":"Jana","prijmeni":"Vzorová","datumNarozeni":"1980-01-01"}}]}],
            "spolecnici":[{"spolecnik":[{"podil":[{"velikostPodilu":{"typObnos":"ZLOMEK","hodnota":"1;3"}}],
                "osoba":{"pravnickaOsoba":{"ico":"26168685","obchodniJmeno":"Holder"}}}]}]}]}"#;
        let facts = public_register(body.as_bytes()).expect("an entry").facts;
        assert_eq!(
            (facts.companies[0].name.as_deref(), facts.companies[0].id.as_deref()),
            (Some("New"), Some("27082440"))
        );
        assert_eq!(facts.officers.len(), 1);
        assert_eq!((facts.officers[0].birth_year, facts.officers[0].role.as_deref()), (Some(1980), Some("board")));
        assert_eq!(facts.owners[0].share.as_deref(), Some("1/3"));
    }
}

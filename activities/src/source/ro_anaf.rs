//! ANAF: Romanian taxpayers, their VAT registration and their balance sheets.
//!
//! The firewall in front of it refuses with a page and status 200, and the documented wrapper with its own code is
//! mostly absent but may say "error" inside a 200 as well. Both count as outages. One request a second is allowed in all.

use circuit_registry::CallError;
use futures::future::BoxFuture;
use jiff::{Timestamp, civil};
use serde_json::json;

use super::vies;
use crate::{
    model::{Accounts, Address, Company, Facts, Standing, Subject, VatCheck},
    parse::date::today,
    parse::json::{self as reader, Node, lacks},
    spec::{
        Answer, Base, Class, Confidence, Countries, Flow, Need, Operation, Probe, Request, Session, Source,
        SourceError, on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "ro_anaf",
    title: "ANAF, Romanian tax administration",
    breaker: "ro_anaf",
    base: Base { env: "RO_ANAF_BASE_URL", default: "https://webservicesp.anaf.ro" },
    timeout: std::time::Duration::from_secs(20), // slow at night and at the end of a month
    rules: &[
        on(0).with("The requested URL was rejected").means(Class::Unavailable, "refused the request at its firewall"),
        on(404).with("notFound").means(Class::NotFound, "has no such number in this register"),
    ],
    probe: Some(Probe { request: || asking(VAT, 14_399_840), read: |body| taxpayer(body).map(drop) }),
    limits: "one request a second; a hundred numbers a request",
    terms: "free; who asks too often is punished",
    operations: &[
        Operation {
            name: "ro_anaf.vat",
            answers: "the taxpayer and the VAT registration",
            flow: Flow::Single { request: |s| Some(asking(VAT, number(s)?)), parse: taxpayer },
            ..ROMANIAN
        },
        Operation {
            name: "ro_anaf.accounts",
            answers: "key figures of the last balance sheet",
            flow: Flow::Steps(balance_sheet),
            ..ROMANIAN
        },
        Operation {
            name: "ro_anaf.e_invoice",
            answers: "the entry in the register of electronic invoicing",
            flow: Flow::Single {
                request: |s| Some(asking("/api/registruroefactura/v1/interogare", number(s)?)),
                parse: e_invoice,
            },
            ..ROMANIAN
        },
    ],
    confidence: Confidence::A,
    ..Source::BLANK
};

const VAT: &str = "/api/PlatitorTvaRest/v9/tva";

const ROMANIAN: Operation =
    Operation { countries: Countries::Only(&["RO"]), needs: &[Need::Id, Need::Vat], ..Operation::BLANK };

/// The last years whose balance sheet may be on file: that of last year appears in the course of this one.
const YEARS: i16 = 2;

fn number(subject: &Subject) -> Option<u64> {
    let vat = subject.vat.as_deref().and_then(|vat| vat.strip_prefix("RO"));
    subject.id.as_deref().or(vat)?.parse().ok()
}

fn now() -> civil::Date {
    today("Europe/Bucharest", Timestamp::now())
}

/// Asks about one number as of today; "today" is a date in Bucharest.
fn asking(path: &'static str, number: u64) -> Request {
    Request::post(path, &json!([{"cui": number, "data": now().to_string()}]))
}

/// The entry about the number that was asked for.
fn entry(root: Node<'_>) -> Result<Node<'_>, SourceError> {
    match root.get("cod").text().as_deref() {
        None | Some("200") => {}
        Some(_) => return Err(SourceError::unavailable("reports an error of its own inside a 200")),
    }
    let found = root.require_list("found")?;
    match found.first() {
        Some(entry) => Ok(*entry),
        None if root.get("notFound").items().next().is_some() => Err(SourceError::not_found("knows no such taxpayer")),
        None => Err(lacks("notFound")),
    }
}

/// Whether the Romanian VAT register knows the number, in the place of VIES.
pub(super) fn vat_check<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    let request = |number: &str| Some(asking(VAT, number.strip_prefix("RO")?.parse().ok()?));
    vies::nationally(session, request, |body, number| {
        let check = taxpayer(body)?.facts.vat.filter(|check| check.number == number);
        check.ok_or_else(|| lacks("cui"))
    })
}

/// The words of `stare_inregistrare`, by the first of them. ANAF publishes no list, so a word that is not here is unknown.
/// `INTRERUPERE`, `SUSPENDARE`, `TRANSFER` and `FUZIUNE` are seen, and none of them says whether the company may act.
const STANDINGS: &[(&str, Standing)] = &[
    ("RADIERE", Standing::Ceased),
    ("RADIAT", Standing::Ceased),
    ("RADIATA", Standing::Ceased),
    ("DIZOLVARE", Standing::Liquidation),
    ("DIZOLVAT", Standing::Liquidation),
    ("DIZOLVATA", Standing::Liquidation),
    ("LICHIDARE", Standing::Liquidation),
    ("FALIMENT", Standing::Insolvent),
    ("INSOLVENTA", Standing::Insolvent),
    ("REORGANIZARE", Standing::Restructuring),
];

/// The words that mean that the company is in business. They must be all that stands before the date.
const IN_BUSINESS: &[(&str, Standing)] = &[("INREGISTRAT", Standing::Active), ("INREGISTRATA", Standing::Active)];

/// Upper case without the Romanian accents, which ANAF writes in some years and not in others.
fn folded(text: &str) -> String {
    let plain = |c: char| match c {
        'Î' => 'I',
        'Ă' | 'Â' => 'A',
        'Ș' | 'Ş' => 'S',
        'Ț' | 'Ţ' => 'T',
        other => other,
    };
    text.to_uppercase().chars().map(plain).collect()
}

/// What `WORDS din data dd.mm.yyyy` means.
fn standing(status: &str) -> Standing {
    let status = folded(status);
    let phrase = status.split_once(" DIN DATA ").map_or(status.as_str(), |(phrase, _)| phrase);
    let first = phrase.split(|c: char| !c.is_alphabetic()).find(|word| !word.is_empty()).unwrap_or_default();
    match Standing::of(phrase, IN_BUSINESS) {
        Standing::Unknown => Standing::of(first, STANDINGS),
        known => known,
    }
}

/// The periods of a list, as `from – to`; one that has not ended has no end. An entry
/// without a start is no period.
fn periods(list: Node<'_>, from: &str, to: &[&str]) -> Vec<String> {
    let period = |period: Node<'_>| {
        let end = to.iter().find_map(|name| period.get(name).date()).unwrap_or_default();
        Some(format!("{} – {end}", period.get(from).date()?).trim_end().to_owned())
    };
    list.items().filter_map(period).collect()
}

fn taxpayer(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    let entry = entry(Node::root(&document))?;
    let general = entry.require("date_generale")?;
    let id = general.require_text("cui")?;
    let name = general.require_text("denumire")?;
    let registered = entry.require("inregistrare_scop_Tva")?.get("scpTVA").flag().ok_or_else(|| lacks("scpTVA"))?;
    let status = general.get("stare_inregistrare").text();
    let inactive = entry.at("stare_inactiv.statusInactivi").flag() == Some(true);
    let stated = status.as_deref().map_or(Standing::Unknown, standing);
    let standing = if inactive { stated.and(Standing::Unknown) } else { stated };
    let seat = entry.get("adresa_sediu_social");
    let address = seat.exists().then(|| Address {
        street: seat.joined(&["sdenumire_Strada", "snumar_Strada"], " "),
        postal_code: seat.get("scod_Postal").text(),
        city: seat.get("sdenumire_Localitate").text(),
        country: Some("RO".to_owned()),
    });
    let yes = |set: Option<bool>| set.map(|set| if set { "yes" } else { "no" });
    let registers = [
        ("trade register", general.get("nrRegCom").text()),
        ("VAT register", yes(Some(registered)).map(str::to_owned)),
        ("taxpayers declared inactive", yes(entry.at("stare_inactiv.statusInactivi").flag()).map(str::to_owned)),
        ("split VAT", yes(entry.at("inregistrare_SplitTVA.statusSplitTVA").flag()).map(str::to_owned)),
        ("RO e-Factura", yes(general.get("statusRO_e_Factura").flag()).map(str::to_owned)),
    ];
    let vat = VatCheck {
        number: format!("RO{id}"),
        valid: registered,
        name: Some(name.clone()),
        address: general.get("adresa").text(),
        derived: false,
    };
    let company = Company {
        vat: registered.then(|| format!("RO{id}")),
        id: Some(id),
        name: Some(name),
        country: Some("RO".to_owned()),
        dissolved: general.get("stare_inregistrare").date().filter(|_| standing == Standing::Ceased),
        standing,
        county: seat.get("sdenumire_Judet").text(),
        vat_periods: periods(
            entry.at("inregistrare_scop_Tva.perioade_TVA"),
            "data_inceput_ScpTVA",
            &["data_anul_imp_ScpTVA", "data_sfarsit_ScpTVA"],
        ),
        inactivity: periods(entry.get("stare_inactiv"), "dataInactivare", &["dataReactivare"]),
        status,
        legal_form: general.get("forma_juridica").text(),
        address,
        founded: general.get("data_inregistrare").date(),
        activities: general.get("cod_CAEN").text().into_iter().collect(),
        registrations: registers.into_iter().filter_map(|(name, state)| Some(format!("{name}: {}", state?))).collect(),
        ..Company::default()
    };
    let notes = inactive.then(|| "declared inactive: it may not trade, and its invoices are not deductible".to_owned());
    Ok(Facts { companies: vec![company], vat: Some(vat), notes: notes.into_iter().collect(), ..Facts::default() }
        .into())
}

fn e_invoice(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    let entry = entry(Node::root(&document))?;
    let since = entry.get("dataInscriere").date().map(|date| format!(", since {date}")).unwrap_or_default();
    let register = entry.get("registru").text().unwrap_or_else(|| "registered".to_owned());
    let company = Company {
        id: Some(entry.require_text("cui")?),
        name: Some(entry.require_text("denumire")?),
        country: Some("RO".to_owned()),
        registrations: vec![format!("RO e-Factura: {register}{since}")],
        ..Company::default()
    };
    Ok(company.into())
}

fn balance_sheet<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let number = number(session.subject()).unwrap_or_default();
        for back in 1..=YEARS {
            let year = (now().year() - back).to_string();
            let request = Request::get("/bilant").query("an", year).query("cui", number.to_string());
            if let Some(accounts) = session.ask(request, |reply| sheet(&reply.body)).await? {
                return Ok(Facts { accounts: vec![accounts], ..Facts::default() }.into());
            }
        }
        Err(CallError::Upstream(SourceError::not_found("has no balance sheet of the last two years")))
    })
}

/// Reads a sheet. One that is not on file has the shape of a sheet, without a name and without figures.
fn sheet(body: &[u8]) -> Result<Option<Accounts>, SourceError> {
    let document = reader::parse(body)?;
    let sheet = Node::root(&document);
    let figures = sheet.require_list("i")?;
    if figures.is_empty() {
        return Ok(None);
    }
    let year = sheet.get("an").count().filter(|year| (1990..=9999).contains(year)).ok_or_else(|| lacks("an"))?;
    let figure = |label: &str| {
        let named = |item: &&Node<'_>| {
            item.get("val_den_indicator").text().is_some_and(|text| text.to_lowercase().starts_with(label))
        };
        figures.iter().find(named)?.get("val_indicator").number()
    };
    // A year ends with a profit or with a loss; the other one is zero.
    let result = match (figure("profit net"), figure("pierdere net")) {
        (Some(0.0) | None, Some(loss)) if loss != 0.0 => Some(-loss),
        (profit, _) => profit,
    };
    Ok(Some(Accounts {
        from: Some(format!("{year}-01-01")),
        to: Some(format!("{year}-12-31")),
        currency: Some("RON".to_owned()),
        revenue: figure("cifra de afaceri net"),
        result,
        equity: figure("capitaluri"),
        ..Accounts::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const SHEET: &[u8] = include_bytes!("../../../simulator/fixtures/ro_anaf/balance/14399840.json");

    fn body(record: &str) -> String {
        format!(r#"{{"found":[{record}],"notFound":[]}}"#)
    }

    #[test]
    fn a_taxpayer_is_read_whole() {
        let body = body(include_str!("../../../simulator/fixtures/ro_anaf/vat/14399840.json"));
        let facts = taxpayer(body.as_bytes()).expect("a taxpayer").facts;
        let (company, vat) = (&facts.companies[0], facts.vat.as_ref().expect("a registration"));
        assert_eq!(
            (company.name.as_deref(), company.id.as_deref()),
            (Some("DANTE INTERNATIONAL SA"), Some("14399840"))
        );
        assert_eq!((company.standing, company.founded.as_deref()), (Standing::Active, Some("2002-01-15")));
        assert_eq!((vat.valid, vat.number.as_str(), facts.notes.len()), (true, "RO14399840", 0));
        assert_survives_corruption("ro_anaf.vat", taxpayer, body.as_bytes());
    }

    #[test]
    fn struck_off_and_inactive_are_reported() {
        let body = body(include_str!("../../../simulator/fixtures/ro_anaf/vat/99000107.json"));
        let facts = taxpayer(body.as_bytes()).expect("a taxpayer").facts;
        let company = &facts.companies[0];
        assert_eq!((company.standing, company.dissolved.as_deref()), (Standing::Ceased, Some("2026-03-01")));
        assert!(company.vat.is_none() && facts.vat.is_some_and(|vat| !vat.valid) && facts.notes.len() == 1);
    }

    #[test]
    fn only_a_known_word_means_in_business() {
        for (status, wanted) in [
            ("INREGISTRAT din data 15.01.2002", Standing::Active),
            ("Înregistrat din data 15.01.2002", Standing::Active),
            ("INREGISTRAT", Standing::Active),
            ("DIZOLVARE FARA LICHIDARE(FUZIUNE) din data 22.08.2016", Standing::Liquidation),
            ("RADIERE din data 01.03.2026", Standing::Ceased),
            ("FALIMENT din data 01.03.2026", Standing::Insolvent),
            ("INTRERUPERE TEMPORARA DE ACTIVITATE din data 01.03.2026", Standing::Unknown),
            ("INREGISTRAT PROVIZORIU din data 01.03.2026", Standing::Unknown),
            ("INVENTAT din data 01.03.2026", Standing::Unknown),
            ("", Standing::Unknown),
        ] {
            assert_eq!(standing(status), wanted, "{status}");
        }
    }

    #[test]
    fn inactivity_county_and_vat_periods_are_read() {
        let record = include_str!("../../../simulator/fixtures/ro_anaf/vat/14399840.json");
        let read = |record: &str| taxpayer(body(record).as_bytes()).expect("a taxpayer").facts.companies.remove(0);
        let company = read(record);
        assert_eq!((company.county.as_deref(), company.inactivity.len()), (Some("MUNICIPIUL BUCUREŞTI"), 0));
        assert_eq!(company.vat_periods, ["2002-01-15 –"]);
        let inactive = record
            .replace(r#""statusInactivi": false"#, r#""statusInactivi": true"#)
            .replace(r#""dataInactivare": """#, r#""dataInactivare": "2025-02-03""#);
        let company = read(&inactive);
        assert_eq!((company.standing, company.inactivity), (Standing::Unknown, vec!["2025-02-03 –".to_owned()]));
        let single = record.replace(['[', ']'], "");
        assert_eq!(read(&single).vat_periods, ["2002-01-15 –"], "one object, as the instructions have it");
    }

    #[test]
    fn unknown_numbers_are_in_the_list_of_not_found() {
        let class = |body: &str| taxpayer(body.as_bytes()).expect_err("no taxpayer").class;
        assert_eq!(class(r#"{"found":[],"notFound":[1]}"#), Class::NotFound);
        assert_eq!(class(r#"{"cod":200,"message":"SUCCESS","found":[],"notFound":[1]}"#), Class::NotFound);
        assert_eq!(class(r#"{"cod":500,"message":"ERROR","found":[],"notFound":[]}"#), Class::Unavailable);
        assert_eq!(class(r#"{"found":[],"notFound":[]}"#), Class::BadShape);
        assert_eq!(class(r#"{"notFound":[1]}"#), Class::BadShape);
    }

    #[test]
    fn an_entry_of_the_invoicing_register_is_read() {
        let body = br#"{"found":[{"cui":"14399840","denumire":"X SA","registru":"obligatoriu","dataInscriere":"2022-07-01"}],"notFound":[]}"#;
        let company = e_invoice(body).expect("an entry").facts.companies.remove(0);
        assert_eq!(company.registrations, ["RO e-Factura: obligatoriu, since 2022-07-01"]);
        assert_survives_corruption("ro_anaf.e_invoice", e_invoice, body);
    }

    #[test]
    fn a_sheet_is_read_and_an_empty_one_is_none() {
        let accounts = sheet(SHEET).expect("a sheet").expect("figures");
        assert_eq!((accounts.to.as_deref(), accounts.revenue), (Some("2024-12-31"), Some(7_012_345_678.0)));
        assert_eq!(accounts.result, Some(-12_345_678.0), "a loss is negative");
        assert_eq!(sheet(br#"{"an":2025,"cui":1,"deni":"","caen":0,"den_caen":"","i":[]}"#), Ok(None));
        assert!(sheet(br#"{"an":2025,"cui":1}"#).is_err());
        let parse = |body: &[u8]| {
            let accounts = sheet(body)?.into_iter().collect();
            Ok(Facts { accounts, ..Facts::default() }.into())
        };
        assert_survives_corruption("ro_anaf.accounts", parse, SHEET);
    }
}

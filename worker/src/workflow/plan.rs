//! Which questions an investigation asks. Pure functions of the subject, the catalog, and the findings so far.
//!
//! A user may give only a registration number or an LEI, but watch lists and the press need a name. So there are rounds: the
//! first asks what applies to the subject as given, each further one what applies to it as the sources describe it. Watch
//! lists come last, when no other question is left, because they are asked about everybody whom the other sources name.

use std::collections::BTreeSet;

use osint_activities::{
    catalog::{operation, operations},
    identifiers::{
        IdentifierError, Kind,
        authority::{home_number, without_court},
    },
    model::{Address, Company, Country, Facts, Finding, Status, Subject, SubjectError},
    spec::{Applies, Countries, Entry, Need},
};

use super::parties::named;
use crate::report::{Deferred, Plan, Question, warnings};

/// Checks the subject and brings it into the form in which sources are asked about it. A number that cannot be right is
/// refused, because a source would answer "not found" and the report would be wrong. With `as_written`, wrong check digits
/// are only a [warning](warnings), provided that the register that issues such numbers is asked. For VAT numbers they are
/// always a warning then: member states have issued numbers that fail the published check.
///
/// # Errors
/// If the subject is empty, or one of its numbers is malformed or fails its checksum.
pub fn admit(subject: Subject) -> Result<Subject, SubjectError> {
    let (subject, doubts) = subject.normalised()?;
    let insisted = |doubt: &IdentifierError| subject.as_written || needed(&subject, doubt) == Some(Need::Vat);
    let refused = doubts.into_iter().find(|doubt| !(insisted(doubt) && is_settled_by_a_register(&subject, doubt)));
    match refused {
        Some(doubt) => Err(doubt.into()),
        None => Ok(subject),
    }
}

/// True if the investigation asks the register that issues such numbers.
fn is_settled_by_a_register(subject: &Subject, doubt: &IdentifierError) -> bool {
    let need = match needed(subject, doubt) {
        Some(Need::Lei) => return true, // GLEIF is asked about companies of any country
        Some(need) => need,
        None => return false,
    };
    // A source that can also be asked by name collects other registers' data; it issues no numbers.
    operations().iter().map(|entry| entry.operation).any(|operation| {
        let numbered = operation.needs.contains(&need) && !operation.needs.contains(&Need::Name);
        operation.countries != Countries::Any && operation.countries.cover(subject) && numbered
    })
}

/// What a question starts from that can settle a doubt about a number.
fn needed(subject: &Subject, doubt: &IdentifierError) -> Option<Need> {
    let IdentifierError::Checksum { identifier, .. } = doubt else { return None };
    Some(match identifier.kind() {
        Kind::Lei => Need::Lei,
        kind if Kind::of_register(subject.country) == Some(kind) => Need::Id,
        _ => Need::Vat,
    })
}

/// Plans the first round of an investigation of `subject` over the operations of `catalog`.
#[must_use]
pub fn plan(subject: Subject, catalog: &[Entry]) -> Plan {
    let (mut questions, mut deferred, mut not_applicable) = (Vec::new(), Vec::new(), Vec::new());
    for Entry { source, operation } in catalog {
        let question = || Question {
            source: source.name.to_owned(),
            operation: operation.name.to_owned(),
            breaker: source.breaker.to_owned(),
            answers: operation.answers.to_owned(),
        };
        match operation.applies(&subject) {
            Applies::Yes => questions.push(question()),
            Applies::No(why) if operation.countries.cover(&subject) => {
                deferred.push(Deferred { question: question(), why });
            }
            Applies::No(why) => {
                not_applicable.push(Finding::new(source.name, operation.name, Status::NotApplicable).because(why));
            }
        }
    }
    Plan { subject, questions, deferred, not_applicable, more_rounds: 0 }
}

/// Rounds after the first. One number may lead to the next: an LEI to a register number, that to a VAT number and a name.
const FURTHER_ROUNDS: u32 = 4;

/// Why a screening is not asked yet.
const LAST: &str = "it waits for the names that the other sources give";

/// Plans the first of several rounds: like [`plan`], but screenings wait for the last round.
#[must_use]
pub fn plan_first(subject: Subject, catalog: &[Entry]) -> Plan {
    let mut plan = plan(subject, catalog);
    plan.more_rounds = FURTHER_ROUNDS;
    wait_for_names(&mut plan);
    plan
}

/// Plans the next round: the deferred questions that `findings` now make possible. `findings` are all findings so far.
/// Screenings are in it if it is the last one.
#[must_use]
pub fn plan_further(before: &Plan, findings: &[Finding], catalog: &[Entry]) -> Plan {
    let subject = learn(before.subject.clone(), findings);
    let parties = named(&subject, findings).into_iter().take(Subject::PARTIES).collect();
    let mut next = plan(Subject { parties, ..subject }, catalog);
    let waited = |name: &str| before.deferred.iter().any(|deferred| deferred.question.operation == name);
    next.questions.retain(|question| waited(&question.operation));
    next.more_rounds = before.more_rounds.saturating_sub(1);
    if next.more_rounds > 0 && next.questions.iter().any(|question| !screens(question)) {
        wait_for_names(&mut next);
    } else {
        next.more_rounds = 0;
    }
    next
}

/// Defers the screenings of a plan.
fn wait_for_names(plan: &mut Plan) {
    let (screenings, others) = std::mem::take(&mut plan.questions).into_iter().partition(screens);
    plan.questions = others;
    let waiting = |question: Question| Deferred { question, why: LAST.to_owned() };
    plan.deferred.extend(Vec::into_iter(screenings).map(waiting));
}

fn screens(question: &Question) -> bool {
    operation(&question.operation).is_some_and(|entry| entry.operation.screens)
}

/// Fills the subject's empty fields from the findings. A record counts only if its number, LEI or VAT number is the
/// subject's: a search by name may find another company. The home register has priority.
fn learn(mut subject: Subject, findings: &[Finding]) -> Subject {
    let home = |finding: &&Finding| {
        operation(&finding.operation).is_some_and(|entry| matches!(entry.operation.countries, Countries::Only(_)))
    };
    let (registers, others): (Vec<_>, Vec<_>) = findings.iter().partition(home);
    let given = subject.clone();
    if subject.persons.is_empty() {
        subject.persons = representatives(&registers, &given);
    }
    let records = registers.into_iter().chain(others).filter_map(|finding| finding.data.as_ref());
    for company in records.flat_map(|facts| believed(facts, &given)) {
        subject.id = subject.id.or_else(|| home_number_of(company, &given));
        subject.name = subject.name.or_else(|| company.name.clone());
        subject.lei = subject.lei.or_else(|| company.lei.clone());
        subject.vat = subject.vat.or_else(|| company.vat.clone());
        subject.website = subject.website.or_else(|| company.website.clone());
        subject.address = subject.address.or_else(|| company.address.as_ref().and_then(on_one_line));
    }
    // If a learnt value is malformed, the next source would refuse it. Then the subject stays as given.
    let doubted = warnings(&given).len();
    match subject.normalised() {
        Ok((subject, doubts)) if doubts.len() == doubted => subject,
        _ => given,
    }
}

/// The persons who act for the company, from registers that were asked by number. If such an answer also describes
/// companies, one of them must be the subject.
fn representatives(registers: &[&Finding], subject: &Subject) -> Vec<String> {
    let facts = registers.iter().filter(|_| subject.id.is_some()).filter_map(|finding| finding.data.as_ref());
    let ours =
        facts.filter(|facts| facts.companies.is_empty() || facts.companies.iter().any(|it| is_of_subject(it, subject)));
    let persons = ours.flat_map(|facts| &facts.officers).filter(|officer| officer.company_id.is_none());
    persons.filter_map(|officer| officer.name.clone()).collect()
}

/// The records of an answer that are the subject's. A register number is not unique everywhere: if an answer gives it to
/// several companies, none of them is believed, unless an LEI or a VAT number tells which one it is.
fn believed<'a>(facts: &'a Facts, subject: &Subject) -> Vec<&'a Company> {
    let ours: Vec<_> = facts.companies.iter().filter(|company| is_of_subject(company, subject)).collect();
    let (certain, by_number): (Vec<_>, Vec<_>) = ours.into_iter().partition(|company| has_unique_key(company, subject));
    let leis: BTreeSet<_> = by_number.iter().filter_map(|company| company.lei.as_deref()).collect();
    match certain.is_empty() {
        false => certain,
        true if leis.len() > 1 => Vec::new(),
        true => by_number,
    }
}

/// The number in the home register, from a record that the subject's LEI identifies.
fn home_number_of(company: &Company, subject: &Subject) -> Option<String> {
    let same_country = company.country.as_deref() == Some(subject.country.as_str());
    let number = company.id.as_deref().filter(|_| same_country && has_unique_key(company, subject))?;
    home_number(subject.country, company.registered_at.as_deref(), number).map(|number| number.as_str().to_owned())
}

/// True if the record carries the subject's LEI or VAT number, which no other company has.
fn has_unique_key(company: &Company, subject: &Subject) -> bool {
    let same = |ours: &Option<String>, theirs: &Option<String>| ours.is_some() && ours == theirs;
    same(&subject.lei, &company.lei) || same(&subject.vat, &company.vat)
}

/// True if the record carries a number of the subject.
pub(super) fn is_of_subject(company: &Company, subject: &Subject) -> bool {
    let country = company.country.as_deref().is_none_or(|country| country == subject.country.as_str());
    let theirs = company.id.as_deref().map(|id| number(subject.country, id));
    let same_number = match (subject.id.as_deref(), theirs.as_deref()) {
        (Some(ours), Some(theirs)) if subject.country.as_str() == "DE" => {
            let ((ours, court), (theirs, other)) = (without_court(ours), without_court(theirs));
            ours == theirs && court.zip(other).is_none_or(|(court, other)| court == other)
        }
        (ours, theirs) => ours.is_some() && ours == theirs,
    };
    has_unique_key(company, subject) || (country && same_number)
}

/// A register number in the subject's form. Sources may write it with spaces or a prefix.
fn number(country: Country, id: &str) -> String {
    let read = Kind::of_register(country).and_then(|kind| kind.read(id).ok());
    read.map_or_else(|| id.to_owned(), |read| read.as_str().to_owned())
}

fn on_one_line(address: &Address) -> Option<String> {
    let town = [&address.postal_code, &address.city].into_iter().flatten().cloned().collect::<Vec<_>>().join(" ");
    let parts = [address.street.clone(), (!town.is_empty()).then_some(town)];
    let line = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use osint_activities::model::Officer;

    use super::*;

    fn subject(country: &str) -> Subject {
        Subject::new(country.parse().expect("a country"))
    }

    fn norwegian() -> Subject {
        Subject { id: Some("923609016".into()), ..subject("NO") }
    }

    fn names(questions: &[Question]) -> Vec<&str> {
        questions.iter().map(|question| question.operation.as_str()).collect()
    }

    fn record(operation: &str, company: Company) -> Finding {
        let source = operation.split('.').next().expect("a source");
        let data = Some(Facts { companies: vec![company], ..Facts::default() });
        Finding { data, ..Finding::new(source, operation, Status::Complete) }
    }

    fn equinor(name: &str) -> Company {
        let country = Some("NO".to_owned());
        Company { name: Some(name.into()), id: Some("923609016".into()), country, ..Company::default() }
    }

    #[test]
    fn numbers_that_cannot_be_right_are_refused() {
        let with = |id: &str| admit(Subject { id: Some(id.into()), ..subject("NO") });
        assert_eq!(with("923 609 016").expect("valid").id.as_deref(), Some("923609016"));
        for id in ["923609017", "92360901", "abc", " "] {
            assert!(with(id).is_err(), "{id:?} was accepted");
        }
    }

    #[test]
    fn wrong_check_digits_warn_if_the_issuing_register_is_asked() {
        let with = |country: &str, id: &str, lei: &str, vat: &str| {
            let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let given = Subject { id: known(id), lei: known(lei), vat: known(vat), ..subject(country) };
            if vat.is_empty() {
                assert!(admit(given.clone()).is_err(), "{given:?} is not what the user insisted on");
            } else if country != "NO" {
                assert!(admit(given.clone()).is_ok(), "{given:?}: the member state decides");
            }
            admit(Subject { as_written: true, ..given })
        };
        let settled = [
            ("NO", "988077918", "", ""),
            ("BE", "0431150351", "", ""),
            ("CZ", "12345678", "", ""),
            ("FR", "404833047", "", ""),
            ("DK", "13585627", "", ""),
            ("FI", "0116754-4", "", ""),
            ("RO", "18547291", "", ""),
            ("CH", "CHE-100.155.213", "", ""),
            ("EE", "12345679", "", ""),
            ("US", "", "213800LBDB8WB3QGVN21", ""),
            ("NL", "", "", "NL123456789B90"),
            ("DE", "", "", "DE136695978"),
        ];
        for (country, id, lei, vat) in settled {
            let admitted = with(country, id, lei, vat).unwrap_or_else(|error| panic!("{country} {id}: {error}"));
            assert!(warnings(&admitted).iter().all(|text| text.contains("fails its checksum")), "{country}");
            assert_eq!(warnings(&admitted).len(), 1, "{country}");
        }
        assert!(with("NO", "923609016", "", "NO988077918MVA").is_err(), "no register of VAT numbers is asked there");
        assert!(with("NO", "98807791", "", "").is_err(), "the number is malformed");
        assert!(warnings(&norwegian()).is_empty());
    }

    #[test]
    fn a_register_fills_the_subject_despite_a_doubtful_number() {
        let doubtful = Subject { id: Some("923609017".into()), as_written: true, ..subject("NO") };
        let first = plan(doubtful, operations());
        let company = Company { id: Some("923609017".into()), ..equinor("EQUINOR ASA") };
        let second = plan_further(&first, &[record("no_brreg.entity", company)], operations());
        assert_eq!(second.subject.name.as_deref(), Some("EQUINOR ASA"));
    }

    #[test]
    fn each_operation_is_asked_deferred_or_not_applicable() {
        for country in ["NO", "CZ", "FI", "DE", "US"] {
            let plan = plan(Subject { id: Some("1".into()), ..subject(country) }, operations());
            assert_eq!(plan.questions.len() + plan.deferred.len() + plan.not_applicable.len(), operations().len());
            assert!(
                plan.not_applicable
                    .iter()
                    .all(|finding| finding.status == Status::NotApplicable && finding.reason.is_some())
            );
        }
    }

    #[test]
    fn a_register_is_asked_about_its_own_country_only() {
        let plan = plan(norwegian(), operations());
        let asked = names(&plan.questions);
        assert!(asked.contains(&"no_brreg.entity"));
        assert!(!asked.iter().any(|name| name.starts_with("cz_ares.") || name.starts_with("vies.")));
    }

    #[test]
    fn a_question_that_needs_a_name_waits_for_the_register() {
        let first = plan(norwegian(), operations());
        assert!(!names(&first.questions).contains(&"opensanctions.match"));
        let second = plan_further(&first, &[record("no_brreg.entity", equinor("EQUINOR ASA"))], operations());
        assert_eq!(second.subject.name.as_deref(), Some("EQUINOR ASA"));
        assert!(names(&second.questions).contains(&"opensanctions.match"));
        let twice = names(&first.questions).into_iter().filter(|name| names(&second.questions).contains(name)).count();
        assert_eq!(twice, 0, "a question was asked in both rounds");
    }

    #[test]
    fn screenings_wait_for_the_names_of_the_other_sources() {
        let named = Subject { name: Some("EQUINOR ASA".into()), ..norwegian() };
        let first = plan_first(named, operations());
        let waits =
            |plan: &Plan| plan.deferred.iter().any(|deferred| deferred.question.operation == "opensanctions.match");
        assert!(waits(&first) && !first.questions.iter().any(screens) && first.more_rounds > 0);
        let officer = Officer { name: Some("Ola Eksempel".into()), ..Officer::default() };
        let data = Facts { companies: vec![equinor("EQUINOR ASA")], officers: vec![officer], ..Facts::default() };
        let roles = Finding { data: Some(data), ..Finding::new("no_brreg", "no_brreg.roles", Status::Complete) };
        let second = plan_further(&first, std::slice::from_ref(&roles), operations());
        assert!(waits(&second) && second.more_rounds > 0, "the persons are asked about first: {second:?}");
        let last = plan_further(&second, &[roles], operations());
        assert!(names(&last.questions).contains(&"opensanctions.match") && last.more_rounds == 0);
        assert_eq!(last.subject.parties.iter().map(|party| party.name.as_str()).collect::<Vec<_>>(), ["Ola Eksempel"]);
    }

    #[test]
    fn the_last_round_screens_even_if_questions_remain() {
        let first = Plan { more_rounds: 1, ..plan_first(norwegian(), operations()) };
        let last = plan_further(&first, &[record("no_brreg.entity", equinor("EQUINOR ASA"))], operations());
        assert!(last.questions.iter().any(screens) && last.questions.iter().any(|question| !screens(question)));
        assert_eq!(last.more_rounds, 0);
    }

    #[test]
    fn an_lei_leads_to_the_home_register() {
        let lei = || Some("OW6OFBNCKXC4US5C7523".to_owned());
        let first = plan_first(Subject { lei: lei(), ..subject("NO") }, operations());
        assert!(!names(&first.questions).contains(&"no_brreg.entity"));
        let company = |authority: &str| Company {
            id: Some("923 609 016".into()),
            lei: lei(),
            registered_at: Some(authority.into()),
            ..equinor("EQUINOR ASA")
        };
        let second = plan_further(&first, &[record("gleif.record", company("RA000472"))], operations());
        assert_eq!(second.subject.id.as_deref(), Some("923609016"));
        assert!(names(&second.questions).contains(&"no_brreg.entity"));
        let elsewhere = plan_further(&first, &[record("gleif.record", company("RA000463"))], operations());
        assert_eq!(elsewhere.subject.id, None, "the register of another country");
    }

    #[test]
    fn a_number_that_two_companies_have_teaches_nothing() {
        let german = |id: &str| Subject { id: Some(id.into()), ..subject("DE") };
        let company = |name: &str, lei: &str| Company {
            name: Some(name.into()),
            id: Some("HRB 4711".into()),
            lei: Some(lei.into()),
            country: Some("DE".into()),
            ..Company::default()
        };
        let two = vec![company("One GmbH", "HWUPKR0MPOU8FGXBT394"), company("Two GmbH", "213800LH1BZH3DI6G760")];
        let first = plan_first(german("HRB 4711"), operations());
        let finding = |companies: Vec<Company>| {
            let data = Some(Facts { companies, ..Facts::default() });
            [Finding { data, ..Finding::new("gleif", "gleif.record", Status::NeedsReview) }]
        };
        let learnt = |companies: Vec<Company>| plan_further(&first, &finding(companies), operations()).subject;
        assert_eq!((learnt(two.clone()).name, learnt(two.clone()).lei), (None, None));
        assert_eq!(learnt(two[..1].to_vec()).name.as_deref(), Some("One GmbH"));
        let with_court = plan_first(german("HRB 4711 MÜNCHEN"), operations());
        let found = plan_further(&with_court, &finding(two[1..].to_vec()), operations());
        assert_eq!(found.subject.name.as_deref(), Some("Two GmbH"));
    }

    #[test]
    fn the_prefix_of_a_vat_number_decides_whether_vies_is_asked() {
        let asked = |country: &str, vat: &str| {
            let subject = admit(Subject { vat: Some(vat.into()), ..subject(country) }).expect(vat);
            let plan = plan(subject, operations());
            let check = |name: &str| name == "vies.check";
            let why = plan.not_applicable.iter().find(|finding| check(&finding.operation));
            (names(&plan.questions).into_iter().any(check), why.and_then(|finding| finding.reason.clone()))
        };
        for (country, vat) in
            [("MC", "FR40000066034"), ("GB", "XI288305674"), ("NO", "DE811569869"), ("DE", "DE811569869")]
        {
            assert!(asked(country, vat).0, "{country} {vat}");
        }
        let (vies, why) = asked("GB", "GB288305674");
        assert!(!vies && why.is_some_and(|why| why.contains("prefix GB")));
    }

    #[test]
    fn a_plan_without_rounds_is_that_of_an_older_worker() {
        let plan: Plan = serde_json::from_value(serde_json::json!({
            "subject": {"country": "NO", "id": "923609016"}, "questions": [], "wanting": [], "aside": [],
        }))
        .expect("a plan");
        assert_eq!(plan.more_rounds, 0);
        assert!(serde_json::to_value(&plan).expect("json").get("more_rounds").is_none());
    }

    #[test]
    fn numbers_are_compared_in_one_form() {
        let first = plan(norwegian(), operations());
        let lei = Some("OW6OFBNCKXC4US5C7523".to_owned());
        let spaced = |id: &str| Company { id: Some(id.into()), lei: lei.clone(), ..equinor("EQUINOR ASA") };
        let learnt = |id: &str| plan_further(&first, &[record("gleif.record", spaced(id))], operations()).subject.lei;
        assert_eq!(learnt("923 609 016"), lei);
        assert_eq!(learnt("923 609 017"), None);
    }

    #[test]
    fn the_home_register_has_priority_and_namesakes_never_count() {
        let first = plan(norwegian(), operations());
        let elsewhere = Company { id: Some("111111111".into()), ..equinor("Equinor Namesake") };
        let findings = [
            record("gleif.search", elsewhere),
            record("gleif.record", equinor("Equinor (GLEIF)")),
            record("no_brreg.entity", equinor("EQUINOR ASA")),
        ];
        let learnt = |findings: &[Finding]| plan_further(&first, findings, operations()).subject.name;
        assert_eq!(learnt(&findings).as_deref(), Some("EQUINOR ASA"));
        assert_eq!(learnt(&findings[..2]).as_deref(), Some("Equinor (GLEIF)"));
        assert_eq!(learnt(&findings[..1]), None);
    }

    #[test]
    fn representatives_are_persons_whom_the_home_register_names() {
        let first = plan(norwegian(), operations());
        let officer = |name: &str, company_id: Option<&str>| Officer {
            name: Some(name.into()),
            company_id: company_id.map(str::to_owned),
            ..Officer::default()
        };
        let named = |operation: &str, companies: Vec<Company>, officers: Vec<Officer>| {
            let data = Some(Facts { companies, officers, ..Facts::default() });
            let source = operation.split('.').next().expect("a source");
            Finding { data, ..Finding::new(source, operation, Status::Complete) }
        };
        let persons = |finding: Finding| plan_further(&first, &[finding], operations()).subject.persons;
        let roles = || vec![officer("Ola Eksempel", None), officer("EKSEMPEL REVISJON AS", Some("1"))];
        assert_eq!(persons(named("no_brreg.roles", vec![], roles())), ["Ola Eksempel"]);
        assert_eq!(persons(named("no_brreg.roles", vec![equinor("EQUINOR ASA")], roles())), ["Ola Eksempel"]);
        let namesake = Company { id: Some("111111111".into()), ..equinor("Equinor Namesake") };
        assert!(persons(named("no_brreg.roles", vec![namesake], roles())).is_empty());
        assert!(persons(named("brightdata_person.profiles", vec![], roles())).is_empty());
        let given = Subject { persons: vec!["Kari Eksempel".into()], ..norwegian() };
        let second =
            plan_further(&plan(given, operations()), &[named("no_brreg.roles", vec![], roles())], operations());
        assert_eq!(second.subject.persons, ["Kari Eksempel"]);
    }

    #[test]
    fn values_that_the_user_gave_are_kept() {
        let named = Subject { name: Some("Statoil".into()), ..norwegian() };
        let second = plan_further(&plan(named, operations()), &[record("no_brreg.entity", equinor("X"))], operations());
        assert_eq!(second.subject.name.as_deref(), Some("Statoil"));
    }

    #[test]
    fn an_address_is_one_line() {
        let address = Address {
            street: Some("Forusbeen 50".into()),
            postal_code: Some("4035".into()),
            city: Some("STAVANGER".into()),
            country: Some("NO".into()),
        };
        assert_eq!(on_one_line(&address).as_deref(), Some("Forusbeen 50, 4035 STAVANGER"));
        assert_eq!(on_one_line(&Address::default()), None);
    }
}

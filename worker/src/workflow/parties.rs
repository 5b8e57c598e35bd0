//! Whom an investigation has to screen, read from its findings: officers, owners, parents, and the subject's other names.

use osint_activities::model::{Facts, Finding, Officer, Owner, Party, PartyKind, Role, Subject};

use super::plan::is_of_subject;

/// Everybody whom the findings name beside the subject, each once in each role, in the order of [`Role`]. Only answers about
/// the subject count: the officers of a namesake are strangers.
#[must_use]
pub fn named(subject: &Subject, findings: &[Finding]) -> Vec<Party> {
    let mut parties: Vec<Party> = Vec::new();
    let about_subject =
        findings.iter().filter(|finding| finding.data.as_ref().is_some_and(|facts| concerns(facts, subject)));
    for facts in about_subject.filter_map(|finding| finding.data.as_ref()) {
        for party in of(facts, subject) {
            let subject_itself = subject.name.as_deref().is_some_and(|name| Party::named(name, party.role).is(&party));
            let known = parties.iter_mut().find(|known| known.is(&party));
            match known {
                // What a second source adds helps to tell namesakes apart.
                Some(known) => {
                    known.birth_year = known.birth_year.or(party.birth_year);
                    known.lei = known.lei.take().or(party.lei);
                    known.id = known.id.take().or(party.id);
                }
                None if party.name.is_empty() || subject_itself => {}
                None => parties.push(party),
            }
        }
    }
    parties.sort_by_key(|party| party.role);
    parties
}

/// True if the answer is about the subject. One that describes companies must describe this one.
fn concerns(facts: &Facts, subject: &Subject) -> bool {
    facts.companies.is_empty() || facts.companies.iter().any(|company| is_of_subject(company, subject))
}

fn of(facts: &Facts, subject: &Subject) -> Vec<Party> {
    let ours = || facts.companies.iter().filter(|company| is_of_subject(company, subject));
    let country = || Some(subject.country.as_str().to_owned());
    let alias = |role: Role, name: &String| Party {
        id: subject.id.clone(),
        lei: subject.lei.clone(),
        country: country(),
        ..Party::named(name, role)
    };
    let former = ours().flat_map(|company| &company.former_names).map(|name| alias(Role::FormerName, name));
    let other = ours().filter_map(|company| company.name.as_ref()).map(|name| alias(Role::OtherName, name));
    let parents = facts.parents.iter().filter_map(|parent| parent.company.as_ref()).filter_map(|company| {
        let party = Party::named(company.name.as_deref()?, Role::Parent);
        Some(Party { id: company.id.clone(), lei: company.lei.clone(), country: company.country.clone(), ..party })
    });
    former
        .chain(other)
        .chain(facts.officers.iter().filter_map(officer))
        .chain(facts.owners.iter().filter_map(owner))
        .chain(parents)
        .collect()
}

fn officer(Officer { name, company_id, birth_year, .. }: &Officer) -> Option<Party> {
    let party = Party::named(name.as_deref()?, Role::Officer);
    let kind = match (company_id, birth_year) {
        (Some(_), _) => PartyKind::Company,
        (None, Some(_)) => PartyKind::Person,
        (None, None) => party.kind,
    };
    Some(Party { kind, id: company_id.clone(), birth_year: *birth_year, ..party })
}

fn owner(Owner { name, company_id, country, .. }: &Owner) -> Option<Party> {
    let party = Party::named(name.as_deref()?, Role::Owner);
    let kind = if company_id.is_some() { PartyKind::Company } else { party.kind };
    Some(Party { kind, id: company_id.clone(), country: country.clone(), ..party })
}

#[cfg(test)]
mod tests {
    use osint_activities::model::{Company, Parent, Status};

    use super::*;

    fn subject() -> Subject {
        let name = Some("EXAMPLE AS".to_owned());
        Subject { id: Some("923609016".into()), name, ..Subject::new("NO".parse().expect("NO")) }
    }

    fn finding(facts: Facts) -> Finding {
        Finding { data: Some(facts), ..Finding::new("no_brreg", "no_brreg.entity", Status::Complete) }
    }

    fn facts() -> Facts {
        let company = Company {
            id: Some("923609016".into()),
            name: Some("Example AS".into()),
            former_names: vec!["Sample AS".into()],
            ..Company::default()
        };
        let officer = |name: &str, birth_year| Officer { name: Some(name.into()), birth_year, ..Officer::default() };
        let owner = Owner { name: Some("Owner GmbH".into()), company_id: Some("1".into()), ..Owner::default() };
        let parent = Company { name: Some("Parent SE".into()), ..Company::default() };
        Facts {
            companies: vec![company],
            officers: vec![officer("Ola Eksempel", None), officer("OLA  Eksempel", Some(1961)), Officer::default()],
            owners: vec![owner],
            parents: vec![Parent { company: Some(parent), ..Parent::default() }],
            ..Facts::default()
        }
    }

    #[test]
    fn everybody_is_named_once_in_each_role() {
        let parties = named(&subject(), &[finding(facts()), finding(facts())]);
        let expected = [
            ("Sample AS", Role::FormerName, PartyKind::Either),
            ("Ola Eksempel", Role::Officer, PartyKind::Either),
            ("Owner GmbH", Role::Owner, PartyKind::Company),
            ("Parent SE", Role::Parent, PartyKind::Company),
        ];
        let found: Vec<_> = parties.iter().map(|party| (party.name.as_str(), party.role, party.kind)).collect();
        assert_eq!(found, expected);
        assert_eq!(parties[1].birth_year, Some(1961), "the second source knows it");
    }

    #[test]
    fn the_people_of_a_namesake_are_strangers() {
        let namesake = Company { id: Some("111111111".into()), ..Company::default() };
        assert_eq!(named(&subject(), &[finding(Facts { companies: vec![namesake], ..facts() })]), []);
    }
}

//! What both ways to the watch lists share: how an entry is read, and what a screening of several parties says about each.

use crate::{
    model::{Facts, Hit, Party, Role, Screened, Screening, Status, Subject},
    names::Name,
    parse::json::{Node, lacks},
    spec::{Answer, SourceError},
};

/// A name with more letters is not asked about. No register has one.
const LONGEST: usize = 500;

/// What every entry of the lists has, without a judgement of how well it fits.
pub(super) fn entry(entity: Node<'_>) -> Result<Hit, SourceError> {
    let properties = entity.get("properties");
    let caption = entity.get("caption").text().or_else(|| properties.get("name").items().find_map(Node::text));
    Ok(Hit {
        id: entity.require_text("id")?,
        name: caption.ok_or_else(|| lacks("caption"))?,
        schema: entity.get("schema").text(),
        topics: properties.get("topics").texts(),
        datasets: entity.get("datasets").texts(),
        ..Hit::default()
    })
}

/// The parties of a subject, each with its name as it is compared or the reason why it cannot be.
pub(super) fn parties(subject: &Subject) -> Vec<(Party, Result<Name, String>)> {
    let mut parties: Vec<_> = subject.to_screen().into_iter().map(|party| (readable(&party), party)).collect();
    if subject.name.is_none() {
        parties.insert(0, (Err("its name is not known".to_owned()), Party::named("", Role::Subject)));
    }
    parties.into_iter().map(|(name, party)| (party, name)).collect()
}

fn readable(party: &Party) -> Result<Name, String> {
    if party.name.chars().count() > LONGEST {
        return Err(format!("a name of more than {LONGEST} letters is not compared"));
    }
    Name::read(&party.name).map_err(|error| error.to_string())
}

/// The answer of a screening. It is whole if everybody was screened.
///
/// # Errors
/// If nobody was: then the list was not asked, and the reason is the first party's.
pub(super) fn answer(
    dataset: String,
    version: Option<String>,
    parties: Vec<Screened>,
    mut hits: Vec<Hit>,
) -> Result<Answer, SourceError> {
    let asked = |screened: &&Screened| screened.not_screened.is_none();
    let names: Vec<_> = parties.iter().filter(asked).map(|screened| screened.party.name.clone()).collect();
    let reasons = parties.iter().filter_map(|screened| screened.not_screened.clone());
    if names.is_empty() {
        let reason = reasons.into_iter().next().unwrap_or_else(|| "there is no name to ask about".to_owned());
        return Err(SourceError::business(format!("was not asked about anybody: {reason}")));
    }
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    let missing = gap(&parties);
    let screening = Screening { dataset, names, version, hits, parties };
    let answer = Answer::from(Facts { screening: Some(screening), ..Facts::default() });
    Ok(match missing {
        Some(reason) => Answer { status: Status::Partial, reason: Some(reason), ..answer },
        None => answer,
    })
}

/// Who was not screened, by role and number and never by name.
fn gap(parties: &[Screened]) -> Option<String> {
    let missing: Vec<_> = parties.iter().filter(|screened| screened.not_screened.is_some()).collect();
    let first = missing.first()?.not_screened.clone()?;
    let mut roles: Vec<Role> = missing.iter().map(|screened| screened.party.role).collect();
    roles.sort_unstable();
    roles.dedup();
    let count = |role: &Role| match missing.iter().filter(|screened| screened.party.role == *role).count() {
        1 if *role == Role::Subject => "the subject".to_owned(),
        n => format!("{n} {}", if n == 1 { role.singular() } else { role.plural() }),
    };
    let list: Vec<_> = roles.iter().map(count).collect();
    Some(format!("did not screen {} of {} names ({}): {first}", missing.len(), parties.len(), list.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Class;

    fn screened(name: &str, role: Role, reason: Option<&str>) -> Screened {
        Screened { party: Party::named(name, role), not_screened: reason.map(str::to_owned) }
    }

    #[test]
    fn a_gap_is_counted_by_role_and_names_nobody() {
        let parties = vec![
            screened("Example Ltd", Role::Subject, None),
            screened("Jean Exemple", Role::Officer, Some("why")),
            screened("Jane Example", Role::Officer, Some("why")),
            screened("Owner Ltd", Role::Owner, Some("why")),
        ];
        let answer = answer("default".into(), None, parties, vec![]).expect("one was asked");
        assert_eq!(answer.status, Status::Partial);
        assert_eq!(answer.reason.as_deref(), Some("did not screen 3 of 4 names (2 officers, 1 owner): why"));
        assert_eq!(answer.facts.screening.expect("a screening").names, ["Example Ltd"]);
    }

    #[test]
    fn a_screening_of_nobody_is_none() {
        let error = answer("default".into(), None, vec![screened("X", Role::Subject, Some("too short"))], vec![]);
        assert_eq!(error.expect_err("nobody was asked about").class, Class::Business);
        assert!(answer("default".into(), None, vec![], vec![]).is_err());
    }

    #[test]
    fn names_that_cannot_be_compared_have_a_reason() {
        let country = "NO".parse().expect("NO");
        let persons = ["X", "+", "Ola Eksempel"].map(str::to_owned);
        let subject = Subject { persons: persons.into(), ..Subject::new(country) };
        let readable: Vec<_> = parties(&subject).into_iter().map(|(_, name)| name.is_ok()).collect();
        assert_eq!(readable, [false, false, false, true], "the subject has no name");
        let long = Subject { name: Some("x".repeat(LONGEST + 1)), ..Subject::new(country) };
        assert!(parties(&long)[0].1.is_err());
    }
}

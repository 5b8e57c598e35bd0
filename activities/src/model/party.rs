//! Whom a watch list is asked about: the subject, and whoever a source names beside it.

use serde::{Deserialize, Serialize};

use super::Subject;
use crate::names::Name;

/// What a party is to the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The company under investigation.
    Subject,
    /// The subject under a name that it had.
    FormerName,
    /// The subject under another name that a source knows it by.
    OtherName,
    /// A person whom the user named.
    Person,
    /// Somebody who acts for the subject.
    Officer,
    /// An owner.
    Owner,
    /// A consolidating parent.
    Parent,
}

impl Role {
    /// As in "1 officer".
    #[must_use]
    pub const fn singular(self) -> &'static str {
        match self {
            Self::Subject => "subject",
            Self::FormerName => "former name",
            Self::OtherName => "other name",
            Self::Person => "person the user named",
            Self::Officer => "officer",
            Self::Owner => "owner",
            Self::Parent => "parent",
        }
    }

    /// As in "3 officers".
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Subject => "subjects",
            Self::FormerName => "former names",
            Self::OtherName => "other names",
            Self::Person => "persons the user named",
            Self::Officer => "officers",
            Self::Owner => "owners",
            Self::Parent => "parents",
        }
    }
}

/// Among which entries of a list a party is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartyKind {
    /// Organisations.
    Company,
    /// Natural persons.
    Person,
    /// Both, where nothing says which of the two it is.
    Either,
}

/// Somebody to be screened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Party {
    /// The name, as the source or the user wrote it.
    pub name: String,
    /// What it is to the subject.
    pub role: Role,
    /// Where to look for it.
    pub kind: PartyKind,
    /// Register number, if it is known to be a company.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Legal entity identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lei: Option<String>,
    /// Two-letter code of the country, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// Year of birth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub birth_year: Option<u16>,
}

impl Party {
    /// A party of which only the name is known. Whether it is a company or a person follows from the role and from a legal
    /// form in the name; otherwise it is looked for among both.
    #[must_use]
    pub fn named(name: &str, role: Role) -> Self {
        let company = Name::read(name).is_ok_and(|name| name.has_legal_form());
        let kind = match role {
            Role::Person => PartyKind::Person,
            Role::Parent => PartyKind::Company,
            // A sole trader is listed as a person.
            Role::Subject | Role::FormerName | Role::OtherName => PartyKind::Either,
            Role::Officer | Role::Owner if company => PartyKind::Company,
            Role::Officer | Role::Owner => PartyKind::Either,
        };
        Self { name: name.trim().to_owned(), role, kind, id: None, lei: None, country: None, birth_year: None }
    }

    /// True if both are the same to a watch list: the same role and the same name, apart from case and spaces.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        let plain = |name: &str| name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        self.role == other.role && plain(&self.name) == plain(&other.name)
    }
}

impl Subject {
    /// Most parties of one investigation that are screened. Later parties are left out, and no gap names them yet.
    pub const PARTIES: usize = 200;

    /// Everybody to be screened: the subject first, then the persons whom the user named, then whom the sources named.
    #[must_use]
    pub fn to_screen(&self) -> Vec<Party> {
        let country = Some(self.country.as_str().to_owned());
        let subject = self.name.as_deref().map(|name| Party {
            id: self.id.clone(),
            lei: self.lei.clone(),
            country,
            ..Party::named(name, Role::Subject)
        });
        let learnt = |name: &String| self.parties.iter().any(|party| party.name == *name);
        let persons = self.persons.iter().filter(|name| !learnt(name)).map(|name| Party::named(name, Role::Person));
        subject.into_iter().chain(persons).chain(self.parties.iter().cloned()).take(Self::PARTIES).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_follows_from_role_number_and_legal_form() {
        let kind = |name: &str, role: Role| Party::named(name, role).kind;
        assert_eq!(kind("Jean Exemple", Role::Subject), PartyKind::Either);
        assert_eq!(kind("Jean Exemple", Role::Person), PartyKind::Person);
        assert_eq!(kind("Jean Exemple", Role::Officer), PartyKind::Either);
        assert_eq!(kind("Exemple SARL", Role::Officer), PartyKind::Company);
        assert_eq!(kind("Exemple", Role::Parent), PartyKind::Company);
    }

    #[test]
    fn a_person_is_screened_once_in_the_role_a_source_gives() {
        let subject = Subject {
            name: Some("Example".into()),
            persons: vec!["Jean Exemple".into(), "Jane Example".into()],
            parties: vec![Party::named("Jean Exemple", Role::Officer)],
            ..Subject::new("FR".parse().expect("FR"))
        };
        let roles: Vec<_> = subject.to_screen().into_iter().map(|party| (party.name, party.role)).collect();
        let expected = [("Example", Role::Subject), ("Jane Example", Role::Person), ("Jean Exemple", Role::Officer)];
        assert_eq!(roles, expected.map(|(name, role)| (name.to_owned(), role)));
    }
}

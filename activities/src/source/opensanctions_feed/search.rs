//! Looks for the parties of an investigation among the entries of a copy.
//!
//! Each entry is read and folded once and then compared with the parties that share the beginning of a word with it, so many
//! parties take hardly longer than one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::digest::{Change, Line, lines};
use crate::{
    model::{Hit, Party, PartyKind, Screened, Subject},
    names::{Likeness, MATCH, Name},
    source::watch_list,
    spec::SourceError,
};

/// The best candidates of each party.
const HITS: usize = 20;

/// What an alias is worth that the list itself calls weak.
const WEAK: f64 = 0.9;

/// What is taken off for another year of birth.
const OTHER_YEAR: f64 = 0.2;

/// From this score on an entry is shown.
const CANDIDATE: f64 = 0.6;

/// Whom to look for.
#[derive(Debug)]
pub(super) struct Wanted {
    parties: Vec<(Party, Name)>,
    unreadable: Vec<Screened>,
    /// Places of parties, by the beginnings of their words.
    beginnings: HashMap<String, Vec<usize>>,
    /// Places of parties, by their numbers.
    numbers: HashMap<String, Vec<usize>>,
}

/// What a search found.
#[derive(Debug)]
pub(super) struct Found {
    /// Everybody, also whose name cannot be compared.
    pub(super) parties: Vec<Screened>,
    /// Candidates.
    pub(super) hits: Vec<Hit>,
    /// Candidates that are left out because others are better.
    pub(super) left_out: usize,
}

impl Wanted {
    /// Everybody who is to be screened.
    pub(super) fn of(subject: &Subject) -> Self {
        let (mut parties, mut unreadable) = (Vec::new(), Vec::new());
        for (party, name) in watch_list::parties(subject) {
            match name {
                Ok(name) => parties.push((party, name)),
                Err(reason) => unreadable.push(Screened { party, not_screened: Some(reason) }),
            }
        }
        let (mut beginnings, mut numbers) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for (place, (party, name)) in parties.iter().enumerate() {
            for key in name.keys().collect::<BTreeSet<_>>() {
                beginnings.entry(key).or_default().push(place);
            }
            for number in [&party.id, &party.lei].into_iter().flatten() {
                numbers.entry(bare(number)).or_default().push(place);
            }
        }
        Self { parties, unreadable, beginnings, numbers }
    }

    /// True if no party has a name that can be compared.
    pub(super) fn is_empty(&self) -> bool {
        self.parties.is_empty()
    }

    /// The entries of a copy that resemble a party.
    ///
    /// # Errors
    /// If the copy does not read: a gap is not a clear screening.
    pub(super) fn search(self, kept: &[u8]) -> Result<Found, SourceError> {
        let mut hits = BTreeMap::new();
        for line in lines(kept) {
            self.compare(&line?, &mut hits);
        }
        Ok(self.found(hits))
    }

    /// Those among changes.
    pub(super) fn among(self, changes: &[Change]) -> Found {
        let mut hits = BTreeMap::new();
        changes.iter().filter_map(Change::line).for_each(|line| self.compare(line, &mut hits));
        self.found(hits)
    }

    fn found(self, hits: BTreeMap<usize, Vec<Hit>>) -> Found {
        let screened = self.parties.into_iter().map(|(party, _)| Screened { party, not_screened: None });
        let parties = self.unreadable.into_iter().chain(screened).collect();
        let (mut best, mut left_out) = (Vec::new(), 0);
        for mut hits in hits.into_values() {
            hits.sort_by(|a, b| b.score.total_cmp(&a.score));
            left_out += hits.len().saturating_sub(HITS);
            best.extend(hits.into_iter().take(HITS));
        }
        Found { parties, hits: best, left_out }
    }

    /// Compares an entry with the parties that it may resemble. One hit for each party: the best of its names.
    fn compare(&self, line: &Line, hits: &mut BTreeMap<usize, Vec<Hit>>) {
        let mut best: BTreeMap<usize, Likeness> = BTreeMap::new();
        let mut better = |place: usize, likeness: Likeness| {
            if best.get(&place).is_none_or(|known| known.score < likeness.score) {
                best.insert(place, likeness);
            }
        };
        for number in &line.numbers {
            let places = self.numbers.get(&bare(number)).into_iter().flatten();
            for place in places.filter(|place| same_number(&self.parties[**place].0, line, number)) {
                better(*place, Likeness { score: 1.0, why: vec!["the same number"] });
            }
        }
        for (name, weak) in line.all_names() {
            let Ok(theirs) = Name::read(name) else { continue };
            let places: BTreeSet<_> = theirs.keys().filter_map(|key| self.beginnings.get(&key)).flatten().collect();
            for place in places {
                let (party, ours) = &self.parties[*place];
                let Some(likeness) = ours.compare(&theirs).filter(|_| suits(party.kind, line)) else { continue };
                better(*place, weighed(party, line, likeness, weak));
            }
        }
        for (place, likeness) in best.into_iter().filter(|(_, likeness)| likeness.score >= CANDIDATE) {
            hits.entry(place).or_default().push(hit(&self.parties[place].0, line, likeness));
        }
    }
}

/// True if the number is that of the party: a register number counts in its own country only.
fn same_number(party: &Party, line: &Line, number: &str) -> bool {
    let is = |ours: &Option<String>| ours.as_ref().is_some_and(|ours| bare(ours) == bare(number));
    is(&party.lei) || (is(&party.id) && party.country.as_ref().is_some_and(|country| line.is_of(country)))
}

/// True if the entry is of the kind that is looked for. A legal entity may be either.
fn suits(kind: PartyKind, line: &Line) -> bool {
    match (kind, line.schema.as_deref()) {
        (PartyKind::Company, Some("Person")) => false,
        (PartyKind::Person, schema) => matches!(schema, Some("Person" | "LegalEntity") | None),
        _ => true,
    }
}

fn weighed(party: &Party, line: &Line, mut likeness: Likeness, weak: bool) -> Likeness {
    if weak {
        likeness.score *= WEAK;
        likeness.why.push("a name that the list calls weak");
    }
    if let Some(year) = party.birth_year.filter(|_| !line.births.is_empty()) {
        if line.births.iter().any(|birth| birth.starts_with(&year.to_string())) {
            likeness.why.push("the same year of birth");
        } else {
            likeness.score -= OTHER_YEAR;
            likeness.why.push("another year of birth");
        }
    }
    if party.country.as_ref().is_some_and(|country| !line.countries.is_empty() && !line.is_of(country)) {
        likeness.why.push("another country");
    }
    likeness
}

fn hit(party: &Party, line: &Line, Likeness { score, why }: Likeness) -> Hit {
    let Line { id, name, schema, topics, datasets, .. } = line.clone();
    let why = why.into_iter().map(str::to_owned).collect();
    let (named, role) = (Some(party.name.clone()), Some(party.role));
    Hit { id, name, schema, score, matched: score >= MATCH, topics, datasets, party: named, role, why }
}

fn bare(number: &str) -> String {
    number.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Role;

    fn line(schema: &str, name: &str, aliases: &[&str]) -> String {
        let names: Vec<_> = std::iter::once(&name).chain(aliases).collect();
        let line = serde_json::json!({
            "id": "NK-1", "name": name, "names": names, "numbers": [], "countries": ["ru"], "schema": schema,
            "topics": ["sanction"], "datasets": [], "weak": ["Weak One Ltd"], "births": ["1961-01-31"],
        });
        line.to_string()
    }

    fn hits(subject: Subject, line: &str) -> Vec<Hit> {
        Wanted::of(&subject).search(line.as_bytes()).expect("a copy that reads").hits
    }

    fn company(name: &str) -> Subject {
        Subject { name: Some(name.into()), ..Subject::new("NL".parse().expect("NL")) }
    }

    #[test]
    fn spellings_that_the_plain_comparison_missed_are_found() {
        let pairs = [
            ("Socie\u{301}te\u{301} Exemple", "Société Exemple SA"),
            ("Societe Exemple", "Société Exemple SA"),
            ("Example Ltd", "Example Limited"),
            ("OOO Romashka", "Romashka LLC"),
            ("Romashka Ltd", "ООО Ромашка"),
            ("Gazprom", "PJSC Gazprom"),
            ("Grosshandel Weiss", "Großhandel Weiß GmbH"),
        ];
        for (asked, listed) in pairs {
            let found = hits(company(asked), &line("Company", listed, &[]));
            assert!(found.len() == 1 && found[0].matched, "{asked} / {listed}: {found:?}");
            assert!(found[0].party.as_deref() == Some(asked) && !found[0].why.is_empty());
        }
        assert!(hits(company("Other Example"), &line("Company", "Romashka", &[])).is_empty());
    }

    #[test]
    fn persons_are_found_among_persons_only() {
        let listed = line("Person", "Exemple, Jean", &[]);
        let persons = |name: &str| Subject { persons: vec![name.into()], ..company("Something Else") };
        assert_eq!(hits(persons("Jean Exemple"), &listed)[0].role, Some(Role::Person));
        assert!(hits(persons("Jean Exemple"), &line("Company", "Jean Exemple", &[])).is_empty());
        assert_eq!(hits(company("Jean Exemple"), &listed).len(), 1, "a sole trader");
        let owner =
            Subject { parties: vec![Party::named("Jean Exemple SA", Role::Owner)], ..company("Something Else") };
        assert!(hits(owner, &listed).is_empty(), "a company is no person");
    }

    #[test]
    fn years_of_birth_tell_namesakes_apart() {
        let officer = |year| Party { birth_year: Some(year), ..Party::named("Jean Exemple", Role::Officer) };
        let score = |year| {
            let subject = Subject { parties: vec![officer(year)], ..company("Something Else") };
            hits(subject, &line("Person", "Jean Exemple", &[])).remove(0)
        };
        assert!(score(1961).matched && !score(1970).matched);
        assert!(score(1970).why.contains(&"another year of birth".to_owned()));
    }

    #[test]
    fn a_weak_alias_is_weak_evidence() {
        let found = hits(company("Weak One Ltd"), &line("Company", "Strong Two", &[])).remove(0);
        assert!(found.score < 1.0 && found.why.contains(&"a name that the list calls weak".to_owned()));
    }

    #[test]
    fn whoever_has_no_name_to_compare_is_named_as_a_gap() {
        let subject = Subject { persons: vec!["X".into()], ..company("Example") };
        let found = Wanted::of(&subject).search(b"").expect("an empty copy");
        let gaps: Vec<_> = found.parties.iter().map(|party| party.not_screened.is_some()).collect();
        assert_eq!(gaps, [true, false]);
        assert!(Wanted::of(&company("?")).is_empty());
    }

    #[test]
    fn the_best_candidates_stay_and_the_others_are_counted() {
        let lines: Vec<_> = (0..HITS + 5).map(|n| line("Company", &format!("Example Trading {n}"), &[])).collect();
        let exact = line("Company", "Example Trading", &[]);
        let kept = format!("{}\n{exact}", lines.join("\n"));
        let found = Wanted::of(&company("Example Trading")).search(kept.as_bytes()).expect("a copy");
        assert_eq!((found.hits.len(), found.left_out, found.hits[0].score), (HITS, 6, 1.0));
    }
}

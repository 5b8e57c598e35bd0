//! Names of companies and persons, and how much two of them are alike.
//!
//! A name is compared by its words, in any order, after folding: case, accents, Unicode form, script (Cyrillic and Greek) and
//! the spelling of the legal form do not count. What is left in doubt lowers the score, and each comparison says what
//! matched. Sound ("Meyer", "Maier") and other scripts are not compared: see [`NOT_COMPARED`].

mod fold;
mod forms;

use self::{
    fold::{Umlauts, words},
    forms::Form,
};

/// What a screening by these rules cannot find. Findings say so.
pub const NOT_COMPARED: &str = "names were compared by their words, without accents and legal forms; sound and scripts other \
than Latin, Cyrillic and Greek were not compared";

/// A name that is shorter than this, in letters and digits, is compared as a whole and never in part.
const SHORT: usize = 4;

/// From this score on a comparison is a match; below, a candidate.
pub const MATCH: f64 = 0.85;

/// Words that join others.
const JOINERS: [&str; 4] = ["and", "und", "et", "og"];

/// Words that begin a name and do not belong to it.
const ARTICLES: [&str; 4] = ["the", "la", "le", "les"];

/// A name in the form in which it is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    words: Vec<Word>,
    forms: Vec<&'static Form>,
    letters: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Word {
    plain: String,
    /// With umlauts spelt out, where that makes a difference.
    spelt: Option<String>,
}

/// How much two names are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Likeness {
    /// 0 to 1.
    pub score: f64,
    /// What matched and what did not, for people.
    pub why: Vec<&'static str>,
}

/// Why a name cannot be searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsearchable {
    /// Neither letters nor digits.
    #[error("a name without letters or digits cannot be compared")]
    Empty,
    /// One letter resembles everything.
    #[error("a name of one letter cannot be compared")]
    OneLetter,
}

impl Name {
    /// Reads a name.
    ///
    /// # Errors
    /// If there is too little to compare.
    pub fn read(text: &str) -> Result<Self, Unsearchable> {
        let (plain, forms) = forms::split(meaningful(words(text, Umlauts::Dropped)));
        let (spelt, _) = forms::split(meaningful(words(text, Umlauts::Spelt)));
        let spelt = if spelt.len() == plain.len() { spelt } else { plain.clone() };
        let word = |(plain, spelt): (String, String)| Word { spelt: Some(spelt).filter(|s| *s != plain), plain };
        let words: Vec<_> = plain.into_iter().zip(spelt).map(word).collect();
        let letters = words.iter().map(|word| word.plain.chars().count()).sum();
        match letters {
            0 => Err(Unsearchable::Empty),
            1 => Err(Unsearchable::OneLetter),
            _ => Ok(Self { words, forms, letters }),
        }
    }

    /// True if it names a legal form, so that no person bears it.
    #[must_use]
    pub fn has_legal_form(&self) -> bool {
        !self.forms.is_empty()
    }

    /// True if it is too short to be compared in part.
    #[must_use]
    pub const fn is_short(&self) -> bool {
        self.letters < SHORT
    }

    /// Beginnings of its words. Two names that share none of them are not alike, so an index over these finds the pairs
    /// worth comparing.
    pub fn keys(&self) -> impl Iterator<Item = String> {
        let spellings = self.words.iter().flat_map(|word| [Some(&word.plain), word.spelt.as_ref()]);
        spellings.flatten().map(|word| word.chars().take(4).collect())
    }

    /// How much another name is alike; `None` if not enough to be worth a look.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Likeness> {
        let (mut score, reason) = self.words_alike(other)?;
        let mut why = vec![reason];
        match (self.forms.is_empty(), other.forms.is_empty()) {
            (true, true) => {}
            (true, false) | (false, true) => why.push("one name has no legal form"),
            _ if share(self, other, |a, b| a.name == b.name) => why.push("the same legal form"),
            _ if share(self, other, |a, b| a.class == b.class) => {
                score -= 0.02;
                why.push("legal forms of the same class");
            }
            _ => {
                score -= 0.08;
                why.push("another legal form");
            }
        }
        Some(Likeness { score, why })
    }

    fn words_alike(&self, other: &Self) -> Option<(f64, &'static str)> {
        let (ours, quality) = self.paired(other);
        let shorter = self.letters.min(other.letters);
        let all = ours.count == self.words.len() && ours.count == other.words.len();
        if all && quality >= 1.0 {
            return Some((1.0, "the same words"));
        }
        if squeezed(self) == squeezed(other) {
            return Some((0.95, "the same letters"));
        }
        if shorter < SHORT {
            return None;
        }
        if all {
            let score = if ours.full > 0 { quality } else { quality - 0.1 };
            return Some((
                score,
                if ours.initials { "the same words, one by its initial" } else { "one letter differs" },
            ));
        }
        let contained =
            ours.count == self.words.len().min(other.words.len()) && ours.count > 1 && ours.full == ours.count;
        #[expect(clippy::cast_precision_loss, reason = "a few letters")]
        let share = 2.0 * ours.letters as f64 / (self.letters + other.letters) as f64;
        match contained {
            true => Some((0.7 + 0.1 * share, "all words of the shorter name")),
            false if share >= 0.8 && ours.count > 1 => Some((0.85 * share, "most of the words")),
            false => None,
        }
    }

    /// Pairs the words of two names, each word once, the best pair first.
    fn paired(&self, other: &Self) -> (Pairs, f64) {
        let mut free: Vec<&Word> = other.words.iter().collect();
        let mut pairs = Pairs::default();
        let mut rest = Vec::new();
        for word in &self.words {
            match free.iter().position(|theirs| word.is(theirs)) {
                Some(at) => {
                    free.swap_remove(at);
                    pairs.add(word, 1.0);
                }
                None => rest.push(word),
            }
        }
        for word in rest {
            let best = free.iter().enumerate().map(|(at, theirs)| (word.resembles(theirs), at));
            if let Some((quality, at)) = best.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(quality, _)| *quality > 0.0) {
                free.swap_remove(at);
                pairs.add(word, quality);
            }
        }
        let quality = pairs.worst;
        (pairs, quality)
    }
}

#[derive(Debug)]
struct Pairs {
    count: usize,
    /// Pairs of the same word.
    full: usize,
    letters: usize,
    initials: bool,
    worst: f64,
}

impl Default for Pairs {
    fn default() -> Self {
        Self { count: 0, full: 0, letters: 0, initials: false, worst: 1.0 }
    }
}

impl Pairs {
    fn add(&mut self, word: &Word, quality: f64) {
        self.count += 1;
        self.full += usize::from(quality >= 1.0);
        self.initials |= quality <= INITIAL;
        self.letters += word.plain.chars().count();
        self.worst = self.worst.min(quality);
    }
}

/// What a word is worth beside one that differs in one letter.
const MISSPELT: f64 = 0.88;

/// What an initial is worth.
const INITIAL: f64 = 0.75;

impl Word {
    fn is(&self, other: &Self) -> bool {
        let spelt = |a: &Self, b: &Self| a.spelt.as_ref().is_some_and(|spelt| *spelt == b.plain);
        self.plain == other.plain || spelt(self, other) || spelt(other, self)
    }

    fn resembles(&self, other: &Self) -> f64 {
        let (ours, theirs): (Vec<char>, Vec<char>) = (self.plain.chars().collect(), other.plain.chars().collect());
        let initial =
            |a: &[char], b: &[char]| a.len() == 1 && b.len() > 1 && a.first() == b.first() && a[0].is_alphabetic();
        if initial(&ours, &theirs) || initial(&theirs, &ours) {
            return INITIAL;
        }
        let long = ours.len().min(theirs.len()) >= 6 && ours.iter().all(|c| c.is_alphabetic());
        if long && one_edit(&ours, &theirs) { MISSPELT } else { 0.0 }
    }
}

/// True if one letter was changed, left out, added, or exchanged with its neighbour.
fn one_edit(a: &[char], b: &[char]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let (short, long) = (&short[same..], &long[same..]);
    match long.len() - short.len() {
        0 if short.len() > 1 && short[0] == long[1] && short[1] == long[0] => short[2..] == long[2..],
        0 => short.get(1..) == long.get(1..),
        1 => *short == long[1..],
        _ => false,
    }
}

fn share(a: &Name, b: &Name, alike: impl Fn(&Form, &Form) -> bool) -> bool {
    a.forms.iter().any(|form| b.forms.iter().any(|other| alike(form, other)))
}

fn squeezed(name: &Name) -> String {
    name.words.iter().map(|word| word.plain.as_str()).collect()
}

/// Without the words that only join others or begin a name. What is nothing else stays.
fn meaningful(words: Vec<String>) -> Vec<String> {
    let article = usize::from(words.len() > 1 && words.first().is_some_and(|word| ARTICLES.contains(&word.as_str())));
    let last = words.len().saturating_sub(1);
    let joins = |at: usize, word: &str| at > 0 && at < last && JOINERS.contains(&word);
    let kept = words.iter().enumerate().skip(article).filter(|(at, word)| !joins(*at, word));
    kept.map(|(_, word)| word.clone()).collect()
}

#[cfg(test)]
mod tests;

//! Searches: whether a name is found, and which page of the results is shown.

use serde_json::Value;

/// Whether a search for `query` finds something called `name`: every word of the query begins a word of the name.
///
/// Case, accents and punctuation do not matter, as in the registers' own search boxes.
pub(crate) fn matches(name: &str, query: &str) -> bool {
    let name = words(name);
    let query = words(query);
    !query.is_empty() && query.iter().all(|q| name.iter().any(|n| n.starts_with(q)))
}

fn words(text: &str) -> Vec<String> {
    let plain: String = text.chars().flat_map(char::to_lowercase).map(plain).collect();
    plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn plain(c: char) -> char {
    const FOLDS: &[(&str, char)] = &[
        ("áàâäãåą", 'a'),
        ("čćç", 'c'),
        ("ď", 'd'),
        ("éèêëěę", 'e'),
        ("íìîï", 'i'),
        ("ľĺł", 'l'),
        ("ňñń", 'n'),
        ("óòôöõøő", 'o'),
        ("řŕ", 'r'),
        ("šśșş", 's'),
        ("ťțţ", 't'),
        ("úùûüůű", 'u'),
        ("ýÿ", 'y'),
        ("žźż", 'z'),
    ];
    FOLDS.iter().find(|(accented, _)| accented.contains(c)).map_or(c, |(_, plain)| *plain)
}

/// The page of `items` that `start` and `size` select.
pub(crate) fn page(items: Vec<Value>, start: usize, size: usize) -> Vec<Value> {
    items.into_iter().skip(start).take(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_by_beginnings_of_words() {
        assert!(matches("ČEZ, a. s.", "cez"));
        assert!(matches("NOVO NORDISK A/S", "Novo Nordisk"));
        assert!(matches("Alza.cz a.s.", "alza"));
        assert!(!matches("EQUINOR ASA", "quinor"));
        assert!(!matches("EQUINOR ASA", ""));
    }
}

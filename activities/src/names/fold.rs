//! Letters in one form: lower case, without accents, and in Latin letters where the script is Cyrillic or Greek.
//!
//! The order is that of Unicode's compatibility decomposition (NFKD), so a name compares alike in every Unicode form. Letters
//! that do not decompose (ß, ø, ł) have a table. Letters of other scripts stay as they are: they compare with themselves.

use icu_normalizer::DecomposingNormalizerBorrowed;

/// How letters with an umlaut or a ring become Latin letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Umlauts {
    /// ü becomes u, as in most lists.
    Dropped,
    /// ü becomes ue, as in German passports and addresses.
    Spelt,
}

/// The text in lower case and without accents.
pub(super) fn fold(text: &str, umlauts: Umlauts) -> String {
    let lower = text.to_lowercase();
    let decomposed = DecomposingNormalizerBorrowed::new_nfkd().normalize(&lower);
    let mut folded = String::with_capacity(decomposed.len());
    let mut letters = decomposed.chars().flat_map(char::to_lowercase).peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('и', Some('\u{306}')) => folded.push('y'),
            ('a', Some('\u{308}')) if umlauts == Umlauts::Spelt => folded.push_str("ae"),
            ('o', Some('\u{308}')) if umlauts == Umlauts::Spelt => folded.push_str("oe"),
            ('u', Some('\u{308}')) if umlauts == Umlauts::Spelt => folded.push_str("ue"),
            ('a', Some('\u{30a}')) if umlauts == Umlauts::Spelt => folded.push_str("aa"),
            ('ø', _) if umlauts == Umlauts::Spelt => folded.push_str("oe"),
            ('ο', Some('υ')) => {
                letters.next();
                folded.push_str("ou");
            }
            (mark, _) if is_mark(mark) => {}
            _ => match latin(letter) {
                Some(text) => folded.push_str(text),
                None => folded.push(letter),
            },
        }
    }
    folded
}

/// Accents, as they stand alone after the decomposition, and the dot of the Catalan `l·l`.
fn is_mark(c: char) -> bool {
    matches!(c, '·' | '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Latin letters for one that is none, or that does not decompose. Cyrillic as the lists write it (BGN/PCGN).
#[rustfmt::skip] // a table
const fn latin(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ß' => "ss", 'ø' => "o", 'ł' => "l", 'đ' | 'ð' => "d", 'þ' => "th", 'æ' => "ae", 'œ' => "oe", 'ı' => "i",
        'ħ' => "h", 'ŋ' => "n", 'ŧ' => "t", 'ĸ' => "q", 'ɨ' => "i", 'ʉ' => "u", 'ɇ' => "e", 'ǥ' => "g", 'ƶ' => "z",
        'а' => "a", 'б' => "b", 'в' => "v", 'г' | 'ґ' => "g", 'д' => "d", 'е' | 'э' | 'є' => "e", 'ж' => "zh", 'з' => "z",
        'и' | 'і' => "i", 'к' => "k", 'л' => "l", 'м' => "m", 'н' => "n", 'о' => "o", 'п' => "p", 'р' => "r", 'с' => "s",
        'т' => "t", 'у' | 'ў' => "u", 'ф' => "f", 'х' => "kh", 'ц' => "ts", 'ч' => "ch", 'ш' => "sh", 'щ' => "shch",
        'ъ' | 'ь' => "", 'ы' => "y", 'ю' => "yu", 'я' => "ya", 'ј' => "j", 'љ' => "lj", 'њ' => "nj", 'ћ' => "c",
        'ђ' => "d", 'џ' => "dz",
        'α' => "a", 'β' => "v", 'γ' => "g", 'δ' => "d", 'ε' => "e", 'ζ' => "z", 'η' | 'ι' => "i", 'θ' => "th",
        'κ' => "k", 'λ' => "l", 'μ' => "m", 'ν' => "n", 'ξ' => "x", 'ο' | 'ω' => "o", 'π' => "p", 'ρ' => "r",
        'σ' | 'ς' => "s", 'τ' => "t", 'υ' => "y", 'φ' => "f", 'χ' => "ch", 'ψ' => "ps",
        _ => return None,
    })
}

/// The words of a text: dots and apostrophes inside a word go, everything else that is no letter or digit separates.
pub(super) fn words(text: &str, umlauts: Umlauts) -> Vec<String> {
    let joined: String = fold(text, umlauts)
        .chars()
        .filter(|c| !matches!(c, '.' | '\'' | '’' | '‘' | 'ʼ' | '`' | '´' | '\u{200b}'..='\u{200f}' | '\u{ad}'))
        .collect();
    joined.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

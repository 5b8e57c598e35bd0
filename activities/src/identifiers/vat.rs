//! VAT numbers of the EU: the form of each member state.

use super::{Kind, checksum, compact};

/// The national part. `9` is a digit, `A` a letter, `X` either, `B` itself, and the small letters are the classes below.
const FORMS: [(&str, &[&str]); 28] = [
    ("AT", &["U99999999"]),
    ("BE", &["z999999999"]),
    ("BG", &["999999999", "9999999999"]),
    ("CY", &["99999999A"]),
    ("CZ", &["99999999", "999999999", "9999999999"]),
    ("DE", &["999999999"]),
    ("DK", &["99999999"]),
    ("EE", &["109999999"]),
    ("EL", &["999999999"]),
    ("ES", &["X9999999X"]),
    ("FI", &["99999999"]),
    ("FR", &["ff999999999"]),
    ("HR", &["99999999999"]),
    ("HU", &["99999999"]),
    ("IE", &["9s99999w", "9999999w", "9999999wi"]),
    ("IT", &["99999999999"]),
    ("LT", &["999999999", "999999999999"]),
    ("LU", &["99999999"]),
    ("LV", &["99999999999"]),
    ("MT", &["99999999"]),
    ("NL", &["999999999B99"]),
    ("PL", &["9999999999"]),
    ("PT", &["999999999"]),
    ("RO", &["n9", "n99", "n999", "n9999", "n99999", "n999999", "n9999999", "n99999999", "n999999999"]),
    ("SE", &["999999999901"]),
    ("SI", &["99999999"]),
    ("SK", &["9999999999"]),
    ("XI", &["999999999", "999999999999", "GD999", "HA999"]),
];

/// True if `c` belongs to the class that the pattern letter stands for. `0`, `1` and capitals other than `A`, `X` are literal.
fn belongs(class: char, c: char) -> bool {
    match class {
        '9' => c.is_ascii_digit(),
        'n' => matches!(c, '1'..='9'),
        'z' => matches!(c, '0' | '1'),
        'A' => c.is_ascii_uppercase(),
        'X' => c.is_ascii_digit() || c.is_ascii_uppercase(),
        's' => c.is_ascii_digit() || c.is_ascii_uppercase() || matches!(c, '*' | '+'),
        'w' => matches!(c, 'A'..='W'),
        'i' => matches!(c, 'A'..='I'),
        'f' => c.is_ascii_digit() || (c.is_ascii_uppercase() && !matches!(c, 'I' | 'O')),
        literal => c == literal,
    }
}

/// True if `national` has the form of that member state.
pub(super) fn matches(prefix: &str, national: &str) -> bool {
    let fits = |form: &&&str| {
        form.chars().count() == national.chars().count()
            && form.chars().zip(national.chars()).all(|(p, c)| belongs(p, c))
    };
    // Greece writes EL, its country code is GR: only the former is a prefix.
    FORMS.iter().any(|(code, forms)| *code == prefix && forms.iter().any(|form| fits(&form)))
}

/// Prefix and national part; the numbers of Switzerland and Norway are no EU numbers.
pub(super) fn normalise(text: &str) -> Option<String> {
    // Irish numbers may contain `+` and `*`, so only the usual punctuation goes.
    let value = compact(text);
    let (prefix, national) = value.split_at_checked(2)?;
    let prefix = if prefix == "GR" { "EL" } else { prefix };
    let national = if prefix == "BE" && national.len() == 9 { format!("0{national}") } else { national.to_owned() };
    matches(prefix, &national).then(|| format!("{prefix}{national}"))
}

/// The check digits, for the member states whose method the other kinds know.
pub(super) fn checksum(value: &str) -> bool {
    let Some((prefix, national)) = value.split_at_checked(2) else { return false };
    match prefix {
        "BE" => checksum::belgian(national),
        "DK" => Kind::DkCvr.read(national).is_ok(),
        "RO" => checksum::cui(national),
        _ => match Kind::of_vat(prefix) {
            Kind::EuVat => true,
            kind => kind.read(value).is_ok(),
        },
    }
}

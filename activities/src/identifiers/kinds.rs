//! The kinds, a row each, in the order of the enum.

use super::{Identifier, Kind, Rule, checksum, compact, vat};

const fn rule(
    kind: Kind,
    name: &'static str,
    expected: &'static str,
    normalise: fn(&str) -> Option<String>,
    checksum: fn(&str) -> bool,
    display: fn(&str) -> String,
) -> Rule {
    Rule { kind, name, expected, normalise, checksum, display }
}

#[rustfmt::skip] // one row, one line
pub(super) const RULES: [Rule; 28] = [
    rule(Kind::Lei, "LEI", "18 letters or digits and 2 digits", lei, checksum::mod_97_10, plain),
    rule(Kind::BeKbo, "KBO/BCE enterprise number", "10 digits, the first 0 or 1", kbo, checksum::belgian, |s| grouped(s, &[4, 3, 3], ".")),
    rule(Kind::BeEstablishment, "KBO/BCE establishment number", "10 digits, the first 2 to 8", establishment, checksum::belgian, |s| grouped(s, &[1, 3, 3, 3], ".")),
    rule(Kind::Ico, "IČO", "up to 8 digits", ico, checksum::ico, plain),
    rule(Kind::CzDic, "DIČ", "CZ and 8 to 10 digits", |s| vat_of("CZ", s), dic_checksum, plain),
    rule(Kind::SkIcDph, "IČ DPH", "SK and 10 digits, the third 2, 3, 4, 7, 8 or 9", ic_dph, |s| checksum::modulo(&s[2..], 11) == Some(0), plain),
    rule(Kind::FrSiren, "SIREN", "9 digits", siren, checksum::luhn, |s| grouped(s, &[3, 3, 3], " ")),
    rule(Kind::FrSiret, "SIRET", "14 digits", |s| number(s, 14), checksum::siret, |s| grouped(s, &[3, 3, 3, 5], " ")),
    rule(Kind::FrTva, "numéro de TVA", "FR, 2 key characters and a SIREN", |s| vat_of("FR", s), |s| checksum::tva(&s[2..]), plain),
    rule(Kind::DkCvr, "CVR number", "8 digits, the first not 0", cvr, |s| checksum::eleven(s, &[2, 7, 6, 5, 4, 3, 2, 1]), plain),
    rule(Kind::FiYTunnus, "Y-tunnus", "7 digits, a dash and a digit", y_tunnus, y_tunnus_checksum, plain),
    rule(Kind::FiVat, "ALV-numero", "FI and 8 digits", |s| vat_of("FI", s), |s| y_tunnus_checksum(&s[2..]), plain),
    rule(Kind::NlKvk, "KVK-nummer", "8 digits", |s| number(s, 8), unchecked, plain),
    rule(Kind::NlRsin, "RSIN", "9 digits", |s| number(s, 9), checksum::rsin, plain),
    rule(Kind::NlBtw, "btw-nummer", "NL, 9 digits, B and 2 digits", |s| vat_of("NL", s), |s| checksum::btw(&s[2..]), plain),
    rule(Kind::NoOrgnr, "organisasjonsnummer", "9 digits", |s| number(s, 9), orgnr_checksum, |s| grouped(s, &[3, 3, 3], " ")),
    rule(Kind::NoVat, "MVA-nummer", "NO, 9 digits and MVA", mva, |s| orgnr_checksum(&s[2..11]), plain),
    rule(Kind::RoCui, "CUI", "2 to 10 digits, the first not 0", cui, checksum::cui, plain),
    rule(Kind::RoTradeRegister, "trade register number", "J, F or C, county/number/year or 13 digits", trade_register, unchecked, plain),
    rule(Kind::ChUid, "UID", "CHE and 9 digits", uid, |s| checksum::uid(&s[3..]), |s| format!("CHE-{}", grouped(&s[3..], &[3, 3, 3], "."))),
    rule(Kind::ChVat, "MWST/TVA/IVA number", "CHE, 9 digits and MWST, TVA or IVA", swiss_vat, |s| checksum::uid(&s[3..12]),
         |s| format!("CHE-{} {}", grouped(&s[3..12], &[3, 3, 3], "."), &s[12..])),
    rule(Kind::EeRegistrikood, "registrikood", "8 digits, the first 1, 7, 8 or 9", registrikood, checksum::registrikood, plain),
    rule(Kind::EeKmkr, "KMKR number", "EE and 9 digits", |s| vat_of("EE", s), |s| checksum::kmkr(&s[2..]), plain),
    rule(Kind::DeUstId, "USt-IdNr.", "DE and 9 digits", |s| vat_of("DE", s), |s| checksum::mod_11_10(&s[2..]), plain),
    rule(Kind::DeRegister, "Handelsregister number", "HRA, HRB, GnR, PR or VR and a number, then the court if known", handelsregister, unchecked, plain),
    rule(Kind::EuVat, "VAT number", "a country prefix and the form of that country", vat::normalise, vat::checksum, plain),
    rule(Kind::Euid, "EUID", "country, register, a dot and a number", euid, unchecked, plain),
    rule(Kind::PeppolId, "Peppol participant id", "a 4-digit scheme, a colon and a value", peppol, peppol_checksum, plain),
];

fn plain(value: &str) -> String {
    value.to_owned()
}

fn unchecked(_: &str) -> bool {
    true
}

/// Cuts a value into groups.
fn grouped(value: &str, sizes: &[usize], separator: &str) -> String {
    let mut rest = value;
    let mut groups = Vec::with_capacity(sizes.len());
    for size in sizes {
        let (group, tail) = rest.split_at_checked(*size).unwrap_or((rest, ""));
        groups.push(group);
        rest = tail;
    }
    groups.join(separator)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Exactly `length` digits once the punctuation is gone.
fn number(text: &str, length: usize) -> Option<String> {
    Some(compact(text)).filter(|number| number.len() == length && is_digits(number))
}

/// A VAT number of that member state, prefix included or not.
fn vat_of(prefix: &str, text: &str) -> Option<String> {
    let value = compact(text);
    let national = value.strip_prefix(prefix).unwrap_or(&value);
    vat::matches(prefix, national).then(|| format!("{prefix}{national}"))
}

fn lei(text: &str) -> Option<String> {
    let value = compact(text);
    let shaped = value.len() == 20
        && value.bytes().all(|b| b.is_ascii_alphanumeric())
        && value[18..].bytes().all(|b| b.is_ascii_digit());
    shaped.then_some(value)
}

fn kbo(text: &str) -> Option<String> {
    let value = compact(text);
    let digits = value.strip_prefix("BE").unwrap_or(&value);
    let padded = if digits.len() == 9 { format!("0{digits}") } else { digits.to_owned() };
    Some(padded).filter(|v| v.len() == 10 && is_digits(v) && v.starts_with(['0', '1']))
}

fn establishment(text: &str) -> Option<String> {
    number(text, 10).filter(|v| v.starts_with(['2', '3', '4', '5', '6', '7', '8']))
}

fn ico(text: &str) -> Option<String> {
    let digits = compact(text);
    (is_digits(&digits) && digits.len() <= 8).then(|| format!("{digits:0>8}"))
}

fn dic_checksum(value: &str) -> bool {
    let national = &value[2..];
    if national.len() == 8 { checksum::ico(national) } else { checksum::birth_number(national) }
}

fn ic_dph(text: &str) -> Option<String> {
    vat_of("SK", text).filter(|v| !v[2..].starts_with('0') && v[4..].starts_with(['2', '3', '4', '7', '8', '9']))
}

/// A SIRET is accepted as well: it begins with the SIREN.
fn siren(text: &str) -> Option<String> {
    let digits = compact(text);
    (is_digits(&digits) && matches!(digits.len(), 9 | 14)).then(|| digits[..9].to_owned())
}

fn cvr(text: &str) -> Option<String> {
    let value = compact(text);
    number(value.strip_prefix("DK").unwrap_or(&value), 8).filter(|v| !v.starts_with('0'))
}

/// Old numbers with six digits get their leading zero.
fn y_tunnus(text: &str) -> Option<String> {
    let value = compact(text);
    let digits = value.strip_prefix("FI").unwrap_or(&value);
    let padded = if digits.len() == 7 { format!("0{digits}") } else { digits.to_owned() };
    (padded.len() == 8 && is_digits(&padded)).then(|| format!("{}-{}", &padded[..7], &padded[7..]))
}

fn y_tunnus_checksum(value: &str) -> bool {
    checksum::eleven(&compact(value), &[7, 9, 10, 5, 8, 4, 2, 1])
}

fn orgnr_checksum(value: &str) -> bool {
    checksum::eleven(value, &[3, 2, 7, 6, 5, 4, 3, 2, 1])
}

fn mva(text: &str) -> Option<String> {
    let value = compact(text);
    let rest = value.strip_prefix("NO").unwrap_or(&value);
    let digits = rest.strip_suffix("MVA")?;
    (digits.len() == 9 && is_digits(digits)).then(|| format!("NO{digits}MVA"))
}

fn cui(text: &str) -> Option<String> {
    let value = compact(text);
    let digits = value.strip_prefix("RO").unwrap_or(&value);
    ((2..=10).contains(&digits.len()) && is_digits(digits) && !digits.starts_with('0')).then(|| digits.to_owned())
}

fn trade_register(text: &str) -> Option<String> {
    let value: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let rest = value.strip_prefix(['J', 'F', 'C'])?;
    let parts: Vec<_> = rest.split('/').collect();
    let shaped = match parts[..] {
        [all] => all.len() == 13 && is_digits(all),
        [county, number, year] => {
            [county, number, year].into_iter().all(is_digits)
                && county.len() <= 2
                && number.len() <= 7
                && year.len() == 4
        }
        _ => false,
    };
    shaped.then_some(value)
}

fn uid(text: &str) -> Option<String> {
    let value = compact(text);
    value
        .strip_prefix("CHE")
        .filter(|digits| digits.len() == 9 && is_digits(digits))
        .map(|digits| format!("CHE{digits}"))
}

fn swiss_vat(text: &str) -> Option<String> {
    let value = compact(text);
    ["MWST", "TVA", "IVA"].into_iter().find_map(|suffix| Some(uid(value.strip_suffix(suffix)?)? + suffix))
}

fn registrikood(text: &str) -> Option<String> {
    number(text, 8).filter(|v| v.starts_with(['1', '7', '8', '9']))
}

/// `HRB 123456`, with the court before, after or behind a slash.
fn handelsregister(text: &str) -> Option<String> {
    let words: Vec<_> = text.split([' ', '/', ',', '\u{a0}']).filter(|word| !word.is_empty()).collect();
    let split: Vec<_> = words
        .iter()
        .flat_map(|word| match word.find(|c: char| c.is_ascii_digit()) {
            Some(at) if at > 0 => vec![&word[..at], &word[at..]],
            _ => vec![*word],
        })
        .collect();
    let at = split.iter().position(|word| matches!(*word, "HRA" | "HRB" | "GNR" | "PR" | "VR"))?;
    let number = split.get(at + 1).filter(|number| is_digits(number) && number.len() <= 7)?;
    let court: Vec<_> = split[..at]
        .iter()
        .chain(&split[at + 2..])
        .copied()
        .filter(|word| !matches!(*word, "AMTSGERICHT" | "AG"))
        .collect();
    let kind = if split[at] == "GNR" { "GnR" } else { split[at] };
    Some(format!("{kind} {number} {}", court.join(" ")).trim().to_owned())
}

fn euid(text: &str) -> Option<String> {
    let value: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let (register, number) = value.split_once('.')?;
    let country = register.get(..2)?;
    let shaped = country.parse::<crate::model::Country>().is_ok()
        && register.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && (3..=12).contains(&register.len())
        && (1..=40).contains(&number.len())
        && number.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '/'));
    shaped.then_some(value)
}

fn peppol(text: &str) -> Option<String> {
    let value: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let bare = value.strip_prefix("ISO6523-ACTORID-UPIS::").unwrap_or(&value);
    let (scheme, id) = bare.split_once(':')?;
    if scheme.len() != 4 || !is_digits(scheme) || !(1..=50).contains(&id.len()) || !id.is_ascii() {
        return None;
    }
    match peppol_kind(scheme) {
        Some(kind) => match kind.read(id) {
            Ok(identifier) | Err(super::IdentifierError::Checksum { identifier, .. }) => {
                Some(format!("{scheme}:{}", Identifier::as_str(&identifier)))
            }
            Err(super::IdentifierError::Format { .. }) => None,
        },
        None => Some(format!("{scheme}:{id}")),
    }
}

fn peppol_checksum(value: &str) -> bool {
    let Some((scheme, id)) = value.split_once(':') else { return false };
    peppol_kind(scheme).is_none_or(|kind| kind.read(id).is_ok())
}

/// What the value behind a Peppol scheme is, for the schemes of registers that we know.
fn peppol_kind(scheme: &str) -> Option<Kind> {
    Some(match scheme {
        "0208" => Kind::BeKbo,
        "0192" => Kind::NoOrgnr,
        "0106" => Kind::NlKvk,
        "0199" => Kind::Lei,
        "9925" => Kind::EuVat,
        _ => return None,
    })
}

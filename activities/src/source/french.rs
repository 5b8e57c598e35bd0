//! What the French sources share: the code lists of the statistical office, and names of persons.

use crate::{
    model::{Company, Facts, Officer, Standing},
    parse::json::Node,
    spec::{Answer, SourceError},
};

/// A legal form by its code in the national list, where it is a common one; else the code.
pub(super) fn legal_form(code: &str) -> String {
    let name = match code {
        "1000" => "entrepreneur individuel",
        "5498" => "EURL",
        "5499" => "SARL",
        "5505" | "5599" => "SA",
        "5710" => "SAS",
        "5720" => "SASU",
        "5800" => "SE",
        "6220" => "GIE",
        "6540" => "SCI",
        "9220" => "association",
        _ => return code.to_owned(),
    };
    format!("{name} ({code})")
}

/// The words of Sirene for the administrative state of a company.
pub(super) const STANDINGS: &[(&str, Standing)] = &[("A", Standing::Active), ("C", Standing::Ceased)];

/// What Sirene's codes for the number of employees stand for.
const HEADCOUNTS: [(&str, &str); 15] = [
    ("00", "0"),
    ("01", "1-2"),
    ("02", "3-5"),
    ("03", "6-9"),
    ("11", "10-19"),
    ("12", "20-49"),
    ("21", "50-99"),
    ("22", "100-199"),
    ("31", "200-249"),
    ("32", "250-499"),
    ("41", "500-999"),
    ("42", "1000-1999"),
    ("51", "2000-4999"),
    ("52", "5000-9999"),
    ("53", "10000 or more"),
];

/// A bracket of employees by its code; `None` for the code that says that the number is not known.
pub(super) fn headcount(code: &str) -> Option<String> {
    let known = HEADCOUNTS.iter().find(|(known, _)| *known == code);
    (code != "NN").then(|| known.map_or_else(|| format!("code {code}"), |(_, bracket)| (*bracket).to_owned()))
}

/// Sirene's names of the countries that seats abroad are most often in. Upper case, with their codes.
const ABROAD: [(&str, &str); 30] = [
    ("ALLEMAGNE", "DE"),
    ("AUTRICHE", "AT"),
    ("BELGIQUE", "BE"),
    ("BULGARIE", "BG"),
    ("CANADA", "CA"),
    ("CHINE", "CN"),
    ("CHYPRE", "CY"),
    ("DANEMARK", "DK"),
    ("ESPAGNE", "ES"),
    ("ESTONIE", "EE"),
    ("ETATS-UNIS", "US"),
    ("FINLANDE", "FI"),
    ("GRECE", "GR"),
    ("HONGRIE", "HU"),
    ("IRLANDE", "IE"),
    ("ITALIE", "IT"),
    ("JAPON", "JP"),
    ("LETTONIE", "LV"),
    ("LITUANIE", "LT"),
    ("LUXEMBOURG", "LU"),
    ("MALTE", "MT"),
    ("MONACO", "MC"),
    ("NORVEGE", "NO"),
    ("PAYS-BAS", "NL"),
    ("POLOGNE", "PL"),
    ("PORTUGAL", "PT"),
    ("ROUMANIE", "RO"),
    ("ROYAUME-UNI", "GB"),
    ("SUEDE", "SE"),
    ("SUISSE", "CH"),
];

/// Country of a seat, by the name of a country abroad that the record gives. It is France without such a name, and not known
/// for a name outside the table.
pub(super) fn country(abroad: Option<&str>) -> Option<String> {
    let Some(name) = abroad else { return Some("FR".to_owned()) };
    let name = name.trim().to_uppercase();
    ABROAD.iter().find(|(known, _)| *known == name).map(|(_, code)| (*code).to_owned())
}

/// A town abroad with the name of its country, which is kept because not every name has a code in the table.
pub(super) fn town_abroad(town: Option<String>, country: &str) -> String {
    town.map_or_else(|| country.to_owned(), |town| format!("{town} ({country})"))
}

/// The head of a record about a company with this number.
pub(super) fn company(siren: String, name: String) -> Company {
    Company { id: Some(siren), name: Some(name), country: Some("FR".to_owned()), ..Company::default() }
}

/// A text, unless it is the mark that stands where somebody has asked not to be shown: `[ND]`, `[NON-DIFFUSIBLE]`.
pub(super) fn shown(node: Node<'_>) -> Option<String> {
    node.text().filter(|text| !(text.starts_with("[N") && text.ends_with(']')))
}

/// First names, in one text or a list, and the surname.
pub(super) fn person(names: Node<'_>, surname: Node<'_>) -> Option<String> {
    let parts: Vec<_> = names.items().filter_map(shown).chain(shown(surname)).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// What is left of records, some of which must not be shown: companies with a note that there are more, or the reason why
/// there are none.
pub(super) fn answer(records: Vec<Option<Company>>) -> Result<Answer, SourceError> {
    let all = records.len();
    let companies: Vec<_> = records.into_iter().flatten().collect();
    let hidden = all - companies.len();
    match (companies.is_empty(), hidden) {
        (true, 0) => return Err(SourceError::not_found("knows no such company")),
        (true, _) => {
            return Err(SourceError::business("may not pass the record on: the company has asked not to be disclosed"));
        }
        (false, _) => {}
    }
    let notes = (hidden > 0).then(|| format!("{hidden} more that must not be passed on"));
    Ok(Facts { companies, notes: notes.into_iter().collect(), ..Facts::default() }.into())
}

/// A role that is held; without a name it is no news.
pub(super) fn officer(name: Option<String>, company_id: Option<String>, role: Option<String>) -> Option<Officer> {
    Some(Officer { name: Some(name?), company_id, role, ..Officer::default() })
}

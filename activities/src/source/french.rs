//! What the French sources share: the code lists of the statistical office, and names of persons.

use crate::{
    model::{Company, Facts, Officer},
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

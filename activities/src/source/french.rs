//! What the French sources share: the code lists of the statistical office, and names of persons.

use crate::{
    model::{Company, Officer},
    parse::json::Node,
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

/// First names, in one text or a list, and the surname.
pub(super) fn person(names: Node<'_>, surname: Node<'_>) -> Option<String> {
    let parts: Vec<_> = names.texts().into_iter().chain(surname.text()).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// A role that is held; without a name it is no news.
pub(super) fn officer(name: Option<String>, company_id: Option<String>, role: Option<String>) -> Option<Officer> {
    Some(Officer { name: Some(name?), company_id, role, ..Officer::default() })
}

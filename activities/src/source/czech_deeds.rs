//! What both sites of the Czech collection of deeds share: the list of documents, and the years of the accounts in it.

use crate::{
    model::{Accounts, Facts, Notice},
    spec::{Answer, SourceError},
};

/// What both sites' lists come to: the documents, newest first, and the years whose accounts are among them.
pub(super) fn filed(mut notices: Vec<Notice>) -> Result<Answer, SourceError> {
    if notices.is_empty() {
        return Err(SourceError::not_found("has no deed of this company"));
    }
    notices.sort_by(|a, b| b.date.cmp(&a.date));
    let mut accounts: Vec<_> = notices.iter().flat_map(years).collect();
    accounts.sort_by(|a, b| b.to.cmp(&a.to));
    Ok(Facts { notices, accounts, ..Facts::default() }.into())
}

/// The financial statements that a deed contains, by year: `výroční zpráva [2024], účetní závěrka [2024]`.
fn years(notice: &Notice) -> Vec<Accounts> {
    let kinds = notice.kind.as_deref().unwrap_or_default().split(',');
    let statements = kinds.filter_map(|kind| kind.trim().strip_prefix("účetní závěrka"));
    let accounts = statements.map(|rest| Accounts {
        to: rest.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).map(str::to_owned),
        filing: notice.date.as_ref().map(|date| format!("účetní závěrka, filed {date}")),
        ..Accounts::default()
    });
    accounts.filter(|accounts| accounts.to.is_some()).collect()
}

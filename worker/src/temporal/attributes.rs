//! Makes sure that the server knows the search attributes of an investigation.

use temporalio_client::{
    Client, NamespacedClient,
    tonic::{Code, IntoRequest, Status},
};
use temporalio_common::protos::temporal::api::{
    enums::v1::IndexedValueType,
    operatorservice::v1::{AddSearchAttributesRequest, ListSearchAttributesRequest},
};

use crate::{
    error::CliError,
    workflow::attributes::{DEGRADED_BY, VERDICT},
};

/// Names and types of the attributes.
fn wanted() -> [(&'static str, IndexedValueType); 2] {
    [(VERDICT.name(), IndexedValueType::Keyword), (DEGRADED_BY.name(), IndexedValueType::KeywordList)]
}

/// Creates the attributes that the server does not know yet, and returns their names.
///
/// # Errors
/// When the server does not let us. The error says who can do it.
pub async fn ensure(client: &Client) -> Result<Vec<&'static str>, CliError> {
    let namespace = client.namespace();
    let mut operator = client.connection().operator_service();
    let request = ListSearchAttributesRequest { namespace: namespace.clone() };
    let known = operator.list_search_attributes(request.into_request()).await.map_err(|status| refused(&status))?;
    let known = known.into_inner().custom_attributes;
    if let Some((name, _)) =
        wanted().iter().find(|(name, kind)| known.get(*name).is_some_and(|have| *have != *kind as i32))
    {
        return Err(CliError::failure(format!("the server has a search attribute {name} of another type"))
            .hint("remove it there, or use another namespace"));
    }
    let missing: Vec<_> = wanted().into_iter().filter(|(name, _)| !known.contains_key(*name)).collect();
    if !missing.is_empty() {
        let search_attributes = missing.iter().map(|(name, kind)| ((*name).to_owned(), *kind as i32)).collect();
        let request = AddSearchAttributesRequest { search_attributes, namespace };
        operator.add_search_attributes(request.into_request()).await.map_err(|status| refused(&status))?;
    }
    Ok(missing.into_iter().map(|(name, _)| name).collect())
}

fn refused(status: &Status) -> CliError {
    let why = match status.code() {
        Code::PermissionDenied | Code::Unauthenticated => "this account may not create search attributes".to_owned(),
        Code::Unimplemented => "this server does not create search attributes on request".to_owned(),
        _ => format!("the server does not create search attributes: {}", status.message()),
    };
    let names = wanted().map(|(name, kind)| format!("{name} ({})", kind.as_str_name()));
    CliError::failure(why).hint(format!(
        "ask its administrator for {}; without them everything works except the filters of `osint list`",
        names.join(" and ")
    ))
}

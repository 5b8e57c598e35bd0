//! What speaks to a Temporal server as a client: connections, encryption, starting, following and finding investigations, reading a
//! history.

pub mod attributes;
pub mod codec;
pub mod connect;
pub mod find;
pub mod history;
pub mod starter;

use crate::report::neutral::neutral;
use temporalio_client::{
    Client, NamespacedClient,
    tonic::{IntoRequest, Status},
};
use temporalio_common::protos::temporal::api::workflowservice::v1::DescribeNamespaceRequest;

/// The innermost cause of an error, on one line: what the layers above it say is for programmers.
pub(crate) fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    neutral(&inner.to_string())
}

/// Asks the server to describe the client's namespace. It answers only when the namespace can be used.
///
/// # Errors
/// The server's refusal, or the failure to reach it.
pub(crate) async fn describe_namespace(client: &Client) -> Result<(), Status> {
    let request = DescribeNamespaceRequest { namespace: client.namespace(), ..Default::default() };
    client.connection().workflow_service().describe_namespace(request.into_request()).await.map(drop)
}

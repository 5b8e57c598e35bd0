//! What speaks to a Temporal server as a client: connections, encryption, starting an investigation, reading a history.

pub mod codec;
pub mod connect;
pub mod history;
pub mod starter;

use temporalio_client::{
    Client, NamespacedClient,
    tonic::{IntoRequest, Status},
};
use temporalio_common::protos::temporal::api::workflowservice::v1::DescribeNamespaceRequest;

/// Asks the server to describe the client's namespace. It answers only when the namespace can be used.
///
/// # Errors
/// The server's refusal, or the failure to reach it.
pub(crate) async fn describe_namespace(client: &Client) -> Result<(), Status> {
    let request = DescribeNamespaceRequest { namespace: client.namespace(), ..Default::default() };
    client.connection().workflow_service().describe_namespace(request.into_request()).await.map(drop)
}

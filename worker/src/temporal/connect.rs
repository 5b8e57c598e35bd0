//! Connects to a Temporal server. Flags win over `TEMPORAL_*` variables, which win over `temporal.toml`.
//!
//! Addresses, namespaces, API keys, TLS and mTLS come from the SDK's own environment configuration, as for Temporal's other
//! tools. Payloads pass the [`codec`](super::codec) whose keys the environment names.

use std::time::Duration;

use clap::Args;
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, NamespacedClient, envconfig::LoadClientConfigProfileOptions,
    tonic::Code,
};
use tokio::{net::TcpStream, time::timeout};

use super::{codec::Codec, describe_namespace};
use crate::error::CliError;

/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// Where the Temporal server is.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Temporal")]
pub struct Target {
    /// `host:port` of the Temporal server [env: TEMPORAL_ADDRESS] [default: localhost:7233]
    #[arg(long, value_name = "HOST:PORT")]
    pub address: Option<String>,
    /// Namespace [env: TEMPORAL_NAMESPACE] [default: default]
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
}

/// Options for the SDK, from the flags, the environment and `temporal.toml`.
///
/// # Errors
/// When they cannot be used (the user's mistake).
pub(crate) fn options(target: &Target) -> Result<(ConnectionOptions, ClientOptions), CliError> {
    let (mut connection, mut client) = ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())
        .map_err(|error| {
            CliError::user(format!("the Temporal connection settings cannot be used: {error}"))
                .hint("check the TEMPORAL_* variables and temporal.toml")
        })?;
    if let Some(address) = &target.address {
        let scheme = if connection.tls_options.is_some() { "https" } else { "http" };
        let url = if address.contains("://") { address.clone() } else { format!("{scheme}://{address}") };
        let bad = || CliError::user(format!("--address {address} is not host:port")).hint("for example localhost:7233");
        connection.target = url.parse().map_err(|_| bad())?;
        if connection.target.host_str().is_none_or(str::is_empty) {
            return Err(bad());
        }
    }
    if let Some(namespace) = &target.namespace {
        client.namespace.clone_from(namespace);
    }
    connection.connect_timeout = Some(CONNECT);
    Ok((connection, client))
}

/// Connects. An error says why it cannot and what to do.
///
/// # Errors
/// When the settings are wrong (the user's mistake) or no server answers (a failure).
pub async fn connect(target: &Target) -> Result<Client, CliError> {
    let (connection, mut client) = options(target)?;
    client.data_converter = Codec::from_env()?.converter();
    let url = &connection.target;
    let host = url.host_str().unwrap_or_default().to_owned();
    let port = url.port_or_known_default().unwrap_or(7233);
    let no_server = |why: String| {
        CliError::failure(format!("no Temporal server at {host}:{port}: {why}")).hint(
            "start one with `osint dev`, or name one with --address or TEMPORAL_ADDRESS \
             (`temporal server start-dev` listens on localhost:7233)",
        )
    };
    // Try a plain connection first: the SDK would retry a refused one for ten seconds before it reports it.
    match timeout(CONNECT, TcpStream::connect((host.as_str(), port))).await {
        Err(_) => return Err(no_server(format!("no answer within {CONNECT:?}"))),
        Ok(Err(error)) => return Err(no_server(error.to_string())),
        Ok(Ok(_)) => {}
    }
    let connected = timeout(CONNECT * 3, Connection::connect(connection)).await;
    let connection = match connected {
        Err(_) => return Err(no_server("something listens there, but does not speak Temporal's protocol".to_owned())),
        Ok(Err(error)) => return Err(no_server(error.to_string())),
        Ok(Ok(connection)) => connection,
    };
    let client = Client::new(connection, client);
    let client = client.map_err(|error| CliError::failure(format!("cannot make a Temporal client: {error}")))?;
    require_namespace(&client).await?;
    Ok(client)
}

/// Reports a missing namespace clearly. Without this check, the first request would fail, each with another text. Other
/// errors are ignored here, because not every account may describe a namespace.
async fn require_namespace(client: &Client) -> Result<(), CliError> {
    let namespace = client.namespace();
    match describe_namespace(client).await {
        Err(status) if status.code() == Code::NotFound => {
            Err(CliError::user(format!("the Temporal server has no namespace '{namespace}'"))
                .hint("name an existing one with --namespace or TEMPORAL_NAMESPACE"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(address: &str) -> Target {
        Target { address: Some(address.to_owned()), namespace: Some("kyb".to_owned()) }
    }

    #[test]
    fn flags_win_over_the_environment() {
        let (connection, client) = options(&target("temporal.internal:7000")).expect("valid");
        assert_eq!(connection.target.as_str(), "http://temporal.internal:7000/");
        assert_eq!(client.namespace, "kyb");
    }

    #[test]
    fn a_malformed_address_is_the_users_mistake() {
        for address in ["", "localhost:port", "http://", "a b:1"] {
            assert_eq!(options(&target(address)).map(|_| ()).expect_err(address).code(), 2);
        }
    }

    #[tokio::test]
    async fn a_missing_server_is_a_failure() {
        let error = connect(&target("127.0.0.1:1")).await.map(|_| ()).expect_err("nothing listens on port 1");
        assert_eq!(error.code(), 1);
        assert!(error.to_string().contains("osint dev"), "{error}");
    }
}

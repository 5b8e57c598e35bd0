//! One connection, shared by all questions, and what its errors mean.

use std::time::Duration;

use redis::{AsyncConnectionConfig, ErrorKind, RedisError, ServerErrorKind, aio::MultiplexedConnection};

use super::RedisStore;
use crate::store::error::{StoreError, StoreErrorKind};

/// The time limit for a new connection.
const CONNECT: Duration = Duration::from_secs(2);

/// The time limit for an answer. Most callers stop waiting earlier.
const RESPOND: Duration = Duration::from_secs(5);

impl RedisStore {
    /// The present connection, or a new one.
    pub(super) async fn connection(&self) -> Result<MultiplexedConnection, StoreError> {
        let mut present = self.connection.lock().await;
        if let Some(connection) = &*present {
            return Ok(connection.clone());
        }
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT)).set_response_timeout(Some(RESPOND));
        let connected = self.client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection = connected.map_err(|error| store_error(&error))?;
        // A server that wants a password says so only at the first question.
        redis::cmd("PING").query_async::<()>(&mut connection).await.map_err(|error| store_error(&error))?;
        *present = Some(connection.clone());
        Ok(connection)
    }

    /// Asks over the present connection, or over a new one. A connection that broke or does not answer is dropped. So is one
    /// whose question was cancelled before the answer came, because it may be stuck.
    pub(super) async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connection().await?;
        let mut guard = DropConnection { store: self, armed: true };
        let answer = question(&mut connection).await;
        // An error from Redis itself is an answer: the connection is good. But a replica or a server that is loading may be
        // another server next time.
        guard.armed = answer.as_ref().is_err_and(|error| match error.kind() {
            ErrorKind::Server(kind) => matches!(kind, ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown),
            _ => true,
        });
        answer.map_err(|error| store_error(&error))
    }
}

/// Drops the connection unless disarmed.
struct DropConnection<'a> {
    store: &'a RedisStore,
    armed: bool,
}

impl Drop for DropConnection<'_> {
    fn drop(&mut self) {
        if self.armed
            && let Ok(mut connection) = self.store.connection.try_lock()
        {
            *connection = None;
        }
    }
}

/// Redis's errors name keys and commands, but no stored values.
pub(super) fn store_error(error: &RedisError) -> StoreError {
    // Of several commands, the first error is the cause of the others.
    let first = error.clone().into_server_errors().and_then(|errors| errors.first().map(|(_, error)| error.clone()));
    let (code, message) = match &first {
        Some(error) => (error.code().to_owned(), error.to_string()),
        None => (error.code().unwrap_or_default().to_owned(), error.to_string()),
    };
    let kind = match code.as_str() {
        "OOM" | "MISCONF" => StoreErrorKind::Full,
        "READONLY" => StoreErrorKind::ReadOnly,
        "WRONGPASS" | "NOAUTH" | "NOPERM" => StoreErrorKind::Denied,
        _ if error.kind() == ErrorKind::AuthenticationFailed => StoreErrorKind::Denied,
        _ if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() => StoreErrorKind::Unreachable,
        _ => StoreErrorKind::Other,
    };
    StoreError::new(kind, message)
}

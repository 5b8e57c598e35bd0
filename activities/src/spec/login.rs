//! Tokens that a log-in gives and that wear out.
//!
//! A token is kept for the whole process, because upstreams count log-ins and dislike many. A token that is refused has worn
//! out, which is no failure: there is one new log-in and one more try. Of many callers that find the same token worn out the
//! first logs in and the others wait for what it brings. What must not happen is that they are handed the worn token again, so
//! each says which one it was refused with.

use std::collections::HashMap;

use circuit_registry::CallError;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;

use super::{Class, Reply, Request, Session, Settings, SourceError};

/// How to get a token. The rules of its source hand a 401 on, so that it differs from other refusals.
#[derive(Debug, Clone, Copy)]
pub struct LogIn {
    /// What to send.
    pub request: fn(&Settings) -> Request,
    /// Where the token is in the answer.
    pub token: fn(&[u8]) -> Result<SecretString, SourceError>,
}

/// The tokens of a process, by source.
#[derive(Debug, Default)]
pub struct Tokens(Mutex<HashMap<&'static str, SecretString>>);

impl Session<'_> {
    /// Asks with a token, and once more with a new one if the first has worn out.
    ///
    /// # Errors
    /// As [`Session::ask`], for the log-in or the question.
    pub async fn ask_as<T: Send>(
        &self,
        login: &LogIn,
        request: Request,
        read: impl Fn(&Reply) -> Result<T, SourceError> + Send + Sync,
    ) -> Result<T, CallError<SourceError>> {
        let worn_or = |reply: &Reply| if reply.status == 401 { Ok(None) } else { read(reply).map(Some) };
        let token = self.token(login, None).await?;
        if let Some(answer) = self.ask(request.clone().token(token.clone()), &worn_or).await? {
            return Ok(answer);
        }
        let token = self.token(login, Some(&token)).await?;
        let answer = self.ask(request.token(token), &worn_or).await?;
        answer.ok_or_else(|| refused("does not accept a token that it has just given"))
    }

    /// The token that is kept, unless it is the worn one; else a new one. Held while it logs in, so that many log in once.
    async fn token(&self, login: &LogIn, worn: Option<&SecretString>) -> Result<SecretString, CallError<SourceError>> {
        let mut tokens = self.tokens().0.lock().await;
        let name = self.source_name();
        let fresh = |token: &&SecretString| worn.is_none_or(|worn| worn.expose_secret() != token.expose_secret());
        if let Some(token) = tokens.get(name).filter(fresh) {
            return Ok(token.clone());
        }
        tokens.remove(name);
        let given = |reply: &Reply| if reply.status == 401 { Ok(None) } else { (login.token)(&reply.body).map(Some) };
        let token = self.ask((login.request)(self.settings()), given).await?;
        let token = token.ok_or_else(|| refused("does not accept the user name and password"))?;
        tokens.insert(name, token.clone());
        Ok(token)
    }
}

fn refused(reason: &str) -> CallError<SourceError> {
    CallError::Upstream(SourceError::new(Class::Denied, reason))
}

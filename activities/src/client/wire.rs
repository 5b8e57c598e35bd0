//! Where a client gets its answers from: the network, the network with a copy for the tests, or a script.

use std::sync::{Arc, Mutex, PoisonError};

use crate::spec::{Reply, SourceError};

/// Most requests that one script answers: a flow that asks more often never ends.
const MAX_REQUESTS: usize = 100;

/// How requests are answered.
#[derive(Debug, Clone, Default)]
pub(super) enum Wire {
    /// By the upstreams.
    #[default]
    Network,
    /// By the upstreams, with a copy of each answer for the suite.
    #[cfg(test)]
    Recorded(Arc<Mutex<Vec<Reply>>>),
    /// By a script. The client sends nothing.
    Script(Script),
}

/// Answers instead of all upstreams, in the order of the requests. When they run out, the last one
/// is repeated.
#[derive(Debug, Clone, Default)]
pub struct Script(Arc<Mutex<ScriptState>>);

#[derive(Debug, Default)]
struct ScriptState {
    replies: Vec<Reply>,
    asked: usize,
}

impl Script {
    /// Begins again, with these answers.
    pub fn restart(&self, replies: Vec<Reply>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = ScriptState { replies, asked: 0 };
    }

    /// How many requests there were since it began.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).asked
    }

    pub(super) fn next(&self, limit: usize) -> Result<Reply, SourceError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reply = state.replies.get(state.asked).or(state.replies.last());
        let reply = reply.filter(|_| state.asked < MAX_REQUESTS).cloned();
        state.asked += 1;
        let reply = reply.ok_or_else(|| SourceError::unavailable("has no answer left in the script"))?;
        if reply.body.len() > limit { Err(super::too_long(limit)) } else { Ok(reply) }
    }
}

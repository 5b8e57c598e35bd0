//! What a client does with a request: sends it, sends it and takes notes, or answers it itself.

use std::sync::{Arc, Mutex, PoisonError};

use crate::spec::{Reply, SourceError};

/// Most requests that one script answers: a flow that asks more often is going in circles.
const PATIENCE: usize = 100;

/// How requests are answered.
#[derive(Debug, Clone, Default)]
pub(super) enum Wire {
    /// By the upstreams.
    #[default]
    Network,
    /// By the upstreams, with a copy of each answer for the suite.
    #[cfg(test)]
    Recorded(Arc<Mutex<Vec<Reply>>>),
    /// By nobody.
    Script(Script),
}

/// Answers in the place of all upstreams, in the order of the requests, whatever is asked. When they run out, the last one
/// is repeated.
#[derive(Debug, Clone, Default)]
pub struct Script(Arc<Mutex<Play>>);

#[derive(Debug, Default)]
struct Play {
    replies: Vec<Reply>,
    asked: usize,
}

impl Script {
    /// Begins again, with these answers.
    pub fn play(&self, replies: Vec<Reply>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Play { replies, asked: 0 };
    }

    /// How many requests there were since it began.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).asked
    }

    pub(super) fn next(&self, limit: usize) -> Result<Reply, SourceError> {
        let mut play = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reply = play.replies.get(play.asked).or(play.replies.last());
        let reply = reply.filter(|_| play.asked < PATIENCE).cloned();
        play.asked += 1;
        let reply = reply.ok_or_else(|| SourceError::unavailable("has nothing to say any more"))?;
        if reply.body.len() > limit { Err(super::too_long(limit)) } else { Ok(reply) }
    }
}

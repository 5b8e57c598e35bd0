//! What a breaker needs of the store of its registry. The fleet implements it; a breaker knows nothing else of a fleet.
//!
//! Only two kinds of call wait for the store: one that needs a probe's lease, and one that needs a token of a shared rate
//! limit. Every other call leaves a note at most, and a task outside of all calls does the work.

use std::{fmt, pin::Pin};

use super::inner::BreakerInner;
use crate::{
    error::RejectReason,
    outcome::ServiceName,
    state::{BreakerState, ChangeMarker, fleet_view::Question},
    store::{Answer, StoreError},
};

/// A note for the task that keeps the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// The state changed, and is remembered for this process alone.
    Snapshot,
    /// The state changed, and is shared with the fleet.
    Shared,
    /// The number of failures in a row changed, and the fleet counts them together.
    Failures,
    /// A caller that cannot wait needs the lease of a probe.
    Probe,
    /// A caller that cannot wait needs a token of the shared rate limit.
    Token,
}

/// The store, as breakers see it.
pub(crate) trait StorePort: fmt::Debug + Send + Sync {
    /// Whether processes can share breakers through the store.
    fn can_share(&self) -> bool;

    /// Whether the store answers at present, and knows what this process knows.
    fn is_up(&self) -> bool;

    /// How many processes share the store.
    fn processes(&self) -> u32;

    /// Leaves a note about the breaker `name`. Never waits.
    fn note(&self, name: &ServiceName, note: Note);

    /// Asks the store on behalf of a call, and enters the answer into the state of `breaker`. It takes a tenth of a second at
    /// most.
    fn ask<'a>(
        &'a self,
        breaker: &'a BreakerInner,
        question: Question,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

    /// Waits until the present state of the breaker `name` is in the store. `note` says where it is stored.
    fn stored<'a>(&'a self, name: &'a ServiceName, note: Note) -> Answer<'a, ()>;
}

impl Question {
    /// The rejection of a call that cannot wait for the answer.
    pub(super) const fn reject_reason(self) -> RejectReason {
        match self {
            Self::Probe => RejectReason::Open,
            Self::Token => RejectReason::RateLimited,
        }
    }
}

impl BreakerInner {
    pub(crate) async fn ask_store(&self, question: Question) {
        if let Some(store) = &self.shared.store {
            store.ask(self, question).await;
        }
    }

    /// For a caller that cannot wait: the next one finds the answer.
    pub(super) fn ask_store_later(&self, question: Question) {
        let note = match question {
            Question::Probe => Note::Probe,
            Question::Token => Note::Token,
        };
        if let Some(store) = &self.shared.store {
            store.note(&self.name, note);
        }
    }

    /// Enters whether the store answers. Returns how the state stands, for [`note`](Self::note).
    pub(super) fn prepare(&self, state: &mut BreakerState) -> ChangeMarker {
        if let Some(store) = &self.shared.store {
            let up = store.is_up();
            if let Some(fleet_view) = &mut state.fleet_view {
                fleet_view.up = up;
            }
            if let Some(fleet_limit) = &mut state.fleet_limit {
                fleet_limit.up = up;
                fleet_limit.shared_by(store.processes());
            }
        }
        state.change_marker()
    }

    /// Leaves a note if the state has changed since `before` in a way that is stored or shared.
    #[inline]
    pub(super) fn note(&self, before: ChangeMarker, state: &BreakerState) {
        let Some(store) = &self.shared.store else { return };
        let after = state.change_marker();
        if before == after {
            return;
        }
        let note = match (before.generation != after.generation, state.fleet_view.is_some()) {
            (true, true) => Note::Shared,
            (true, false) => Note::Snapshot,
            (false, true) => Note::Failures,
            (false, false) => return,
        };
        store.note(&self.name, note);
    }

    /// Leaves a note, whatever has changed.
    pub(super) fn note_all(&self) {
        if let Some(store) = &self.shared.store {
            store.note(&self.name, self.kept_by());
        }
    }

    /// Waits until the present state is in the store.
    pub(super) async fn stored(&self) -> Result<(), StoreError> {
        let store = self.shared.store.as_ref().ok_or_else(StoreError::absent)?;
        store.stored(&self.name, self.kept_by()).await
    }

    fn kept_by(&self) -> Note {
        if self.lock().fleet_view.is_some() { Note::Shared } else { Note::Snapshot }
    }
}

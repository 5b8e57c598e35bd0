//! The store of a registry, as its breakers see it.

use std::pin::Pin;

use crate::{
    breaker::{
        inner::BreakerInner,
        store_port::{Note, StorePort},
    },
    fleet::lease,
    outcome::ServiceName,
    state::fleet_view::Question,
    store::{Answer, handle::StoreHandle, queue::Queue},
};

impl StoreHandle {
    const fn queue(&self, note: Note) -> &Queue {
        match note {
            Note::Snapshot => &self.snapshots,
            Note::Shared => &self.shared,
            Note::Failures => &self.failing,
            Note::Probe => &self.probes,
            Note::Token => &self.tokens,
        }
    }
}

impl StorePort for StoreHandle {
    fn can_share(&self) -> bool {
        self.fleet().is_some()
    }

    fn is_up(&self) -> bool {
        self.is_up()
    }

    fn processes(&self) -> u32 {
        self.processes()
    }

    fn note(&self, name: &ServiceName, note: Note) {
        self.queue(note).push(name);
    }

    fn ask<'a>(
        &'a self,
        breaker: &'a BreakerInner,
        question: Question,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        match question {
            Question::Probe => Box::pin(lease::probe(breaker, self)),
            Question::Token => Box::pin(lease::token(breaker, self)),
        }
    }

    fn stored<'a>(&'a self, name: &'a ServiceName, note: Note) -> Answer<'a, ()> {
        Box::pin(self.stored(name, self.queue(note)))
    }
}

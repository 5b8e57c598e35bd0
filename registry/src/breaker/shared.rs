//! What all breakers of a registry share: its clock, its announcer, and how it was built.

use std::sync::Arc;

use crate::{
    clock::{Clock, WallClock},
    event::Announcer,
    store::{Store, handle::StoreHandle},
};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) announcer: Announcer,
    /// Every call is measured, whether its policy needs that or not.
    pub(crate) measured: bool,
    /// Where the jitter of this registry's breakers begins.
    pub(crate) seed: u64,
    /// Where breakers are remembered and shared, if anywhere.
    pub(crate) store_handle: Option<Arc<StoreHandle>>,
}

impl Shared {
    pub(crate) fn new(
        observers: Vec<Arc<dyn crate::event::Observer>>,
        wall: Arc<dyn WallClock>,
        measured: bool,
        seed: u64,
        store: Option<(Arc<dyn Store>, String)>,
    ) -> Self {
        let clock = Clock::start();
        let store_handle =
            store.map(|(store, process)| Arc::new(StoreHandle::new(store, clock, wall.clone(), process)));
        Self { clock, announcer: Announcer::start(observers, clock, wall), measured, seed, store_handle }
    }
}

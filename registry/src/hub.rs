//! What all breakers of a registry share: its clock, its announcer, and how it was built.

use std::sync::Arc;

use crate::{
    clock::{Clock, WallClock},
    event::Announcer,
    fleet::link::Link,
    store::Store,
};

#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) clock: Clock,
    pub(crate) announcer: Announcer,
    /// Every call is measured, whether its policy needs that or not.
    pub(crate) measured: bool,
    /// Where the jitter of this registry's breakers begins.
    pub(crate) seed: u64,
    /// Where breakers are remembered and shared, if anywhere.
    pub(crate) link: Option<Arc<Link>>,
}

impl Hub {
    pub(crate) fn new(
        observers: Vec<Arc<dyn crate::event::Observer>>,
        wall: Arc<dyn WallClock>,
        measured: bool,
        seed: u64,
        store: Option<(Arc<dyn Store>, String)>,
    ) -> Self {
        let clock = Clock::start();
        let link = store.map(|(store, process)| Arc::new(Link::new(store, clock, wall.clone(), process)));
        Self { clock, announcer: Announcer::start(observers, clock, wall), measured, seed, link }
    }
}

/// A small generator of uniform draws (SplitMix64): all that jitter needs, and reproducible from its seed.
#[derive(Debug, Clone)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

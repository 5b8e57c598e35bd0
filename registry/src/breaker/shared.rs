//! What all breakers of a registry share: its clock, its announcer, its store, and how it was built.

use std::sync::Arc;

use super::store_port::StorePort;
use crate::{
    clock::{Clock, WallTime},
    event::Announcer,
};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    /// For views; no call reads it.
    pub(crate) wall: WallTime,
    pub(crate) announcer: Announcer,
    /// Every call is measured, whether its policy needs that or not.
    pub(crate) measured: bool,
    /// Where the jitter of this registry's breakers begins.
    pub(crate) seed: u64,
    /// Where breakers are remembered and shared, if anywhere.
    pub(crate) store: Option<Arc<dyn StorePort>>,
}

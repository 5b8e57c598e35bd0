//! One breaker in many processes.
//!
//! Each process has its own breakers and decides by them. The processes share one record per breaker in a
//! [store](crate::store).
//!
//! | file | job |
//! |---|---|
//! | [`merge`] | pure: the record after a process adds its change |
//! | [`record_codec`] | translates between the state of a breaker and its record |
//! | [`pending_write`] | a change of one breaker on its way into its record |
//! | [`lease`] | the two questions that a call may ask the store: may I probe, is there a token |
//! | [`store_sync`] | the task that talks to the store, beside the calls; its parts are [`snapshots`], [`publisher`], [`receiver`], [`helper`] and [`restore`] |
//! | `port` | what a breaker needs of the store |

mod helper;
pub(crate) mod lease;
mod merge;
mod pending_write;
mod port;
mod publisher;
mod receiver;
mod record_codec;
mod restore;
#[cfg(feature = "temporal-plugin")]
pub(crate) mod shared_task;
mod snapshots;
pub(crate) mod store_sync;

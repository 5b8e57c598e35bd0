//! One breaker in many processes.
//!
//! Each process has breakers of its own and decides by them; what they share is a record per breaker in a
//! [store](crate::store). The rules of sharing are pure: [`merge`] says what becomes of a record when a process has something
//! to add. The [`store_handle`] connects breakers to a store, [`record_codec`] translates between a breaker and its record, and
//! [`store_sync`] does the work, beside the calls.

mod helper;
pub(crate) mod lease;
pub(crate) mod merge;
pub(crate) mod message;
mod port;
pub(crate) mod record_codec;
mod restore;
pub(crate) mod store_handle;
pub(crate) mod store_sync;

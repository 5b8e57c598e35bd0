//! One breaker in many processes.
//!
//! Each process has breakers of its own and decides by them; what they share is a record per breaker in a
//! [store](crate::store). The rules of sharing are pure: [`merge`] says what becomes of a record when a process has something
//! to add, [`share`] what a process may do without asking and what it has to [`ask`]. The [`link`] connects breakers to a store,
//! [`member`] translates between a breaker and its record, and the [`keeper`] does the work, beside the calls.

pub(crate) mod ask;
mod helper;
pub(crate) mod keeper;
pub(crate) mod link;
pub(crate) mod member;
pub(crate) mod merge;
pub(crate) mod message;
pub(crate) mod quota;
mod restore;
pub(crate) mod share;

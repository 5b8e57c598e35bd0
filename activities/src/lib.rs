//! The upstreams of an OSINT/KYB investigation as Temporal activities.
//!
//! One row per upstream ([`catalog`]), one client for all of them, pure parsers, one table per upstream that says what its
//! answers mean ([`classify`]). What a workflow needs to plan and to report is plain data ([`model`]).

pub mod activity;
pub mod cache;
pub mod catalog;
pub mod classify;
pub mod client;
pub mod flow;
pub mod identifiers;
pub mod model;
pub mod parse;
pub mod rehearsal;
pub mod source;

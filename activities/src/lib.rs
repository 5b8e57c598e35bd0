//! The upstreams of an OSINT/KYB investigation as Temporal activities.
//!
//! | layer | modules | knows |
//! |---|---|---|
//! | words | [`error`], [`identifiers`], [`names`], [`model`] | plain data |
//! | reading | [`parse`], [`editions`], [`guard`] | formats, files, addresses |
//! | the row's type | [`spec`] | what a source is made of, and no source |
//! | asking | [`classify`], [`client`], [`cache`], [`flow`] | HTTP, breakers, earlier answers |
//! | the rows | [`source`], [`catalog`] | the upstreams, one file each, and the list of them |
//! | edges | [`activity`], [`harness`] | Temporal; flows without upstreams |

pub mod activity;
pub mod cache;
pub mod catalog;
pub mod classify;
pub mod client;
pub mod editions;
pub mod error;
mod files;
pub mod flow;
pub mod guard;
pub mod harness;
pub mod identifiers;
pub mod model;
pub mod names;
#[cfg(test)]
mod oracle;
pub mod parse;
pub mod source;
pub mod spec;

//! Support for the tests that need more than one crate, or a real service.
//!
//! What is here starts real programs and waits for them. It does not cover what a breaker decides (that is tested where
//! it is decided, on a clock that the test holds), nor what an upstream may answer (see the catalog's own suite).

pub mod load;
pub mod test_env;
pub mod wait;
pub mod worker;

/// The README's Rust compiles, as the documentation tests of this item.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

//! Support for the tests that need more than one crate, or a real service.
//!
//! This code starts real programs and waits for them. Decisions of breakers have unit tests in `registry`, with a clock that
//! the test controls. Answers of upstreams have tests in `activities`.

pub mod browser;
pub mod load;
pub mod test_env;
pub mod wait;
pub mod worker;

/// The README's Rust compiles, as the documentation tests of this item.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

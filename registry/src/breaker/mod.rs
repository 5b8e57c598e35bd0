//! One breaker at work: it locks, reads the clock, counts, announces and waits around the pure [`state`](crate::state).

mod admission;
pub(crate) mod call;
pub(crate) mod context;
pub(crate) mod fast_path;
mod handle;
pub(crate) mod histogram;
pub(crate) mod inner;
mod permit;
mod reading;
mod settlement;
pub(crate) mod shared;
pub(crate) mod store_port;
pub(crate) mod sync;
pub(crate) mod table;
mod timer;

pub use handle::Breaker;
pub use permit::Permit;

#[cfg(test)]
mod sequences;

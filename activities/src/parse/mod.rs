//! Readers of bodies, by family. A family knows a format, never an upstream.

pub mod date;
pub mod html;
pub mod json;
pub mod place;
pub mod soap;
pub mod stream;
pub mod text;
pub mod xml;

#[cfg(test)]
pub(crate) mod corruption;

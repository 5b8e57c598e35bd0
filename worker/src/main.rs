//! osint
fn main() {}

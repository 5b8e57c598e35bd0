//! Files of `fixtures/`, embedded.

/// A file of `fixtures/`, embedded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixture {
    /// The path below `fixtures/`.
    pub(crate) path: &'static str,
    /// What is in it.
    pub(crate) bytes: &'static [u8],
}

/// Embeds files of `fixtures/`; each is named once, in the spec of the upstream that serves it.
macro_rules! fixtures {
    ($($path:literal),* $(,)?) => {
        &[$($crate::spec::Fixture {
            path: $path,
            bytes: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/", $path)),
        }),*]
    };
}
pub(crate) use fixtures;

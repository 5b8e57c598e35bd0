//! Checksums, as upstreams publish them beside their downloads.

use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

/// The SHA-1 of a document, in hexadecimal.
pub(crate) fn sha1(document: &[u8]) -> String {
    hex(&SHA1_FOR_LEGACY_USE_ONLY, document)
}

/// The SHA-256 of a document, in hexadecimal.
pub(crate) fn sha256(document: &[u8]) -> String {
    hex(&SHA256, document)
}

fn hex(algorithm: &'static Algorithm, document: &[u8]) -> String {
    digest(algorithm, document).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

//! A hash that is the same in every process, release and machine, which the standard library's is not.

/// Where a hash begins.
pub(crate) const BASIS: u64 = 0xCBF2_9CE4_8422_2325;

/// FNV-1a, going on from `hash`.
pub(crate) fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3))
}

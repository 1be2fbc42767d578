//! Sizes in Identify Namespace that a host should know to write well: what is atomic, and what is fast.
//!
//! All are counts of logical blocks, 0-based where zero blocks mean nothing. Linux makes the physical block size of the smaller
//! of NPWG and NAWUPF, because file systems take a physical block for atomic. Source: NVMe base 1.4 figure 245 and section
//! 6.4.

use crate::wire::{put, u16_at};

/// Bit 1 of NSFEAT (NSABP): [`AtomicSizes`] hold for this namespace, not those of the controller.
pub const NSFEAT_ATOMIC_SIZES: u8 = 1 << 1;
/// Bit 4 of NSFEAT (OPTPERF): [`PreferredSizes`] are given.
pub const NSFEAT_PREFERRED_SIZES: u8 = 1 << 4;

/// How much is written as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtomicSizes {
    /// NAWUN, 0-based: no other command sees a part of so many blocks.
    pub nawun: u16,
    /// NAWUPF, 0-based: nor does one after a power cut.
    pub nawupf: u16,
    /// NABSN, 0-based: a write that crosses a multiple of so many blocks is not atomic by NAWUN; 0 for none.
    pub nabsn: u16,
    /// NABO: the blocks before the first multiple.
    pub nabo: u16,
    /// NABSPF, 0-based: as NABSN, of NAWUPF.
    pub nabspf: u16,
}

/// What costs nothing on top.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreferredSizes {
    /// NPWG, 0-based: writes should be a multiple of so many blocks.
    pub npwg: u16,
    /// NPWA, 0-based: and begin at one.
    pub npwa: u16,
    /// NPDG, 0-based: so should what is deallocated.
    pub npdg: u16,
    /// NPDA, 0-based: and begin at one.
    pub npda: u16,
    /// NOWS, 0-based: the best size of a write.
    pub nows: u16,
}

impl AtomicSizes {
    pub(super) fn decode(bytes: &[u8; 4096]) -> Self {
        // NACWU, bytes 38 and 39, is of fused commands.
        let [nawun, nawupf, _, nabsn, nabo, nabspf] = [34, 36, 38, 40, 42, 44].map(|at| u16_at(bytes, at));
        Self { nawun, nawupf, nabsn, nabo, nabspf }
    }

    pub(super) fn encode(self, bytes: &mut [u8; 4096]) {
        let Self { nawun, nawupf, nabsn, nabo, nabspf } = self;
        for (at, value) in [(34, nawun), (36, nawupf), (40, nabsn), (42, nabo), (44, nabspf)] {
            put(bytes, at, &value.to_le_bytes());
        }
    }
}

impl PreferredSizes {
    pub(super) fn decode(bytes: &[u8; 4096]) -> Self {
        let [npwg, npwa, npdg, npda, nows] = [64, 66, 68, 70, 72].map(|at| u16_at(bytes, at));
        Self { npwg, npwa, npdg, npda, nows }
    }

    pub(super) fn encode(self, bytes: &mut [u8; 4096]) {
        let Self { npwg, npwa, npdg, npda, nows } = self;
        for (at, value) in [(64, npwg), (66, npwa), (68, npdg), (70, npda), (72, nows)] {
            put(bytes, at, &value.to_le_bytes());
        }
    }
}

//! Identify Namespace (CNS 00h), 4096 bytes.
//!
//! On an open-channel drive NSZE is the whole address space, holes included, and NCAP the blocks that exist. Byte
//! 384, the first vendor byte, is 1 for drives that Linux's LightNVM should take. Source: NVMe base 1.4 figure 245;
//! OCSSD 2.0.

use super::namespace_sizes::{AtomicSizes, PreferredSizes};
use crate::wire::{ShortInput, array_at, bit, fixed, flag, put, u16_at, u64_at, u128_at};
use std::fmt;

/// What a namespace is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifyNamespace {
    /// Size of the address space in logical blocks.
    pub nsze: u64,
    /// Blocks that can be in use.
    pub ncap: u64,
    /// Blocks in use.
    pub nuse: u64,
    /// Features. Bit 1: `atomic` is given; bit 2: DULBE is supported; bit 4: `preferred` is given.
    pub nsfeat: u8,
    /// The formats on offer, 1 to 16; their number less one is NLBAF.
    pub lbaf: Vec<LbaDataFormat>,
    /// FLBAS bits 3:0: the format in use, an index into `lbaf`.
    pub format_index: u8,
    /// FLBAS bit 4: metadata follows each block's data instead of having its own buffer. pblk refuses this.
    pub extended_lba: bool,
    /// Metadata capabilities. Bit 0: extended LBAs; bit 1: own buffer.
    pub mc: u8,
    /// NMIC. Bit 0: several controllers may have it.
    pub nmic: u8,
    /// NSATTR. Bit 0: write protected.
    pub nsattr: u8,
    /// Protection capabilities.
    pub dpc: u8,
    /// Protection in use.
    pub dps: u8,
    /// DLFEAT bits 2:0: what reads of deallocated blocks return.
    pub deallocated_read: DeallocatedRead,
    /// What is written as one.
    pub atomic: AtomicSizes,
    /// What is fast.
    pub preferred: PreferredSizes,
    /// NVM capacity in bytes.
    pub nvmcap_bytes: u128,
    /// Globally unique identifier; zero is none.
    pub nguid: [u8; 16],
    /// IEEE extended unique identifier; zero is none.
    pub eui64: [u8; 8],
    /// Byte 384 is 1: an open-channel drive for Linux's LightNVM.
    pub lightnvm: bool,
}

/// One LBA format: block size and metadata size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LbaDataFormat {
    /// MS: metadata bytes per block.
    pub ms_bytes: u16,
    /// LBADS: block size as a power of two, at least 9 when the format can be used; 0 when it cannot.
    pub lbads: u8,
    /// RP: relative performance, 0 is best.
    pub rp: u8,
}

/// What a read of a deallocated or unwritten block returns, DLFEAT bits 2:0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeallocatedRead {
    /// 000b: not said.
    #[default]
    NotReported,
    /// 001b: bytes of 00h.
    Zeros,
    /// 010b: bytes of FFh.
    Ones,
    /// 011b to 111b.
    Reserved(u8),
}

/// Why bytes are not an Identify Namespace structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceError {
    /// The input ends too early.
    Short(ShortInput),
    /// NLBAF says more formats than the table has.
    FormatCount {
        /// NLBAF as found, 0-based.
        nlbaf: u8,
    },
    /// FLBAS selects a format that is not on offer.
    FormatIndex {
        /// The index found.
        index: u8,
        /// How many formats there are.
        format_count: usize,
    },
}

/// Formats in the table (NVMe base 1.4: LBAF0 to LBAF15).
const FORMATS_MAX: usize = 16;

impl fmt::Display for NamespaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(short) => short.fmt(f),
            Self::FormatCount { nlbaf } => write!(
                f,
                "NLBAF (byte 25) of Identify Namespace should be at most 15, but it is {nlbaf}; the structure is damaged"
            ),
            Self::FormatIndex { index, format_count } => write!(
                f,
                "FLBAS (byte 26) of Identify Namespace should select one of {format_count} formats, but it selects number \
                 {index}; the structure is damaged"
            ),
        }
    }
}

impl std::error::Error for NamespaceError {}

impl LbaDataFormat {
    /// Block size in bytes, or `None` if the format cannot be used.
    pub fn block_bytes(&self) -> Option<u64> {
        if (9..64).contains(&self.lbads) { Some(1 << self.lbads) } else { None }
    }
}

impl DeallocatedRead {
    fn from_bits(bits: u8) -> Self {
        match bits & 7 {
            0 => Self::NotReported,
            1 => Self::Zeros,
            2 => Self::Ones,
            reserved => Self::Reserved(reserved),
        }
    }

    fn to_bits(self) -> u8 {
        match self {
            Self::NotReported => 0,
            Self::Zeros => 1,
            Self::Ones => 2,
            Self::Reserved(bits) => bits & 7,
        }
    }
}

impl IdentifyNamespace {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;

    /// The format in use.
    ///
    /// # Panics
    /// If `format_index` selects none; a decoded structure always selects one.
    pub fn format(&self) -> LbaDataFormat {
        self.lbaf[usize::from(self.format_index)]
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`NamespaceError`], in the order of its variants.
    pub fn decode(bytes: &[u8]) -> Result<Self, NamespaceError> {
        let bytes = fixed::<{ Self::BYTES }>("Identify Namespace", bytes).map_err(NamespaceError::Short)?;
        let format_count = usize::from(bytes[25]) + 1;
        if format_count > FORMATS_MAX {
            return Err(NamespaceError::FormatCount { nlbaf: bytes[25] });
        }
        let format_index = bytes[26] & 0xF;
        if usize::from(format_index) >= format_count {
            return Err(NamespaceError::FormatIndex { index: format_index, format_count });
        }
        let format = |index: usize| {
            let at = 128 + 4 * index;
            LbaDataFormat { ms_bytes: u16_at(bytes, at), lbads: bytes[at + 2], rp: bytes[at + 3] & 3 }
        };
        Ok(Self {
            nsze: u64_at(bytes, 0),
            ncap: u64_at(bytes, 8),
            nuse: u64_at(bytes, 16),
            nsfeat: bytes[24],
            lbaf: (0..format_count).map(format).collect(),
            format_index,
            extended_lba: bit(bytes[26].into(), 4),
            mc: bytes[27],
            dpc: bytes[28],
            dps: bytes[29],
            nmic: bytes[30],
            nsattr: bytes[99],
            deallocated_read: DeallocatedRead::from_bits(bytes[33]),
            atomic: AtomicSizes::decode(bytes),
            preferred: PreferredSizes::decode(bytes),
            nvmcap_bytes: u128_at(bytes, 48),
            nguid: array_at(bytes, 104),
            eui64: array_at(bytes, 120),
            lightnvm: bytes[384] == 1,
        })
    }

    /// The 4096 bytes.
    ///
    /// # Panics
    /// If there are not 1 to 16 formats, or `format_index` selects none of them.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let count = self.lbaf.len();
        assert!(
            (1..=FORMATS_MAX).contains(&count),
            "a namespace has 1 to {FORMATS_MAX} formats, not {count}"
        );
        assert!(usize::from(self.format_index) < count, "format {} of {count}", self.format_index);
        let nlbaf = u8::try_from(count - 1).expect("at most 15");
        let [flbas_flag, ..] = flag(self.extended_lba, 4).to_le_bytes();
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.nsze.to_le_bytes());
        put(&mut bytes, 8, &self.ncap.to_le_bytes());
        put(&mut bytes, 16, &self.nuse.to_le_bytes());
        put(
            &mut bytes,
            24,
            &[self.nsfeat, nlbaf, self.format_index | flbas_flag, self.mc, self.dpc, self.dps],
        );
        bytes[30] = self.nmic;
        bytes[33] = self.deallocated_read.to_bits();
        bytes[99] = self.nsattr;
        self.atomic.encode(&mut bytes);
        self.preferred.encode(&mut bytes);
        put(&mut bytes, 48, &self.nvmcap_bytes.to_le_bytes());
        put(&mut bytes, 104, &self.nguid);
        put(&mut bytes, 120, &self.eui64);
        for (index, format) in self.lbaf.iter().enumerate() {
            let [ms_low, ms_high] = format.ms_bytes.to_le_bytes();
            put(&mut bytes, 128 + 4 * index, &[ms_low, ms_high, format.lbads, format.rp & 3]);
        }
        bytes[384] = u8::from(self.lightnvm);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> [u8; 4096] {
        let mut bytes = [0; 4096];
        bytes[3] = 0x20; // NSZE 2^29
        bytes[8] = 5;
        bytes[16] = 4;
        bytes[24..30].copy_from_slice(&[0x04, 1, 0x11, 2, 3, 4]);
        bytes[30] = 6;
        bytes[33] = 1;
        bytes[34..38].copy_from_slice(&[1, 0, 2, 0]);
        bytes[40..46].copy_from_slice(&[3, 0, 4, 0, 5, 0]);
        bytes[48] = 9;
        bytes[64..74].copy_from_slice(&[6, 0, 7, 0, 8, 0, 9, 0, 10, 1]);
        bytes[99] = 7;
        bytes[104] = 0xAA;
        bytes[127] = 0xBB;
        bytes[130] = 9;
        bytes[132..136].copy_from_slice(&[16, 0, 12, 2]);
        bytes[384] = 1;
        bytes
    }

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let id = IdentifyNamespace::decode(&bytes()).expect("a valid structure");
        assert_eq!((id.nsze, id.ncap, id.nuse, id.nsfeat), (1 << 29, 5, 4, 4));
        assert_eq!(id.lbaf[0], LbaDataFormat { ms_bytes: 0, lbads: 9, rp: 0 });
        assert_eq!(id.format(), LbaDataFormat { ms_bytes: 16, lbads: 12, rp: 2 });
        assert_eq!(id.format().block_bytes(), Some(4096));
        assert_eq!((id.extended_lba, id.mc, id.dpc, id.dps), (true, 2, 3, 4));
        assert_eq!((id.deallocated_read, id.nvmcap_bytes), (DeallocatedRead::Zeros, 9));
        assert_eq!((id.nmic, id.nsattr), (6, 7));
        assert_eq!(id.atomic, AtomicSizes { nawun: 1, nawupf: 2, nabsn: 3, nabo: 4, nabspf: 5 });
        assert_eq!(id.preferred, PreferredSizes { npwg: 6, npwa: 7, npdg: 8, npda: 9, nows: 0x10A });
        assert_eq!((id.nguid[0], id.eui64[7], id.lightnvm), (0xAA, 0xBB, true));
        assert_eq!(id.encode(), bytes());
    }

    #[test]
    fn an_inactive_namespace_is_all_zeros_and_has_no_block_size() {
        let id = IdentifyNamespace::decode(&[0; 4096]).expect("zeros are legal");
        assert_eq!(id.format().block_bytes(), None);
    }

    #[test]
    fn impossible_formats_are_refused_with_a_sentence() {
        for (offset, value, says) in [(25, 16, "it is 16"), (26, 2, "number 2")] {
            let mut bytes = bytes();
            bytes[offset] = value;
            let error = IdentifyNamespace::decode(&bytes).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(matches!(IdentifyNamespace::decode(&[0; 64]), Err(NamespaceError::Short(_))));
    }
}

//! Statuses as a completion carries them: status code type and code, `SCT << 8 | SC`.

/// A completion status. Zero is success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u16);

impl Status {
    /// The command did what was asked.
    pub const SUCCESS: Self = Self(0x000);
    /// The opcode is not known.
    pub const INVALID_OPCODE: Self = Self(0x001);
    /// A field has an illegal value.
    pub const INVALID_FIELD: Self = Self(0x002);
    /// The drive itself failed, for instance its backing file.
    pub const INTERNAL_ERROR: Self = Self(0x006);
    /// An address is beyond what the namespace has.
    pub const LBA_OUT_OF_RANGE: Self = Self(0x080);
    /// OCSSD 2.0: the chunk cannot be written.
    pub const WRITE_FAULT: Self = Self(0x280);
    /// OCSSD 2.0: the data could not be recovered.
    pub const UNRECOVERED_READ: Self = Self(0x281);
    /// OCSSD 2.0: nothing readable is stored there (with DULBE).
    pub const UNWRITTEN: Self = Self(0x287);
    /// OCSSD 2.0: the chunk is, or has gone, offline.
    pub const OFFLINE_CHUNK: Self = Self(0x2C0);
    /// OCSSD 2.0: a chunk in this state cannot be reset.
    pub const INVALID_RESET: Self = Self(0x2C1);
    /// OCSSD 2.0: the data came back, but error correction was near its limit. Data is valid.
    pub const HIGH_ECC: Self = Self(0x2D0);
    /// OCSSD 2.0: the write unit failed; go on at the next one.
    pub const WRITE_NEXT_UNIT: Self = Self(0x2F0);
    /// OCSSD 2.0: the chunk was closed before its end.
    pub const EARLY_CLOSE: Self = Self(0x2F1);
    /// OCSSD 2.0: the write does not start at the write pointer.
    pub const OUT_OF_ORDER: Self = Self(0x2F2);

    /// True for success only; High ECC is not, though its data is valid.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::SUCCESS
    }

    /// True if a read's data is valid.
    #[must_use]
    pub fn has_data(self) -> bool {
        self == Self::SUCCESS || self == Self::HIGH_ECC
    }
}

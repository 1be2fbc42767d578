//! Completion status: what a drive answers, with a name and a meaning for every code.
//!
//! A status is a type (SCT, 3 bits) and a code (SC, 8 bits). People and drivers write both as one number,
//! `SCT << 8 | SC`: an out-of-order write is 2F2h. Deliberately not here: the flags a completion adds above it
//! (`nvme`). Sources: NVMe base 1.4 section 4.6.1; OCSSD 2.0 section 4 status tables; OCSSD 1.2 and the values Linux
//! knew.

mod table;

use std::fmt;

/// A completion status, `SCT << 8 | SC`, 11 bits; never holds the flags above bit 10. Zero is success.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u16);

impl Status {
    /// The status in the low 11 bits of `value`; the flags above are dropped.
    #[must_use]
    pub const fn from_bits(value: u16) -> Self {
        Self(value & 0x7FF)
    }

    /// `SCT << 8 | SC`.
    #[must_use]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// Status code type: 0 generic, 1 command specific, 2 media and data integrity, 3 path, 7 vendor.
    #[must_use]
    pub const fn sct(self) -> u8 {
        self.0.to_le_bytes()[1]
    }

    /// Status code within its type.
    #[must_use]
    pub const fn sc(self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    /// True for success only; High ECC is not, though its data is valid.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::SUCCESS
    }

    /// True if a read's data is valid: success, and High ECC in its 2.0 and 1.2 form.
    #[must_use]
    pub fn has_data(self) -> bool {
        matches!(self, Self::SUCCESS | Self::HIGH_ECC | Self::HIGH_ECC_12)
    }

    /// True if a whole that ended with this status so far ends with `part` once a part of it ended so: the first failure
    /// names the whole, and High ECC, which comes with the data, gives way to any.
    #[must_use]
    pub fn gives_way_to(self, part: Self) -> bool {
        self.has_data() && if part.has_data() { self.is_success() && !part.is_success() } else { true }
    }

    /// True if the drive itself cannot keep what is written, wherever that is: an internal error, or no room below the
    /// drive. No chunk is to blame and none moved on, so a target stops changing anything; reads go on.
    #[must_use]
    pub fn is_drive_failure(self) -> bool {
        matches!(self, Self::INTERNAL_ERROR | Self::CAPACITY_EXCEEDED)
    }

    /// The name in the specification, or the kind of code when it is not known.
    #[must_use]
    pub fn name(self) -> &'static str {
        table::find(self).map_or_else(|| table::kind_name(self.sct()), |entry| entry.name)
    }

    /// One sentence: what happened and what the host may do about it.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        table::find(self)
            .map_or("No specification this project knows defines this code.", |entry| entry.meaning)
    }

    /// Every status with a name, ascending.
    pub fn all() -> impl Iterator<Item = Self> {
        table::TABLE.iter().map(|entry| entry.status)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03X}h {}", self.0, self.name())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_and_code_come_apart() {
        let status = Status::OUT_OF_ORDER;
        assert_eq!((status.sct(), status.sc(), status.to_bits()), (2, 0xF2, 0x2F2));
        assert_eq!(status.to_string(), "2F2h Out of Order Write");
    }

    #[test]
    fn flags_above_the_code_are_dropped() {
        assert_eq!(Status::from_bits(0x42F2), Status::OUT_OF_ORDER);
    }

    #[test]
    fn an_unknown_code_still_has_a_name_and_a_meaning() {
        let unknown = Status::from_bits(0x2C7);
        assert_eq!(unknown.name(), "unknown media and data integrity error");
        assert!(unknown.meaning().contains("defines"));
    }

    #[test]
    fn the_first_failure_names_the_whole_and_high_ecc_gives_way() {
        let (fine, weak, lost) = (Status::SUCCESS, Status::HIGH_ECC, Status::UNRECOVERED_READ);
        let whole = |parts: &[Status]| {
            parts.iter().fold(fine, |so_far, &part| if so_far.gives_way_to(part) { part } else { so_far })
        };
        assert_eq!([whole(&[fine, fine]), whole(&[fine, weak, fine])], [fine, weak]);
        assert_eq!([whole(&[weak, lost, weak]), whole(&[lost, weak])], [lost, lost]);
        assert_eq!(whole(&[weak, Status::UNWRITTEN, lost]), Status::UNWRITTEN);
    }

    #[test]
    fn a_failure_of_the_drive_is_none_of_a_chunk() {
        let of_drive: Vec<Status> = Status::all().filter(|status| status.is_drive_failure()).collect();
        assert_eq!(of_drive, [Status::INTERNAL_ERROR, Status::CAPACITY_EXCEEDED]);
    }

    #[test]
    fn high_ecc_returns_data() {
        assert!(Status::HIGH_ECC.has_data() && Status::HIGH_ECC_12.has_data() && Status::SUCCESS.has_data());
        assert!(!Status::UNWRITTEN.has_data() && !Status::HIGH_ECC.is_success());
    }
}

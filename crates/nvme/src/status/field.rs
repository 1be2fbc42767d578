//! The 15-bit status field of a completion: the status plus the flags above it.
//!
//! ```text
//! bit  14   13    12:11  10:8  7:0
//!      DNR  More  CRD    SCT   SC
//! ```
//! This is the number Linux and liblightnvm compare: 42FFh is 2FFh with DNR. Source: NVMe base 1.4 section 4.6.1.

use super::Status;
use std::fmt;

const DNR: u16 = 1 << 14;
const MORE: u16 = 1 << 13;

/// A status and its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusField {
    /// What happened.
    pub status: Status,
    /// Command Retry Delay: 0 none, 1 to 3 select a delay from Identify Controller. Higher bits are not sent.
    pub crd: u8,
    /// More: the error log holds details.
    pub more: bool,
    /// Do Not Retry: the same command would fail again.
    pub dnr: bool,
}

impl StatusField {
    /// Success, no flags.
    pub const SUCCESS: Self = Self { status: Status::SUCCESS, crd: 0, more: false, dnr: false };

    /// The answer to a command that breaks a rule: retrying cannot help, so DNR is set.
    pub const fn rule(status: Status) -> Self {
        Self { status, crd: 0, more: false, dnr: true }
    }

    /// A failure of the moment, such as a media error: retrying may help.
    pub const fn retry(status: Status) -> Self {
        Self { status, crd: 0, more: false, dnr: false }
    }

    /// What a 1.2 drive sends for `status`: Linux compares four of its codes together with DNR (42FFh, 4281h, 4004h,
    /// 4700h), and 40FFh goes with them, so those five always carry it.
    pub fn for_ocssd12(status: Status) -> Self {
        Self { status, crd: 0, more: false, dnr: OCSSD12_WITH_DNR.contains(&status) }
    }

    /// From the field's 15 bits; bit 15 is ignored.
    pub fn from_bits(bits: u16) -> Self {
        let [_, high] = bits.to_le_bytes();
        Self {
            status: Status::from_bits(bits),
            crd: high >> 3 & 3,
            more: bits & MORE != 0,
            dnr: bits & DNR != 0,
        }
    }

    /// The field's 15 bits.
    pub fn to_bits(self) -> u16 {
        let dnr = if self.dnr { DNR } else { 0 };
        let more = if self.more { MORE } else { 0 };
        dnr | more | u16::from(self.crd & 3) << 11 | self.status.to_bits()
    }
}

/// The 1.2 codes that a host recognises only with DNR set (Linux `lightnvm.h`, values 42FFh, 40FFh, 4281h, 4004h,
/// 4700h).
pub const OCSSD12_WITH_DNR: [Status; 5] = [
    Status::EMPTY_PAGE_12,
    Status::WRITE_FAIL_12,
    Status::UNRECOVERED_READ,
    Status::DATA_TRANSFER_ERROR,
    Status::HIGH_ECC_12,
];

impl fmt::Display for StatusField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        if self.dnr {
            f.write_str(", do not retry")?;
        }
        if self.more {
            f.write_str(", more in the error log")?;
        }
        if self.crd > 0 {
            write!(f, ", retry delay {}", self.crd)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_value_round_trips() {
        for bits in 0..0x8000 {
            assert_eq!(StatusField::from_bits(bits).to_bits(), bits);
        }
    }

    #[test]
    fn the_1_2_codes_are_what_linux_compares() {
        let wire: Vec<_> = OCSSD12_WITH_DNR.map(|s| StatusField::for_ocssd12(s).to_bits()).to_vec();
        assert_eq!(wire, [0x42FF, 0x40FF, 0x4281, 0x4004, 0x4700]);
        assert_eq!(StatusField::for_ocssd12(Status::SUCCESS).to_bits(), 0);
    }

    #[test]
    fn a_broken_rule_says_do_not_retry() {
        let field = StatusField::rule(Status::WRITE_FAULT);
        assert_eq!(field.to_bits(), 0x4280);
        assert_eq!(field.to_string(), "280h Write Fault, do not retry");
    }
}

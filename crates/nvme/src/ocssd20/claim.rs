//! Claim Drive (E0h): an open-channel drive for one host alone, and how its commands travel then. This project's own.
//!
//! OCSSD 2.0 names lists of addresses and metadata by pointers, which a capsule of NVMe over Fabrics cannot carry, and knows
//! one host. While a drive is claimed
//! - vector commands of several addresses are resets, reads and writes of as many that follow the first;
//! - the data of reads and writes is all sectors, and behind them the metadata of all;
//! - other hosts' I/O commands end with 083h, Reservation Conflict.
//!
//! ```text
//! CDW10  31:0  which conventions, 1 for these; 0 gives the drive up     completion DW0  bytes of metadata of a sector
//! ```

use crate::opcode::IoOpcode;
use crate::sqe::Sqe;

/// What a host wants of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is for others again.
    GiveUp,
    /// It is for this host, under the conventions above.
    Take,
}

impl Claim {
    /// The view of a Claim Drive entry; `None` of conventions that are not known.
    pub fn of(sqe: &Sqe) -> Option<Self> {
        match sqe.cdw10 {
            0 => Some(Self::GiveUp),
            1 => Some(Self::Take),
            _ => None,
        }
    }
}

impl Sqe {
    /// Claim Drive.
    pub fn claim_drive(nsid: u32, claim: Claim) -> Self {
        let cdw10 = match claim {
            Claim::GiveUp => 0,
            Claim::Take => 1,
        };
        Self { opcode: IoOpcode::CLAIM_DRIVE.0, nsid, cdw10, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_says_by_which_conventions() {
        let bytes = Sqe::claim_drive(3, Claim::Take).encode();
        assert_eq!((bytes[0], bytes[4], &bytes[40..44]), (0xE0, 3, &[1, 0, 0, 0][..]));
        for claim in [Claim::Take, Claim::GiveUp] {
            assert_eq!(Claim::of(&Sqe::claim_drive(1, claim)), Some(claim));
        }
        assert_eq!(Claim::of(&Sqe { cdw10: 2, ..Sqe::claim_drive(1, Claim::Take) }), None);
    }
}

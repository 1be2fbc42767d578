//! What stands before the zone descriptors of a report: how many there are.
//!
//! Source: ZNS 1.1 figure "Report Zones Data Structure".

use crate::wire::{ShortInput, fixed, put, u64_at};

/// The first 64 bytes of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportHeader {
    /// Number of zones: of those in the buffer if the report is partial, else of all that were asked for.
    pub zone_count: u64,
}

impl ReportHeader {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 64;

    /// From the first 64 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("the header of a zone report", bytes)?;
        Ok(Self { zone_count: u64_at(bytes, 0) })
    }

    /// The 64 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.zone_count.to_le_bytes());
        bytes
    }
}

const _: () = assert!(
    ReportHeader::BYTES == ocssd_lightnvm::interface::zoned::DESCRIPTOR_BYTES,
    "a header takes the place of a descriptor"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_number_and_zeroes() {
        let header = ReportHeader { zone_count: 0x0102 };
        assert_eq!((header.encode()[..3].to_vec(), header.encode().len()), (vec![2, 1, 0], 64));
        assert_eq!(ReportHeader::decode(&header.encode()), Ok(header));
        assert!(ReportHeader::decode(&[0; 63]).is_err());
    }
}

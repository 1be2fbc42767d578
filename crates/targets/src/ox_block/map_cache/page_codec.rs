//! A page as it lies on media: its entries, and beside them a tag with its number and the newest transaction that it has.
//!
//! Where payload is stamps the stamp is the checksum of the entries, so that the tag's covers them. Deliberately not here: what
//! entries mean, and where pages lie.

use super::pages::PageNumber;
use ocssd_ftl::log::TransactionId;
use ocssd_ftl::{Kind, SectorTag, Sequence, TAG_BYTES, checksum};
use ocssd_lightnvm::{BufId, Buffers};

/// Writes the tag of a page whose entries are in a sector.
pub fn encode(page: PageNumber, applied: TransactionId, (buffer, at): (BufId, u32), buffers: &mut Buffers) {
    let sum = checksum(buffers.whole(buffer, at, 1)).to_le_bytes();
    let is_stamp = buffers.data(buffer, at, 1).len() < buffers.whole(buffer, at, 1).len();
    let (data, oob) = buffers.sectors_mut(buffer, at, 1);
    if is_stamp {
        data.fill(0);
        data[..4].copy_from_slice(&sum);
    }
    let tag = SectorTag { kind: Kind::MapPage, block: u64::from(page.0), sequence: Sequence(applied.0) };
    oob.fill(0);
    oob[..TAG_BYTES].copy_from_slice(&tag.encode(data));
    assert_eq!(decode(page, (buffer, at), buffers), Some(applied), "{page:?} is not what was encoded");
}

/// The newest transaction that a page has; none if the sector does not hold it.
pub fn decode(page: PageNumber, (buffer, at): (BufId, u32), buffers: &Buffers) -> Option<TransactionId> {
    let (data, whole) = (buffers.data(buffer, at, 1), buffers.whole(buffer, at, 1));
    let tag = SectorTag::decode(buffers.oob(buffer, at, 1), data).ok()?;
    let is_it = tag.kind == Kind::MapPage && tag.block == u64::from(page.0);
    let is_whole = data.len() == whole.len() || data[..4] == checksum(whole).to_le_bytes();
    (is_it && is_whole).then_some(TransactionId(tag.sequence.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};

    #[test]
    fn a_page_is_known_by_its_number_and_content_with_stamps_and_with_bytes() {
        for payload in [Payload::Stamp, Payload::Bytes] {
            let mut buffers = Buffers::new(PayloadFormat::new(payload, &Geometry::example(1, 1, 8, 24, 4)));
            let buffer = buffers.take_whole(2);
            buffers.whole_mut(buffer, 1, 1).fill(0x5A);
            encode(PageNumber(7), TransactionId(1 << 40), (buffer, 1), &mut buffers);
            assert_eq!(decode(PageNumber(7), (buffer, 1), &buffers), Some(TransactionId(1 << 40)));
            assert_eq!(decode(PageNumber(8), (buffer, 1), &buffers), None, "another page");
            assert_eq!(decode(PageNumber(7), (buffer, 0), &buffers), None, "another sector");
            buffers.whole_mut(buffer, 1, 1)[100] = 0;
            assert_eq!(decode(PageNumber(7), (buffer, 1), &buffers), None, "other entries");
        }
    }
}

//! What stands beside each sector of pages, and whether a sector that was read is sound.
//!
//! The tag's checksum covers a sector's payload. Where payload is stamps the bytes of pages lie beside them, so the stamp is their
//! checksum. Deliberately not here: which pages a sector has.

use ocssd_ftl::{Kind, SectorTag, Sequence, TAG_BYTES, checksum};
use ocssd_lightnvm::{BufId, Buffers, Payload};

/// Writes a sector's tag, and its stamp where payload is stamps.
pub fn encode((buffer, sector): (BufId, u32), name: u64, sequence: Sequence, buffers: &mut Buffers) {
    assert!(sector < buffers.sectors(buffer), "sector {sector} of a shorter buffer");
    assert!(buffers.is_whole(buffer), "pages lie in stamps");
    if buffers.format().payload == Payload::Stamp {
        let sum = checksum(buffers.whole(buffer, sector, 1));
        let stamp = buffers.data_mut(buffer, sector, 1);
        stamp.fill(0);
        stamp[..4].copy_from_slice(&sum.to_le_bytes());
    }
    let tag = SectorTag { kind: Kind::Data, block: name, sequence };
    let (data, oob) = buffers.sectors_mut(buffer, sector, 1);
    let bytes = tag.encode(data);
    oob.fill(0);
    oob[..TAG_BYTES].copy_from_slice(&bytes);
}

/// True if a sector that was read holds pages, as they were written.
pub fn is_sound((buffer, sector): (BufId, u32), buffers: &Buffers) -> bool {
    let stamp = buffers.data(buffer, sector, 1);
    let tag = SectorTag::decode(buffers.oob(buffer, sector, 1), stamp);
    if !tag.is_ok_and(|tag| tag.kind == Kind::Data) {
        return false;
    }
    buffers.format().payload == Payload::Bytes
        || checksum(buffers.whole(buffer, sector, 1)).to_le_bytes() == stamp[..4]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, PayloadFormat};

    #[test]
    fn a_byte_that_changed_is_found_whatever_payload_is() {
        for payload in [Payload::Stamp, Payload::Bytes] {
            let mut buffers = Buffers::new(PayloadFormat::new(payload, &Geometry::example(1, 1, 2, 8, 4)));
            let buffer = buffers.take_whole(2);
            buffers.whole_mut(buffer, 1, 1).fill(7);
            assert!(!is_sound((buffer, 1), &buffers), "it has no tag");
            encode((buffer, 1), 5, Sequence(9), &mut buffers);
            assert!(is_sound((buffer, 1), &buffers));
            buffers.whole_mut(buffer, 1, 1)[4_000] ^= 1;
            assert!(!is_sound((buffer, 1), &buffers), "{payload:?}");
        }
    }
}

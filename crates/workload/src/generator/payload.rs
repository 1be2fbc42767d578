//! What is written: the number of the thing and of the version, repeated, so that content tells where it belongs.

use ocssd_lightnvm::interface::Piece;
use ocssd_lightnvm::{BufId, Buffers};

/// Sixteen bytes that say which version of which thing they are of.
#[must_use]
pub fn stamp(thing: u64, version: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&thing.to_le_bytes());
    bytes[8..].copy_from_slice(&version.to_le_bytes());
    bytes
}

/// Fills bytes of a whole buffer.
pub fn fill(buffers: &mut Buffers, piece: Piece, thing: u64, version: u64) {
    let stamp = stamp(thing, version);
    let bytes = usize::try_from(piece.bytes).expect("32 bits fit an index");
    let content: Vec<u8> = stamp.iter().copied().cycle().take(bytes).collect();
    piece.scatter(buffers, &content);
}

/// Fills `count` sectors of a buffer, from its first on: of stamps each stamp, else all bytes. The things count upwards.
pub fn fill_sectors(buffers: &mut Buffers, buffer: BufId, count: u32, thing: u64, version: u64) {
    for sector in 0..count {
        let stamp = stamp(thing + u64::from(sector), version);
        for place in buffers.data_mut(buffer, sector, 1).chunks_mut(stamp.len()) {
            place.copy_from_slice(&stamp[..place.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};

    #[test]
    fn content_tells_its_thing_and_version_with_both_payloads() {
        for payload in [Payload::Bytes, Payload::Stamp] {
            let geometry = Geometry::example(1, 1, 4, 24, 24);
            let mut buffers = Buffers::new(PayloadFormat::new(payload, &geometry));
            let (whole, plain) = (buffers.take_whole(1), buffers.take(2));
            fill(&mut buffers, Piece { buffer: whole, first_byte: 5, bytes: 20 }, 7, 9);
            assert_eq!(buffers.whole(whole, 0, 1)[5..21], stamp(7, 9));
            assert_eq!(buffers.whole(whole, 0, 1)[21..26], [7, 0, 0, 0, 0]);
            fill_sectors(&mut buffers, plain, 2, 3, 1);
            assert_eq!(buffers.data(plain, 1, 1)[..16], stamp(4, 1), "{payload:?}");
        }
    }
}

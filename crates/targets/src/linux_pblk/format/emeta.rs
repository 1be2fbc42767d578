//! End metadata: what a full line holds, so that a mount need not read all of it. Written when the next line is open.

use super::error::FormatError;
use super::header::{Header, check_crc, line_at, line_bytes, long, put_crc};
use super::layout::{EMETA_STRUCTURE_BYTES, LineLayout, LineOffset};
use super::oob::ADDR_EMPTY;
use super::parts::LineParts;
use ocssd_base::usize_of;

/// The minor version: `EMETA_VERSION_MINOR`, the first with counters.
pub const EMETA_VERSION_MINOR: u8 = 2;
/// Bytes of an address.
const LBA_BYTES: usize = 8;

/// Sectors written since the instance was made: `struct wa_counters`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaCounters {
    /// For users.
    pub user: u64,
    /// By garbage collection.
    pub gc: u64,
    /// As padding.
    pub pad: u64,
}

/// The end metadata of a line, without its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emeta {
    /// The header.
    pub header: Header,
    /// The line before this one in time; 0 in lines that recovery closed.
    pub prev_id: Option<u32>,
    /// As in smeta; 0 in lines that recovery closed.
    pub seq_nr: u64,
    /// The line opened after this one.
    pub next_id: Option<u32>,
    /// Addresses of the list that are not empty.
    pub nr_valid_lbas: u64,
    /// What was written; of versions before 0.2, nothing.
    pub counters: WaCounters,
}

/// Where the counters are. Linux adds the bitmap's length in bytes to a pointer to words of 8 bytes.
fn counters_at(layout: &LineLayout) -> usize {
    EMETA_STRUCTURE_BYTES + layout.unit_bitmap_bytes() * 8
}

/// The list of addresses in the bytes of end metadata, to be filled before [`Emeta::encode`].
pub fn lba_list_mut<'a>(layout: &LineLayout, bytes: &'a mut [u8]) -> &'a mut [[u8; LBA_BYTES]] {
    let (list, rest) = bytes[layout.list_bytes()].as_chunks_mut();
    assert!(rest.is_empty(), "a list is whole sectors");
    list
}

impl Emeta {
    /// Writes all but the list of addresses, which must lie in `out` already, into the bytes of its sectors. `counts` are
    /// the valid sectors of every line, none of a free one.
    ///
    /// # Panics
    /// If `out` or `counts` is not as long as the layout says.
    pub fn encode(
        &self,
        layout: &LineLayout,
        parts: &LineParts,
        counts: impl ExactSizeIterator<Item = Option<u32>>,
        out: &mut [u8],
    ) {
        assert_eq!(out.len(), layout.emeta_bytes(), "emeta has all bytes of its sectors");
        assert_eq!(counts.len(), usize_of(layout.lines), "there is a count for every line");
        let (structure, lists) = (layout.list_bytes().start, layout.count_bytes());
        out[..structure].fill(0);
        out[lists.start..].fill(0);
        self.header.encode(out);
        out[36..40].copy_from_slice(&line_bytes(self.prev_id));
        out[40..48].copy_from_slice(&self.seq_nr.to_le_bytes());
        out[52..56].copy_from_slice(&line_bytes(self.next_id));
        out[56..64].copy_from_slice(&u64::from(parts.data_sectors).to_le_bytes());
        out[64..72].copy_from_slice(&self.nr_valid_lbas.to_le_bytes());
        for (place, bits) in out[EMETA_STRUCTURE_BYTES..].chunks_exact_mut(8).zip(parts.bad_words()) {
            place.copy_from_slice(&bits.to_le_bytes());
        }
        let WaCounters { user, gc, pad } = self.counters;
        for (place, count) in out[counters_at(layout)..].chunks_exact_mut(8).zip([user, gc, pad]) {
            place.copy_from_slice(&count.to_le_bytes());
        }
        for (place, count) in out[lists].chunks_exact_mut(4).zip(counts) {
            place.copy_from_slice(&count.unwrap_or(u32::MAX).to_le_bytes());
        }
        put_crc(out);
    }

    /// Reads all but the lists from the bytes of its sectors.
    ///
    /// # Errors
    /// As [`FormatError`] says; the checksum, which covers the lists, is looked at first, as in Linux.
    pub fn decode(layout: &LineLayout, bytes: &[u8]) -> Result<Self, FormatError> {
        let (bytes, header) = check_crc(bytes, layout.emeta_bytes())?;
        let at = counters_at(layout);
        let counters = if header.version_minor < EMETA_VERSION_MINOR {
            WaCounters::default()
        } else {
            WaCounters { user: long(bytes, at), gc: long(bytes, at + 8), pad: long(bytes, at + 16) }
        };
        Ok(Self {
            header,
            prev_id: line_at(bytes, 36),
            seq_nr: long(bytes, 40),
            next_id: line_at(bytes, 52),
            nr_valid_lbas: long(bytes, 64),
            counters,
        })
    }

    /// The logical address of a sector, in bytes that were decoded well; `None` if it has none, or if the list does not
    /// reach so far: that is metadata, or bad.
    #[must_use]
    pub fn lba(layout: &LineLayout, bytes: &[u8], offset: LineOffset) -> Option<u64> {
        assert_eq!(bytes.len(), layout.emeta_bytes(), "emeta has all bytes of its sectors");
        let (list, _) = bytes[layout.list_bytes()].as_chunks::<LBA_BYTES>();
        let lba = list.get(usize_of(offset.0)).map(|bytes| u64::from_le_bytes(*bytes))?;
        Some(lba).filter(|&lba| lba != ADDR_EMPTY)
    }
}

#[cfg(test)]
mod tests {
    use super::super::header::{HEADER_BYTES, Uuid};
    use super::*;
    use ocssd_base::Prng;
    use ocssd_lightnvm::{Geometry, PuId};

    fn layout() -> LineLayout {
        let units: Vec<PuId> = (0..8).map(PuId).collect();
        LineLayout::new(&Geometry::example(4, 2, 64, 64, 8), &units).expect("Linux takes it")
    }

    fn emeta() -> Emeta {
        let header = Header { uuid: Uuid([9; 16]), version_minor: EMETA_VERSION_MINOR, id: 5 };
        let counters = WaCounters { user: 0x0A0B, gc: 2, pad: u64::MAX };
        Emeta { header, prev_id: Some(4), seq_nr: 17, next_id: None, nr_valid_lbas: 3, counters }
    }

    fn encoded() -> Vec<u8> {
        let layout = layout();
        let parts = LineParts::new(&layout, |position| position.0 == 2).expect("it is used");
        let mut bytes = vec![0; layout.emeta_bytes()];
        for (offset, place) in lba_list_mut(&layout, &mut bytes).iter_mut().enumerate() {
            let lba = if offset % 2 == 0 { ADDR_EMPTY } else { 1000 + u64::try_from(offset).expect("small") };
            *place = lba.to_le_bytes();
        }
        let counts = (0..64).map(|line| (line % 3 > 0).then_some(line));
        emeta().encode(&layout, &parts, counts, &mut bytes);
        bytes
    }

    #[test]
    fn it_comes_back_with_its_lists_where_linux_has_them() {
        let (layout, bytes) = (layout(), encoded());
        assert_eq!(Emeta::decode(&layout, &bytes), Ok(emeta()));
        assert_eq!(
            bytes[52..64],
            [0xFF, 0xFF, 0xFF, 0xFF, 0xB0, 1, 0, 0, 0, 0, 0, 0],
            "448 - 16 sectors of data"
        );
        assert_eq!(bytes[64..81], [3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[136..144], [0x0B, 0x0A, 0, 0, 0, 0, 0, 0], "counters, eight times too far");
        assert_eq!(bytes[8192..8204], [0xFF, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(Emeta::lba(&layout, &bytes, LineOffset(0)), None);
        assert_eq!(Emeta::lba(&layout, &bytes, LineOffset(7)), Some(1007));
        assert_eq!(Emeta::lba(&layout, &bytes, LineOffset(511)), Some(1511), "the list is whole sectors");
        assert_eq!(Emeta::lba(&layout, &bytes, LineOffset(512)), None, "and no more");
    }

    #[test]
    fn damage_behind_the_header_is_found_and_no_bytes_upset_it() {
        let (layout, sound, seed) = (layout(), encoded(), 6);
        let mut prng = Prng::new(seed);
        for round in 0..200 {
            let mut bytes = sound.clone();
            let at = usize::try_from(prng.below(sound.len() as u64)).expect("small");
            bytes[at] ^= 1 << prng.below(8);
            let decoded = Emeta::decode(&layout, &bytes);
            assert!(at < HEADER_BYTES || decoded.is_err(), "seed {seed}, round {round}: byte {at}");
            // Whatever lies there: an address is looked up and nothing panics.
            let offset = LineOffset(u32::try_from(prng.below(1 << 32)).expect("32 bits"));
            let _: Option<u64> = Emeta::lba(&layout, &bytes, offset);
        }
        assert!(matches!(Emeta::decode(&layout, &sound[1..]), Err(FormatError::Short { .. })));
        assert!(matches!(Emeta::decode(&layout, &vec![0; sound.len()]), Err(FormatError::Crc { .. })));
    }

    #[test]
    fn versions_before_the_counters_have_none() {
        let (layout, mut bytes) = (layout(), encoded());
        bytes[27] = 1;
        let counters = Emeta::decode(&layout, &bytes).map(|emeta| emeta.counters);
        assert_eq!(counters, Ok(WaCounters::default()));
    }
}

//! Start metadata: whose line it is, and which number in time. Written when a line is opened, before its data.

use super::error::FormatError;
use super::header::{Header, check_crc, line_at, line_bytes, long, put_crc, word};
use super::layout::LineLayout;

/// Where the bitmap of units begins: behind `struct line_smeta` with its alignment.
const LUN_BITMAP: usize = 64;
/// The minor version: `SMETA_VERSION_MINOR`.
pub const SMETA_VERSION_MINOR: u8 = 1;
/// The last number a line may have (chosen: no instance comes to it). Lines with larger ones are not believed, that is damage the
/// checksum did not find, and none is opened with one.
pub const SEQUENCE_MAX: u64 = 1 << 62;

/// The start metadata of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smeta {
    /// The header.
    pub header: Header,
    /// The line before this one in time.
    pub prev_id: Option<u32>,
    /// Counts the instance's lines as they are opened.
    pub seq_nr: u64,
    /// Units of the instance.
    pub window_wr_lun: u32,
}

impl Smeta {
    /// Writes it to all bytes of its sectors, checksums included.
    ///
    /// # Panics
    /// If `out` is not as long as the layout says.
    pub fn encode(&self, layout: &LineLayout, out: &mut [u8]) {
        assert_eq!(out.len(), layout.smeta_bytes(), "smeta has all bytes of its sectors");
        out.fill(0);
        self.header.encode(out);
        out[36..40].copy_from_slice(&line_bytes(self.prev_id));
        out[40..48].copy_from_slice(&self.seq_nr.to_le_bytes());
        out[48..52].copy_from_slice(&self.window_wr_lun.to_le_bytes());
        // Linux takes the bitmap's length in bytes for its length in bits; nothing reads it.
        let bits = layout.unit_bitmap_bytes();
        out[LUN_BITMAP..LUN_BITMAP + bits / 8].fill(0xFF);
        put_crc(out);
    }

    /// Reads it from all bytes of its sectors.
    ///
    /// # Errors
    /// As [`FormatError`] says; the checksum is looked at first, as in Linux.
    pub fn decode(layout: &LineLayout, bytes: &[u8]) -> Result<Self, FormatError> {
        let (bytes, header) = check_crc(bytes, layout.smeta_bytes())?;
        let prev_id = line_at(bytes, 36);
        Ok(Self { header, prev_id, seq_nr: long(bytes, 40), window_wr_lun: word(bytes, 48) })
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

    fn smeta() -> Smeta {
        let header = Header { uuid: Uuid([7; 16]), version_minor: SMETA_VERSION_MINOR, id: 3 };
        Smeta { header, prev_id: Some(2), seq_nr: 1 << 40, window_wr_lun: 8 }
    }

    #[test]
    fn it_comes_back_and_its_fields_lie_where_linux_has_them() {
        let mut bytes = vec![0xEE; layout().smeta_bytes()];
        smeta().encode(&layout(), &mut bytes);
        assert_eq!(bytes.len(), 8 * 4096);
        assert_eq!(bytes[36..52], [2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 8, 0, 0, 0]);
        assert_eq!(bytes[52..66], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0], "eight units, eight bits");
        assert!(bytes[66..].iter().all(|&byte| byte == 0));
        assert_eq!(Smeta::decode(&layout(), &bytes), Ok(smeta()));
        let first = Smeta { prev_id: None, ..smeta() };
        first.encode(&layout(), &mut bytes);
        assert_eq!(bytes[36..40], [0xFF; 4]);
        assert_eq!(Smeta::decode(&layout(), &bytes), Ok(first));
    }

    #[test]
    fn damage_behind_the_header_is_found_and_no_bytes_upset_it() {
        let (layout, seed) = (layout(), 5);
        let mut prng = Prng::new(seed);
        let mut sound = vec![0; layout.smeta_bytes()];
        smeta().encode(&layout, &mut sound);
        for round in 0..200 {
            let mut bytes = sound.clone();
            let at = usize::try_from(prng.below(sound.len() as u64)).expect("small");
            bytes[at] ^= 1 << prng.below(8);
            let decoded = Smeta::decode(&layout, &bytes);
            assert!(at < HEADER_BYTES || decoded.is_err(), "seed {seed}, round {round}: byte {at}");
            let length = usize::try_from(prng.below(100)).expect("small");
            let noise: Vec<u8> = (0..length).map(|_| prng.next_u64().to_le_bytes()[0]).collect();
            assert!(Smeta::decode(&layout, &noise).is_err(), "seed {seed}, round {round}");
        }
        assert!(matches!(Smeta::decode(&layout, &sound[1..]), Err(FormatError::Short { .. })));
        assert!(matches!(Smeta::decode(&layout, &vec![0; sound.len()]), Err(FormatError::Crc { .. })));
    }
}

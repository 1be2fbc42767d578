//! What the drive is made of (OCSSD 2.0 section 3.2.1, admin command E2h), checked before anything is built on it.
//!
//! Deliberately not here: the 4096-byte wire form (`nvme`) and the media model behind the numbers (`flash`).

use crate::address::{ADDRESS_BITS_MAX, LbaFormat};
use ocssd_base::{Nanos, Problems};

/// Optional behaviour a drive announces (MCCAP).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Bit 0: vector copy.
    pub vector_copy: bool,
    /// Bit 1: a FREE chunk may be reset again.
    pub multiple_resets: bool,
    /// Bit 2, a convention of emulators and some drives: an OPEN chunk may be reset.
    pub early_reset: bool,
}

/// What a host may expect of the media, for planning only (TRDT .. TCRSM).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaTimes {
    /// Typical read of a write unit.
    pub read_typical: Nanos,
    /// Longest read.
    pub read_max: Nanos,
    /// Typical write of a write unit.
    pub write_typical: Nanos,
    /// Longest write.
    pub write_max: Nanos,
    /// Typical chunk reset.
    pub reset_typical: Nanos,
    /// Longest chunk reset.
    pub reset_max: Nanos,
}

/// The shape and the rules of a drive. Counts are counts, sizes are in sectors unless named otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Groups (NUM_GRP), 1..=65535.
    pub groups: u32,
    /// Parallel units in a group (NUM_PU), 1..=65535.
    pub pus_per_group: u32,
    /// Chunks in a parallel unit (NUM_CHK).
    pub chunks_per_pu: u32,
    /// Sectors in a chunk (CLBA).
    pub sectors_per_chunk: u32,
    /// Bytes of user data in a sector: a power of two from 512.
    pub sector_bytes: u32,
    /// Bytes of out-of-band metadata beside each sector, 0..=64.
    pub oob_bytes: u32,
    /// Fewest sectors in a write, and what it must be a multiple of (WS_MIN).
    pub ws_min: u32,
    /// Sectors that take the same time as WS_MIN (WS_OPT).
    pub ws_opt: u32,
    /// Sectors that must follow a sector before it can be read (MW_CUNITS).
    pub mw_cunits: u32,
    /// Most chunks open in the drive, 0 for no limit (MAXOC).
    pub max_open_chunks: u32,
    /// Most chunks open in one parallel unit, 0 for no limit of its own (MAXOCPU).
    pub max_open_chunks_per_pu: u32,
    /// How far a wear index may stray from the average before the drive notifies (WIT).
    pub wear_index_threshold: u8,
    /// How addresses are packed.
    pub lba_format: LbaFormat,
    /// Optional behaviour.
    pub capabilities: Capabilities,
    /// What to expect of the media.
    pub times: MediaTimes,
}

impl Geometry {
    /// A plain geometry for tests and examples: 4 KiB sectors with 16 bytes of metadata, smallest address format,
    /// `ws_min = ws_opt`, nothing optional.
    #[must_use]
    pub fn example(
        groups: u32,
        pus_per_group: u32,
        chunks_per_pu: u32,
        sectors_per_chunk: u32,
        ws_opt: u32,
    ) -> Self {
        Self {
            groups,
            pus_per_group,
            chunks_per_pu,
            sectors_per_chunk,
            sector_bytes: 4096,
            oob_bytes: 16,
            ws_min: ws_opt,
            ws_opt,
            mw_cunits: 0,
            max_open_chunks: 0,
            max_open_chunks_per_pu: 0,
            wear_index_threshold: 10,
            lba_format: LbaFormat::smallest(groups, pus_per_group, chunks_per_pu, sectors_per_chunk),
            capabilities: Capabilities::default(),
            times: MediaTimes::default(),
        }
    }

    /// Parallel units in the drive.
    #[must_use]
    pub fn pu_count(&self) -> u32 {
        self.groups * self.pus_per_group
    }

    /// Chunks in the drive.
    #[must_use]
    pub fn chunk_count(&self) -> u32 {
        self.pu_count() * self.chunks_per_pu
    }

    /// Sectors in the drive.
    #[must_use]
    pub fn sector_count(&self) -> u64 {
        u64::from(self.chunk_count()) * u64::from(self.sectors_per_chunk)
    }

    /// Bytes of user data the media hold.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.sector_count() * u64::from(self.sector_bytes)
    }

    /// Notes everything no drive can be built on.
    pub fn check(&self, problems: &mut Problems) {
        let counted = "must be 1 to 65535 (16-bit field of the geometry page)";
        problems.require((1..=0xFFFF).contains(&self.groups), "groups", self.groups, counted);
        problems.require(
            (1..=0xFFFF).contains(&self.pus_per_group),
            "pus_per_group",
            self.pus_per_group,
            counted,
        );
        problems.require(self.chunks_per_pu >= 1, "chunks_per_pu", self.chunks_per_pu, "must be at least 1");
        let chunks = u64::from(self.groups)
            .saturating_mul(u64::from(self.pus_per_group))
            .saturating_mul(u64::from(self.chunks_per_pu));
        let fits =
            chunks < u64::from(u32::MAX) && chunks.checked_mul(u64::from(self.sectors_per_chunk)).is_some();
        problems.require(
            fits,
            "groups * pus_per_group * chunks_per_pu",
            chunks,
            "must be below 4294967295 chunks",
        );
        self.check_sectors(problems);
        self.check_writes(problems);
        self.check_format(problems);
    }

    fn check_sectors(&self, problems: &mut Problems) {
        let size = self.sector_bytes;
        let valid = size.is_power_of_two() && (512..=65536).contains(&size);
        problems.require(valid, "sector_bytes", size, "must be a power of two from 512 to 65536");
        problems.require(self.oob_bytes <= 64, "oob_bytes", self.oob_bytes, "must be 0 to 64");
        problems.require(
            self.sectors_per_chunk >= 1,
            "sectors_per_chunk",
            self.sectors_per_chunk,
            "must be at least 1",
        );
    }

    fn check_writes(&self, problems: &mut Problems) {
        problems.require(self.ws_min >= 1, "ws_min", self.ws_min, "must be at least 1");
        problems.require(self.ws_opt >= 1, "ws_opt", self.ws_opt, "must be at least 1");
        if self.ws_min == 0 || self.ws_opt == 0 {
            return;
        }
        let vector = "must be at most 64, the most sectors of one vector command";
        problems.require(self.ws_opt <= 64, "ws_opt", self.ws_opt, vector);
        let multiple = format!("must be a multiple of ws_min ({})", self.ws_min);
        problems.require(self.ws_opt.is_multiple_of(self.ws_min), "ws_opt", self.ws_opt, &multiple);
        problems.require(self.mw_cunits.is_multiple_of(self.ws_min), "mw_cunits", self.mw_cunits, &multiple);
        let multiple = format!("must be a multiple of ws_opt ({})", self.ws_opt);
        let chunk = self.sectors_per_chunk;
        problems.require(chunk.is_multiple_of(self.ws_opt), "sectors_per_chunk", chunk, &multiple);
        let within =
            format!("must be below sectors_per_chunk ({chunk}), or nothing could be read from an open chunk");
        problems.require(self.mw_cunits < chunk.max(1), "mw_cunits", self.mw_cunits, &within);
    }

    fn check_format(&self, problems: &mut Problems) {
        let need =
            LbaFormat::smallest(self.groups, self.pus_per_group, self.chunks_per_pu, self.sectors_per_chunk);
        let format = self.lba_format;
        for (field, bits, least) in [
            ("lba_format.group_bits", format.group_bits, need.group_bits),
            ("lba_format.pu_bits", format.pu_bits, need.pu_bits),
            ("lba_format.chunk_bits", format.chunk_bits, need.chunk_bits),
            ("lba_format.sector_bits", format.sector_bits, need.sector_bits),
        ] {
            let expected = format!("must be {least} to 32 to name every one");
            problems.require((least..=32).contains(&bits), field, bits, &expected);
        }
        let total = format.total_bits();
        problems.require(total <= ADDRESS_BITS_MAX, "lba_format", total, "must have at most 63 bits in all");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(change: impl FnOnce(&mut Geometry)) -> String {
        let mut geometry = Geometry::example(2, 2, 4, 48, 24);
        change(&mut geometry);
        let mut problems = Problems::default();
        geometry.check(&mut problems);
        problems.to_string()
    }

    #[test]
    fn a_sound_geometry_has_no_problems() {
        assert_eq!(problems(|_| ()), "");
    }

    #[test]
    fn each_broken_number_is_named_with_what_would_be_valid() {
        type Change = fn(&mut Geometry);
        let table: [(Change, &str); 11] = [
            (|g| g.groups = 0, "groups is 0, but must be 1 to 65535"),
            (|g| g.pus_per_group = 70_000, "pus_per_group is 70000, but must be 1 to 65535"),
            (|g| g.chunks_per_pu = 0, "chunks_per_pu is 0, but must be at least 1"),
            (|g| g.chunks_per_pu = u32::MAX, "must be below 4294967295 chunks"),
            (|g| g.sector_bytes = 4095, "sector_bytes is 4095, but must be a power of two"),
            (|g| g.oob_bytes = 65, "oob_bytes is 65, but must be 0 to 64"),
            (|g| g.ws_min = 0, "ws_min is 0, but must be at least 1"),
            (|g| g.ws_min = 7, "ws_opt is 24, but must be a multiple of ws_min (7)"),
            (|g| g.ws_opt = 72, "ws_opt is 72, but must be at most 64"),
            (|g| g.sectors_per_chunk = 50, "sectors_per_chunk is 50, but must be a multiple of ws_opt (24)"),
            (|g| g.lba_format.chunk_bits = 1, "lba_format.chunk_bits is 1, but must be 2 to 32"),
        ];
        for (change, expected) in table {
            let found = problems(change);
            assert!(found.contains(expected), "expected \"{expected}\" in \"{found}\"");
        }
    }
}

//! The map, from the lists of full lines and from what lies beside the sectors of others.
//!
//! Lines come in the order they were opened, sectors in the order they were written: the last one that names a block has it.

use super::super::format::{
    EMETA_VERSION_MINOR, Emeta, FormatError, LineLayout, LineOffset, SECTOR_META_BYTES, WaCounters, entry_lba,
};
use super::media::{Media, ReadUnit};
use super::survey::{FoundLine, Survey};
use super::{MountError, MountReport};
use ocssd_base::usize_of;
use ocssd_ftl::{InstanceGeometry, L2p, LineId, Mapped, PhysicalAddress, ValidMap};
use ocssd_lightnvm::{ChunkState, Ppa};

/// Sectors no drive comes to in its life; larger counts are damage that the checksum did not find, and could not be added to.
const COUNT_MAX: u64 = 1 << 62;

/// What is known of an instance so far.
pub struct Recovery<'a> {
    pub shape: &'a InstanceGeometry,
    pub layout: &'a LineLayout,
    pub survey: &'a Survey,
    /// The last sector of a unit holds what lies beside the others.
    pub packed: bool,
    pub l2p: &'a mut L2p,
    pub valid: &'a mut ValidMap,
    pub counters: &'a mut WaCounters,
    pub report: &'a mut MountReport,
    /// The addresses a line's sectors name, if it was read by them.
    pub named: Vec<(LineOffset, u64)>,
    /// The oldest version of a block wins, as a canary wants it.
    pub is_upside_down: bool,
}

impl Recovery<'_> {
    /// Takes what a line holds into the map. True if its list said it; else what its sectors name is in `named`.
    pub fn line(&mut self, media: &mut Media<'_>, found: &FoundLine) -> Result<bool, MountError> {
        self.named.clear();
        let is_by_list = !found.is_open && self.by_list(media, found.line)?;
        if is_by_list {
            self.report.by_list += 1;
        } else {
            self.by_sectors(media, found.line)?;
            self.report.by_sectors += 1;
        }
        Ok(is_by_list)
    }

    /// Sectors of a unit that hold blocks.
    fn data_of_unit(&self) -> u32 {
        self.layout.unit - u32::from(self.packed)
    }

    /// The address of a sector of a line.
    fn place(&self, line: LineId, offset: LineOffset) -> PhysicalAddress {
        let (position, sector) = self.layout.split(offset);
        let start = self.shape.chunk_start(line, self.layout.unit_at(position));
        PhysicalAddress(start.0 + u64::from(sector))
    }

    /// Reads the end metadata; false if they are not there, or damaged.
    fn by_list(&mut self, media: &mut Media<'_>, line: LineId) -> Result<bool, MountError> {
        let survey = self.survey;
        let parts = survey.parts[line.index()].as_ref().expect("a line that was found is used");
        let firsts: Vec<Ppa> =
            parts.emeta_units(self.layout).map(|unit| self.shape.ppa(self.place(line, unit))).collect();
        let (mut bytes, mut lost) = (Vec::with_capacity(self.layout.emeta_bytes()), false);
        media.read_units(&firsts, |_, unit| {
            lost |= unit.lost != 0;
            bytes.extend_from_slice(unit.bytes);
        })?;
        assert_eq!(bytes.len(), self.layout.emeta_bytes(), "end metadata are whole units");
        let emeta = match Emeta::decode(self.layout, &bytes) {
            Ok(emeta) if !lost => emeta,
            Err(error @ FormatError::Version { .. }) => {
                return Err(MountError::Unreadable(format!("the end of line {}: {error}", line.0)));
            }
            Ok(_) | Err(_) => return Ok(false),
        };
        let WaCounters { user, gc, pad } = emeta.counters;
        let has_counters = emeta.header.version_minor >= EMETA_VERSION_MINOR;
        if has_counters && user.max(gc).max(pad) <= COUNT_MAX {
            *self.counters = emeta.counters;
        }
        let mut named = 0;
        for unit in parts.data_units(self.layout) {
            // The last sector of a packed unit holds no block, whatever the list says.
            for offset in (unit.0..unit.0 + self.data_of_unit()).map(LineOffset) {
                let Some(lba) = Emeta::lba(self.layout, &bytes, offset) else { continue };
                named += 1;
                self.map(lba, self.place(line, offset));
            }
        }
        self.report.miscounted += u32::from(named != emeta.nr_valid_lbas);
        Ok(true)
    }

    /// Reads every sector of data that was written.
    fn by_sectors(&mut self, media: &mut Media<'_>, line: LineId) -> Result<(), MountError> {
        let survey = self.survey;
        let parts = survey.parts[line.index()].as_ref().expect("a line that was found is used");
        let mut units = Vec::new();
        for offset in parts.data_units(self.layout) {
            let (position, sector) = self.layout.split(offset);
            let unit = self.layout.unit_at(position);
            let end = sector + self.layout.unit;
            if end <= survey.readable(line, unit) {
                units.push(offset);
            } else if end <= survey.chunk(line, unit).written {
                self.report.hidden += u64::from(self.layout.unit);
            }
        }
        let firsts: Vec<Ppa> = units.iter().map(|&unit| self.shape.ppa(self.place(line, unit))).collect();
        media.read_units(&firsts, |index, unit| self.unit(line, units[index], &unit))
    }

    /// Takes the blocks of a unit into the map, as its sectors name them.
    fn unit(&mut self, line: LineId, first: LineOffset, unit: &ReadUnit<'_>) {
        let sectors = self.layout.unit;
        let (position, _) = self.layout.split(first);
        let is_open = self.survey.chunk(line, self.layout.unit_at(position)).state == ChunkState::Open;
        if unit.is_missing && is_open {
            // The drive reported more than is written: MW_CUNITS may hide this.
            self.report.hidden += u64::from(sectors);
            return;
        }
        let at = |sector: u32| usize_of(sector) * self.layout.sector_bytes;
        let (entries, stride) = if self.packed {
            // If the last sector is lost, nobody knows whose the others are.
            if unit.lost >> (sectors - 1) & 1 == 1 {
                self.report.lost += u64::from(sectors);
                return;
            }
            (&unit.bytes[at(sectors - 1)..at(sectors)], SECTOR_META_BYTES)
        } else {
            (unit.oob, unit.oob.len() / usize_of(sectors))
        };
        assert!(stride >= SECTOR_META_BYTES, "{stride} bytes beside a sector hold no entry");
        self.report.lost += u64::from(unit.lost.count_ones());
        for sector in (0..self.data_of_unit()).filter(|sector| unit.lost >> sector & 1 == 0) {
            if let Some(lba) = entry_lba(entries, stride, sector) {
                let offset = LineOffset(first.0 + sector);
                self.named.push((offset, lba));
                self.map(lba, self.place(line, offset));
            }
        }
    }

    /// The newest version of a block so far is at `place`.
    fn map(&mut self, lba: u64, place: PhysicalAddress) {
        if lba >= self.l2p.sectors() {
            self.report.beyond += 1;
            return;
        }
        if self.is_upside_down && self.l2p.get(lba) != Mapped::Nowhere {
            return;
        }
        let old = self.l2p.set(lba, Mapped::Media(place));
        assert_ne!(old, Mapped::Media(place), "place {} is passed twice", place.0);
        if let Mapped::Media(old) = old {
            self.valid.clear(old, 0);
        }
        self.valid.set(place);
        assert!(self.valid.is_valid(place), "the map names place {}, which is not valid", place.0);
    }
}

//! Mount: the map of an instance that Linux's pblk left, whether it was removed or lost its power.
//!
//! As Linux does it: the chunk report says which lines were written; the start of each says whose it is and when it was
//! opened; in that order the lists of full lines are read, and of lines that are not full what lies beside each sector.
//! Other than Linux, a reader stops before the end metadata of a line and at every chunk's own write pointer, so that it
//! takes no other program's leftovers for addresses. What a power cut left open is ended (`end`), unless nothing may be
//! written. Linear code: nothing runs concurrently, and mounting again after a cut in the middle finds the same blocks.

mod end;
mod media;
mod recover;
mod survey;

use super::canary::Canary;
use super::format::{LineLayout, LineOffset, SECTOR_META_BYTES, Uuid, WaCounters};
use super::map_crc::map_crc;
use super::open_line::OpenLine;
use super::options::Options;
use super::state::{Found, LinuxPblk, buffer_unit_count};
use super::{size, stats::LinuxPblkStats};
use crate::mount_error::MountError;
use end::{Contents, Ender, Ending};
use media::Media;
use ocssd_base::{Prng, usize_of};
use ocssd_ftl::{
    InstanceGeometry, L2p, Line, LineId, LineSequence, LineState, Lines, Sequence, Stream, UnitIndex,
    ValidMap,
};
use ocssd_lightnvm::{BlockingDevice, ChunkState, PuId};
use recover::Recovery;
use std::collections::BTreeSet;
use survey::{FoundLine, Survey};

/// What to do where there is no instance.
const NOT_THERE: &str = "no line of a Linux pblk was found on these units; name the units it was made on, make an instance in \
                         Linux, or one here (create=yes)";

/// What a mount found and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountReport {
    /// There was none, and one was made.
    pub is_fresh: bool,
    /// Lines known by their end metadata.
    pub by_list: u32,
    /// Lines that were read sector by sector: not full, or with damaged end metadata.
    pub by_sectors: u32,
    /// Lines of other instances.
    pub foreign: u32,
    /// Lines whose start cannot be read: they are free, as in Linux. A power cut while one was begun leaves such, without data.
    pub lost_starts: u32,
    /// Lists that do not name as many blocks as they say; Linux reports such too, and takes them.
    pub miscounted: u32,
    /// Addresses beyond the instance, passed over.
    pub beyond: u64,
    /// Sectors written in an open chunk that cannot be read before more is written behind them (MW_CUNITS).
    pub hidden: u64,
    /// Sectors the media lost among those read one by one: whose they were is not known.
    pub lost: u64,
    /// Blocks that are somewhere.
    pub mapped: u64,
    /// Sectors read.
    pub sectors_read: u64,
    /// Sectors written to end lines that a power cut left open.
    pub sectors_written: u64,
    /// The checksum of the map, if it was asked for and Linux would say it.
    pub map_crc: Option<u32>,
}

impl LinuxPblk {
    /// Mounts the instance on `units`, or makes one if that is asked for and there is none.
    ///
    /// Cost: a unit of every written line, the end metadata of every full one, and all of those that are not full, which are
    /// padded as well.
    ///
    /// # Errors
    /// As [`MountError`] says.
    pub fn mount(
        device: &mut dyn BlockingDevice,
        units: &[PuId],
        options: &Options,
    ) -> Result<(Self, MountReport), MountError> {
        let geometry = device.geometry().clone();
        let layout = LineLayout::new(&geometry, units).map_err(MountError::DoesNotFit)?;
        let packed = is_packed(usize_of(geometry.oob_bytes), &layout).map_err(MountError::DoesNotFit)?;
        let shape = InstanceGeometry::new(&geometry, units);
        Media::settle_reports(device, &shape, (layout.unit, packed), options.read_only)?;
        let mut survey = Survey::of(device, &shape, &layout);
        let percent = options.over_provisioning_percent;
        let blocks =
            size::blocks(&layout, survey.good_chunks(), percent, packed).map_err(MountError::DoesNotFit)?;
        let slots = buffer_unit_count(&geometry, &layout) * layout.unit;
        let drawn = Prng::new(options.seed ^ device.now().0);
        let mut media = Media::new(device, layout.unit, packed);
        let ender = Ender { shape: &shape, layout: &layout, mw_cunits: geometry.mw_cunits };
        let map = L2p::new(blocks, shape.places(), slots);
        let found = Loaded::find(&ender, &mut media, &mut survey, options, map, drawn);
        let (sectors_read, sectors_written) = media.end();
        assert!(sectors_written == 0 || !options.read_only, "a mount that may only read has written");
        let Loaded { instance, l2p, valid, counters, condemned, open, mut report } = found?;
        (report.sectors_read, report.sectors_written) = (sectors_read, sectors_written);
        if report.hidden > 0 {
            return Err(MountError::Unreadable(format!(
                "{} sectors were written last and cannot be read before more is written behind them (MW_CUNITS is {}); mount \
                 the instance without read_only, which fills its open line",
                report.hidden, geometry.mw_cunits
            )));
        }
        report.mapped = l2p.count_mapped();
        assert_eq!(report.mapped, valid.total(), "every block that is somewhere has a sector of its own");
        report.map_crc =
            options.map_crc.and_then(|revision| map_crc(&l2p, &shape, &layout, &geometry, revision));
        let open = open.map(|GoesOn { found, next, named }| {
            let parts = survey.parts[found.line.index()].clone().expect("a line that was found is used");
            let prev = found.smeta.prev_id;
            OpenLine::new(found.line, prev, &layout, parts, geometry.mw_cunits).resumed(next, &named)
        });
        let lines = lines(&survey, &shape, &layout, open.as_ref().map(OpenLine::line));
        let found = Found {
            open,
            instance,
            l2p,
            valid,
            lines,
            condemned,
            last_line: survey.lines.last().map(|found| found.line),
            is_read_only: options.read_only,
            has_written: report.sectors_written > 0,
            options: options.clone(),
            stats: LinuxPblkStats { counters, ..LinuxPblkStats::default() },
        };
        Ok((Self::new(&geometry, shape, layout, packed, found, device.buffers()), report))
    }
}

/// The line that goes on being written.
struct GoesOn {
    found: FoundLine,
    /// The number of its next unit.
    next: usize,
    /// The addresses in it.
    named: Vec<(LineOffset, u64)>,
}

/// What is known of an instance, line by line.
struct Loaded {
    instance: Uuid,
    l2p: L2p,
    valid: ValidMap,
    counters: WaCounters,
    /// Full lines without a list.
    condemned: BTreeSet<LineId>,
    open: Option<GoesOn>,
    report: MountReport,
}

impl Loaded {
    /// Finds the instance, and ends what a power cut left open, unless nothing may be written.
    fn find(
        ender: &Ender<'_>,
        media: &mut Media<'_>,
        survey: &mut Survey,
        options: &Options,
        map: L2p,
        drawn: Prng,
    ) -> Result<Self, MountError> {
        if !options.read_only {
            ender.show_starts(media, survey)?;
        }
        survey.read_smeta(media, ender.shape, ender.layout)?;
        if !options.read_only && !survey.missing_starts.is_empty() {
            ender.show_missing_starts(media, survey)?;
            survey.read_smeta(media, ender.shape, ender.layout)?;
        }
        let is_fresh = survey.instance.is_none() && survey.hidden == 0;
        if is_fresh && !options.create {
            return Err(MountError::NotThere(NOT_THERE));
        }
        let mut loaded = Self::new(ender.shape, map, survey, drawn);
        loaded.report.is_fresh = is_fresh;
        loaded.load(ender, media, survey, options)?;
        if !options.read_only {
            ender.pad_leftovers(media, survey)?;
            // Also if nothing was written: what is read now must not be gone after the next cut, and nobody flushed it for sure.
            // If the drive cannot, the first barrier says so.
            let _: bool = media.flush()?;
        }
        Ok(loaded)
    }

    fn new(shape: &InstanceGeometry, l2p: L2p, survey: &Survey, mut drawn: Prng) -> Self {
        let mut name = [0; 16];
        name.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&drawn.next_u64().to_le_bytes()));
        Self {
            instance: survey.instance.unwrap_or(Uuid(name)),
            l2p,
            valid: ValidMap::new(shape),
            counters: WaCounters::default(),
            condemned: BTreeSet::new(),
            open: None,
            report: MountReport {
                foreign: survey.foreign,
                lost_starts: survey.lost_starts,
                hidden: survey.hidden,
                ..MountReport::default()
            },
        }
    }

    /// Takes every line into the map, in the order they were opened, and ends those that are open.
    fn load(
        &mut self,
        ender: &Ender<'_>,
        media: &mut Media<'_>,
        survey: &mut Survey,
        options: &Options,
    ) -> Result<(), MountError> {
        for found in survey.lines.clone() {
            let may_end = found.is_open && !options.read_only;
            let is_last = survey.lines.last().is_some_and(|last| last.line == found.line);
            let ending = if may_end { Some(ender.pad(media, survey, found.line, is_last)?) } else { None };
            let Self { l2p, valid, counters, report, .. } = self;
            let (shape, layout, packed) = (ender.shape, ender.layout, media.packed);
            let is_upside_down = options.has_canary(Canary::OldestWins);
            let named = Vec::new();
            let mut recovery = Recovery {
                shape,
                layout,
                survey,
                packed,
                l2p,
                valid,
                counters,
                report,
                named,
                is_upside_down,
            };
            let hidden = recovery.report.hidden;
            let is_ignored = found.is_open && options.has_canary(Canary::OpenLineIgnored);
            let is_by_list = !is_ignored && recovery.line(media, &found)?;
            let named = recovery.named;
            if ending.is_some() {
                // What is hidden now is padding.
                self.report.hidden = hidden;
            }
            let has_list = if ending == Some(Ending::Emeta) {
                let (instance, counters) = (self.instance, self.counters);
                let contents = Contents { instance, named: &named, counters, valid: &self.valid };
                ender.end(media, survey, &found, &contents)?
            } else {
                is_by_list
            };
            if let Some(Ending::GoesOn(next)) = ending {
                self.open = Some(GoesOn { found, next, named });
            } else if !has_list && (ending.is_some() || !found.is_open) {
                self.condemned.insert(found.line);
            }
            if ending.is_some() {
                survey.look_again(media.device, ender.shape, ender.layout, found.line);
            }
        }
        Ok(())
    }
}

/// Whether what lies beside sectors must be looked for in the last of each unit.
fn is_packed(oob_bytes: usize, layout: &LineLayout) -> Result<bool, String> {
    if oob_bytes >= SECTOR_META_BYTES {
        return Ok(false);
    }
    let entries = usize_of(layout.unit) * SECTOR_META_BYTES;
    if layout.unit < 2 || entries > layout.sector_bytes {
        return Err(format!(
            "Linux's pblk needs {SECTOR_META_BYTES} bytes beside every sector, or a sector of every write unit for them, but \
             there are {oob_bytes} bytes and units of {} sectors",
            layout.unit
        ));
    }
    Ok(true)
}

/// The lines as parts of the FTL know them. Linux counts lines from 0, the FTL from 1.
fn lines(survey: &Survey, shape: &InstanceGeometry, layout: &LineLayout, open: Option<LineId>) -> Lines {
    // Of a line that is not used no chunk is.
    let is_bad = |line: LineId, unit| {
        survey.parts[line.index()].is_none() || survey.chunk(line, unit).state == ChunkState::Offline
    };
    let mut lines = Lines::new(shape, is_bad);
    for line in (0..shape.lines()).map(LineId).filter(|line| survey.parts[line.index()].is_some()) {
        let mut good = (0..shape.units()).map(UnitIndex).filter(|&unit| !is_bad(line, unit));
        let is_reset = good.all(|unit| survey.chunk(line, unit).state == ChunkState::Free);
        lines.restore_free(line, is_reset, 0);
    }
    for found in &survey.lines {
        let parts = survey.parts[found.line.index()].as_ref().expect("a line that was found is used");
        assert!(parts.data_sectors <= layout.sectors(), "a line has more data than sectors");
        let line = Line {
            // What is open and may not be ended is not written either.
            state: if open == Some(found.line) { LineState::Open } else { LineState::Closed },
            sequence: LineSequence(found.smeta.seq_nr + 1),
            stream: Stream(0),
            readers: 0,
            opened_at: Sequence(0),
            data_sectors: u64::from(parts.data_sectors),
            resets: 0,
            good_chunks: parts.good_chunks,
            heads: 1,
        };
        lines.restore(found.line, line);
    }
    lines
}

//! Mount: the map of an instance that Linux's pblk left, whether it was removed or lost its power.
//!
//! As Linux does it: the chunk report says which lines were written; the start of each says whose it is and when it was
//! opened; in that order the lists of full lines are read, and of lines that are not full what lies beside each sector.
//! Other than Linux, a reader stops before the end metadata of a line and at every chunk's own write pointer, so that it
//! takes no other program's leftovers for addresses. Linear code: nothing runs concurrently. Nothing is written.

mod reader;
mod recover;
mod survey;

use super::format::{LineLayout, SECTOR_META_BYTES, WaCounters};
use super::map_crc::map_crc;
use super::options::Options;
use super::state::LinuxPblk;
use super::{size, stats::LinuxPblkStats};
use ocssd_base::usize_of;
use ocssd_ftl::{L2p, Line, LineSequence, LineState, Lines, Sequence, Shape, Stream, ValidMap};
use ocssd_lightnvm::{BlockingDevice, ChunkState, PowerCut, PuId};
use reader::Reader;
use recover::Recovery;
use std::fmt;
use survey::Survey;

/// Why there is no instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountError {
    /// Linux would have none on these units: the sentence says why.
    DoesNotFit(String),
    /// There is none on them.
    NotThere,
    /// What is there cannot be read by this program: the sentence says why.
    Unreadable(String),
    /// The power went.
    PowerCut(PowerCut),
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoesNotFit(sentence) | Self::Unreadable(sentence) => f.write_str(sentence),
            Self::NotThere => f.write_str(
                "no line of a Linux pblk was found on these units; name the units it was made on, or make an instance in Linux",
            ),
            Self::PowerCut(cut) => cut.fmt(f),
        }
    }
}

impl std::error::Error for MountError {}

impl From<PowerCut> for MountError {
    fn from(cut: PowerCut) -> Self {
        Self::PowerCut(cut)
    }
}

/// What a mount found and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountReport {
    /// Lines known by their end metadata.
    pub by_list: u32,
    /// Lines that were read sector by sector: not full, or with damaged end metadata.
    pub by_sectors: u32,
    /// Lines of other instances.
    pub foreign: u32,
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
    /// The checksum of the map, if it was asked for and Linux would say it.
    pub map_crc: Option<u32>,
}

impl LinuxPblk {
    /// Mounts the instance on `units`.
    ///
    /// Cost: a unit of every written line, the end metadata of every full one, and all of those that are not full.
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
        let shape = Shape::new(&geometry, units);
        let mut survey = Survey::of(device, &shape, &layout);
        let percent = options.over_provisioning_percent;
        let blocks =
            size::blocks(&layout, survey.good_chunks(), percent, packed).map_err(MountError::DoesNotFit)?;
        let mut reader = Reader::new(device, layout.unit);
        survey.read_smeta(&mut reader, &shape, &layout)?;
        if survey.instance.is_none() && survey.hidden == 0 {
            return Err(MountError::NotThere);
        }
        let mut report =
            MountReport { foreign: survey.foreign, hidden: survey.hidden, ..MountReport::default() };
        let (mut l2p, mut valid) = (L2p::new(blocks, shape.places(), 0), ValidMap::new(&shape));
        let mut counters = WaCounters::default();
        let mut recovery = Recovery {
            shape: &shape,
            layout: &layout,
            survey: &survey,
            packed,
            l2p: &mut l2p,
            valid: &mut valid,
            counters: &mut counters,
            report: &mut report,
        };
        for found in &survey.lines {
            recovery.line(&mut reader, found)?;
        }
        report.sectors_read = reader.end();
        if report.hidden > 0 {
            return Err(MountError::Unreadable(format!(
                "{} sectors were written last and cannot be read before more is written behind them (MW_CUNITS is {}); mount \
                 the instance in Linux once, which fills its open line",
                report.hidden, geometry.mw_cunits
            )));
        }
        report.mapped = l2p.count_mapped();
        assert_eq!(report.mapped, valid.total(), "every block that is somewhere has a sector of its own");
        report.map_crc =
            options.map_crc.and_then(|revision| map_crc(&l2p, &shape, &layout, &geometry, revision));
        let lines = lines(&survey, &shape, &layout);
        let stats = LinuxPblkStats { counters, ..LinuxPblkStats::default() };
        Ok((Self::new(&geometry, shape, packed, (l2p, valid, lines), stats), report))
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
fn lines(survey: &Survey, shape: &Shape, layout: &LineLayout) -> Lines {
    let mut lines = Lines::new(shape, |line, unit| survey.chunk(line, unit).state == ChunkState::Offline);
    for found in &survey.lines {
        let parts = survey.parts[found.line.index()].as_ref().expect("a line that was found is used");
        assert!(parts.data_sectors <= layout.sectors(), "a line has more data than sectors");
        let line = Line {
            state: if found.is_open { LineState::Open } else { LineState::Closed },
            sequence: LineSequence(found.smeta.seq_nr + 1),
            stream: Stream(0),
            readers: 0,
            opened_at: Sequence(0),
            data_sectors: u64::from(parts.data_sectors),
            erases: 0,
            good_chunks: parts.good_chunks,
            headed: true,
        };
        lines.restore(found.line, line);
    }
    lines
}

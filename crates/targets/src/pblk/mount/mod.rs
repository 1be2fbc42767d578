//! Mount: makes an instance out of what lies on its units, after a shutdown, a power cut, or for the first time.
//!
//! Every line says whose it is (`heads`, `survey`); the newest complete checkpoint gives the map as it was (`load`); what was
//! written after it is found by tails and tags (`replay`). After a shutdown nothing was. Linear code: nothing runs concurrently,
//! and a power cut during it is an error like any other. What was half written is filled up to where it can be read, never
//! changed; mounting again after a cut in the middle finds the same blocks. Deliberately not here: anything after mount.

mod bits;
mod blocking;
mod create;
mod heads;
mod load;
mod replay;
mod restore;
mod survey;
mod wear;

use super::canary::Canary;
use super::capacity::{self, Asked, Capacity};
use super::options::Options;
use super::state::{MAP_STREAM, Pblk};
use crate::mount_error::MountError;
use blocking::Batches;
use ocssd_base::{Nanos, Prng};
use ocssd_ftl::{InstanceGeometry, InstanceId, Lines};
use ocssd_lightnvm::{BlockingDevice, ChunkState, PuId};

/// What a mount found and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountReport {
    /// No instance was there: a new one was made.
    pub fresh: bool,
    /// It had been shut down and nothing was written since.
    pub clean: bool,
    /// The checkpoint the map was taken from.
    pub checkpoint: Option<u64>,
    /// Heads of chunks read.
    pub heads_read: u64,
    /// Chunks found by their tails.
    pub tails_read: u64,
    /// Chunks read sector by sector.
    pub chunks_scanned: u64,
    /// Versions of blocks found after the checkpoint.
    pub records: u64,
    /// What is valid was found by passing over the whole map: the checkpoint did not say.
    pub passed_over: bool,
    /// Sectors read in all.
    pub sectors_read: u64,
    /// Sectors of padding written.
    pub sectors_filled: u64,
    /// When each phase was done: looking at chunks, the checkpoint, what came after it, the rest.
    pub phases: [Nanos; 4],
}

impl Pblk {
    /// Mounts the instance on `units`, or makes one if there is none.
    ///
    /// Cost: a read per line, the newest checkpoint (a thousandth of the capacity), and what was written after it: up to two
    /// checkpoint intervals, with a read for every chunk of it.
    ///
    /// # Errors
    /// [`MountError::DoesNotFit`] if the options do not fit the units (before anything is read or written, but for how many
    /// blocks there are), [`MountError::PowerCut`] if the power goes first: the instance's own buffers are then for whoever
    /// has the pool to reclaim.
    pub fn mount(
        device: &mut dyn BlockingDevice,
        units: &[PuId],
        options: &Options,
    ) -> Result<(Self, MountReport), MountError> {
        let geometry = device.geometry().clone();
        let shape = InstanceGeometry::new(&geometry, units);
        let distinct: std::collections::BTreeSet<&PuId> = units.iter().collect();
        assert_eq!(distinct.len(), units.len(), "a unit is leased twice");
        let options = options.for_lines(shape.lines());
        let asked = capacity::ask(&geometry, &shape, &options).map_err(MountError::DoesNotFit)?;
        let mut batches = Batches::new(device, &options);
        let mounted = Self::find(&mut batches, &shape, &asked);
        let (sectors_read, sectors_filled) = batches.end();
        let (mut pblk, report) = mounted?;
        pblk.wear.look(&pblk.lines);
        pblk.judge_spare();
        pblk.limiter_update();
        Ok((pblk, MountReport { sectors_read, sectors_filled, ..report }))
    }

    /// Finds the instance, or makes one, and leaves nothing behind that cannot be read.
    fn find(
        batches: &mut Batches<'_>,
        shape: &InstanceGeometry,
        asked: &Asked,
    ) -> Result<(Self, MountReport), MountError> {
        let (geometry, options, layout) = (batches.device.geometry().clone(), batches.options, asked.layout);
        let started = batches.device.now();
        let mut report = MountReport::default();
        let (mut survey, map_lines, heads_read) = heads::survey(batches, shape, &layout, MAP_STREAM)?;
        report.heads_read = heads_read;
        report.phases[0] = batches.device.now().saturating_since(started);
        let blocks = survey.instance.map(|_| survey.blocks);
        let blocks = blocks.filter(|_| !options.has_canary(Canary::SizeByOptions));
        let capacity =
            capacity::plan(&geometry, shape, options, asked, blocks, &|chunk| batches.device.chunk(chunk))
                .map_err(MountError::DoesNotFit)?;
        assert_eq!(capacity.layout, layout, "heads were looked for where the instance has none");
        let mut pblk = Self::on(batches, shape, options, capacity, &survey);
        pblk.now = started;
        if survey.instance.is_some() {
            pblk.recover(batches, &mut survey, &map_lines, &mut report)?;
        } else {
            report.fresh = true;
            if let Some(line) = create::create(&mut pblk, batches, &mut survey)? {
                restore::restore_lines(&mut pblk, &survey, None);
                restore::close_surplus(&mut pblk);
                assert!(pblk.lines.get(line).heads > 0, "line {} of a new instance has no head", line.0);
            }
        }
        pblk.keep_apart();
        let leftovers = restore::unusable(&survey, &pblk);
        survey::fill_to_end(batches, shape, &layout, &mut survey, &leftovers)?;
        restore::free_lines(&mut pblk, &survey);
        batches.flush()?;
        report.phases[3] = batches.device.now().saturating_since(started);
        Ok((pblk, report))
    }

    /// An instance with nothing known but its size and its bad chunks.
    fn on(
        batches: &mut Batches<'_>,
        shape: &InstanceGeometry,
        options: &Options,
        capacity: Capacity,
        survey: &survey::Survey,
    ) -> Self {
        let geometry = batches.device.geometry().clone();
        let lines = Lines::new(shape, |line, unit| survey.chunk(line, unit).state == ChunkState::Offline);
        let now = batches.device.now();
        let mut pblk =
            Self::empty(&geometry, shape.clone(), options.clone(), capacity, lines, batches.device.buffers());
        let mut name = Prng::new(options.seed ^ now.0).split("instance");
        pblk.instance = survey.instance.unwrap_or(InstanceId::new(name.next_u64() | 1));
        pblk
    }

    fn recover(
        &mut self,
        batches: &mut Batches<'_>,
        survey: &mut survey::Survey,
        map_lines: &load::MapLines,
        report: &mut MountReport,
    ) -> Result<(), MountError> {
        let (shape, layout) = (self.shape.clone(), self.capacity.layout);
        let started = self.now;
        let mut loaded = load::load(batches, &shape, survey, self.instance, map_lines, &mut self.l2p)?;
        report.checkpoint = loaded.as_ref().map(|loaded| loaded.header.number);
        report.phases[1] = batches.device.now().saturating_since(started);
        let mut window = replay::read(batches, &shape, &layout, survey, self.map_stream(), loaded.as_ref())?;
        report.tails_read = window.tails_read;
        report.chunks_scanned = window.chunks_scanned;
        report.records = u64::try_from(window.len()).expect("an index fits 64 bits");
        report.clean = window.is_empty() && loaded.as_ref().is_some_and(|loaded| loaded.header.clean);
        report.phases[2] = batches.device.now().saturating_since(started);
        if !bits::restore(self, survey, loaded.as_ref(), &window) {
            // The map was changed already: it is read again.
            self.l2p = self.l2p.emptied();
            let again = load::load(batches, &shape, survey, self.instance, map_lines, &mut self.l2p)?;
            let number = |loaded: &Option<load::Loaded>| loaded.as_ref().map(|loaded| loaded.header.number);
            if number(&again) != number(&loaded) {
                // The media lost a piece in between.
                window = replay::read(batches, &shape, &layout, survey, self.map_stream(), again.as_ref())?;
            }
            loaded = again;
            restore::restore_map(self, survey, loaded.as_ref(), &window);
            report.passed_over = true;
        }
        let sector_bytes = batches.device.buffers().format().sector_bytes;
        restore::restore_numbers(self, survey, loaded.as_ref(), &window, map_lines.newest(), sector_bytes);
        let unreadable = restore::unreadable(self, survey);
        survey::make_readable(batches, &shape, &layout, survey, &unreadable)?;
        create::complete(self, batches, survey)?;
        restore::restore_lines(self, survey, loaded.as_ref());
        restore::close_surplus(self);
        let incomplete = restore::incomplete_checkpoints(self, loaded.as_ref());
        self.checkpoints.found_incomplete(incomplete);
        wear::restore_unused(self, survey, loaded.as_ref(), report.clean);
        if !report.clean {
            self.checkpoints.ask();
        }
        Ok(())
    }
}

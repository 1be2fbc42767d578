//! Carries out a plan, step by step, and says how it ended.
//!
//! An assertion that fails anywhere below is caught here and is a failure like any other. Deliberately not here: many
//! seeds (`campaign`).

use crate::contract::{Broken, Contract};
use crate::contract_of::{WithContract, has_several_interfaces, with_contract_of};
use crate::disk::Disk;
use crate::failure::{Cause, Failure};
use crate::journal::{Event, Journal, Keep};
use crate::mounts::{KindMount, Mounts};
use crate::panics;
use crate::plan::{Cut, Step, WorldPlan};
use crate::power::MountCut;
use crate::tally::Tally;
use crate::wear::Wear;
use crate::world::{LIMIT, Mount, Mounted, SECTORS_HARMED, STOPPED, Stop, World};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::{FailedOp, FaultKind, Flash, ScheduledFault, Shelf};
use ocssd_lightnvm::{ChunkId, Device, Ppa, PuId};
use ocssd_targets::registry::Kind;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How a run ended.
#[derive(Clone, Debug)]
pub enum Ended {
    /// Everything was as promised.
    Well,
    /// The target does not fit the drive drawn.
    DoesNotFit(String),
    /// Something was not.
    Failed(Failure),
    /// It was stopped from outside before its end.
    Stopped,
}

/// A run that is over.
#[derive(Clone, Debug)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// What it exercised.
    pub tally: Tally,
    /// What happened, as far as it was kept.
    pub journal: Journal,
}

/// Runs those steps of a plan for which `only` is true.
#[must_use]
pub fn run(plan: &WorldPlan, kind: &Kind, only: &dyn Fn(usize) -> bool, keep: Keep) -> Ran {
    run_until(plan, kind, only, keep, Arc::default())
}

/// As [`run`], until `is_over` is set.
#[must_use]
pub fn run_until(
    plan: &WorldPlan,
    kind: &Kind,
    only: &dyn Fn(usize) -> bool,
    keep: Keep,
    is_over: Arc<AtomicBool>,
) -> Ran {
    with_contract_of(kind, plan, Run { plan, kind, only, keep, is_over })
}

/// A run that waits for its contract.
struct Run<'a> {
    plan: &'a WorldPlan,
    kind: &'a Kind,
    only: &'a dyn Fn(usize) -> bool,
    keep: Keep,
    is_over: Arc<AtomicBool>,
}

impl WithContract for Run<'_> {
    type Out = Ran;

    fn with<C: Contract>(self, contract: C, beside: Vec<C>) -> Ran
    where
        for<'a> KindMount<'a>: Mount<C::Target>,
    {
        let Self { plan, kind, only, keep, is_over } = self;
        let (disk, flash) = drive(plan);
        let journal = Journal::new(keep);
        let mut world =
            World::new(flash, plan.units.clone(), contract, plan.bound, journal).ends_with(is_over);
        for (beside, contract) in plan.beside.iter().zip(beside) {
            world = world.and(beside.units.clone(), contract);
        }
        let has = |count: usize| u64::from(plan.beside.len() + 1 == count);
        world.tally.add("worlds.two_targets", has(2));
        world.tally.add("worlds.three_targets", has(3));
        world.tally.add("worlds.of_several_interfaces", u64::from(has_several_interfaces(kind, plan)));
        world.wear = Some(Wear::new(plan.units.clone(), plan.config.wear.endurance));
        let targets = Mounts::of(plan, kind);
        let mut runner = Runner { world, targets, plan, disk, step: 0, mounts: 0 };
        let ended = match panics::caught(|| runner.run(only)) {
            Ok(Ok(ended)) => ended,
            Ok(Err(Cause::Broken(broken))) if broken.rule == STOPPED => Ended::Stopped,
            Ok(Err(Cause::Broken(broken))) if broken.rule == LIMIT => {
                runner.world.tally.add("limits.runs_ended", 1);
                Ended::Well
            }
            Ok(Err(cause)) => runner.failed(cause),
            Err(caught) => runner.failed(Cause::Panic { message: caught.message, place: caught.place }),
        };
        // A target that failed an assertion may fail another when it is asked.
        drop(panics::caught(|| runner.count()));
        Ran { ended, tally: runner.world.tally, journal: runner.world.journal }
    }
}

/// The drive, and the disk it lies on if it does not lie in memory.
fn drive(plan: &WorldPlan) -> (Option<Disk>, Flash) {
    if plan.disk {
        let (disk, flash) = Disk::new(&plan.config, plan.config.seed);
        return (Some(disk), flash);
    }
    let flash = Flash::format(plan.config.clone());
    (None, flash.unwrap_or_else(|problems| panic!("a drawn drive: {problems}")))
}

/// How targets say that media lost what they keep for themselves, in both copies.
const SAYS_RECORDS_LOST: [&str; 2] = ["of the log cannot be read", "none of its checkpoints can be read"];

struct Runner<'a, C: Contract> {
    world: World<C>,
    targets: Mounts<'a>,
    plan: &'a WorldPlan,
    disk: Option<Disk>,
    step: usize,
    /// Mounts after the first.
    mounts: usize,
}

impl<C: Contract> Runner<'_, C>
where
    for<'a> KindMount<'a>: Mount<C::Target>,
{
    fn run(&mut self, only: &dyn Fn(usize) -> bool) -> Result<Ended, Cause> {
        match self.world.mount(&self.targets.all(), None)? {
            Mounted::Up => {}
            Mounted::Refused(sentence) => return Ok(Ended::DoesNotFit(sentence)),
            Mounted::PowerCut => unreachable!("no cut was asked for"),
        }
        self.world.tally.add("mount.fresh", 1);
        for (index, step) in self.plan.steps.iter().enumerate().filter(|&(index, _)| only(index)) {
            self.step = index;
            self.world.begin_step();
            let now = self.world.now();
            self.world.journal.note(now, || Event::Step { index, what: step.to_string() });
            self.step(step)?;
        }
        self.calm()?;
        Ok(Ended::Well)
    }

    fn step(&mut self, step: &Step) -> Result<(), Cause> {
        match step {
            Step::Request { draw, turn } => self.request(*draw, *turn)?,
            Step::Quiesce => {
                self.world.drain()?;
            }
            Step::Idle { time } => {
                self.world.idle(*time)?;
            }
            Step::Cut(cut) => self.cut(cut)?,
            Step::Remount => self.remount(|_| ())?,
            Step::Rest { flips } => {
                self.remount(|run| flips.iter().for_each(|&(place, bit)| run.flip(place, bit)))?;
            }
            Step::Shelf { shelf, seed } => self.remount(|run| run.shelf(*shelf, *seed))?,
            Step::Flip { place, bit } => self.flip(*place, *bit),
            Step::Fault { kind, chunk, times } => self.fault(*kind, *chunk, *times),
            Step::Stray { place, before } => self.stray(*place, *before),
            Step::Death { unit, group } => self.death(*unit, *group),
            Step::Disk(faults) => {
                if let Some(disk) = &mut self.disk {
                    disk.set_faults(faults, &mut self.world);
                }
            }
            Step::StaleReports { how, share, seed } => {
                self.world.device_mut().inner_mut().keep_reports(*how, *share, *seed);
            }
            Step::LosePage { place } => {
                self.world.drain()?;
                self.world.lose_index_page(*place);
            }
            Step::Audit => self.world.audit()?,
        }
        Ok(())
    }

    fn request(&mut self, draw: u64, turn: bool) -> Result<(), Cause> {
        if !self.world.draw(draw) {
            let before = self.world.outstanding();
            if self.world.go(|outstanding| outstanding < before)? == Stop::Idle {
                self.world.drain()?;
            }
            // The reply may have been another target's.
            if !self.world.draw(draw) {
                self.world.drain()?;
                assert!(self.world.draw(draw), "there is room for a request when nothing is outstanding");
            }
        }
        if turn {
            self.world.turn()?;
        }
        Ok(())
    }

    fn cut(&mut self, cut: &Cut) -> Result<(), Cause> {
        self.world.cut_after(cut.events);
        let in_flight = self.world.go(|_| false)? == Stop::Cut;
        self.world.tally.add(if in_flight { "cuts.in_flight" } else { "cuts.idle" }, 1);
        self.world.part_of_gap(cut.gap_millionths);
        let mut prng = Prng::new(cut.seed);
        self.power_cut(&mut prng);
        for &commands in &cut.again {
            let later = Nanos(prng.below(2_000_000));
            match self.mount_with_next(Some(MountCut { commands, later }))? {
                Mounted::PowerCut => self.world.tally.add("cuts.in_mount", 1),
                // The mount was over before: the power goes with the target just mounted.
                Mounted::Up => self.world.tally.add("cuts.after_mount", 1),
                Mounted::Refused(sentence) => self.refused(sentence)?,
            }
            self.power_cut(&mut prng);
        }
        self.mount_again()?;
        self.world.audit()?;
        Ok(())
    }

    /// Mounts with the options that come next. An instance that they do not fit is mounted as it was made.
    fn mount_with_next(&mut self, cut: Option<MountCut>) -> Result<Mounted, Cause> {
        let later = &self.plan.later_options;
        // The first of `later` comes after the options it was made with.
        let next = self.mounts.checked_rem(later.len() + 1).filter(|&next| next < later.len());
        self.mounts += 1;
        if let Some(next) = next {
            self.targets.first.options = &later[next];
            let mounted = self.world.mount(&self.targets.all(), cut)?;
            if !matches!(mounted, Mounted::Refused(_)) {
                self.world.tally.add("mount.with_other_options", 1);
                return Ok(mounted);
            }
            self.world.tally.add("mount.other_options_do_not_fit", 1);
        }
        self.targets.first.options = &self.plan.options;
        Ok(self.world.mount(&self.targets.all(), cut)?)
    }

    /// The power goes; of a drive on a disk the process.
    fn power_cut(&mut self, prng: &mut Prng) {
        match &mut self.disk {
            Some(disk) => disk.crash(&mut self.world, prng),
            None => self.world.power_cut(prng),
        }
    }

    /// A mount was refused: that is for a disk that fails, and not for one that works.
    fn refused(&mut self, sentence: String) -> Result<(), Cause> {
        if !self.targets.keep_size() && self.world.has_lost_chunks() {
            // Its size follows from the chunks that are left, and may be none.
            return Err(Broken::new(LIMIT, "a device of some size", sentence).into());
        }
        if self.world.has_dead_target() {
            return Err(Broken::new(LIMIT, "a unit that works", sentence).into());
        }
        let is_harmed = self.world.tally.of(SECTORS_HARMED) > 0;
        if is_harmed && SAYS_RECORDS_LOST.iter().any(|words| sentence.contains(words)) {
            return Err(Broken::new(LIMIT, "media that keep what the target must know", sentence).into());
        }
        if !self.disk.as_mut().is_some_and(Disk::heal) {
            return Err(Cause::NotMounted(sentence));
        }
        self.world.tally.add("disk.mounts_refused", 1);
        Ok(())
    }

    fn mount_again(&mut self) -> Result<(), Cause> {
        loop {
            match self.mount_with_next(None)? {
                Mounted::Up => {
                    self.world.tally.add("mount.again", 1);
                    return Ok(());
                }
                Mounted::Refused(sentence) => self.refused(sentence)?,
                Mounted::PowerCut => unreachable!("no cut was asked for"),
            }
            let disk = self.disk.as_mut().expect("only a disk may be healed");
            disk.restart(&mut self.world);
        }
    }

    /// Shuts the target down and mounts it again: a power cut at which nothing may be lost, for it ended in good order. But
    /// something may happen to the media in between.
    fn remount(&mut self, meanwhile: impl FnOnce(&mut Self)) -> Result<(), Cause> {
        self.world.drain()?;
        self.world.shut_down();
        self.world.drain()?;
        self.world.check()?;
        match &mut self.disk {
            Some(disk) => disk.restart(&mut self.world),
            None => self.world.power_off(&mut Prng::new(0)),
        }
        meanwhile(self);
        self.mount_again()?;
        self.world.audit()?;
        Ok(())
    }

    /// Half of the bits are of what a target keeps whole, its own records; there a bit near the beginning is as likely as one
    /// anywhere, for records seldom fill their sectors.
    fn flip(&mut self, place: u64, bit: u64) {
        let geometry = self.world.device().geometry();
        let (chunks, sectors) = (geometry.chunk_count(), geometry.sectors_per_chunk);
        let first = u32::try_from(place % u64::from(chunks)).expect("below a 32-bit count");
        let sector = u32::try_from((place >> 32) % u64::from(sectors)).expect("below a 32-bit count");
        let flash = self.world.device_mut().inner_mut();
        let at = |next: u32| Ppa::new(ChunkId((first + next / sectors) % chunks), (sector + next) % sectors);
        let of_records = place >> 63 == 1;
        let record = (0..chunks * sectors).map(at).find(|&at| of_records && flash.is_whole(at));
        let flipped = if let Some(record) = record {
            let width = 1 << (8 + (bit >> 48) % 8);
            flash.flip_bit(record, false, (bit >> 1) % width)
        } else {
            (0..chunks).any(|next| flash.flip_bit(at(next * sectors), bit & 1 == 1, bit >> 1))
        };
        self.world.tally.add("faults.bits_flipped", u64::from(flipped));
        self.world.tally.add("faults.bits_of_records_flipped", u64::from(flipped && record.is_some()));
        self.world.tell_harm();
    }

    /// The drive lies without power for months.
    fn shelf(&mut self, shelf: Shelf, seed: u64) {
        let flash = self.world.device_mut().inner_mut();
        let (lost, weak) = flash.lie_without_power(shelf, &mut Prng::new(seed));
        self.world.tally.add("faults.shelf_lost", u64::from(lost));
        self.world.tally.add("faults.shelf_weak", u64::from(weak));
        self.world.tell_harm();
    }

    /// The newest unit of some chunk of the target's is not where it was written.
    fn stray(&mut self, place: u64, before: u32) {
        let geometry = self.world.device().geometry();
        let (chunks, unit) = (geometry.chunk_count(), geometry.ws_opt);
        let first = u32::try_from(place % u64::from(chunks)).expect("below a 32-bit count");
        let flash = self.world.device_mut().inner_mut();
        let written = |chunk: ChunkId| flash.written(chunk) / unit * unit;
        let found =
            (0..chunks).map(|next| ChunkId((first + next) % chunks)).find(|&chunk| written(chunk) >= unit);
        // One head must stay: without any nobody can tell an instance from fresh media.
        let is_another = |other: ChunkId| {
            Some(other) != found && written(other) > 0 && !flash.is_still_harmed(Ppa::new(other, 0))
        };
        let Some(chunk) = found.filter(|_| (0..chunks).map(ChunkId).any(is_another)) else { return };
        let from = written(chunk) - unit;
        let to =
            (before > 0).then(|| from.saturating_sub(before.saturating_mul(unit))).filter(|&to| to < from);
        for sector in 0..unit {
            let at = |first: u32| Ppa::new(chunk, first + sector);
            flash.misplace_write(at(from), to.map(at));
        }
        let name = if to.is_some() { "faults.writes_misdirected" } else { "faults.writes_lost" };
        self.world.tally.add(name, 1);
        self.world.tell_harm();
    }

    /// One of the target's units dies, or all units of its group, the target's or not.
    fn death(&mut self, unit: u64, group: bool) {
        let units = &self.plan.units;
        let at = unit % u64::try_from(units.len()).expect("few");
        let pu = units[usize::try_from(at).expect("an index")];
        let of_group = self.plan.config.geometry.pus_per_group;
        let dying = if group {
            let first = pu.0 / of_group * of_group;
            (first..first + of_group).map(PuId).collect()
        } else {
            vec![pu]
        };
        for &pu in &dying {
            self.world.kill_unit(pu);
        }
        self.world.tally.add("faults.units_died", u64::try_from(dying.len()).expect("few"));
    }

    fn fault(&mut self, kind: FaultKind, chunk: u64, times: u32) {
        let chunks = self.world.device().geometry().chunk_count();
        let chunk = ChunkId(u32::try_from(chunk % u64::from(chunks)).expect("below a 32-bit count"));
        self.world.device_mut().inner_mut().schedule_fault(ScheduledFault {
            kind,
            chunk,
            sector: None,
            times,
        });
        let name = match kind {
            FaultKind::WriteNextUnit => "faults.write_next_unit_scheduled",
            FaultKind::EarlyClose => "faults.early_close_scheduled",
            FaultKind::ResetFailure => "faults.reset_failure_scheduled",
            FaultKind::UnrecoveredRead => "faults.unrecovered_read_scheduled",
            FaultKind::HighEcc => "faults.high_ecc_scheduled",
            FaultKind::LatencySpike => "faults.latency_spike_scheduled",
            FaultKind::TransientRead => "faults.transient_read_scheduled",
            FaultKind::Failed(FailedOp::Read, _) => "faults.failed_read_scheduled",
            FaultKind::Failed(FailedOp::Write, _) => "faults.failed_write_scheduled",
            FaultKind::Failed(FailedOp::Reset, _) => "faults.failed_reset_scheduled",
            FaultKind::Failed(FailedOp::Flush, _) => "faults.failed_flush_scheduled",
        };
        self.world.tally.add(name, 1);
    }

    /// Faults stop: everything outstanding is answered, and what is read is right.
    fn calm(&mut self) -> Result<(), Cause> {
        self.world.begin_step();
        self.world.device_mut().inner_mut().stop_faults();
        self.world.drain()?;
        if let Some(disk) = &mut self.disk {
            disk.heal();
            disk.restart(&mut self.world);
            self.mount_again()?;
        }
        self.world.audit()?;
        Ok(())
    }

    fn failed(&self, cause: Cause) -> Ended {
        let state = panics::caught(|| self.world.summary()).unwrap_or_default();
        Ended::Failed(Failure { step: self.step, cause, state })
    }

    fn count(&mut self) {
        self.world.count_target();
        let counts: Vec<_> = self.world.contracts().flat_map(Contract::counts).collect();
        counts.into_iter().for_each(|(name, count)| self.world.tally.add(name, count));
        let media = self.world.device().inner().counters();
        self.world.tally.add("device.sectors_written", media.sectors_written);
        self.world.tally.add("device.sectors_read", media.sectors_read);
        self.world.tally.add("device.resets", media.resets);
        self.world.tally.add("faults.commands_failed", media.commands_failed);
        self.world.tally.add("events", self.world.events);
    }
}

//! The drive of a world, whose every loss is noted: which sector it was, and what that held.
//!
//! A read that ends with an unrecovered error is a loss, unless the sector never was good: of a write that failed the target
//! was told, and what a power cut tore was never durable. A bit that flips is one too. The contract is told of each, so that
//! it excuses what was in that place and nothing else. Deliberately not here: what a loss excuses (`contract`), and where bits
//! flip (`run`).

use crate::contract::Contract;
use crate::stale_reports::{StaleReports, Untrue};
use ocssd_base::{Nanos, Prng, usize_of};
use ocssd_flash::store::StoreError;
use ocssd_flash::{Flash, NotificationKind, PowerCutReport, Shelf};
use ocssd_lightnvm::{
    Addresses, Buffers, ChunkDescriptor, ChunkId, ChunkState, Command, Completion, Device, Geometry, Op, Ppa,
    PuId, Rejected, Tag,
};
use ocssd_targets::SENDS_MAX;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// One whole, in parts per billion.
pub(crate) const BILLION: u32 = 1_000_000_000;

/// What the media did to a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Harm {
    /// It cannot be read, once or for good.
    Lost,
    /// Its content, or what lies beside it, is another, and the drive does not know.
    Changed,
}

/// A sector that was harmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Harmed {
    /// Where it is.
    pub at: Ppa,
    /// What was done to it.
    pub harm: Harm,
    /// Its payload as it was written; empty of a sector that was written whole beside its stamp, as only targets' own records
    /// are.
    pub content: Vec<u8>,
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "cannot be read",
            Self::Changed => "holds something else",
        })
    }
}

/// A place in one life of its chunk: between two resets.
type Life = (Ppa, u32);

/// A drive whose losses are noted.
pub struct Watched {
    flash: Flash,
    /// Every place that was harmed, in which life, and how.
    harmed: BTreeSet<(Life, Harm)>,
    /// Of what a place holds now this was told. It is less where something else came there since.
    told: BTreeSet<(Life, Harm)>,
    /// Those nobody was told of yet.
    news: Vec<Harmed>,
    /// Units that died.
    dead: BTreeSet<PuId>,
    /// Changes that were not carried out when they were sent last, and how often in a row.
    undone: BTreeMap<Tag, (Op, Addresses, u32)>,
    /// One was not carried out as often as targets send it.
    gave_up: bool,
    /// That may come to pass. If not, a change is carried out in the last try of a target, whatever was drawn.
    may_give_up: bool,
    /// Reports that are not true.
    stale: StaleReports,
}

impl Watched {
    /// Watches `flash`, which carries every change out in one of the tries of a target, unless it `may_give_up`: what was drawn
    /// to fail commands, by rate and by schedule, does not add up to more.
    #[must_use]
    pub fn new(flash: Flash, may_give_up: bool) -> Self {
        Self {
            flash,
            harmed: BTreeSet::new(),
            told: BTreeSet::new(),
            news: Vec::new(),
            dead: BTreeSet::new(),
            undone: BTreeMap::new(),
            gave_up: false,
            may_give_up,
            stale: StaleReports::default(),
        }
    }

    /// Watches `flash` for a contract: it may give up if the contract says what that excuses.
    #[must_use]
    pub fn of<C: Contract>(flash: Flash) -> Self {
        Self::new(flash, C::KNOWS_DEAD_DRIVES)
    }

    /// The same drive in the same state; `None` if its content is not in memory.
    #[must_use]
    pub fn fork(&self) -> Option<Self> {
        let flash = self.flash.fork()?;
        let (harmed, news, dead) = (self.harmed.clone(), self.news.clone(), self.dead.clone());
        let told = self.told.clone();
        let (undone, gave_up, may_give_up) = (self.undone.clone(), self.gave_up, self.may_give_up);
        let stale = self.stale.clone();
        Some(Self { flash, harmed, told, news, dead, undone, gave_up, may_give_up, stale })
    }

    /// The drive copies its chunk table now, and after the next power cycle shows so many parts per billion of the copy's entries
    /// in place of those that are true, or none that a chunk can have.
    pub fn keep_reports(&mut self, how: Untrue, share: u32, seed: u64) {
        let table = self.table();
        let chance = (u64::from(share) << 32) / u64::from(BILLION);
        self.stale.keep(how, table, chance, Prng::new(seed));
    }

    /// What is true of every chunk.
    fn table(&self) -> Vec<ChunkDescriptor> {
        let chunks = (0..self.flash.geometry().chunk_count()).map(ChunkId);
        chunks.map(|chunk| Flash::chunk(&self.flash, chunk)).collect()
    }

    /// Chunks whose reports are not true.
    #[must_use]
    pub fn stale_reports(&self) -> u32 {
        self.stale.count()
    }

    /// Chunks whose reports hid all that was written when the power came back.
    #[must_use]
    pub const fn hidden_reports(&self) -> u32 {
        self.stale.hidden()
    }

    /// The chunks a write, copy or reset names are looked up by the drive, whatever becomes of it.
    fn look_up(&mut self, command: &Command, buffers: &Buffers) {
        match (command.op, command.addresses) {
            (Op::Read | Op::Flush, _) | (_, Addresses::None) => {}
            (_, Addresses::Run { first, .. }) => self.stale.looked_up(first.chunk),
            (op, Addresses::List { offset, count }) => {
                let lists = if matches!(op, Op::Copy) { 2 } else { 1 };
                let buffer = command.buffer.expect("a list lies in a buffer");
                let list = &buffers.addresses(buffer)[usize_of(offset)..][..usize_of(lists * count)];
                list.iter().for_each(|at| self.stale.looked_up(at.chunk));
            }
        }
    }

    /// A mount begins: what its target sends has nothing to do with what was sent before.
    pub fn begin_instance(&mut self) {
        self.undone.clear();
        self.gave_up = false;
    }

    /// True if the drive did not carry out some change, in a row as often as targets send one, since the mount began.
    #[must_use]
    pub const fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// True if a change was not carried out in any try of a target but the last, which this is.
    fn is_last_try(&self, command: &Command) -> bool {
        let entry = self.undone.get(&command.tag);
        entry.is_some_and(|entry| {
            (entry.0, entry.1) == (command.op, command.addresses) && entry.2 + 1 >= SENDS_MAX
        })
    }

    /// Counts a change that the drive did not carry out; of another that was sent there is nothing to count.
    fn note_undone(&mut self, command: &Command, is_undone: bool) {
        // One that is out of order for now is the same still.
        let is_same = |entry: &(Op, Addresses, u32)| (entry.0, entry.1) == (command.op, command.addresses);
        if self.undone.get(&command.tag).is_some_and(|entry| !is_same(entry)) {
            self.undone.remove(&command.tag);
        }
        if !is_undone {
            return;
        }
        let entry = self.undone.entry(command.tag).or_insert((command.op, command.addresses, 0));
        entry.2 += 1;
        self.gave_up |= entry.2 >= SENDS_MAX;
    }

    /// What was harmed since this was asked last, in that order.
    pub fn take_news(&mut self) -> Vec<Harmed> {
        std::mem::take(&mut self.news)
    }

    /// True if a sector that was harmed is still as it was then: its chunk was not reset since.
    #[must_use]
    pub fn is_still_harmed(&self, at: Ppa) -> bool {
        let life = (at, self.flash.cycles(at.chunk));
        let unit = PuId(at.chunk.0 / self.flash.geometry().chunks_per_pu);
        let is_there = at.sector < self.written(at.chunk) || self.dead.contains(&unit);
        is_there && self.harmed.range((life, Harm::Lost)..=(life, Harm::Changed)).next().is_some()
    }

    /// The payload of every written sector of a chunk, whether it can be read or not.
    pub fn contents(&mut self, chunk: ChunkId) -> Vec<Vec<u8>> {
        (0..self.written(chunk)).filter_map(|sector| self.flash.content(Ppa::new(chunk, sector))).collect()
    }

    /// Sectors of a chunk that were written.
    #[must_use]
    pub fn written(&self, chunk: ChunkId) -> u32 {
        let descriptor = Flash::chunk(&self.flash, chunk);
        match descriptor.state {
            ChunkState::Free | ChunkState::Offline => 0,
            ChunkState::Open | ChunkState::Closed => descriptor.write_pointer.unwrap_or(0),
        }
    }

    fn content(&mut self, at: Ppa) -> Option<Vec<u8>> {
        let content = self.flash.content(at);
        content.map(|content| if self.flash.is_whole(at) { Vec::new() } else { content })
    }

    /// A sector is lost, and its place still holds what it held. Nothing is noted of one that was never written.
    pub fn lose(&mut self, at: Ppa) {
        if let Some(content) = self.content(at) {
            self.note(at, Harm::Lost, content);
        }
    }

    /// A sector that was written cannot be read any more.
    pub fn lose_sector(&mut self, at: Ppa) {
        self.flash.lose_sector(at).expect("a drive in memory keeps what it is told");
        self.lose(at);
    }

    /// The drive lies without power, as [`Flash::lie_without_power`]. Returns how many sectors were lost, and how many weakened.
    pub fn lie_without_power(&mut self, shelf: Shelf, prng: &mut Prng) -> (u32, u32) {
        let done = self.flash.lie_without_power(shelf, prng);
        let (lost, weak) = done.expect("a drive in memory keeps what it is told");
        lost.iter().for_each(|&at| self.lose(at));
        (u32::try_from(lost.len()).expect("fewer sectors than 2^32"), weak)
    }

    /// The power goes, as [`Flash::power_cut`]. What was on media and went with a unit that was torn is lost.
    ///
    /// # Errors
    /// If the backing cannot keep what is left.
    pub fn power_cut(&mut self, now: Nanos, prng: &mut Prng) -> Result<PowerCutReport, StoreError> {
        let report = self.flash.power_cut(now, prng)?;
        let table = if self.stale.is_kept() { self.table() } else { Vec::new() };
        self.stale.power_cycled(&table, self.flash.geometry());
        for (first, count) in self.flash.take_lost_pairs() {
            (first.sector..first.sector + count).for_each(|sector| self.lose(Ppa::new(first.chunk, sector)));
        }
        Ok(report)
    }

    /// A unit dies, as [`Flash::kill_unit`]: all that can be read of it is lost.
    pub fn kill_unit(&mut self, pu: PuId, buffers: &mut Buffers) -> u32 {
        let chunks = self.flash.geometry().chunks_per_pu;
        for chunk in (pu.0 * chunks..(pu.0 + 1) * chunks).map(ChunkId) {
            let unreadable = self.flash.unreadable(chunk).to_vec();
            let is_sound = |sector: &u32| {
                let bits = unreadable.get(usize_of(sector / 64)).copied().unwrap_or(0);
                bits >> (sector % 64) & 1 == 0
            };
            let sectors = 0..self.written(chunk);
            sectors.filter(is_sound).for_each(|sector| self.lose(Ppa::new(chunk, sector)));
        }
        self.dead.insert(pu);
        self.flash.kill_unit(pu, buffers).expect("memory does not fail")
    }

    /// Flips a bit, as [`Flash::flip_bit`].
    pub fn flip_bit(&mut self, at: Ppa, metadata: bool, bit: u64) -> bool {
        let before = self.content(at);
        let flipped = self.flash.flip_bit(at, metadata, bit);
        if let Some(content) = before.filter(|_| flipped) {
            self.note(at, Harm::Changed, content);
        }
        flipped
    }

    /// A write did not reach its place, as [`Flash::misplace_write`]: what was there, and what it took the place of, is another.
    pub fn misplace_write(&mut self, from: Ppa, to: Option<Ppa>) -> bool {
        let places: Vec<Ppa> = std::iter::once(from).chain(to).collect();
        let before: Vec<(Ppa, Option<Vec<u8>>)> =
            places.into_iter().map(|at| (at, self.content(at))).collect();
        let is_misplaced = self.flash.misplace_write(from, to);
        for (at, content) in before.into_iter().filter(|_| is_misplaced) {
            self.note(at, Harm::Changed, content.expect("both places were written"));
            let life = (at, self.flash.cycles(at.chunk));
            self.told.remove(&(life, Harm::Lost));
            self.told.remove(&(life, Harm::Changed));
        }
        is_misplaced
    }

    /// Notes a harm, unless the same was done to the place before: what it held then was told.
    fn note(&mut self, at: Ppa, harm: Harm, content: Vec<u8>) {
        let life = (at, self.flash.cycles(at.chunk));
        self.harmed.insert((life, harm));
        if self.told.insert((life, harm)) {
            self.news.push(Harmed { at, harm, content });
        }
    }

    /// Notes the reads that failed since the last command.
    fn note_losses(&mut self) {
        let Some(newest) = self.flash.chunk_notifications().last().map(|notification| notification.count)
        else {
            return;
        };
        let lost = self
            .flash
            .chunk_notifications()
            .filter(|notification| notification.kind == NotificationKind::Unrecoverable);
        let lost: Vec<Ppa> = lost.map(|notification| notification.at).collect();
        self.flash.chunk_notifications_read(newest);
        for at in lost {
            let bits = self.flash.unreadable(at.chunk).get(usize_of(at.sector / 64)).copied().unwrap_or(0);
            if bits >> (at.sector % 64) & 1 == 0 {
                self.lose(at);
            }
        }
    }
}

impl Deref for Watched {
    type Target = Flash;

    fn deref(&self) -> &Flash {
        &self.flash
    }
}

impl DerefMut for Watched {
    fn deref_mut(&mut self) -> &mut Flash {
        &mut self.flash
    }
}

impl Device for Watched {
    fn geometry(&self) -> &Geometry {
        self.flash.geometry()
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.stale.of(chunk).unwrap_or_else(|| Flash::chunk(&self.flash, chunk))
    }

    fn submit(&mut self, now: Nanos, command: Command, buffers: &mut Buffers) -> Result<(), Rejected> {
        if self.stale.count() > 0 {
            self.look_up(&command, buffers);
        }
        let failed = self.flash.commands_failed();
        let is_spared = !self.may_give_up && self.is_last_try(&command);
        self.flash.let_commands_fail(!is_spared);
        self.flash.submit(now, command, buffers)?;
        let is_undone = self.flash.commands_failed() > failed && command.op != Op::Read;
        if is_undone || !self.undone.is_empty() {
            self.note_undone(&command, is_undone);
        }
        self.note_losses();
        Ok(())
    }

    fn room(&self) -> u32 {
        self.flash.room()
    }

    fn deadline(&self) -> Option<Nanos> {
        self.flash.deadline()
    }

    fn poll_completion(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<Completion> {
        self.flash.poll_completion(now, buffers)
    }

    fn work_ahead(&mut self, limit: Nanos) -> Option<Nanos> {
        self.flash.work_ahead(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_flash::{FailedOp, FaultKind, ScheduledFault, presets};
    use ocssd_lightnvm::{PlaneMode, Status};

    /// Sends the same change until it is carried out, or as often as `most`: how often it was not.
    fn times_failed(drive: &mut Watched, op: Op, most: u32) -> u32 {
        let mut buffers = Buffers::new(drive.payload_format());
        let count = drive.geometry().ws_min;
        let buffer = buffers.take(count);
        let addresses = match op {
            Op::Flush => Addresses::Run { first: Ppa::new(ChunkId(0), 0), count: 0 },
            _ => Addresses::Run { first: Ppa::new(ChunkId(3), 0), count },
        };
        let (tag, oob, plane_mode) = (Tag(5), true, PlaneMode::Single);
        let buffer = (op != Op::Flush).then_some(buffer);
        let command = Command { tag, op, addresses, buffer, buffer_first: 0, oob, plane_mode };
        let (mut now, mut failed) = (Nanos::ZERO, 0);
        while failed < most {
            drive.submit(now, command, &mut buffers).expect("there is room");
            let end = loop {
                if let Some(end) = drive.poll_completion(now, &mut buffers) {
                    break end;
                }
                now = drive.deadline().expect("it ends");
            };
            if end.status.is_success() {
                break;
            }
            assert!(FailedOp::Write.statuses().contains(&end.status), "{}", end.status);
            failed += 1;
        }
        failed
    }

    #[test]
    fn what_fails_commands_adds_up_to_less_than_all_tries_unless_the_drive_may_give_up() {
        let write = Op::Write { fua: true };
        for (may_give_up, expected) in [(false, [SENDS_MAX - 1; 2]), (true, [10, 30])] {
            let mut config = presets::find("tiny").expect("a preset").config();
            config.faults.failed_flush = BILLION;
            let mut flash = Flash::format(config).expect("a sound drive");
            for times in [3, 3, 4] {
                let kind = FaultKind::Failed(FailedOp::Write, Status::INTERNAL_ERROR);
                flash.schedule_fault(ScheduledFault { kind, chunk: ChunkId(3), sector: None, times });
            }
            let mut drive = Watched::new(flash, may_give_up);
            let failed = [write, Op::Flush].map(|op| times_failed(&mut drive, op, 30));
            assert_eq!((failed, drive.gave_up()), (expected, may_give_up));
        }
    }
}

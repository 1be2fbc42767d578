//! Batches for mount: many sectors read, and padding written, with all units busy.
//!
//! Deliberately not here: what is read, and why.

use super::super::canary::Canary;
use super::super::options::Options;
use crate::chunk_reports::{Doubt, Look, confirm, doubts, others};
use crate::mount_error::{MountError, look_at_drive, look_at_reads};
use crate::{read_again, send_again};
use ocssd_base::usize_of;
use ocssd_ftl::{ChunkIndex, Corrupt, HEAD_BYTES, Head, InstanceGeometry, SectorTag, Sequence, TAG_BYTES};
use ocssd_lightnvm::{
    Addresses, BlockingDevice, BufId, Buffers, ChunkId, ChunkState, Command, Completion, Op, PlaneMode, Ppa,
    Status, Tag, VECTOR_MAX,
};

/// A device with buffers to read into, taken when a batch first needs them: small instances need few.
pub struct Batches<'a> {
    pub device: &'a mut dyn BlockingDevice,
    pub options: &'a Options,
    /// Commands of a batch.
    most: usize,
    plain: Vec<BufId>,
    whole: Vec<BufId>,
    pub sectors_read: u64,
    pub sectors_filled: u64,
}

/// A sector that was read: its tag, if the media gave it and it is sound, and its first bytes.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub ppa: Ppa,
    pub tag: Result<SectorTag, Corrupt>,
    pub content: [u8; 16],
}

/// A run of sectors in one chunk.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub first: Ppa,
    pub count: u32,
}

impl<'a> Batches<'a> {
    pub fn new(device: &'a mut dyn BlockingDevice, options: &'a Options) -> Self {
        let most = usize_of(options.knobs.mount_batch);
        Self {
            device,
            options,
            most,
            plain: Vec::new(),
            whole: Vec::new(),
            sectors_read: 0,
            sectors_filled: 0,
        }
    }

    /// Sees to it that there is a plain buffer for each of so many commands.
    fn need_plain(&mut self, commands: usize) {
        assert!(commands <= self.most, "{commands} commands in a batch of {}", self.most);
        while self.plain.len() < commands {
            let buffer = self.device.buffers().take(VECTOR_MAX);
            self.plain.push(buffer);
        }
    }

    /// Gives the buffers back to the pool.
    pub fn end(self) -> (u64, u64) {
        let buffers = self.device.buffers();
        self.plain.into_iter().chain(self.whole).for_each(|buffer| buffers.give_back(buffer));
        (self.sectors_read, self.sectors_filled)
    }

    /// Reads single sectors anywhere; `found` is told each in order.
    pub fn read_sectors(&mut self, ppas: &[Ppa], mut found: impl FnMut(Found)) -> Result<(), MountError> {
        self.need_plain(ppas.len().div_ceil(usize_of(VECTOR_MAX)).min(self.most));
        for batch in ppas.chunks(self.most * usize_of(VECTOR_MAX)) {
            let mut commands = Vec::new();
            for (index, list) in batch.chunks(usize_of(VECTOR_MAX)).enumerate() {
                let buffer = self.plain[index];
                self.device.buffers().addresses_mut(buffer)[..list.len()].copy_from_slice(list);
                let count = u32::try_from(list.len()).expect("at most 64");
                commands.push(command(index, Op::Read, Addresses::List { offset: 0, count }, Some(buffer)));
            }
            self.sectors_read += u64::try_from(batch.len()).expect("an index fits 64 bits");
            let completions = self.read(&commands)?;
            let buffers = self.device.buffers();
            for (index, list) in batch.chunks(usize_of(VECTOR_MAX)).enumerate() {
                for (offset, &ppa) in (0..).zip(list) {
                    found(judge(buffers, self.plain[index], offset, ppa, &completions[index]));
                }
            }
        }
        Ok(())
    }

    /// Reads runs of sectors; `found` is told each sector, run by run.
    pub fn read_runs(&mut self, runs: &[Run], mut found: impl FnMut(Found)) -> Result<(), MountError> {
        let pieces: Vec<Run> = runs.iter().flat_map(|&run| split(run)).collect();
        self.need_plain(pieces.len().min(self.most));
        for batch in pieces.chunks(self.most) {
            let commands: Vec<Command> = batch
                .iter()
                .enumerate()
                .map(|(index, run)| {
                    let addresses = Addresses::Run { first: run.first, count: run.count };
                    command(index, Op::Read, addresses, Some(self.plain[index]))
                })
                .collect();
            self.sectors_read += batch.iter().map(|run| u64::from(run.count)).sum::<u64>();
            let completions = self.read(&commands)?;
            let buffers = self.device.buffers();
            for (index, run) in batch.iter().enumerate() {
                for offset in 0..run.count {
                    let ppa = Ppa::new(run.first.chunk, run.first.sector + offset);
                    found(judge(buffers, self.plain[index], offset, ppa, &completions[index]));
                }
            }
        }
        Ok(())
    }

    /// Reads runs of at most 64 sectors with all their bytes; `found` is told each run's bytes, or nothing if the media
    /// failed any of it.
    pub fn read_whole(
        &mut self,
        runs: &[Run],
        mut found: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), MountError> {
        // A run lies in one chunk.
        let longest = self.device.geometry().sectors_per_chunk.min(VECTOR_MAX);
        while self.whole.len() < self.most.min(runs.len()) {
            let buffer = self.device.buffers().take_whole(longest);
            self.whole.push(buffer);
        }
        for (number, batch) in runs.chunks(self.most).enumerate() {
            let commands: Vec<Command> = batch
                .iter()
                .enumerate()
                .map(|(index, run)| {
                    assert!(run.count <= longest, "a run of whole sectors is one command");
                    let addresses = Addresses::Run { first: run.first, count: run.count };
                    command(index, Op::Read, addresses, Some(self.whole[index]))
                })
                .collect();
            self.sectors_read += batch.iter().map(|run| u64::from(run.count)).sum::<u64>();
            let completions = self.read(&commands)?;
            let buffers = self.device.buffers();
            for (index, run) in batch.iter().enumerate() {
                let sound = completions[index].status.has_data();
                let bytes = sound.then(|| buffers.whole(self.whole[index], 0, run.count));
                found(number * self.most + index, bytes);
            }
        }
        Ok(())
    }

    /// Runs a batch.
    fn call(&mut self, what: &'static str, commands: &[Command]) -> Result<Vec<Completion>, MountError> {
        let completions = send_again::call(self.device, commands)?;
        look_at_drive(what, &completions)?;
        Ok(completions)
    }

    /// Runs a batch of reads; what fails is asked for again.
    fn read(&mut self, commands: &[Command]) -> Result<Vec<Completion>, MountError> {
        let completions = read_again::call(self.device, commands, self.most)?;
        look_at_reads(&completions)?;
        Ok(completions)
    }

    /// Runs a batch of padding.
    fn fill_call(&mut self, commands: &[Command]) -> Result<Vec<Completion>, MountError> {
        if self.options.has_canary(Canary::PaddingUnchecked) {
            return Ok(self.device.call(commands)?);
        }
        self.call("a write of padding", commands)
    }

    /// Writes fill to runs, in units. What the media fail is left as it is; a drive that fails is an error. The chunks
    /// that were refused as out of order, because they do not end where the drive reported.
    pub fn fill(&mut self, runs: &[Run], unit: u32) -> Result<Vec<ChunkId>, MountError> {
        let mut runs: Vec<Run> = runs.to_vec();
        let mut elsewhere = Vec::new();
        assert!(unit > 0, "fill is written in units");
        assert!(runs.iter().all(|run| run.count.is_multiple_of(unit)), "fill ends within a unit");
        self.need_plain(runs.len().min(self.most));
        // A round writes the next piece of every run, so that the units of the drive work together.
        while runs.iter().any(|run| run.count > 0) {
            for batch in runs.chunks_mut(self.most) {
                let mut commands = Vec::new();
                for (index, run) in batch.iter_mut().enumerate().filter(|(_, run)| run.count > 0) {
                    let count = run.count.min(unit);
                    encode_padding(self.device.buffers(), self.plain[index], count);
                    let addresses = Addresses::Run { first: run.first, count };
                    commands.push(command(
                        index,
                        Op::Write { fua: false },
                        addresses,
                        Some(self.plain[index]),
                    ));
                    run.first.sector += count;
                    run.count -= count;
                    self.sectors_filled += u64::from(count);
                }
                let completions = self.fill_call(&commands)?;
                for (command, completion) in commands.iter().zip(completions) {
                    if completion.status == Status::OUT_OF_ORDER {
                        elsewhere.push(batch[usize_of(command.tag.0)].first.chunk);
                    }
                    if !completion.status.is_success() && completion.status != Status::WRITE_NEXT_UNIT {
                        batch[usize_of(command.tag.0)].count = 0;
                    }
                }
            }
        }
        assert!(elsewhere.len() <= runs.len(), "a run was refused twice");
        Ok(elsewhere)
    }

    /// Looks whether chunks hold what their reports do not tell, and has the drive look at those again.
    ///
    /// # Errors
    /// [`MountError::Report`] if a report is no better then.
    pub fn settle_reports(&mut self, shape: &InstanceGeometry, unit: u32) -> Result<(), MountError> {
        if self.options.has_canary(Canary::LowReportBelieved) {
            return Ok(());
        }
        let chunks: Vec<ChunkId> =
            (0..shape.chunks()).map(|chunk| shape.chunk_id(ChunkIndex(chunk))).collect();
        let mut doubts = doubts(self.device, &chunks, Look::Behind)?;
        if self.options.has_canary(Canary::ReportBelieved) {
            doubts.retain(|doubt| self.device.chunk(doubt.chunk).state != ChunkState::Open);
        }
        self.tell_to_look(&doubts, unit)?;
        let others = others(self.device, &chunks, &doubts);
        if others.is_empty() || self.options.has_canary(Canary::HiddenReportBelieved) {
            return Ok(());
        }
        self.tell_to_look(&others, unit)
    }

    /// Has the drive look at chunks in doubt, by writes that it refuses.
    fn tell_to_look(&mut self, doubts: &[Doubt], unit: u32) -> Result<(), MountError> {
        let run = |doubt: &Doubt| Run { first: Ppa::new(doubt.chunk, doubt.sector), count: unit };
        let runs: Vec<Run> = doubts.iter().map(run).collect();
        self.fill(&runs, unit)?;
        confirm(self.device, doubts)
    }

    /// Writes a head of `count` sectors. False if the media did not take it.
    pub fn write_head(
        &mut self,
        first: Ppa,
        count: u32,
        head: &Head,
        newest: Sequence,
    ) -> Result<bool, MountError> {
        self.need_plain(1);
        let buffers = self.device.buffers();
        for sector in 0..count {
            let (data, oob) = buffers.sectors_mut(self.plain[0], sector, 1);
            data.fill(0);
            oob.fill(0);
            data[..HEAD_BYTES].copy_from_slice(&head.encode());
            oob[..TAG_BYTES].copy_from_slice(&head.tag(newest).encode(data));
        }
        let addresses = Addresses::Run { first, count };
        let write = command(0, Op::Write { fua: false }, addresses, Some(self.plain[0]));
        Ok(self.call("a write of a chunk's head", &[write])?[0].status.is_success())
    }

    /// Resets a chunk. False if the media failed.
    pub fn reset(&mut self, chunk: ChunkId) -> Result<bool, MountError> {
        let addresses = Addresses::Run { first: Ppa::new(chunk, 0), count: 1 };
        Ok(self.call("a reset", &[command(0, Op::Reset, addresses, None)])?[0].status.is_success())
    }

    /// Makes everything so far durable.
    pub fn flush(&mut self) -> Result<(), MountError> {
        let status = self.call("a flush", &[command(0, Op::Flush, Addresses::None, None)])?[0].status;
        if status.is_success() { Ok(()) } else { Err(MountError::Drive { what: "a flush", status }) }
    }
}

fn command(index: usize, op: Op, addresses: Addresses, buffer: Option<BufId>) -> Command {
    let tag = Tag(u32::try_from(index).expect("a batch is small"));
    let oob = matches!(op, Op::Read | Op::Write { .. });
    // As Linux's pblk read its metadata.
    let plane_mode = PlaneMode::Multi;
    Command { tag, op, addresses, buffer, buffer_first: 0, oob, plane_mode }
}

fn split(run: Run) -> impl Iterator<Item = Run> {
    (0..run.count.div_ceil(VECTOR_MAX)).map(move |piece| {
        let from = piece * VECTOR_MAX;
        let first = Ppa::new(run.first.chunk, run.first.sector + from);
        Run { first, count: (run.count - from).min(VECTOR_MAX) }
    })
}

fn judge(buffers: &Buffers, buffer: BufId, index: u32, ppa: Ppa, completion: &Completion) -> Found {
    assert!(index < VECTOR_MAX, "sector {index} of one read");
    let has_data = completion.status_of(index).has_data();
    let data = buffers.data(buffer, index, 1);
    let tag = if has_data { SectorTag::decode(buffers.oob(buffer, index, 1), data) } else { Err(Corrupt) };
    let mut content = [0; 16];
    content.copy_from_slice(&data[..16]);
    Found { ppa, tag, content }
}

fn encode_padding(buffers: &mut Buffers, buffer: BufId, count: u32) {
    for sector in 0..count {
        let (data, oob) = buffers.sectors_mut(buffer, sector, 1);
        data.fill(0);
        oob.fill(0);
        oob[..TAG_BYTES].copy_from_slice(&SectorTag::PAD.encode(data));
    }
}

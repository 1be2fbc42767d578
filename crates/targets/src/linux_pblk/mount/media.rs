//! Write units read and written in batches, whole, with what lies beside their sectors.
//!
//! Deliberately not here: what is read and written, and why.

use super::super::writer::name_sectors;
use crate::chunk_reports::{Doubt, Look, confirm, doubts, others};
use crate::mount_error::{MountError, look_at_drive, look_at_reads};
use crate::{read_again, send_again};
use ocssd_base::usize_of;
use ocssd_ftl::{ChunkIndex, InstanceGeometry};
use ocssd_lightnvm::{
    Addresses, BlockingDevice, BufId, ChunkId, Command, Completion, Op, PlaneMode, Ppa, Status, Tag,
    VECTOR_MAX,
};

/// Commands of a batch (chosen: enough for every unit of a large drive).
const BATCH: usize = 256;

/// A device with buffers for units.
pub struct Media<'a> {
    pub device: &'a mut dyn BlockingDevice,
    /// Sectors of a unit.
    unit: u32,
    /// What lies beside sectors is in the last of each unit.
    pub packed: bool,
    buffers: Vec<BufId>,
    pub sectors_read: u64,
    pub sectors_written: u64,
}

/// A run of sectors in one chunk, a unit at most.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub first: Ppa,
    pub count: u32,
}

/// What became of a write of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The media took all of it.
    pub is_sound: bool,
    /// Some was refused as out of order: its chunk does not end where the drive reported.
    pub is_elsewhere: bool,
}

/// A unit that was read.
pub struct ReadUnit<'a> {
    /// All bytes of its sectors.
    pub bytes: &'a [u8],
    /// What lies beside them.
    pub oob: &'a [u8],
    /// Bit `i`: the media did not give sector `i`.
    pub lost: u64,
    /// Those of `lost` are not written, or not yet to be read.
    pub is_missing: bool,
}

impl<'a> Media<'a> {
    pub fn new(device: &'a mut dyn BlockingDevice, unit: u32, packed: bool) -> Self {
        assert!((1..=VECTOR_MAX).contains(&unit), "a unit of {unit} sectors is no command");
        Self { device, unit, packed, buffers: Vec::new(), sectors_read: 0, sectors_written: 0 }
    }

    /// Sees to it that there is a buffer for each of so many commands.
    fn need(&mut self, commands: usize) {
        while self.buffers.len() < commands.min(BATCH) {
            let buffer = self.device.buffers().take_whole(self.unit);
            self.buffers.push(buffer);
        }
    }

    /// Reads units; `each` is told them in order, by their number.
    pub fn read_units(
        &mut self,
        firsts: &[Ppa],
        mut each: impl FnMut(usize, ReadUnit<'_>),
    ) -> Result<(), MountError> {
        self.need(firsts.len());
        for (number, batch) in firsts.chunks(BATCH).enumerate() {
            let command = |(index, &first): (u32, &Ppa)| Command {
                tag: Tag(index),
                op: Op::Read,
                addresses: Addresses::Run { first, count: self.unit },
                buffer: Some(self.buffers[usize_of(index)]),
                buffer_first: 0,
                oob: true,
                plane_mode: PlaneMode::Multi,
            };
            let commands: Vec<Command> = (0..).zip(batch).map(command).collect();
            let completions = read_again::call(self.device, &commands, BATCH)?;
            look_at_reads(&completions)?;
            assert_eq!(completions.len(), batch.len(), "every command has an end");
            let buffers = self.device.buffers();
            for (index, completion) in completions.iter().enumerate() {
                let lost = if completion.status.has_data() { 0 } else { completion.failed.max(1) };
                let buffer = self.buffers[index];
                let (bytes, oob) = (buffers.whole(buffer, 0, self.unit), buffers.oob(buffer, 0, self.unit));
                let is_missing = completion.status == Status::UNWRITTEN;
                each(number * BATCH + index, ReadUnit { bytes, oob, lost, is_missing });
            }
            self.sectors_read += u64::from(self.unit) * u64::try_from(batch.len()).expect("a batch is small");
        }
        Ok(())
    }

    /// Writes runs in order: bytes of `content`, zeroes where that has none. None of the sectors has an address.
    pub fn write(&mut self, runs: &[Run], content: &[&[u8]]) -> Result<Written, MountError> {
        assert!(content.is_empty() || content.len() == runs.len(), "there is content for some runs only");
        self.need(runs.len());
        let mut written = Written { is_sound: true, is_elsewhere: false };
        for (number, batch) in runs.chunks(BATCH).enumerate() {
            let mut commands = Vec::with_capacity(batch.len());
            for (index, run) in batch.iter().enumerate() {
                assert!((1..=self.unit).contains(&run.count), "{} sectors are no part of a unit", run.count);
                let (buffer, unit, skipped) = (self.buffers[index], self.unit, self.unit - run.count);
                let buffers = self.device.buffers();
                buffers.data_mut(buffer, 0, unit).fill(0);
                buffers.whole_mut(buffer, 0, unit).fill(0);
                name_sectors(buffers, (buffer, 0), unit, self.packed, &[]);
                if let Some(bytes) = content.get(number * BATCH + index) {
                    buffers.whole_mut(buffer, 0, unit).copy_from_slice(bytes);
                }
                commands.push(Command {
                    tag: Tag(u32::try_from(index).expect("a batch is small")),
                    op: Op::Write { fua: false },
                    addresses: Addresses::Run { first: run.first, count: run.count },
                    buffer: Some(buffer),
                    buffer_first: skipped,
                    oob: true,
                    plane_mode: PlaneMode::Multi,
                });
                self.sectors_written += u64::from(run.count);
            }
            let completions = self.call("a write of padding", &commands)?;
            let has = |status| completions.iter().any(|completion| completion.status == status);
            written.is_sound &= completions.iter().all(|completion| completion.status.is_success());
            written.is_elsewhere |= has(Status::OUT_OF_ORDER);
        }
        assert!(!written.is_elsewhere || !written.is_sound, "what was refused was taken");
        Ok(written)
    }

    /// Looks whether chunks are what their reports tell, and has the drive look again at those that are not. Where the parts of a
    /// line are depends on which of its chunks are bad, so that a report may not go too far either.
    ///
    /// # Errors
    /// [`MountError::Report`] if a report is no better then, or of content that is not reported if nothing may be written.
    pub fn settle_reports(
        device: &mut dyn BlockingDevice,
        shape: &InstanceGeometry,
        (unit, packed): (u32, bool),
        is_read_only: bool,
    ) -> Result<(), MountError> {
        let chunks: Vec<ChunkId> =
            (0..shape.chunks()).map(|chunk| shape.chunk_id(ChunkIndex(chunk))).collect();
        let look = if is_read_only { Look::Behind } else { Look::Around };
        let doubts = doubts(device, &chunks, look)?;
        if is_read_only {
            return confirm(device, &doubts);
        }
        Self::tell_to_look(device, &doubts, (unit, packed))?;
        let others = others(device, &chunks, &doubts);
        Self::tell_to_look(device, &others, (unit, packed))
    }

    /// Has the drive look at chunks in doubt, by writes that it refuses.
    fn tell_to_look(
        device: &mut dyn BlockingDevice,
        doubts: &[Doubt],
        (unit, packed): (u32, bool),
    ) -> Result<(), MountError> {
        if doubts.is_empty() {
            return Ok(());
        }
        let mut media = Media::new(device, unit, packed);
        let run = |doubt: &Doubt| Run { first: Ppa::new(doubt.chunk, doubt.sector), count: unit };
        let runs: Vec<Run> = doubts.iter().map(run).collect();
        let written = media.write(&runs, &[]);
        media.end();
        // Of most the drive says that it is no place to write to.
        let _: Written = written?;
        confirm(device, doubts)
    }

    /// Runs a batch.
    fn call(&mut self, what: &'static str, commands: &[Command]) -> Result<Vec<Completion>, MountError> {
        let completions = send_again::call(self.device, commands)?;
        look_at_drive(what, &completions)?;
        Ok(completions)
    }

    /// Makes everything so far durable. True if the drive could.
    pub fn flush(&mut self) -> Result<bool, MountError> {
        let (addresses, buffer) = (Addresses::None, None);
        let flush = Command {
            tag: Tag(0),
            op: Op::Flush,
            addresses,
            buffer,
            buffer_first: 0,
            oob: false,
            plane_mode: PlaneMode::Single,
        };
        let completions = self.call("a flush", &[flush])?;
        Ok(completions.iter().all(|completion| completion.status.is_success()))
    }

    /// Gives the buffers back to the pool; says how many sectors were read and written.
    pub fn end(self) -> (u64, u64) {
        let buffers = self.device.buffers();
        self.buffers.into_iter().for_each(|buffer| buffers.give_back(buffer));
        (self.sectors_read, self.sectors_written)
    }
}

//! Read: any sectors, any mix of chunks, any order (OCSSD 2.0 sections 2.2.1 and 3.4.3).

use super::{Operation, PartList, ReadPolicy};
use crate::addresses::Run;
use crate::chunk_notifications::NotificationKind;
use crate::deferred_copies::{DEFERRED_BYTES_MAX, DeferredCopy, Destination, WANTED_BYTES_MAX, WantedBytes};
use crate::drive::Flash;
use crate::faults::ReadOutcome;
use crate::media::PartKind;
use crate::rules;
use crate::store::Store;
use ocssd_base::{Nanos, SlabKey};
use ocssd_lightnvm::{Buffers, Command, Op, Ppa, Status};
use std::ops::Range;

/// The bytes of `count` sectors of `unit` bytes from entry `entry` on, as far as there are any: whole bytes may end sooner
/// than the command, and empty stays empty.
fn piece(bytes: &mut [u8], unit: usize, entry: u32, count: u32) -> &mut [u8] {
    let length = bytes.len();
    let at = |sectors: u32| (usize::try_from(sectors).expect("32 bits fit an index") * unit).min(length);
    &mut bytes[at(entry)..at(entry + count)]
}

/// Bytes beside those that are wanted hold a pattern: whoever looks at them is found where content is stamps, in simulations.
fn poison_unwanted(whole: &mut [u8], wanted: &Range<usize>) {
    let end = whole.len();
    whole[..wanted.start.min(end)].fill(0xEC);
    whole[wanted.end.min(end)..].fill(0xEC);
}

impl Flash {
    pub(super) fn read(&mut self, policy: ReadPolicy, operation: &mut Operation<'_>, parts: &mut PartList) {
        parts.span = self.media.sensing.span(policy.plane_mode);
        for run in operation.addresses.runs() {
            let limit = rules::readable_sectors(&self.config.geometry, &self.chunks, run.first.chunk);
            let good = limit.saturating_sub(run.first.sector).min(run.count);
            if good > 0 {
                self.read_run(policy, operation, parts, Run { count: good, ..run });
            }
            if good < run.count {
                let sector = run.first.sector.saturating_add(good);
                let first = Ppa::new(run.first.chunk, sector);
                self.read_nothing(
                    policy,
                    operation,
                    parts,
                    Run { entry: run.entry + good, first, count: run.count - good },
                );
            }
        }
        let count = operation.addresses.count();
        self.counters.sectors_read += u64::from(count);
        self.flow.command_mut(parts.command).sectors = count;
    }

    /// Sectors that hold nothing: predefined data, and an error for who wants to know.
    fn read_nothing(
        &mut self,
        policy: ReadPolicy,
        operation: &mut Operation<'_>,
        parts: &PartList,
        run: Run,
    ) {
        piece(operation.data, self.format.data_bytes, run.entry, run.count).fill(policy.predefined);
        piece(operation.oob, self.format.oob_bytes, run.entry, run.count).fill(0);
        piece(operation.whole, self.format.sector_bytes, run.entry, run.count).fill(policy.predefined);
        if policy.unwritten_is_error {
            let refusal = rules::unreadable(&self.chunks, run);
            let command = self.flow.command_mut(parts.command);
            command.fail(refusal.status, run.entry, run.count, Some(refusal.violation));
        }
    }

    /// Sectors below the readable limit.
    fn read_run(
        &mut self,
        policy: ReadPolicy,
        operation: &mut Operation<'_>,
        parts: &mut PartList,
        run: Run,
    ) {
        let chunk = self.chunks.get(run.first.chunk);
        assert!(
            run.first.sector + run.count <= chunk.write_pointer,
            "what was never written is read as data"
        );
        assert!(chunk.programmed <= chunk.write_pointer, "more is on media than was written");
        let on_media = chunk.programmed.saturating_sub(run.first.sector).min(run.count);
        let suspect = chunk.has_unreadable || chunk.has_scheduled || self.faults.reads_can_fail();
        self.copy_content(operation, parts, run, suspect);
        let again = suspect && self.read_faults(policy, operation, parts, run);
        // One retry with shifted thresholds costs another sense, the slowest of the page types.
        let slowest = || self.config.media.read.iter().copied().max().unwrap_or_default();
        parts.retry = if again { slowest() } else { Nanos::ZERO };
        self.counters.sectors_read_cached += u64::from(run.count - on_media);
        if on_media > 0 {
            let windows = *self.media.sensing.windows(parts.span);
            self.add_windows(parts, PartKind::Read, run.first, on_media, windows);
            parts.retry = Nanos::ZERO;
        }
    }

    /// Copies a run's content, or notes that it is to be copied. What is `suspect` may be overwritten at once.
    fn copy_content(&mut self, operation: &mut Operation<'_>, parts: &PartList, run: Run, suspect: bool) {
        if let Some(to) = parts.destination
            && self.copy_wanted(operation, run, (parts.command, to), suspect)
        {
            return;
        }
        let data = piece(operation.data, self.format.data_bytes, run.entry, run.count);
        let short = (1..=DEFERRED_BYTES_MAX).contains(&data.len()) && matches!(self.store, Store::Memory(_));
        match parts.destination {
            Some(to)
                if short && !suspect && operation.whole.is_empty() && !self.deferred_copies.is_full() =>
            {
                self.defer(parts.command, run, WantedBytes::default(), to);
            }
            _ => {
                let oob = piece(operation.oob, self.format.oob_bytes, run.entry, run.count);
                let mut read = self.store.read(run.first.chunk, run.first.sector, data, oob);
                let whole = piece(operation.whole, self.format.sector_bytes, run.entry, run.count);
                if read.is_ok() && !whole.is_empty() {
                    read = self.store.read_whole(run.first.chunk, run.first.sector, whole);
                }
                if let Err(error) = read {
                    self.poison(operation, run.entry, run.count);
                    self.read_failed(parts.command, run, error);
                }
                if let Some(wanted) =
                    self.deferred_copies.wanted.as_ref().filter(|_| parts.destination.is_some())
                {
                    poison_unwanted(operation.whole, wanted);
                }
            }
        }
    }

    /// The bytes of a command's sectors that must be filled, if it is a read and these are not all.
    pub(crate) fn wanted_bytes(command: &Command, buffers: &Buffers) -> Option<Range<usize>> {
        let buffer = command.buffer.filter(|_| command.op == Op::Read)?;
        let bytes = buffers.wanted(buffer)?;
        let first = usize::try_from(command.buffer_first).expect("32 bits fit an index");
        let within = |byte: usize| byte.saturating_sub(first * buffers.format().sector_bytes);
        Some(within(bytes.start)..within(bytes.end))
    }

    /// Notes sectors that a read of this command copies later.
    fn defer(&mut self, command: SlabKey, run: Run, bytes: WantedBytes, to: Destination) {
        assert!(run.count > 0, "a read of nothing is copied later");
        let to = Destination { first: to.first + run.entry, ..to };
        let copy = DeferredCopy { first: run.first, count: run.count, bytes, to };
        let number = self.deferred_copies.push(copy);
        self.flow.command_mut(command).deferred_copy = number;
    }

    /// Copies those of a run's bytes that are wanted, now or later. False if all are, or the store has whole sectors to give.
    fn copy_wanted(
        &mut self,
        operation: &mut Operation<'_>,
        run: Run,
        (command, to): (SlabKey, Destination),
        suspect: bool,
    ) -> bool {
        let (Store::Memory(memory), Some(wanted)) = (&self.store, &self.deferred_copies.wanted) else {
            return false;
        };
        if !operation.whole.is_empty() {
            return false;
        }
        let unit = self.format.sector_bytes;
        assert_eq!(unit, self.format.data_bytes, "stamps are read whole");
        let data = piece(operation.data, unit, run.entry, run.count);
        let place = usize::try_from(run.entry).expect("32 bits fit an index") * unit;
        let within = |byte: usize| byte.saturating_sub(place).min(data.len());
        let (begin, end) = (within(wanted.start), within(wanted.end));
        if begin < end && !suspect && end - begin <= WANTED_BYTES_MAX && !self.deferred_copies.is_full() {
            let number = |bytes| u32::try_from(bytes).expect("few bytes");
            let bytes = WantedBytes { from: number(begin), count: number(end - begin) };
            self.defer(command, run, bytes, to);
        } else if begin < end {
            memory.read_bytes(run.first, begin, &mut data[begin..end]);
        }
        true
    }

    /// What could not be read is not handed out, nor what was in the buffer before: a pattern no writer is likely to have
    /// stored.
    pub(super) fn poison(&self, operation: &mut Operation<'_>, entry: u32, count: u32) {
        piece(operation.data, self.format.data_bytes, entry, count).fill(0xEC);
        piece(operation.oob, self.format.oob_bytes, entry, count).fill(0xEC);
        piece(operation.whole, self.format.sector_bytes, entry, count).fill(0xEC);
    }

    /// What came back is the first sector of the chunk, as if the rest of the address had been lost, and nobody knows.
    fn misdirect(&mut self, operation: &mut Operation<'_>, entry: u32, at: Ppa) {
        let written = self.chunks.get(at.chunk).write_pointer;
        assert!(at.sector < written, "sector {} of {written} written ones is misdirected", at.sector);
        let other = 0;
        let data = piece(operation.data, self.format.data_bytes, entry, 1);
        let oob = piece(operation.oob, self.format.oob_bytes, entry, 1);
        let mut read = self.store.read(at.chunk, other, data, oob);
        let whole = piece(operation.whole, self.format.sector_bytes, entry, 1);
        if read.is_ok() && !whole.is_empty() {
            read = self.store.read_whole(at.chunk, other, whole);
        }
        // A backing that fails here fails the reads that mean this sector, too.
        if read.is_err() {
            self.poison(operation, entry, 1);
        }
    }

    /// Meets the faults of a run. True if a sector came back only after the media were sensed again (High ECC).
    fn read_faults(
        &mut self,
        policy: ReadPolicy,
        operation: &mut Operation<'_>,
        parts: &PartList,
        run: Run,
    ) -> bool {
        let mut again = false;
        let chunk = *self.chunks.get(run.first.chunk);
        let wear_index = self.chunks.wear_index(run.first.chunk);
        for offset in 0..run.count {
            let at = Ppa::new(run.first.chunk, run.first.sector + offset);
            let lost = chunk.has_unreadable && self.chunks.is_unreadable(at);
            let outcome = if lost {
                ReadOutcome::Unrecovered
            } else {
                self.faults.read_outcome(at, chunk.cycles, wear_index)
            };
            let status = match outcome {
                ReadOutcome::Fine => continue,
                ReadOutcome::HighEcc if !policy.limited_retry => {
                    again = true;
                    self.chunk_notifications.push(NotificationKind::LowErrorRate, at, Some(1));
                    if !policy.report_high_ecc {
                        continue;
                    }
                    Status::HIGH_ECC
                }
                ReadOutcome::Misdirected => {
                    self.misdirect(operation, run.entry + offset, at);
                    continue;
                }
                ReadOutcome::Transient => {
                    self.poison(operation, run.entry + offset, 1);
                    Status::UNRECOVERED_READ
                }
                ReadOutcome::HighEcc | ReadOutcome::Unrecovered => {
                    self.poison(operation, run.entry + offset, 1);
                    self.chunk_notifications.push(NotificationKind::Unrecoverable, at, Some(1));
                    Status::UNRECOVERED_READ
                }
            };
            self.flow.command_mut(parts.command).fail(status, run.entry + offset, 1, None);
        }
        self.chunks.flags_mut(run.first.chunk).has_scheduled =
            chunk.has_scheduled && self.faults.is_scheduled(run.first.chunk);
        again
    }
}

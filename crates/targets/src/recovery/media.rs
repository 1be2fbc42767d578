//! Batches for mount: tags and pages read, padding written, with all units busy.
//!
//! Deliberately not here: what is read, and why.

use super::page_tag;
use crate::chunk_reports::{Doubt, Look, confirm, doubts, others};
use crate::mount_error::{MountError, look_at_drive, look_at_reads};
use crate::{read_again, send_again};
use ocssd_base::usize_of;
use ocssd_ftl::{ChunkIndex, InstanceGeometry, SectorTag, TAG_BYTES};
use ocssd_lightnvm::{
    Addresses, BlockingDevice, BufId, Buffers, ChunkId, Command, Geometry, Op, PlaneMode, Ppa, Status, Tag,
    VECTOR_MAX,
};

/// Commands of a batch (chosen: two for each unit of a drive with 32).
const BATCH: usize = 64;

/// A device with buffers to read into.
pub struct Media<'a> {
    pub device: &'a mut dyn BlockingDevice,
    plain: Vec<BufId>,
    whole: Vec<BufId>,
    /// Padding is on media when it is written, whatever the drive's cache forgets.
    is_padding_durable: bool,
    /// Nothing lies beside sectors: pages are known by what they say of themselves.
    is_untagged: bool,
    /// Sectors read so far.
    pub sectors_read: u64,
    /// Sectors of padding written so far.
    pub sectors_padded: u64,
}

/// A part of a chunk to be padded.
#[derive(Clone, Copy, Debug)]
pub struct Padding {
    pub chunk: ChunkId,
    pub from: u32,
    pub to: u32,
}

fn command(index: usize, op: Op, addresses: Addresses, buffer: BufId) -> Command {
    let tag = Tag(u32::try_from(index).expect("a batch is small"));
    assert!(addresses.count() <= VECTOR_MAX, "{} sectors in one command", addresses.count());
    Command {
        tag,
        op,
        addresses,
        buffer: Some(buffer),
        buffer_first: 0,
        oob: true,
        plane_mode: PlaneMode::Single,
    }
}

impl<'a> Media<'a> {
    pub fn new(device: &'a mut dyn BlockingDevice) -> Self {
        Self {
            device,
            plain: Vec::new(),
            whole: Vec::new(),
            is_padding_durable: false,
            is_untagged: false,
            sectors_read: 0,
            sectors_padded: 0,
        }
    }

    /// The same, whose padding survives a power cut: for a target whose next mount does not pad the same chunks again.
    pub fn with_durable_padding(self) -> Self {
        Self { is_padding_durable: true, ..self }
    }

    /// The same, on a device that keeps nothing beside sectors.
    pub fn without_tags(self) -> Self {
        Self { is_untagged: true, ..self }
    }

    /// Gives the buffers back to the pool.
    pub fn end(self) -> (u64, u64) {
        let buffers = self.device.buffers();
        self.plain.into_iter().chain(self.whole).for_each(|buffer| buffers.give_back(buffer));
        (self.sectors_read, self.sectors_padded)
    }

    fn need(&mut self, commands: usize, whole_sectors: Option<u32>) {
        assert!(commands <= BATCH, "{commands} commands in a batch");
        let buffers = self.device.buffers();
        let (list, sectors) = match whole_sectors {
            Some(sectors) => (&mut self.whole, sectors),
            None => (&mut self.plain, VECTOR_MAX),
        };
        if list.iter().any(|&buffer| buffers.sectors(buffer) < sectors) {
            list.drain(..).for_each(|buffer| buffers.give_back(buffer));
        }
        while list.len() < commands {
            list.push(if whole_sectors.is_some() {
                buffers.take_whole(sectors)
            } else {
                buffers.take(sectors)
            });
        }
    }

    /// The tag of each sector; `None` where the media lost it, or it has none.
    pub fn read_tags(&mut self, ppas: &[Ppa]) -> Result<Vec<Option<SectorTag>>, MountError> {
        if self.is_untagged {
            return page_tag::read(self, ppas);
        }
        let mut found = Vec::with_capacity(ppas.len());
        for batch in ppas.chunks(BATCH * usize_of(VECTOR_MAX)) {
            let lists: Vec<&[Ppa]> = batch.chunks(usize_of(VECTOR_MAX)).collect();
            self.need(lists.len(), None);
            let mut commands = Vec::new();
            for (index, list) in lists.iter().enumerate() {
                let buffer = self.plain[index];
                self.device.buffers().addresses_mut(buffer)[..list.len()].copy_from_slice(list);
                let count = u32::try_from(list.len()).expect("at most 64");
                commands.push(command(index, Op::Read, Addresses::List { offset: 0, count }, buffer));
            }
            self.sectors_read += u64::try_from(batch.len()).expect("an index fits 64 bits");
            let ends = read_again::call(self.device, &commands, BATCH)?;
            look_at_reads(&ends)?;
            let buffers = self.device.buffers();
            for (index, list) in lists.iter().enumerate() {
                for offset in (0..VECTOR_MAX).take(list.len()) {
                    let has_data = ends[index].status_of(offset).has_data();
                    let (data, oob) = (
                        buffers.data(self.plain[index], offset, 1),
                        buffers.oob(self.plain[index], offset, 1),
                    );
                    found.push(if has_data { SectorTag::decode(oob, data).ok() } else { None });
                }
            }
        }
        assert_eq!(found.len(), ppas.len(), "every sector was asked for");
        Ok(found)
    }

    /// Reads pages of `sectors` with all their bytes; `found` is told each page's, or nothing if the media failed any of it.
    pub fn read_pages(
        &mut self,
        firsts: &[Ppa],
        sectors: u32,
        mut found: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), MountError> {
        self.read_runs(firsts, sectors, |index, buffers, buffer| {
            found(index, buffer.map(|buffer| buffers.whole(buffer, 0, sectors)));
        })
    }

    /// As [`Self::read_pages`]; `found` is told the buffer of each page, with what lies beside its sectors.
    pub fn read_runs(
        &mut self,
        firsts: &[Ppa],
        sectors: u32,
        mut found: impl FnMut(usize, &Buffers, Option<BufId>),
    ) -> Result<(), MountError> {
        for (number, batch) in firsts.chunks(BATCH).enumerate() {
            self.need(batch.len(), Some(sectors));
            let runs = batch.iter().enumerate().map(|(index, &first)| {
                command(index, Op::Read, Addresses::Run { first, count: sectors }, self.whole[index])
            });
            let commands: Vec<Command> = runs.collect();
            self.sectors_read += u64::from(sectors) * u64::try_from(batch.len()).expect("an index");
            let ends = read_again::call(self.device, &commands, BATCH)?;
            look_at_reads(&ends)?;
            let buffers = self.device.buffers();
            for (index, end) in ends.iter().enumerate() {
                found(number * BATCH + index, buffers, end.status.has_data().then_some(self.whole[index]));
            }
        }
        Ok(())
    }

    /// Writes padding, `unit` sectors at a time, or fewer up to the next border of units. What the media fail is left as it
    /// is; a drive that fails is an error.
    pub fn pad(&mut self, paddings: &[Padding], unit: u32) -> Result<Vec<ChunkId>, MountError> {
        let mut left: Vec<Padding> = paddings.to_vec();
        let mut elsewhere = Vec::new();
        while left.iter().any(|padding| padding.from < padding.to) {
            left.retain(|padding| padding.from < padding.to);
            for batch in left.chunks_mut(BATCH) {
                self.need(batch.len(), None);
                let mut commands = Vec::new();
                for (index, padding) in batch.iter_mut().enumerate() {
                    let end = padding.to.min((padding.from / unit + 1) * unit);
                    let (first, count) = (Ppa::new(padding.chunk, padding.from), end - padding.from);
                    self.fill(self.plain[index], count);
                    let write = Op::Write { fua: self.is_padding_durable };
                    commands.push(command(index, write, Addresses::Run { first, count }, self.plain[index]));
                    padding.from = end;
                    self.sectors_padded += u64::from(count);
                }
                let ends = send_again::call(self.device, &commands)?;
                look_at_drive("a write of padding", &ends)?;
                for (padding, end) in batch.iter_mut().zip(ends) {
                    if !end.status.is_success() && end.status != Status::WRITE_NEXT_UNIT {
                        padding.to = padding.from;
                    }
                    if end.status == Status::OUT_OF_ORDER {
                        elsewhere.push(padding.chunk);
                    }
                }
            }
        }
        assert!(elsewhere.len() <= paddings.len(), "a chunk was refused twice");
        Ok(elsewhere)
    }

    /// Looks whether chunks hold what their reports do not tell, and not what they do, and has the drive look at those again.
    ///
    /// # Errors
    /// [`MountError::Report`] if a report is no better then.
    pub fn settle_reports(&mut self, shape: &InstanceGeometry) -> Result<(), MountError> {
        let chunks: Vec<ChunkId> =
            (0..shape.chunks()).map(|chunk| shape.chunk_id(ChunkIndex(chunk))).collect();
        let doubts = doubts(self.device, &chunks, Look::Open)?;
        self.tell_to_look(&doubts)?;
        let others = others(self.device, &chunks, &doubts);
        self.tell_to_look(&others)
    }

    /// Has the drive look at chunks in doubt, by writes that it refuses.
    fn tell_to_look(&mut self, doubts: &[Doubt]) -> Result<(), MountError> {
        let Geometry { ws_opt, sectors_per_chunk, .. } = *self.device.geometry();
        let padding = |doubt: &Doubt| {
            let to = (doubt.sector / ws_opt + 1) * ws_opt;
            Padding { chunk: doubt.chunk, from: doubt.sector, to: to.min(sectors_per_chunk) }
        };
        let paddings: Vec<Padding> = doubts.iter().map(padding).collect();
        self.pad(&paddings, ws_opt)?;
        confirm(self.device, doubts)
    }

    fn fill(&mut self, buffer: BufId, count: u32) {
        let buffers = self.device.buffers();
        for sector in 0..count {
            let (data, oob) = buffers.sectors_mut(buffer, sector, 1);
            data.fill(0);
            oob.fill(0);
            oob[..TAG_BYTES].copy_from_slice(&SectorTag::PAD.encode(data));
        }
    }
}

//! Flush, and the scalar read and write of the NVM command set (OCSSD 2.0 section 3.4; the mandatory way to data).

use super::completion::{INVALID_FIELD, Refused, SHORT_BUFFER};
use super::front_end::{Begun, Controller, IoBuffers, Submission, Work};
use super::pending::{Counted, Shape};
use crate::addresses::AddressList;
use crate::exec::{OperationKind, ReadPolicy};
use ocssd_lightnvm::{Lba, PlaneMode, Ppa};
use ocssd_nvme::sqe::ReadWrite;

/// What reads of nothing return, as DLFEAT says: 00h bytes.
pub(super) const PREDEFINED: u8 = 0x00;

impl Controller {
    pub(super) fn flush(&mut self, submission: &Submission) -> Begun {
        let work = Work {
            shape: Shape::Scalar,
            counted: Counted::Neither,
            kind: OperationKind::Flush,
            lba: Lba(0),
            addresses: AddressList::List(&[]),
            data: &mut [],
            oob: &mut [],
        };
        self.execute(submission, work)
    }

    pub(super) fn scalar_read(
        &mut self,
        submission: &Submission,
        buffers: &mut IoBuffers<'_>,
    ) -> Result<Begun, Refused> {
        let read = ReadWrite::of(&submission.sqe);
        let (data, oob) = self.sector_buffers(submission, read.block_count, buffers)?;
        let policy =
            self.read_policy(read.block_count, self.features.media_feedback.hecc, read.limited_retry);
        let mut scattered = std::mem::take(&mut self.scattered);
        let addresses = self.scalar_addresses(&read, &mut scattered);
        let kind = OperationKind::Read(policy);
        let (shape, counted) = (Shape::Scalar, Counted::Read);
        let begun =
            self.execute(submission, Work { shape, counted, kind, lba: read.slba, addresses, data, oob });
        self.scattered = scattered;
        Ok(begun)
    }

    pub(super) fn scalar_write(
        &mut self,
        submission: &Submission,
        buffers: &mut IoBuffers<'_>,
    ) -> Result<Begun, Refused> {
        let write = ReadWrite::of(&submission.sqe);
        // A directive (DTYPE, CDW12 bits 23:20) asks for something this drive does not have.
        if submission.sqe.cdw12 >> 20 & 0xF != 0 {
            return Err(INVALID_FIELD);
        }
        let (data, oob) = self.sector_buffers(submission, write.block_count, buffers)?;
        let first = self.geometry().ppa_of(write.slba);
        let addresses = AddressList::Run { first, count: write.block_count };
        let kind = self.write_kind(write.force_unit_access);
        let (shape, counted) = (Shape::Scalar, Counted::Write);
        Ok(self.execute(submission, Work { shape, counted, kind, lba: write.slba, addresses, data, oob }))
    }

    /// A write with the write cache off is a write with FUA.
    pub(super) fn write_kind(&self, force_unit_access: bool) -> OperationKind<'static> {
        OperationKind::Write { fua: force_unit_access || !self.features.write_cache }
    }

    /// What a 2.0 read of `count` sectors is told, as the features say. The revision has no plane mode: the controller drives
    /// the planes together for as many sectors as whole rows have (chosen: the rule Linux's pblk had on 1.2 drives).
    pub(super) fn read_policy(&self, count: u32, report_high_ecc: bool, limited_retry: bool) -> ReadPolicy {
        let unwritten_is_error = self.features.error_recovery.dulbe;
        let rows = count > 0 && count.is_multiple_of(self.config().row_sectors());
        let plane_mode = if rows { PlaneMode::Multi } else { PlaneMode::Single };
        ReadPolicy { unwritten_is_error, report_high_ecc, predefined: PREDEFINED, limited_retry, plane_mode }
    }

    /// A run if the addresses are one chunk's; else each by itself, since the next address may be another chunk's, or
    /// nobody's.
    fn scalar_addresses<'a>(&self, read: &ReadWrite, scattered: &'a mut Vec<Ppa>) -> AddressList<'a> {
        let geometry = self.geometry();
        let first = geometry.ppa_of(read.slba);
        let (end, chunk_end) = (first.sector.checked_add(read.block_count), geometry.sectors_per_chunk);
        if end.is_some_and(|end| end <= chunk_end) && first != Ppa::NOWHERE {
            return AddressList::Run { first, count: read.block_count };
        }
        let at = |offset: u32| {
            let lba = read.slba.0.checked_add(u64::from(offset));
            lba.map_or(Ppa::NOWHERE, |lba| geometry.ppa_of(Lba(lba)))
        };
        assert!(read.block_count <= 1 << 16, "a count of 16 bits, not {}", read.block_count);
        scattered.clear();
        scattered.extend((0..read.block_count).map(at));
        AddressList::Scattered(scattered)
    }

    /// The data and the metadata of `count` sectors. Metadata is moved if the command points to some.
    pub(super) fn sector_buffers<'a>(
        &self,
        submission: &Submission,
        count: u32,
        buffers: &'a mut IoBuffers<'_>,
    ) -> Result<(&'a mut [u8], &'a mut [u8]), Refused> {
        assert!(count > 0, "every command with sectors has at least one");
        let geometry = self.geometry();
        let bytes = u64::from(count) * u64::from(geometry.sector_bytes);
        if bytes > self.transfer_bytes_max() {
            return Err(INVALID_FIELD);
        }
        let format = self.flash.payload_format();
        let sectors = usize::try_from(count).expect("32 bits fit an index");
        let data = buffers.data.get_mut(..sectors * format.data_bytes).ok_or(SHORT_BUFFER)?;
        let wanted = submission.sqe.mptr.0 != 0 || !buffers.metadata.is_empty();
        let oob = if wanted {
            buffers.metadata.get_mut(..sectors * format.oob_bytes).ok_or(SHORT_BUFFER)?
        } else {
            &mut []
        };
        assert_eq!(data.len(), sectors * format.data_bytes, "exactly the sectors of the command");
        assert!(
            oob.is_empty() || oob.len() == sectors * format.oob_bytes,
            "metadata of every sector or of none"
        );
        Ok((data, oob))
    }
}

//! Dataset Management: with AD, each range is one whole chunk to reset (OCSSD 2.0 section 3.4.1; NVMe 1.4 section
//! 6.7).

use super::completion::{INVALID_FIELD, Refused, SHORT_BUFFER};
use super::front_end::{Begun, Controller, IoBuffers, Submission, Work};
use super::pending::{Counted, Shape};
use crate::addresses::AddressList;
use crate::exec::OperationKind;
use ocssd_lightnvm::{Lba, Ppa, Status};
use ocssd_nvme::ocssd20::DsmRange;
use ocssd_nvme::sqe::DatasetManagement;

impl Controller {
    pub(super) fn dataset_management(
        &mut self,
        submission: &Submission,
        buffers: &mut IoBuffers<'_>,
    ) -> Result<Begun, Refused> {
        let dsm = DatasetManagement::of(&submission.sqe);
        if !dsm.deallocate {
            return Ok(Begun::Nothing);
        }
        let bytes = usize::from(dsm.range_count) * DsmRange::BYTES;
        let ranges = buffers.data.get(..bytes).ok_or(SHORT_BUFFER)?;
        let mut scattered = std::mem::take(&mut self.scattered);
        let first = self.range_chunks(ranges, &mut scattered);
        let begun = first.map(|lba| {
            let work = Work {
                shape: Shape::Scalar,
                counted: Counted::Neither,
                kind: OperationKind::Reset,
                lba,
                addresses: AddressList::Scattered(&scattered),
                data: &mut [],
                oob: &mut [],
            };
            self.execute(submission, work)
        });
        self.scattered = scattered;
        begun
    }

    /// The chunk of each range, and the address of the first. A range that is not one whole chunk refuses the command
    /// before any chunk is looked at; one that names no chunk is left to the rules of resets.
    fn range_chunks(&self, ranges: &[u8], chunks: &mut Vec<Ppa>) -> Result<Lba, Refused> {
        let geometry = self.geometry();
        chunks.clear();
        let mut first = None;
        for range in ranges.chunks_exact(DsmRange::BYTES) {
            let range = DsmRange::decode(range).expect("the slice is cut to size");
            let address = geometry.lba_format.unpack(range.slba);
            if address.is_some_and(|address| address.sector != 0) {
                return Err(INVALID_FIELD);
            }
            if range.nlb != geometry.sectors_per_chunk {
                return Err(Refused(Status::LBA_OUT_OF_RANGE));
            }
            first.get_or_insert(range.slba);
            chunks.push(geometry.ppa_of(range.slba));
        }
        assert!(
            !chunks.is_empty() && chunks.len() <= 256,
            "a command names 1 to 256 ranges, not {}",
            chunks.len()
        );
        Ok(first.expect("there is at least one range"))
    }
}

//! A request judged: what is to be done on which bytes, or which status is the answer.
//!
//! Source: VIRTIO 1.2, section 5.2.6.2. Deliberately not here: doing it.

use super::config::{DISCARD_SECTORS_MAX, RANGES_MAX, REQUEST_BYTES_MAX, ZEROES_SECTORS_MAX};
use super::request::{BlkStatus, FLAG_UNMAP, Header, RANGE_BYTES, SECTOR_BYTES, SectorRange, kind};
use crate::exports::Export;
use crate::stats::Stats;
use ocssd_lightnvm::Status;

/// What is done with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is read into the payload.
    Read,
    /// The payload is written to it.
    Write,
    /// Zeroes are written to it as any data.
    Zeroes,
    /// It is not needed any more.
    Discard,
    /// It reads as zeroes.
    WriteZeroes,
}

/// Bytes of the device, and what is done with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// What.
    pub step: Step,
    /// First byte; a multiple of a block.
    pub offset: u64,
    /// How many; a multiple of a block and at least one.
    pub bytes: u64,
}

/// What a request comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingPlan {
    /// The ranges, which have been put in the list.
    Ranges,
    /// Makes durable what has ended.
    Flush,
    /// The device's name goes into the payload.
    Id,
}

/// Payload of a request.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// Bytes the device may read behind the header.
    pub readable_bytes: u64,
    /// Bytes it may write in front of the status.
    pub writable_bytes: u64,
    /// The readable ones, if they are few enough to be ranges.
    pub text: &'a [u8],
}

/// Most bytes of ranges.
pub const TEXT_BYTES_MAX: usize = RANGES_MAX * RANGE_BYTES;

/// Judges a request; its ranges go into `ranges`, which is empty.
///
/// # Errors
/// The status the guest is to see.
pub fn plan(
    header: &Header,
    payload: &Payload<'_>,
    export: &Export,
    ranges: &mut Vec<Range>,
) -> Result<RingPlan, BlkStatus> {
    if changes(header.kind) && export.read_only {
        return Err(BlkStatus::IoErr);
    }
    match header.kind {
        kind::IN => transfer(Step::Read, header.sector, payload.writable_bytes, export, ranges),
        kind::OUT => transfer(Step::Write, header.sector, payload.readable_bytes, export, ranges),
        kind::FLUSH => Ok(RingPlan::Flush),
        kind::GET_ID if payload.writable_bytes > 0 => Ok(RingPlan::Id),
        kind::GET_ID => Err(BlkStatus::IoErr),
        kind::DISCARD | kind::WRITE_ZEROES => {
            let bytes = usize::try_from(payload.readable_bytes).unwrap_or(usize::MAX);
            if bytes == 0 || bytes > TEXT_BYTES_MAX || bytes % RANGE_BYTES != 0 {
                return Err(BlkStatus::IoErr);
            }
            assert_eq!(bytes, payload.text.len(), "the ranges are not what came");
            for text in payload.text.chunks_exact(RANGE_BYTES) {
                let range = SectorRange::decode(text.try_into().expect("chunks are exact"));
                ranges.push(judge(header.kind, &range, export)?);
            }
            Ok(RingPlan::Ranges)
        }
        _ => Err(BlkStatus::Unsupp),
    }
}

/// It would change the device.
#[must_use]
pub const fn changes(kind: u32) -> bool {
    matches!(kind, kind::OUT | kind::DISCARD | kind::WRITE_ZEROES)
}

fn transfer(
    step: Step,
    sector: u64,
    bytes: u64,
    export: &Export,
    ranges: &mut Vec<Range>,
) -> Result<RingPlan, BlkStatus> {
    if bytes > REQUEST_BYTES_MAX {
        return Err(BlkStatus::IoErr);
    }
    ranges.push(within(step, sector, bytes, export)?);
    Ok(RingPlan::Ranges)
}

/// A range of a discard or of zeroes.
fn judge(kind: u32, range: &SectorRange, export: &Export) -> Result<Range, BlkStatus> {
    let unmap = range.flags & FLAG_UNMAP != 0;
    let (step, most) = match kind {
        kind::DISCARD => (Step::Discard, DISCARD_SECTORS_MAX),
        _ if unmap => (Step::WriteZeroes, ZEROES_SECTORS_MAX),
        _ => (Step::Zeroes, ZEROES_SECTORS_MAX),
    };
    if range.flags & !FLAG_UNMAP != 0 || step == Step::Discard && unmap {
        return Err(BlkStatus::Unsupp);
    }
    if range.count > most {
        return Err(BlkStatus::IoErr);
    }
    within(step, range.sector, u64::from(range.count) * SECTOR_BYTES, export)
}

/// A range, if it is of whole blocks within the device and not empty.
fn within(step: Step, sector: u64, bytes: u64, export: &Export) -> Result<Range, BlkStatus> {
    let block = u64::from(export.block_bytes);
    let offset = sector.checked_mul(SECTOR_BYTES).ok_or(BlkStatus::IoErr)?;
    let fits = offset.checked_add(bytes).is_some_and(|end| end <= export.bytes());
    if bytes == 0 || !fits || !offset.is_multiple_of(block) || !bytes.is_multiple_of(block) {
        return Err(BlkStatus::IoErr);
    }
    Ok(Range { step, offset, bytes })
}

/// Counts a request.
pub fn count(stats: &mut Stats, kind: u32) {
    match kind {
        kind::IN => stats.reads += 1,
        kind::OUT => stats.writes += 1,
        kind::FLUSH => stats.flushes += 1,
        kind::DISCARD => stats.trims += 1,
        kind::WRITE_ZEROES => stats.zeroes += 1,
        _ => {}
    }
}

/// What a guest sees of a target's status.
#[must_use]
pub fn status_of(status: Status) -> BlkStatus {
    match status {
        _ if status.has_data() => BlkStatus::Ok,
        Status::INVALID_OPCODE => BlkStatus::Unsupp,
        _ => BlkStatus::IoErr,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 blocks of 4 KiB: 800 sectors.
    fn export(read_only: bool) -> Export {
        Export { block_bytes: 4096, read_only, ..Export::example() }
    }

    type Found = Result<(RingPlan, Vec<Range>), BlkStatus>;

    fn judge(kind: u32, sector: u64, readable: u64, writable: u64, text: &[u8]) -> Found {
        let payload = Payload { readable_bytes: readable, writable_bytes: writable, text };
        let mut ranges = Vec::new();
        plan(&Header { kind, sector }, &payload, &export(false), &mut ranges).map(|plan| (plan, ranges))
    }

    fn ranges(kind: u32, list: &[(u64, u32, u32)]) -> Found {
        let text: Vec<u8> = list
            .iter()
            .flat_map(|&(sector, count, flags)| SectorRange { sector, count, flags }.encode())
            .collect();
        judge(kind, 0, u64::try_from(text.len()).unwrap(), 0, &text)
    }

    #[test]
    fn reads_and_writes_of_whole_blocks_within_the_device_are_carried_out() {
        let one = |step, offset, bytes| Ok((RingPlan::Ranges, vec![Range { step, offset, bytes }]));
        assert_eq!(judge(kind::IN, 792, 0, 4096, &[]), one(Step::Read, 792 * 512, 4096));
        assert_eq!(judge(kind::OUT, 8, 8192, 0, &[]), one(Step::Write, 4096, 8192));
        assert_eq!(judge(kind::FLUSH, 99, 0, 0, &[]), Ok((RingPlan::Flush, vec![])));
        assert_eq!(judge(kind::GET_ID, 0, 0, 20, &[]), Ok((RingPlan::Id, vec![])));
    }

    #[test]
    fn what_cannot_be_is_an_error_and_what_is_unknown_unsupported() {
        let io = Err(BlkStatus::IoErr);
        for (kind, sector, readable, writable) in [
            (kind::IN, 0, 0, 0),
            (kind::IN, 800, 0, 4096),
            (kind::IN, 792, 0, 8192),
            (kind::IN, 1, 0, 4096),
            (kind::IN, 0, 0, 512),
            (kind::IN, u64::MAX, 0, 4096),
            (kind::IN, u64::MAX / 512, 0, 4096),
            (kind::OUT, 0, 0, 4096),
            (kind::OUT, 0, REQUEST_BYTES_MAX + 4096, 0),
            (kind::OUT, 0, u64::MAX, 0),
            (kind::GET_ID, 0, 0, 0),
            (kind::DISCARD, 0, 0, 0),
            (kind::DISCARD, 0, 15, 0),
            (kind::DISCARD, 0, u64::MAX, 0),
        ] {
            assert_eq!(judge(kind, sector, readable, writable, &[]), io, "{kind} {sector} {readable}");
        }
        for kind in [2, 3, 9, 10, 14, 16, u32::MAX] {
            assert_eq!(judge(kind, 0, 0, 0, &[]), Err(BlkStatus::Unsupp), "{kind}");
        }
    }

    #[test]
    fn ranges_are_judged_one_by_one() {
        let found = ranges(kind::WRITE_ZEROES, &[(8, 8, 0), (16, 16, FLAG_UNMAP)]).unwrap().1;
        assert_eq!(
            found.iter().map(|range| range.step).collect::<Vec<_>>(),
            [Step::Zeroes, Step::WriteZeroes]
        );
        let discard = Range { step: Step::Discard, offset: 0, bytes: 800 * 512 };
        assert_eq!(ranges(kind::DISCARD, &[(0, 800, 0)]), Ok((RingPlan::Ranges, vec![discard])));
        for (list, expected) in [
            (&[(0, 8, FLAG_UNMAP)][..], BlkStatus::Unsupp),
            (&[(0, 8, 2)], BlkStatus::Unsupp),
            (&[(0, 8, 0), (0, 0, 0)], BlkStatus::IoErr),
            (&[(0, 4, 0)], BlkStatus::IoErr),
            (&[(800, 8, 0)], BlkStatus::IoErr),
            (&[(u64::MAX, u32::MAX, 0)], BlkStatus::IoErr),
            (&[(0, 8, 0); RANGES_MAX + 1], BlkStatus::IoErr),
        ] {
            assert_eq!(ranges(kind::DISCARD, list), Err(expected), "{list:?}");
        }
    }

    #[test]
    fn a_read_only_export_refuses_changes_and_nothing_else() {
        let payload = Payload { readable_bytes: 4096, writable_bytes: 4096, text: &[] };
        let kinds = [kind::OUT, kind::DISCARD, kind::WRITE_ZEROES, kind::IN, kind::FLUSH, kind::GET_ID];
        let found = kinds
            .map(|kind| plan(&Header { kind, sector: 0 }, &payload, &export(true), &mut Vec::new()).err());
        let io = Some(BlkStatus::IoErr);
        assert_eq!(found, [io, io, io, None, None, None]);
    }

    #[test]
    fn every_status_that_is_no_success_is_an_error() {
        for status in Status::all() {
            assert_eq!(status_of(status) == BlkStatus::Ok, status.has_data(), "{status}");
        }
    }
}

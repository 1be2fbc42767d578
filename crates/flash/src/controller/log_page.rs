//! Get Log Page (02h): any slice of a page, by byte offset and length.

use super::completion::{INVALID_FIELD, Refused, SHORT_BUFFER};
use super::front_end::{Controller, NSID, NSID_ALL};
use crate::chunk_notifications::{NOTIFICATIONS_MAX, Notification, NotificationKind};
use crate::config::Revision;
use ocssd_base::Nanos;
use ocssd_lightnvm::{ChunkDescriptor, ChunkId, ChunkState, Status};
use ocssd_nvme::Sqe;
use ocssd_nvme::log_page::{FirmwareSlots, LogPageId};
use ocssd_nvme::ocssd20::{
    self, ChunkKind, ChunkNotification, ChunkType, NotificationMask, NotificationState,
};
use ocssd_nvme::sqe::GetLogPage;

/// The slice a host asked for.
#[derive(Clone, Copy, Debug)]
struct Slice {
    first: u64,
    bytes: usize,
}

impl Slice {
    /// Copies what of a page lies in the slice; `out` is as long as the slice.
    fn copy(self, page: &[u8], out: &mut [u8]) {
        self.copy_part(0, page, out);
    }

    /// Copies what of `part`, which lies at byte `at` of a page, lies in the slice.
    fn copy_part(self, at: u64, part: &[u8], out: &mut [u8]) {
        assert_eq!(out.len(), self.bytes, "the host's buffer was cut to the slice");
        let skip = usize::try_from(self.first.saturating_sub(at)).unwrap_or(usize::MAX);
        let start = usize::try_from(at.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let (Some(from), Some(to)) = (part.get(skip..), out.get_mut(start..)) else { return };
        let count = from.len().min(to.len());
        to[..count].copy_from_slice(&from[..count]);
    }
}

impl Controller {
    pub(super) fn get_log_page(&mut self, now: Nanos, sqe: &Sqe, data: &mut [u8]) -> Result<(), Refused> {
        let get = GetLogPage::of(sqe);
        let page_bytes = self.log_page_bytes(get.lid).ok_or(Refused(Status::INVALID_LOG_PAGE))?;
        check_namespace(get.lid, sqe.nsid)?;
        let (first, bytes) = (get.offset_bytes, get.byte_count());
        if !first.is_multiple_of(4) || first >= page_bytes || bytes > self.transfer_bytes_max() {
            return Err(INVALID_FIELD);
        }
        let bytes = usize::try_from(bytes).expect("a transfer fits memory");
        let out = data.get_mut(..bytes).ok_or(SHORT_BUFFER)?;
        // What lies beyond the end of the page reads as zeros.
        out.fill(0);
        assert!(first.is_multiple_of(4) && bytes.is_multiple_of(4), "a slice is whole dwords");
        let slice = Slice { first, bytes };
        match get.lid {
            LogPageId::ERROR_INFORMATION => slice.copy(&self.health.error_page(), out),
            LogPageId::SMART => slice.copy(&self.smart_log(now).encode(), out),
            LogPageId::FIRMWARE_SLOT => slice.copy(&self.firmware_slots().encode(), out),
            LogPageId::CHUNK_INFORMATION => self.chunk_page(slice, out),
            _ => self.notification_page(slice, get.retain_event, out),
        }
        if !get.retain_event {
            self.events.log_was_read(get.lid);
        }
        Ok(())
    }

    /// The size of a page; `None` if the drive does not have it.
    fn log_page_bytes(&self, lid: LogPageId) -> Option<u64> {
        let entries = |count: usize, bytes: usize| u64::try_from(count * bytes).expect("a page fits 64 bits");
        let is_20 = self.config().revision == Revision::V20;
        match lid {
            LogPageId::ERROR_INFORMATION => Some(entries(super::health::ERRORS_MAX, 64)),
            LogPageId::SMART | LogPageId::FIRMWARE_SLOT => Some(512),
            LogPageId::CHUNK_INFORMATION if is_20 => Some(u64::from(self.geometry().chunk_count()) * 32),
            LogPageId::CHUNK_NOTIFICATION if is_20 => {
                Some(entries(NOTIFICATIONS_MAX, ChunkNotification::BYTES))
            }
            _ => None,
        }
    }

    fn firmware_slots(&self) -> FirmwareSlots {
        let mut revisions = [None; 7];
        revisions[0] = Some(self.identify_controller().fr);
        FirmwareSlots { active_slot: 1, next_slot: 0, revisions }
    }

    /// Chunk information: only the chunks in the slice are looked at.
    fn chunk_page(&self, slice: Slice, out: &mut [u8]) {
        let end = slice.first + u64::try_from(slice.bytes).expect("a length fits 64 bits");
        let last = end.div_ceil(32).min(self.geometry().chunk_count().into());
        for index in slice.first / 32..last {
            let chunk = ChunkId(u32::try_from(index).expect("below the number of chunks"));
            slice.copy_part(index * 32, &wire_descriptor(&self.flash.chunk(chunk)).encode(), out);
        }
    }

    /// Chunk notifications, oldest first, then entries of zeros. Unless the event is retained, those up to the last
    /// one read as a whole are forgotten.
    fn notification_page(&mut self, slice: Slice, retain: bool, out: &mut [u8]) {
        let end = slice.first + u64::try_from(slice.bytes).expect("a length fits 64 bits");
        let mut read = None;
        for (at, notification) in
            (0..).step_by(ChunkNotification::BYTES).zip(self.flash.chunk_notifications())
        {
            slice.copy_part(at, &self.wire_notification(notification).encode(), out);
            if at + 64 <= end {
                read = Some(notification.count);
            }
        }
        assert!(
            self.flash.chunk_notifications().count() <= NOTIFICATIONS_MAX,
            "more notifications than the page has entries"
        );
        if let Some(count) = read.filter(|_| !retain) {
            self.flash.chunk_notifications_read(count);
        }
    }

    fn wire_notification(&self, notification: &Notification) -> ChunkNotification {
        let state = match notification.kind {
            NotificationKind::LowErrorRate => NotificationState::ERROR_RATE_LOW,
            NotificationKind::Unrecoverable => NotificationState::UNRECOVERABLE,
            NotificationKind::WearOutside => NotificationState::WEAR_OUTSIDE_THRESHOLD,
        };
        assert!(notification.count > 0, "notifications count from 1; 0 marks an entry that holds nothing");
        let mask = match notification.sectors {
            Some(_) => NotificationMask::LOGICAL_BLOCKS,
            None => NotificationMask::CHUNK,
        };
        let lba = self.geometry().lba_of(notification.at);
        let block_count = notification.sectors.unwrap_or(1);
        ChunkNotification { nc: notification.count, lba, nsid: NSID, state, mask, block_count }
    }
}

/// Pages of chunks are the namespace's, the others the controller's (LPA bit 0 is clear: no health per namespace).
fn check_namespace(lid: LogPageId, nsid: u32) -> Result<(), Refused> {
    let of_namespace = matches!(lid, LogPageId::CHUNK_INFORMATION | LogPageId::CHUNK_NOTIFICATION);
    match (of_namespace, nsid) {
        (true, NSID) | (false, 0 | NSID_ALL) => Ok(()),
        (false, NSID) => Err(INVALID_FIELD),
        _ => Err(Refused(Status::INVALID_NAMESPACE)),
    }
}

/// A chunk's descriptor in the wire's types. The write pointer is relative, and all ones when OFFLINE.
pub(super) fn wire_descriptor(chunk: &ChunkDescriptor) -> ocssd20::ChunkDescriptor {
    let cs = match chunk.state {
        ChunkState::Free => ocssd20::ChunkState::Free,
        ChunkState::Open => ocssd20::ChunkState::Open,
        ChunkState::Closed => ocssd20::ChunkState::Closed,
        ChunkState::Offline => ocssd20::ChunkState::Offline,
    };
    let offline = chunk.state == ChunkState::Offline;
    assert_eq!(chunk.write_pointer.is_none(), offline, "only an OFFLINE chunk has no write pointer");
    assert!(
        chunk.write_pointer.is_none_or(|pointer| pointer <= chunk.sectors),
        "a write pointer beyond its chunk"
    );
    ocssd20::ChunkDescriptor {
        cs,
        ct: ChunkType { kind: ChunkKind::SequentialWrite, size_deviates: false },
        wli: chunk.wear_index,
        slba: chunk.first,
        cnlb: chunk.sectors.into(),
        wp: chunk.write_pointer.map_or(u64::MAX, u64::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_takes_what_of_a_part_lies_in_it() {
        let slice = Slice { first: 6, bytes: 4 };
        let table: [(u64, &[u8], [u8; 4]); 5] = [
            (0, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [6, 7, 8, 9]),
            (4, &[4, 5, 6, 7], [6, 7, 0xFF, 0xFF]),
            (8, &[8, 9, 10], [0xFF, 0xFF, 8, 9]),
            (0, &[0, 1], [0xFF; 4]),
            (10, &[10], [0xFF; 4]),
        ];
        for (at, part, expected) in table {
            let mut out = [0xFF; 4];
            slice.copy_part(at, part, &mut out);
            assert_eq!(out, expected, "part at {at}");
        }
    }
}

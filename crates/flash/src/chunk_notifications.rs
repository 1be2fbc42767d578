//! Chunk notifications (OCSSD 2.0 section 3.2.3, log page D0h): what the drive wants the host to know about its media.
//!
//! A bounded ring; when it is full the oldest goes, and its counter shows the gap. Deliberately not here: the 64-byte
//! wire form and the asynchronous event that announces them (`controller`).

use ocssd_lightnvm::Ppa;
use std::collections::VecDeque;

/// Chosen: as many entries as 16 KiB of log page hold.
pub(crate) const NOTIFICATIONS_MAX: usize = 256;

/// What happened (the State field).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationKind {
    /// Error rate is low, but above normal: High ECC.
    LowErrorRate,
    /// Data was lost: unrecoverable.
    Unrecoverable,
    /// The wear index is further from the average than the threshold.
    WearOutside,
}

/// One notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Counts from 1, one more per event, gaps where the ring overflowed.
    pub count: u64,
    /// What happened.
    pub kind: NotificationKind,
    /// The first sector it is about.
    pub at: Ppa,
    /// How many sectors; `None` if the whole chunk is meant.
    pub sectors: Option<u32>,
}

/// The notifications not read yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChunkNotifications {
    queue: VecDeque<Notification>,
    count: u64,
}

impl ChunkNotifications {
    pub(crate) fn push(&mut self, kind: NotificationKind, at: Ppa, sectors: Option<u32>) {
        self.count += 1;
        if self.queue.len() == NOTIFICATIONS_MAX {
            self.queue.pop_front();
        }
        self.queue.push_back(Notification { count: self.count, kind, at, sectors });
        assert!(self.queue.len() <= NOTIFICATIONS_MAX, "the ring of notifications overflowed");
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Notification> {
        self.queue.iter()
    }

    /// Forgets those up to and including `count`.
    pub(crate) fn read_up_to(&mut self, count: u64) {
        while self.queue.front().is_some_and(|notification| notification.count <= count) {
            self.queue.pop_front();
        }
    }
}

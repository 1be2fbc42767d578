//! Requests in flight: a place each, whose number is the request's tag.

use crate::job::IoPriority;
use ocssd_base::Nanos;
use ocssd_lightnvm::BufId;

/// What a request in flight is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A measured read.
    Read,
    /// A measured write.
    Write,
    /// A measured trim.
    Trim,
    /// A zone made empty before it is written again.
    Reset,
    /// A flush the job asked for.
    Flush,
    /// A read that compares what was written.
    Verify,
}

/// One place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) worker: u32,
    pub(super) purpose: Purpose,
    pub(super) block: u64,
    /// 0 while the place is free, and for a flush or a reset.
    pub(super) count: u32,
    /// When it was issued, and when it was meant to be.
    pub(super) issued: Nanos,
    pub(super) intended: Nanos,
    /// The write's own number; for a read, the newest number it may return, 0 if a write may overtake it.
    pub(super) sequence: u64,
    pub(super) buffer: BufId,
    /// Of jobs whose report says it.
    pub(super) priority: IoPriority,
}

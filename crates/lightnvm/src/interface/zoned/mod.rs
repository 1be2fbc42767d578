//! The zoned interface: the zoned storage model of the NVMe Zoned Namespace Command Set (ZNS) 1.1, as types.
//!
//! A zone is a run of `zone_blocks` addresses of which the first `capacity_blocks` hold data. It is written in order at
//! its write pointer and reset as a whole.
//!
//! **Order.** Writes, appends and zone management take effect in the order in which the target took them. A host may
//! have several writes to one zone outstanding, if it sends them in order.
//!
//! **Durability.** Blocks survive a power cut once their write was answered with [`Durability::AtReply`], or once a flush is
//! answered that the target took after their answer. Blocks of a zone become durable in order, so a durable block makes
//! all before it durable. Zone management is durable when answered.
//!
//! **After a power cut** each zone is what it was after some request it took, at or after the last durable one, and a write
//! may end after any of its blocks. Zones are independent of each other. Open zones are closed then, or empty if nothing
//! of them survived; full, read only and offline ones stay so.
//!
//! **Atomicity.** A block is old or new. A write of several blocks may be cut between two of them.
//!
//! **Errors.** A request is judged before anything changes: range, then the state of the zone, then the write pointer, then
//! the zone's capacity, then resources (the order of QEMU's namespace, chosen). A refused request changes nothing.
//!
//! **Resources.** Open and closed zones are *active*. A write that needs an open zone beyond `open_max` closes an implicitly
//! opened one if there is any; explicitly opened zones stay until the host closes them.
//!
//! **Extensions.** A host sets the descriptor extension of an empty zone, which becomes closed by that and holds an active
//! resource. The extension stays until the zone is reset or becomes offline; it is durable when answered. After a power cut a zone
//! with an extension and without a block is closed, not empty.
//!
//! **Random write areas** ([`ZoneArea`]). A zone that was opened with an area takes writes in any order, again and again, in the
//! blocks of the area from its write pointer on. A write moves the pointer only if it ends behind the area, which it may
//! by as many blocks as an area has: then as little as lets it lie in the area is committed, in whole granules
//! ([`ZoneArea::granularity`]), at most to the zone's capacity. [`ZonedOp::CommitArea`] commits what the host names. Blocks
//! that were committed and never written read as unwritten ones do. The zone is full when the pointer is at its capacity. It
//! takes no appends. It keeps its area while it is open or closed; finishing it keeps what was written.
//!
//! Writes to an area are durable as any others: answered with [`Durability::AtReply`], or by a flush; a durable one makes durable
//! what its zone took before it. A commit is durable when answered, and what it commits with it. Writes that are not durable do
//! not survive in order, for NVMe promises no order of writes to different blocks: after a power cut each block of an area is the
//! last version that was durable, or a later one, and unwritten if none was. A power cut takes the areas away. What survived in
//! one is committed then, so that the pointer lies between what was durable and what was written, each up to the end of the last
//! granule of which a block was.
//!
//! Deliberately not here: conventional zones, which Linux refuses.

mod area;
mod descriptor;
mod extension;

pub use area::ZoneArea;
pub use descriptor::{DESCRIPTOR_BYTES, ZoneDescriptor, ZoneState};
pub use extension::{DescribedZone, EXTENSION_BYTES, WidthHint, ZoneExtension};

use super::{Durability, List};
use crate::ChunkId;
use crate::buffers::BufId;
use crate::command::Tag;
use crate::status::Status;
use crate::target::Target;
use ocssd_base::Problems;

/// What is done to a zone (ZNS 1.1, Zone Send Action).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZoneAction {
    /// Empty, closed and implicitly opened zones become explicitly opened. Of all zones: the closed ones, or none if there
    /// are not enough resources. With a limit on open zones these are also the zones the target closed for others, so a
    /// host that wants certain ones opens them one by one.
    Open,
    /// Open zones become closed. Of all zones: the open ones.
    Close,
    /// Every zone that can be written becomes full; what lies behind its write pointer stays unwritten. Of all zones: the
    /// open and closed ones.
    Finish,
    /// The zone becomes empty. Of all zones: those that are neither empty, read only nor offline.
    Reset,
    /// A read only zone becomes offline. Of all zones: the read only ones.
    Offline,
}

/// Which zones an action is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZoneScope {
    /// The zone that starts at the request's address.
    One,
    /// All zones the action is meant for (Select All); the address is ignored. Never refused for the state of a zone.
    All,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZonedOp {
    /// Fills the buffer. The blocks lie in one zone.
    Read,
    /// Stores the buffer at the address, which must be the zone's write pointer.
    Write {
        /// When it survives a power cut.
        durability: Durability,
    },
    /// Stores the buffer at the write pointer of the zone that starts at the address; the reply says where that was.
    Append {
        /// When it survives a power cut.
        durability: Durability,
    },
    /// Replies when everything answered before is durable.
    Flush,
    /// Zone Management Send.
    Manage {
        /// What to do.
        action: ZoneAction,
        /// To which zones.
        scope: ZoneScope,
    },
    /// Zone Management Receive: fills the buffer, which is whole, with at most `count` descriptors ([`List`]), those of
    /// the zone of the address and the zones after it.
    Report {
        /// Only zones in this state.
        only: Option<ZoneState>,
    },
    /// As [`Self::Report`], with zones and their extensions (Extended Report Zones). Refused with Invalid Field where zones take no
    /// extensions.
    ReportExtended {
        /// Only zones in this state.
        only: Option<ZoneState>,
    },
    /// Sets the descriptor extension of the empty zone that starts at the address: the one entry of the buffer, which is whole
    /// ([`List`] of [`ZoneExtension`]). The zone becomes closed. Refused with Invalid Field where zones take no
    /// extensions. A width hint wider than the target's own width means that width.
    SetExtension,
    /// Opens the zone that starts at the address, as [`ZoneAction::Open`], and gives it an area (Zone Management Send with ZRWAA).
    /// Nothing more for a zone that has one. Refused with ZRWA Resources Unavailable if too many zones have one or the zone's
    /// write pointer is not at the start of a granule (the status QEMU's namespace gives, chosen), with Invalid Zone
    /// Operation Request where there are no areas.
    OpenWithArea,
    /// Commits the area's blocks up to the one at the address, with it (Commit ZRWA); a closed zone is implicitly opened. Refused
    /// with Invalid Field if the zone has no area, or the block is not in it or not the last of a granule or of the zone.
    CommitArea,
    /// Replies when everything is durable and the target can be left; nothing may be asked of it afterwards.
    Shutdown,
}

/// A request to a zoned target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonedRequest {
    /// The host's name for it.
    pub tag: Tag,
    /// What to do.
    pub op: ZonedOp,
    /// First block; the first of a zone for append and management; 0 for flush and shutdown.
    pub block: u64,
    /// How many blocks, or descriptors; 0 for management, extensions, flush and shutdown.
    pub count: u32,
    /// The host's buffer, from its first sector on, as in [`BlockRequest`](crate::block::BlockRequest).
    pub buffer: Option<BufId>,
}

/// What a successful request brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZonedAnswer {
    /// Nothing but that it was done; also of a refused request.
    Done,
    /// Where an append landed: the address of its first block.
    Appended {
        /// The block.
        block: u64,
    },
    /// What a report found.
    Reported {
        /// Descriptors in the buffer.
        listed: List<ZoneDescriptor>,
        /// Zones from the address on that match, listed or not.
        matching: u32,
    },
    /// What an extended report found.
    ReportedExtended {
        /// Zones in the buffer.
        listed: List<DescribedZone>,
        /// Zones from the address on that match, listed or not.
        matching: u32,
    },
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonedReply {
    /// The request's tag.
    pub tag: Tag,
    /// Success, or why not: Zone Boundary Error, Zone Is Full, Zone Is Read Only, Zone Is Offline, Zone Invalid Write, Too
    /// Many Active Zones, Too Many Open Zones, Invalid Zone State Transition, Invalid Field, LBA out of Range, Unwritten,
    /// or a failure of the media.
    pub status: Status,
    /// What came of it.
    pub answer: ZonedAnswer,
}

/// What a read of blocks at or behind the write pointer gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwrittenRead {
    /// Zeroes: what Linux expects of a namespace without DULBE.
    Zeroes,
    /// The status Deallocated or Unwritten Logical Block.
    Refused,
}

/// The zones of a target, and its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneGeometry {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Zone size (ZSZE): addresses from one zone's start to the next, in blocks. Linux wants a power of two.
    pub zone_blocks: u64,
    /// Zone capacity (ZCAP): blocks of a zone that hold data, from its start.
    pub capacity_blocks: u64,
    /// How many zones.
    pub zone_count: u32,
    /// Most zones that are open or closed at once (MAR + 1); `None` is no limit.
    pub active_max: Option<u32>,
    /// Most zones that are open at once (MOR + 1); `None` is no limit.
    pub open_max: Option<u32>,
    /// Most blocks of an append (ZASL).
    pub append_blocks_max: u32,
    /// What reads of unwritten blocks give.
    pub unwritten_read: UnwrittenRead,
    /// Zones take descriptor extensions of [`EXTENSION_BYTES`].
    pub takes_extensions: bool,
    /// The random write areas that zones take; `None` if they take none.
    pub area: Option<ZoneArea>,
}

impl ZoneGeometry {
    /// Zones as large as they hold, without limits, for blocks of 4 KiB; a start for settings.
    #[must_use]
    pub const fn plain(zone_blocks: u64, zone_count: u32) -> Self {
        Self {
            block_bytes: 4_096,
            zone_blocks,
            capacity_blocks: zone_blocks,
            zone_count,
            active_max: None,
            open_max: None,
            append_blocks_max: 256,
            unwritten_read: UnwrittenRead::Zeroes,
            takes_extensions: false,
            area: None,
        }
    }

    /// Addresses of the target, in blocks: NSZE.
    #[must_use]
    pub fn block_count(&self) -> u64 {
        self.zone_blocks * u64::from(self.zone_count)
    }

    /// The zone of an address; `None` behind the last zone.
    #[must_use]
    pub fn zone_of(&self, block: u64) -> Option<u32> {
        u32::try_from(block / self.zone_blocks).ok().filter(|&zone| zone < self.zone_count)
    }

    /// The first block of a zone.
    #[must_use]
    pub fn start_of(&self, zone: u32) -> u64 {
        u64::from(zone) * self.zone_blocks
    }

    /// Itself, if Linux and the specification take such zones.
    ///
    /// # Errors
    /// What is wrong with it, each in a sentence.
    pub fn checked(self) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let Self { zone_blocks, capacity_blocks, zone_count, append_blocks_max, .. } = self;
        problems.require(
            zone_blocks.is_power_of_two() && zone_blocks < 1 << 32,
            "zone size",
            format_args!("{zone_blocks} blocks"),
            "Linux takes powers of two below 2^32 blocks: keep the capacity and make the size the next power of two",
        );
        problems.require(
            (1..=zone_blocks).contains(&capacity_blocks),
            "zone capacity",
            format_args!("{capacity_blocks} blocks"),
            "a zone holds at least one block and at most its size",
        );
        problems.require(zone_count > 0, "number of zones", zone_count, "there must be at least one");
        problems.require(
            append_blocks_max > 0,
            "longest append",
            format_args!("{append_blocks_max} blocks"),
            "an append writes at least one block",
        );
        if let Some(area) = self.area {
            area.check(&mut problems);
        }
        let (open, active) = (self.open_max.unwrap_or(u32::MAX), self.active_max.unwrap_or(u32::MAX));
        problems.require(open > 0, "open zones", open, "at least one zone must be open to be written");
        problems.require(
            open <= active || self.open_max.is_none(),
            "open zones",
            open,
            "an open zone is active, so no more can be open than active",
        );
        problems.into_result().map(|()| self)
    }

    /// Most zones that can be open at once.
    #[must_use]
    pub fn open_bound(&self) -> u32 {
        self.open_max.unwrap_or(u32::MAX).min(self.active_bound())
    }

    /// Most zones that can be active at once.
    #[must_use]
    pub fn active_bound(&self) -> u32 {
        self.active_max.unwrap_or(u32::MAX)
    }
}

/// A target with the zoned interface.
pub trait ZonedTarget: Target<Request = ZonedRequest, Reply = ZonedReply> {
    /// Its zones and limits; they never change.
    fn zone_geometry(&self) -> ZoneGeometry;

    /// A zone as a report would show it.
    ///
    /// # Panics
    /// If there is no such zone.
    fn zone(&self, zone: u32) -> ZoneDescriptor;

    /// The extension of a zone as an extended report would show it; `None` if it has none.
    ///
    /// # Panics
    /// If there is no such zone.
    fn extension(&self, zone: u32) -> Option<ZoneExtension> {
        assert!(zone < self.zone_geometry().zone_count, "there is no zone {zone}");
        None
    }

    /// Chunks of the drive that a zone is bound to, ascending and each once, for people who look at an instance; none of a
    /// target that is on no chunks, as a model. Cost: the zone's chunks.
    ///
    /// # Panics
    /// If there is no such zone.
    fn zone_chunks(&self, zone: u32) -> Vec<ChunkId> {
        assert!(zone < self.zone_geometry().zone_count, "there is no zone {zone}");
        Vec::new()
    }

    /// The next zone that changed by itself since this was asked last: it became read only or offline, or was finished for
    /// another. A server asks after each turn and tells hosts (changed zone list). `None` if there is none, as of targets whose
    /// zones never do. Bounded: each zone is told at most once until it is taken.
    fn poll_changed_zone(&mut self) -> Option<u32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_that_linux_refuses_are_refused_in_words() {
        let plain = ZoneGeometry::plain(64, 8);
        assert_eq!(plain.checked(), Ok(plain));
        let smaller = ZoneGeometry { capacity_blocks: 48, active_max: Some(4), open_max: Some(4), ..plain };
        assert_eq!(smaller.checked(), Ok(smaller));
        for (wrong, says) in [
            (ZoneGeometry { zone_blocks: 48, capacity_blocks: 48, ..plain }, "next power of two"),
            (ZoneGeometry { capacity_blocks: 65, ..plain }, "at most its size"),
            (ZoneGeometry { capacity_blocks: 0, ..plain }, "at least one block"),
            (ZoneGeometry { zone_count: 0, ..plain }, "number of zones is 0"),
            (ZoneGeometry { append_blocks_max: 0, ..plain }, "longest append"),
            (ZoneGeometry { open_max: Some(0), ..plain }, "open zones is 0"),
            (ZoneGeometry { open_max: Some(5), active_max: Some(4), ..plain }, "no more can be open"),
        ] {
            let problem = wrong.checked().expect_err(says).to_string();
            assert!(problem.contains(says), "{problem}");
        }
    }

    #[test]
    fn addresses_and_zones_come_apart() {
        let zones = ZoneGeometry::plain(64, 8);
        assert_eq!((zones.block_count(), zones.start_of(3)), (512, 192));
        assert_eq!(
            [191, 192, 511, 512, u64::MAX].map(|block| zones.zone_of(block)),
            [Some(2), Some(3), Some(7), None, None]
        );
        let limited = ZoneGeometry { active_max: Some(3), ..zones };
        assert_eq!((limited.open_bound(), zones.active_bound()), (3, u32::MAX));
    }
}

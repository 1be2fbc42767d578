//! Requests to targets of blocks and of zones, as C has them: judged against the target, and cut into what it takes at once.

use crate::ask::{Ask, Asked};
use crate::blocks::BlockAsk;
use crate::boundary::Memory;
use crate::failure::Failure;
use crate::reply::Owner;
use crate::requests::REQUEST_BYTES_MAX;
use crate::shape::TargetShape;
use crate::zones::{Zone, ZoneAsk};
use ocssd_lightnvm::block::BlockOp;
use ocssd_lightnvm::interface::zoned::{
    EXTENSION_BYTES, ZoneAction, ZoneGeometry, ZoneScope, ZoneState, ZonedOp,
};
use ocssd_lightnvm::interface::{Durability, Interface};
use std::ffi::c_void;

/// Fills `data`.
pub const OCSSD_OP_READ: u32 = 0;
/// Stores `data`; on a target with zones at a zone's write pointer.
pub const OCSSD_OP_WRITE: u32 = 1;
/// Ends when everything that ended before is durable. Offset and bytes are 0. Targets of every kind have it.
pub const OCSSD_OP_FLUSH: u32 = 2;
/// The range reads as zeroes, and its memory on the drive may be used for something else.
pub const OCSSD_OP_DISCARD: u32 = 3;
/// The range reads as zeroes.
pub const OCSSD_OP_WRITE_ZEROES: u32 = 4;
/// Empties the zone that begins at the offset. Bytes are 0, of this and of all that follow but the last two.
pub const OCSSD_OP_RESET_ZONE: u32 = 5;
/// Of `zns`: stores `data` at the write pointer of the zone that begins at the offset; the reply says where that was. It has
/// bytes.
pub const OCSSD_OP_APPEND: u32 = 6;
/// Of `zns`: opens the zone that begins at the offset.
pub const OCSSD_OP_OPEN_ZONE: u32 = 7;
/// Of `zns`: closes the zone that begins at the offset.
pub const OCSSD_OP_CLOSE_ZONE: u32 = 8;
/// Of `zns`: the zone that begins at the offset becomes full, and takes no more writes until it is reset.
pub const OCSSD_OP_FINISH_ZONE: u32 = 9;
/// Of `zns`: the read only zone that begins at the offset becomes offline.
pub const OCSSD_OP_OFFLINE_ZONE: u32 = 10;
/// Of `zns`: commits a zone's random write area up to the block at the offset, with that.
pub const OCSSD_OP_COMMIT_AREA: u32 = 11;
/// Of `zns`: gives the empty zone that begins at the offset an extension, the 64 bytes of `data`.
pub const OCSSD_OP_SET_EXTENSION: u32 = 12;
/// Of `zns`: fills `data`, an array of `ocssd_zone`, with the zone at the offset and those behind it, as many as `bytes` has
/// room for. Flags are a state that only zones in it are wanted of, or 0.
pub const OCSSD_OP_REPORT_ZONES: u32 = 13;

/// What changes something ends only when it is durable: a write, an append, a flush of pages, a change of keys.
pub const OCSSD_FUA: u32 = 1;
/// An action is for all zones it is meant for, and the offset is 0: to open all closed ones, to close all open ones, to finish
/// all open and closed ones, to reset all that were written, to take all read only ones offline.
pub const OCSSD_ALL_ZONES: u32 = 2;
/// A zone that is opened gets a random write area.
pub const OCSSD_WITH_AREA: u32 = 4;

/// The content of a flush of pages or of a store is what a stage holds.
pub const OCSSD_STAGED: u32 = 8;

/// When what is asked with these flags is durable.
pub const fn durability(flags: u32) -> Durability {
    if flags & OCSSD_FUA == 0 { Durability::AtFlush } else { Durability::AtReply }
}

/// A request to a target of blocks or zones. Offset and bytes are multiples of the target's `block_bytes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// `OCSSD_OP_READ` and so on.
    pub op: u32,
    /// `OCSSD_FUA` of a write, and so on; 0 without.
    pub flags: u32,
    /// First byte.
    pub offset: u64,
    /// How many bytes; at most `request_bytes_max` of reads and writes.
    pub bytes: u64,
    /// What is written: it may change when the call that submits returns. Or where to put what is read: it must stay until the
    /// request has ended. NULL of others.
    pub data: *mut c_void,
}

/// Where a request's bytes come from or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// There are none, and no offset.
    Nowhere,
    /// There are none; the offset is a block.
    Block,
    /// Blocks, without data.
    Blocks,
    /// Blocks with their data.
    Data,
    /// Data that are no blocks, of so many bytes or a multiple of them.
    Apart { bytes: usize, many: bool },
}

impl Extent {
    const fn of(op: u32) -> Option<Self> {
        Some(match op {
            OCSSD_OP_READ | OCSSD_OP_WRITE | OCSSD_OP_APPEND => Self::Data,
            OCSSD_OP_FLUSH => Self::Nowhere,
            OCSSD_OP_DISCARD | OCSSD_OP_WRITE_ZEROES => Self::Blocks,
            OCSSD_OP_RESET_ZONE
            | OCSSD_OP_OPEN_ZONE
            | OCSSD_OP_CLOSE_ZONE
            | OCSSD_OP_FINISH_ZONE
            | OCSSD_OP_OFFLINE_ZONE
            | OCSSD_OP_COMMIT_AREA => Self::Block,
            OCSSD_OP_SET_EXTENSION => Self::Apart { bytes: EXTENSION_BYTES, many: false },
            OCSSD_OP_REPORT_ZONES => Self::Apart { bytes: size_of::<Zone>(), many: true },
            _ => return None,
        })
    }

    const fn has_data(self) -> bool {
        matches!(self, Self::Data | Self::Apart { .. })
    }
}

/// A request that was judged, with its memory.
pub struct Range {
    ask: Ask,
    /// Blocks, of what may be cut into parts; 0 of others.
    count: u64,
    /// Most blocks of a part.
    part: u64,
    block_bytes: u64,
}

impl Request {
    /// The request for a target of this shape.
    ///
    /// # Errors
    /// Why there is none.
    pub fn range(&self, shape: &TargetShape) -> Result<Range, Failure> {
        let extent = Extent::of(self.op).ok_or_else(|| {
            Failure::invalid(format!(
                "op is {}, but the operations are 0 to {OCSSD_OP_REPORT_ZONES}",
                self.op
            ))
        })?;
        self.check_flags()?;
        if extent == Extent::Nowhere {
            return self.flush(shape.interface());
        }
        let (block_count, block_bytes) = shape.blocks()?;
        self.check_bytes(extent, block_count, u64::from(block_bytes))?;
        let memory = self.memory(extent)?;
        let block = self.offset / u64::from(block_bytes);
        let blocks =
            if extent.has_data() && extent != Extent::Data { 0 } else { self.bytes / u64::from(block_bytes) };
        let ask = match shape {
            TargetShape::Zones(zones) => self.of_zones(zones, block, memory)?,
            _ => Ask::Blocks(BlockAsk { op: self.of_blocks()?, block, count: 0, memory, part: None }),
        };
        let largest = u64::try_from(REQUEST_BYTES_MAX).expect("1 MiB") / u64::from(block_bytes);
        let part = match self.op {
            OCSSD_OP_READ | OCSSD_OP_WRITE => largest,
            // What is not copied is bounded by the type of a request's count, and an append by its target.
            _ => u64::from(u32::MAX),
        };
        Ok(Range { ask, count: blocks, part, block_bytes: u64::from(block_bytes) })
    }

    fn check_flags(&self) -> Result<(), Failure> {
        let allowed = match self.op {
            OCSSD_OP_WRITE | OCSSD_OP_APPEND => OCSSD_FUA,
            OCSSD_OP_OPEN_ZONE if self.flags & OCSSD_ALL_ZONES == 0 => OCSSD_WITH_AREA,
            OCSSD_OP_OPEN_ZONE
            | OCSSD_OP_RESET_ZONE
            | OCSSD_OP_CLOSE_ZONE
            | OCSSD_OP_FINISH_ZONE
            | OCSSD_OP_OFFLINE_ZONE => OCSSD_ALL_ZONES,
            // It is a state, which is looked at later.
            OCSSD_OP_REPORT_ZONES => u32::MAX,
            _ => 0,
        };
        if self.flags & !allowed == 0 {
            return Ok(());
        }
        Err(Failure::invalid(format!(
            "flags are {:#x}; writes and appends have OCSSD_FUA, actions on zones OCSSD_ALL_ZONES, and an opening of one zone \
             OCSSD_WITH_AREA",
            self.flags
        )))
    }

    fn flush(&self, interface: Interface) -> Result<Range, Failure> {
        if self.offset != 0 || self.bytes != 0 || !self.data.is_null() {
            return Err(Failure::invalid(
                "a flush is of everything: its offset and bytes are 0, its data NULL",
            ));
        }
        Ok(Range { ask: Ask::Flush(interface), count: 0, part: 1, block_bytes: 0 })
    }

    fn check_bytes(&self, extent: Extent, block_count: u64, block_bytes: u64) -> Result<(), Failure> {
        let Self { op, offset, bytes, .. } = *self;
        let range = if let Extent::Apart { .. } = extent { 0 } else { bytes };
        if !offset.is_multiple_of(block_bytes) || !range.is_multiple_of(block_bytes) {
            return Err(Failure::invalid(format!(
                "{range} bytes at {offset} are no whole blocks of {block_bytes} bytes"
            )));
        }
        if (bytes == 0) != (extent == Extent::Block) {
            let what = if bytes == 0 { "has no bytes" } else { "has bytes, and should have 0" };
            return Err(Failure::invalid(format!("a request of operation {op} {what}")));
        }
        if let Extent::Apart { bytes: each, many } = extent {
            let each = u64::try_from(each).expect("a struct is small");
            if !bytes.is_multiple_of(each) || !many && bytes != each {
                return Err(Failure::invalid(format!(
                    "a request of operation {op} has {bytes} bytes of data, and should have {}{each}",
                    if many { "a multiple of " } else { "" }
                )));
            }
        }
        let size = block_count * block_bytes;
        let is_inside = offset.checked_add(range).is_some_and(|end| end <= size);
        if !is_inside || offset >= size {
            return Err(Failure::invalid(format!(
                "{range} bytes at {offset} do not lie in the target's {size}"
            )));
        }
        Ok(())
    }

    fn memory(&self, extent: Extent) -> Result<Memory, Failure> {
        if extent.has_data() {
            return Memory::new(self.data, self.bytes, "data");
        }
        if !self.data.is_null() {
            return Err(Failure::invalid(format!(
                "a request of operation {} has no data; pass NULL",
                self.op
            )));
        }
        Ok(Memory::NONE)
    }

    fn unsupported(&self, speaks_of: &str) -> Failure {
        Failure::new(
            libc::EOPNOTSUPP,
            format!("the target speaks of {speaks_of}, and has no operation {}; see ocssd_request", self.op),
        )
    }

    fn of_blocks(&self) -> Result<BlockOp, Failure> {
        if self.flags & OCSSD_ALL_ZONES != 0 {
            return Err(self.unsupported("blocks"));
        }
        Ok(match self.op {
            OCSSD_OP_READ => BlockOp::Read,
            OCSSD_OP_WRITE => BlockOp::Write { fua: self.flags & OCSSD_FUA != 0 },
            OCSSD_OP_DISCARD => BlockOp::Discard,
            OCSSD_OP_WRITE_ZEROES => BlockOp::WriteZeroes,
            OCSSD_OP_RESET_ZONE => BlockOp::ResetZone,
            _ => return Err(self.unsupported("blocks")),
        })
    }

    fn of_zones(&self, zones: &ZoneGeometry, block: u64, memory: Memory) -> Result<Ask, Failure> {
        let op = self.zoned_op()?;
        let block_bytes = zones.block_bytes;
        let end = self.offset + self.bytes.saturating_sub(1);
        let zone_bytes = zones.zone_blocks * u64::from(block_bytes);
        if matches!(op, ZonedOp::Read | ZonedOp::Write { .. }) && self.offset / zone_bytes != end / zone_bytes
        {
            return Err(Failure::invalid(format!(
                "{} bytes at {} lie in more than one zone of {zone_bytes} bytes; ask for each zone",
                self.bytes, self.offset
            )));
        }
        let append_bytes_max = u64::from(zones.append_blocks_max) * u64::from(block_bytes);
        if matches!(op, ZonedOp::Append { .. }) && self.bytes > append_bytes_max {
            return Err(Failure::invalid(format!(
                "an append has at most {append_bytes_max} bytes, not {}; append several times",
                self.bytes
            )));
        }
        let count = match op {
            ZonedOp::ReportExtended { .. } => {
                let places = memory.bytes() / size_of::<Zone>();
                u32::try_from(places).unwrap_or(u32::MAX).min(zones.zone_count)
            }
            _ => 0,
        };
        Ok(Ask::Zones(ZoneAsk { op, block, count, memory, block_bytes }))
    }

    fn zoned_op(&self) -> Result<ZonedOp, Failure> {
        let durability = durability(self.flags);
        let scope = if self.flags & OCSSD_ALL_ZONES == 0 { ZoneScope::One } else { ZoneScope::All };
        let manage = |action| ZonedOp::Manage { action, scope };
        Ok(match self.op {
            OCSSD_OP_READ => ZonedOp::Read,
            OCSSD_OP_WRITE => ZonedOp::Write { durability },
            OCSSD_OP_APPEND => ZonedOp::Append { durability },
            OCSSD_OP_OPEN_ZONE if self.flags & OCSSD_WITH_AREA != 0 => ZonedOp::OpenWithArea,
            OCSSD_OP_OPEN_ZONE => manage(ZoneAction::Open),
            OCSSD_OP_CLOSE_ZONE => manage(ZoneAction::Close),
            OCSSD_OP_FINISH_ZONE => manage(ZoneAction::Finish),
            OCSSD_OP_RESET_ZONE => manage(ZoneAction::Reset),
            OCSSD_OP_OFFLINE_ZONE => manage(ZoneAction::Offline),
            OCSSD_OP_COMMIT_AREA => ZonedOp::CommitArea,
            OCSSD_OP_SET_EXTENSION => ZonedOp::SetExtension,
            OCSSD_OP_REPORT_ZONES => ZonedOp::ReportExtended { only: self.wanted_state()? },
            _ => return Err(self.unsupported("zones")),
        })
    }

    /// The state that a report is of.
    fn wanted_state(&self) -> Result<Option<ZoneState>, Failure> {
        if self.flags == 0 {
            return Ok(None);
        }
        let state = u8::try_from(self.flags).ok().and_then(ZoneState::from_bits);
        let state = state.ok_or_else(|| {
            Failure::invalid(format!(
                "{:#x} is no state of a zone; OCSSD_ZONE_EMPTY is one, 0 is any",
                self.flags
            ))
        })?;
        Ok(Some(state))
    }
}

impl Range {
    /// The requests it takes: one, or of reads and writes one for each part of the largest size.
    pub fn parts(&self) -> impl Iterator<Item = Asked> + use<> {
        let Self { ask, count, part, block_bytes } = *self;
        (0..count.div_ceil(part).max(1)).map(move |number| {
            let first = number * part;
            let blocks = part.min(count - first);
            let memory = |whole: Memory| whole.part(first * block_bytes, blocks * block_bytes);
            let counted = u32::try_from(blocks).expect("at most a part");
            let ask = match ask {
                Ask::Blocks(ask) => Ask::Blocks(BlockAsk {
                    block: ask.block + first,
                    count: counted,
                    memory: memory(ask.memory),
                    ..ask
                }),
                Ask::Zones(ask) if count > 0 => Ask::Zones(ZoneAsk {
                    block: ask.block + first,
                    count: counted,
                    memory: memory(ask.memory),
                    ..ask
                }),
                other => other,
            };
            Asked { ask, owner: Owner::Waiting }
        })
    }
}

//! Requests to a target of zones, and zones as C has them.
//!
//! Deliberately not here: the exported functions.

use crate::ask::ended;
use crate::boundary::Memory;
use crate::failure::Failure;
use crate::payload::Loan;
use crate::reply::{End, Reply};
use crate::status::errno_of;
use ocssd_base::usize_of;
use ocssd_lightnvm::interface::zoned::{
    DescribedZone, EXTENSION_BYTES, ZoneAction, ZoneScope, ZonedAnswer, ZonedOp, ZonedReply, ZonedRequest,
};
use ocssd_lightnvm::interface::{Entry, List};
use ocssd_lightnvm::{BufId, Buffers, Tag};

/// Bytes of a zone's extension.
pub const OCSSD_EXTENSION_BYTES: usize = 64;

const _: () = assert!(OCSSD_EXTENSION_BYTES == EXTENSION_BYTES, "the interface's own");

/// A zone. Places are bytes of the target.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its first byte.
    pub offset: u64,
    /// Bytes that it holds, from its first on.
    pub capacity: u64,
    /// The byte that is written next; all ones of zones that are full, read only or offline.
    pub write_pointer: u64,
    /// `OCSSD_ZONE_EMPTY` and so on.
    pub state: u32,
    /// 1 if it has a random write area, else 0.
    pub has_area: u8,
    /// 1 if it has an extension, else 0.
    pub has_extension: u8,
    /// Zero.
    pub reserved: [u8; 2],
    /// Its extension; zeroes if it has none.
    pub extension: [u8; OCSSD_EXTENSION_BYTES],
}

impl Zone {
    /// A zone of blocks of so many bytes.
    pub fn of(described: &DescribedZone, block_bytes: u32) -> Self {
        let DescribedZone { zone, extension } = described;
        let bytes = |blocks: u64| blocks * u64::from(block_bytes);
        Self {
            offset: bytes(zone.start),
            capacity: bytes(zone.capacity),
            write_pointer: zone.write_pointer.map_or(u64::MAX, bytes),
            state: u32::from(zone.state.to_bits()),
            has_area: u8::from(zone.has_area),
            has_extension: u8::from(zone.has_extension),
            reserved: [0; 2],
            extension: extension.0,
        }
    }
}

/// What is asked of a target of zones.
#[derive(Clone, Copy)]
pub struct ZoneAsk {
    /// What to do. Reports are extended ones.
    pub op: ZonedOp,
    /// First block.
    pub block: u64,
    /// How many blocks, or zones of a report.
    pub count: u32,
    /// What is written, or where to put what is read: of a report places for zones.
    pub memory: Memory,
    /// Bytes of a block.
    pub block_bytes: u32,
}

impl ZoneAsk {
    /// The request.
    ///
    /// # Errors
    /// There is no memory for it now, or it has more than a request can have.
    pub fn request(&self, tag: Tag, loan: &mut Loan<'_>) -> Result<ZonedRequest, Failure> {
        let buffer = match self.op {
            ZonedOp::Read => Some(loan.room(self.memory.bytes())?),
            ZonedOp::Write { .. } | ZonedOp::Append { .. } | ZonedOp::SetExtension => {
                Some(loan.copy_of(self.memory)?)
            }
            ZonedOp::ReportExtended { .. } => Some(loan.room(usize_of(self.count) * DescribedZone::BYTES)?),
            _ => None,
        };
        Ok(ZonedRequest { tag, op: self.op, block: self.block, count: self.count, buffer })
    }

    /// What the reply brings.
    pub fn end(&self, reply: &ZonedReply, buffer: Option<BufId>, buffers: &Buffers) -> End {
        let mut told = Reply::of(reply.status);
        match (reply.answer, buffer) {
            (ZonedAnswer::Appended { block }, _) => told.offset = block * u64::from(self.block_bytes),
            (ZonedAnswer::ReportedExtended { listed, matching }, _) => {
                told.count = u64::from(matching);
                self.put_zones(listed, buffers);
            }
            (ZonedAnswer::Reported { .. }, _) => unreachable!("reports are asked for with extensions"),
            (ZonedAnswer::Done, Some(buffer)) if self.op == ZonedOp::Read && errno_of(reply.status) == 0 => {
                self.memory.fill_from(buffers, buffer, self.memory.bytes());
            }
            (ZonedAnswer::Done, _) => {}
        }
        ended(told, || self.words())
    }

    /// Puts the zones of a report where the caller wants them.
    fn put_zones(&self, listed: List<DescribedZone>, buffers: &Buffers) {
        for (index, described) in listed.entries(buffers).enumerate() {
            let described = described.expect("a target lists zones");
            self.memory.put_nth(index, Zone::of(&described, self.block_bytes));
        }
    }

    fn words(&self) -> String {
        let Self { op, block, count, .. } = *self;
        match op {
            ZonedOp::Read => format!("a read of {count} blocks at block {block}"),
            ZonedOp::Write { .. } => format!("a write of {count} blocks at block {block}"),
            ZonedOp::Append { .. } => format!("an append of {count} blocks to the zone at block {block}"),
            ZonedOp::Flush => "a flush".to_owned(),
            ZonedOp::Manage { action, scope } => {
                let action = match action {
                    ZoneAction::Open => "opening",
                    ZoneAction::Close => "closing",
                    ZoneAction::Finish => "finishing",
                    ZoneAction::Reset => "resetting",
                    ZoneAction::Offline => "taking offline",
                };
                match scope {
                    ZoneScope::One => format!("{action} the zone at block {block}"),
                    ZoneScope::All => format!("{action} all zones"),
                }
            }
            ZonedOp::Report { .. } | ZonedOp::ReportExtended { .. } => {
                format!("a report of zones from block {block} on")
            }
            ZonedOp::SetExtension => format!("setting the extension of the zone at block {block}"),
            ZonedOp::OpenWithArea => format!("opening the zone at block {block} with an area"),
            ZonedOp::CommitArea => format!("committing an area up to block {block}"),
            ZonedOp::Shutdown => "the shutdown".to_owned(),
        }
    }
}

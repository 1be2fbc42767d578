//! A command that has not been answered: what it is, where its data is, and how far it is.

use super::plan::{BlockKind, BlockPlan, CommandPlan};
use crate::pool::{Pool, PoolPiece};
use crate::shares::{ClientId, Want};
use ocssd_base::usize_of;
use ocssd_lightnvm::Status;
use ocssd_nvme::opcode::DataDirection;
use ocssd_nvme::sgl::{SUBTYPE_OFFSET, SUBTYPE_TRANSPORT, SglKind};
use ocssd_nvme::{Sqe, StatusField};

/// How data moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Not at all.
    None,
    /// In the command's capsule.
    InCapsule {
        /// How much.
        bytes: usize,
    },
    /// From the host, asked for.
    FromHost {
        /// How much.
        bytes: usize,
    },
    /// To the host.
    ToHost {
        /// How much.
        bytes: usize,
    },
}

impl Transfer {
    /// What the entry says; `carried` bytes are in the capsule, and no more than `bytes_max` may move (MDTS).
    ///
    /// # Errors
    /// The status of an entry that asks for what there is not.
    pub fn of(sqe: &Sqe, direction: DataDirection, carried: usize, bytes_max: usize) -> Result<Self, Status> {
        let sgl = sqe.sgl().ok_or(Status::INVALID_FIELD)?;
        let bytes = usize_of(sgl.length_bytes);
        if bytes > bytes_max {
            return Err(Status::INVALID_FIELD);
        }
        if bytes == 0 {
            return if carried == 0 { Ok(Self::None) } else { Err(Status::INVALID_SGL_LENGTH) };
        }
        match (sgl.kind, sgl.subtype, direction) {
            (SglKind::DataBlock, SUBTYPE_OFFSET, DataDirection::ToDevice) => match (sgl.address, carried) {
                (0, carried) if carried == bytes => Ok(Self::InCapsule { bytes }),
                (0, _) => Err(Status::INVALID_SGL_LENGTH),
                _ => Err(Status::INVALID_OFFSET),
            },
            _ if carried > 0 => Err(Status::INVALID_SGL_TYPE),
            (SglKind::TransportDataBlock, SUBTYPE_TRANSPORT, DataDirection::ToDevice) => {
                Ok(Self::FromHost { bytes })
            }
            (SglKind::TransportDataBlock, SUBTYPE_TRANSPORT, DataDirection::ToHost) => {
                Ok(Self::ToHost { bytes })
            }
            (SglKind::TransportDataBlock, SUBTYPE_TRANSPORT, _) => Err(Status::INVALID_SGL_LENGTH),
            _ => Err(Status::INVALID_SGL_TYPE),
        }
    }

    /// How much.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::InCapsule { bytes } | Self::FromHost { bytes } | Self::ToHost { bytes } => bytes,
        }
    }

    /// It is the host that sends.
    #[must_use]
    pub const fn is_from_host(self) -> bool {
        matches!(self, Self::InCapsule { .. } | Self::FromHost { .. })
    }
}

/// How far a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for memory.
    Waiting,
    /// Its data is on the way.
    Receiving,
    /// It can be carried out.
    Ready,
    /// It is an event request, and there is no news.
    Held,
}

/// A command, with which its transport keeps a `P`.
#[derive(Debug)]
pub struct Command<P> {
    /// The entry.
    pub sqe: Sqe,
    /// How its data moves.
    pub transfer: Transfer,
    /// What is to be done.
    pub plan: CommandPlan,
    /// How far it is.
    pub state: State,
    /// Its data.
    pub piece: Option<PoolPiece>,
    /// Where a compare reads to what is there.
    pub there: Option<PoolPiece>,
    /// What the transport keeps with it.
    pub kept: P,
    /// Jobs given out.
    pub given: u32,
    /// Of these, those that have not ended.
    pub running: u32,
    /// The first failure.
    pub failure: Option<StatusField>,
    /// DW0 and DW1 of its completion.
    pub result: (u32, u32),
}

impl<P> Command<P> {
    /// It compares, which takes memory for what is there too.
    #[must_use]
    pub const fn compares(&self) -> bool {
        matches!(self.plan, CommandPlan::Block(BlockPlan { kind: BlockKind::Compare, .. }))
    }

    /// Bytes of memory it takes: what moves, or zeroes that are written.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match self.plan {
            CommandPlan::Block(BlockPlan { kind: BlockKind::ZeroesToZone { bytes }, .. }) => usize_of(bytes),
            _ => self.transfer.bytes(),
        }
    }

    /// Takes memory for its data; false if there is none. A compare takes both parts at once, so that none waits with one
    /// part for another that has the other.
    pub fn take_memory(&mut self, client: ClientId, want: Want, pool: &mut Pool) -> bool {
        let bytes = self.memory_bytes();
        if bytes == 0 || self.piece.is_some() {
            return true;
        }
        let needed = 1 + u32::from(self.compares());
        if needed > 1 && pool.room(client, bytes, want) < needed {
            return false;
        }
        self.piece = pool.take(client, bytes, want);
        if self.compares() {
            self.there = pool.take(client, bytes, want);
            assert!(self.there.is_some(), "there was room for both");
        }
        self.piece.is_some()
    }

    /// A command of which nothing is done.
    #[must_use]
    pub const fn new(sqe: Sqe, transfer: Transfer, plan: CommandPlan, kept: P) -> Self {
        Self {
            sqe,
            transfer,
            plan,
            state: State::Waiting,
            piece: None,
            there: None,
            kept,
            given: 0,
            running: 0,
            failure: None,
            result: (0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_nvme::sgl::SglDescriptor;

    #[test]
    fn data_moves_as_the_descriptor_says_or_not_at_all() {
        use DataDirection::{Both, None as Nowhere, ToDevice, ToHost};
        let block = |kind, subtype, address, length_bytes| {
            Sqe::flush(1).with_sgl(&SglDescriptor { address, length_bytes, kind, subtype })
        };
        let capsule = |address, bytes| block(SglKind::DataBlock, SUBTYPE_OFFSET, address, bytes);
        let transport = |bytes| block(SglKind::TransportDataBlock, SUBTYPE_TRANSPORT, 0, bytes);
        let cases = [
            (capsule(0, 512), ToDevice, 512, Ok(Transfer::InCapsule { bytes: 512 })),
            (capsule(0, 512), ToDevice, 511, Err(Status::INVALID_SGL_LENGTH)),
            (capsule(4, 512), ToDevice, 512, Err(Status::INVALID_OFFSET)),
            (capsule(0, 512), ToHost, 0, Err(Status::INVALID_SGL_TYPE)),
            (transport(4096), ToDevice, 0, Ok(Transfer::FromHost { bytes: 4096 })),
            (transport(4096), ToDevice, 4096, Err(Status::INVALID_SGL_TYPE)),
            (transport(4096), ToHost, 0, Ok(Transfer::ToHost { bytes: 4096 })),
            (transport(0), Nowhere, 0, Ok(Transfer::None)),
            (transport(0), Nowhere, 4, Err(Status::INVALID_SGL_LENGTH)),
            (transport(4), Nowhere, 0, Err(Status::INVALID_SGL_LENGTH)),
            (transport(4), Both, 0, Err(Status::INVALID_SGL_LENGTH)),
            (transport((256 << 10) + 1), ToHost, 0, Err(Status::INVALID_FIELD)),
            (block(SglKind::KeyedDataBlock, 0, 0, 8), ToHost, 0, Err(Status::INVALID_SGL_TYPE)),
            (block(SglKind::LastSegment, SUBTYPE_OFFSET, 0, 16), ToDevice, 16, Err(Status::INVALID_SGL_TYPE)),
            (Sqe::flush(1), Nowhere, 0, Err(Status::INVALID_FIELD)),
        ];
        for (sqe, direction, carried, expected) in cases {
            assert_eq!(
                Transfer::of(&sqe, direction, carried, 256 << 10),
                expected,
                "{:?} {direction:?} {carried}",
                sqe.sgl()
            );
        }
    }
}

//! What a command becomes: entries whose data fits a transfer, each with sectors that follow each other in one chunk.
//!
//! Writes go as scalar writes, which have FUA, and reads as vector reads, whose completion says which sector failed. The data
//! of a write is always asked for by the server and never in a capsule, so that writes reach a chunk in their order.

use ocssd_base::SlabKey;
use ocssd_lightnvm::{Addresses, Buffers, Command, Geometry, Op, Ppa};
use ocssd_nvme::sqe::{ReadWrite, Vector};
use ocssd_nvme::{AddressList, HostAddress, Sqe};

/// A part of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Of which command.
    pub open: SlabKey,
    /// What it does.
    pub op: Op,
    /// The first sector, or the chunk of a reset.
    pub at: Ppa,
    /// Sectors; 0 if none moves.
    pub sectors: u32,
    /// Which address of the command is its first.
    pub first: u32,
}

impl Part {
    /// Addresses of the command that it stands for, as bits of its completion.
    pub fn bits(&self) -> u64 {
        spread(u64::MAX >> (64 - self.sectors.clamp(1, 64)), self.first)
    }

    /// The entry, without identifier and data pointer.
    pub fn entry(&self, nsid: u32, geometry: &Geometry) -> Sqe {
        let lba = || geometry.lba_of(self.at);
        match self.op {
            Op::Flush => Sqe::flush(nsid),
            Op::Reset => Sqe::vector_reset(nsid, AddressList::One(lba()), None),
            Op::Write { fua } => Sqe::write(
                nsid,
                ReadWrite {
                    slba: lba(),
                    block_count: self.sectors,
                    limited_retry: false,
                    force_unit_access: fua,
                },
            ),
            Op::Read if self.sectors == 1 => {
                Sqe::vector_read(nsid, Vector { lbas: AddressList::One(lba()), limited_retry: false })
            }
            Op::Read => {
                // By the claim's convention the first address stands where the list's would.
                let count = u8::try_from(self.sectors).expect("a vector has at most 64 addresses");
                let lbas = AddressList::Many { at: HostAddress(lba().0), count };
                Sqe::vector_read(nsid, Vector { lbas, limited_retry: false })
            }
            Op::Copy => unreachable!("the drive is presented without vector copies"),
        }
    }
}

/// The bits of a part at their places among those of the command.
pub fn spread(bits: u64, first: u32) -> u64 {
    bits.checked_shl(first).unwrap_or(0)
}

/// Cuts a command into parts of at most `sectors_max` sectors.
pub fn cut(
    open: SlabKey,
    command: &Command,
    buffers: &Buffers,
    geometry: &Geometry,
    sectors_max: u32,
) -> Vec<Part> {
    let most = match command.op {
        Op::Write { .. } => sectors_max / geometry.ws_min * geometry.ws_min,
        _ => sectors_max,
    };
    let part = |at, sectors, first| Part { open, op: command.op, at, sectors, first };
    match (command.op, command.addresses) {
        (Op::Reset, Addresses::Run { first, .. }) => vec![part(first, 0, 0)],
        (_, Addresses::Run { first, count }) => {
            let steps = (0..count).step_by(usize::try_from(most).expect("at most 64"));
            let at = |from| Ppa::new(first.chunk, first.sector + from);
            steps.map(|from| part(at(from), most.min(count - from), from)).collect()
        }
        (_, Addresses::None) => vec![part(Ppa::NOWHERE, 0, 0)],
        (op, Addresses::List { offset, count }) => {
            let buffer = command.buffer.expect("a list of addresses lies in a buffer");
            let range = ocssd_base::usize_of(offset)..ocssd_base::usize_of(offset + count);
            let mut parts: Vec<Part> = Vec::new();
            for (first, &at) in (0..).zip(&buffers.addresses(buffer)[range]) {
                match parts.last_mut() {
                    _ if op == Op::Reset => parts.push(part(at, 0, first)),
                    Some(last) if last.sectors < most && follows(last, at) => last.sectors += 1,
                    _ => parts.push(part(at, 1, first)),
                }
            }
            parts
        }
    }
}

/// The address goes on where a part ends.
fn follows(part: &Part, at: Ppa) -> bool {
    at.chunk == part.at.chunk && at.sector == part.at.sector + part.sectors
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{ChunkId, Payload, PayloadFormat, PlaneMode, Tag};

    fn cut_of(op: Op, addresses: &[(u32, u32)], run: Option<u32>) -> Vec<(u32, u32, u32, u32)> {
        let geometry = Geometry::example(1, 2, 4, 240, 24);
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Bytes, &geometry));
        let buffer = buffers.take(64);
        let ppa = |&(chunk, sector): &(u32, u32)| Ppa::new(ChunkId(chunk), sector);
        for (place, at) in buffers.addresses_mut(buffer).iter_mut().zip(addresses) {
            *place = ppa(at);
        }
        let count = u32::try_from(addresses.len()).expect("few");
        let addresses = match run {
            Some(count) => Addresses::Run { first: ppa(&addresses[0]), count },
            None => Addresses::List { offset: 0, count },
        };
        let command = Command {
            tag: Tag(1),
            op,
            addresses,
            buffer: Some(buffer),
            buffer_first: 0,
            oob: true,
            plane_mode: PlaneMode::Single,
        };
        let parts = cut(SlabKey(3), &command, &buffers, &geometry, 63);
        parts.iter().map(|part| (part.at.chunk.0, part.at.sector, part.sectors, part.first)).collect()
    }

    #[test]
    fn a_run_is_cut_where_a_transfer_ends_and_a_write_at_its_units() {
        assert_eq!(cut_of(Op::Read, &[(1, 5)], Some(70)), [(1, 5, 63, 0), (1, 68, 7, 63)]);
        let written = cut_of(Op::Write { fua: true }, &[(1, 0)], Some(96));
        assert_eq!(written, [(1, 0, 48, 0), (1, 48, 48, 48)]);
    }

    #[test]
    fn addresses_of_a_list_that_follow_each_other_go_together() {
        let found = cut_of(Op::Read, &[(1, 5), (1, 6), (2, 7), (1, 7), (1, 9)], None);
        assert_eq!(found, [(1, 5, 2, 0), (2, 7, 1, 2), (1, 7, 1, 3), (1, 9, 1, 4)]);
        assert_eq!(cut_of(Op::Reset, &[(1, 0), (2, 0)], None), [(1, 0, 0, 0), (2, 0, 0, 1)]);
        assert_eq!(cut_of(Op::Reset, &[(1, 0)], Some(1)), [(1, 0, 0, 0)]);
    }

    #[test]
    fn bits_of_a_part_stand_at_its_addresses() {
        let part = Part { open: SlabKey(0), op: Op::Read, at: Ppa::NOWHERE, sectors: 2, first: 3 };
        assert_eq!(part.bits(), 0b11000);
        assert_eq!(Part { sectors: 64, first: 0, ..part }.bits(), u64::MAX);
        assert_eq!(Part { sectors: 0, first: 1, ..part }.bits(), 2);
        assert_eq!(Part { first: 64, ..part }.bits(), 0, "beyond what a completion has");
    }
}

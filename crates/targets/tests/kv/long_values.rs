//! A value of 256 MiB, as caches of language models have them, is one entry: the power is cut in the middle of stores of it.

use crate::rig::{Rig, key_of};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::Clock;
use ocssd_lightnvm::interface::key_value::{KvOp, StoreCondition};
use ocssd_lightnvm::interface::{Content, Durability, Piece};
use ocssd_lightnvm::{Geometry, Status};

const VALUE_BYTES: u32 = 256 << 20;
/// A piece of the value is shorter, so each has several marks.
const MARK_EVERY: usize = 1 << 12;

/// A drive of 16 GiB, of which values take a thirty-second at most.
fn rig() -> Rig {
    Rig::of_shape(|config| {
        config.geometry = Geometry { mw_cunits: 64, ws_min: 4, ..Geometry::example(1, 8, 128, 4096, 64) };
    })
}

fn room(rig: &mut Rig) -> Piece {
    let buffers = rig.host.buffers_mut();
    let sector = u32::try_from(buffers.format().sector_bytes).expect("short");
    Piece { buffer: buffers.take_whole(VALUE_BYTES / sector), first_byte: 0, bytes: VALUE_BYTES }
}

/// What a mark says: which store it is of, and where it lies.
fn mark(round: u64, place: usize) -> [u8; 16] {
    let place = u64::try_from(place).expect("an index fits 64 bits");
    [round.to_le_bytes(), place.to_le_bytes()].concat().try_into().expect("sixteen bytes")
}

/// The store of the value of a round, and its content.
fn store(rig: &mut Rig, round: u64) -> KvOp {
    let piece = room(rig);
    let sector = u32::try_from(rig.host.buffers().format().sector_bytes).expect("short");
    let all = rig.host.buffers_mut().whole_mut(piece.buffer, 0, VALUE_BYTES / sector);
    for (place, bytes) in all.chunks_mut(MARK_EVERY).enumerate() {
        bytes[..16].copy_from_slice(&mark(round, place));
    }
    let (condition, durability) = (StoreCondition::Always, Durability::AtReply);
    KvOp::Store { key: key_of(1), content: Content::Piece(piece), condition, durability }
}

/// The round whose value is there, from its first mark to its last.
fn round_of(rig: &mut Rig) -> u64 {
    let piece = room(rig);
    let reply = rig.ask(KvOp::Retrieve { key: key_of(1), offset: 0, into: Content::Piece(piece) });
    assert_eq!(reply.status, Status::SUCCESS, "{reply:?}");
    let sector = u32::try_from(rig.host.buffers().format().sector_bytes).expect("short");
    let all = rig.host.buffers().whole(piece.buffer, 0, VALUE_BYTES / sector);
    let round = u64::from_le_bytes(all[..8].try_into().expect("eight bytes"));
    for (place, bytes) in all.chunks(MARK_EVERY).enumerate() {
        assert_eq!(bytes[..16], mark(round, place), "round {round} begins, and mark {place} is of another");
    }
    rig.host.buffers_mut().give_back(piece.buffer);
    round
}

/// The power is cut while a value of 256 MiB replaces another: at any time in the store the whole of one of them is there, and the
/// newer once the store was answered.
#[test]
fn a_value_of_256_mib_is_whole_wherever_the_power_is_cut() {
    let seed = 1;
    println!("seed {seed}");
    let mut prng = Prng::new(seed);
    let mut rig = rig();
    let first = store(&mut rig, 0);
    let before = rig.host.clock().now();
    assert_eq!(rig.ask(first).status, Status::SUCCESS);
    let took = rig.host.clock().now().0 - before.0;
    rig = rig.cut_off(&mut prng);
    assert_eq!(round_of(&mut rig), 0, "it was answered");
    // Anywhere; and three times about its end, where the record that names the pieces is written.
    let thousandths = [0, 0, 0, 997, 1000, 1002].map(|at| if at == 0 { prng.below(1000) } else { at });
    let (mut held, mut cut, mut kept) = (0, 0, 0);
    for (round, part) in (1..).zip(thousandths) {
        let op = store(&mut rig, round);
        let limit = Nanos(rig.host.clock().now().0 + took * part / 1000);
        let reply = rig.ask_until(op, limit);
        rig = rig.cut_off(&mut prng);
        let found = round_of(&mut rig);
        assert!(found == held || found == round, "round {found} is there, of {held} and {round}");
        match reply {
            Some(reply) => assert_eq!((reply.status, found), (Status::SUCCESS, round), "it was answered"),
            None => cut += 1,
        }
        kept += u64::from(found == held);
        held = found;
        assert_eq!(rig.flush(), Status::SUCCESS, "cut at {part} of 1000");
    }
    assert!(cut >= 3 && kept >= 3, "{cut} stores were cut, and {kept} left the older value");
}

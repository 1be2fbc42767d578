//! The entry for fuzzers and for seeded random tests: any bytes as what an NBD client sends.
//!
//! `fuzz/fuzz_targets/nbd_client.rs` and `tests/random.rs` call it. It asserts what holds for any client: no panic, nothing
//! beyond an export, every piece back at the end, and an end.

use crate::memory_disk::MemoryDisks;
use crate::nbd::{Session, TlsPolicy};
use crate::protocol::{Phase, Protocol};
use std::io::IoSlice;

/// Longest input looked at.
const BYTES_MAX: usize = 1 << 20;

/// Plays a client that sends `data`, cut and timed as its first bytes say. Returns how many bytes the server answered.
///
/// # Panics
/// If the server breaks a promise.
pub fn nbd_client(data: &[u8]) -> usize {
    let Some((&[shape, pace], data)) = data.split_first_chunk::<2>() else { return 0 };
    let data = &data[..data.len().min(BYTES_MAX)];
    let tls = if shape & 1 == 0 { TlsPolicy::None } else { TlsPolicy::Required };
    let pieces = if shape & 2 == 0 { [1, 0, 1] } else { [8, 4, 4] };
    let (mut desk, mut disks) = MemoryDisks::new(&[("", 1 << 12), ("a", 8), ("b-ro", 64)], pieces);
    if shape & 4 != 0 {
        disks.bad = 3..5;
    }
    let mut session = Session::new(tls, 3, 9);
    let (mut at, mut answered, mut turn) = (0, 0, usize::from(pace));
    loop {
        turn = turn.wrapping_mul(5).wrapping_add(usize::from(pace) | 1);
        let given = match session.payload_space() {
            Some(space) if turn & 2 == 0 => {
                let count = space.count.min(data.len() - at);
                desk.buffers
                    .bytes_mut(space.buffer, space.first, count)
                    .copy_from_slice(&data[at..][..count]);
                session.on_payload(count, &mut desk);
                Ok(count)
            }
            _ => {
                let count = (1 + turn % 300).min(data.len() - at).min(session.text_wanted().max(1));
                session.on_bytes(&data[at..][..count], &mut desk)
            }
        };
        let Ok(given) = given else { break };
        assert!(given <= data.len() - at, "more was taken than came");
        at += given;
        let worked = work(&mut session, &mut desk, &mut disks, turn);
        let sent = drain(&mut session, &mut desk);
        answered += sent;
        if session.phase() == Phase::StartTls {
            session.on_tls();
        } else if given + worked + sent == 0 {
            break;
        }
    }
    finish(session, desk, disks);
    answered
}

/// Jobs are taken and some end; returns how much happened.
fn work(session: &mut Session, desk: &mut crate::Desk, disks: &mut MemoryDisks, turn: usize) -> usize {
    disks.take(desk);
    let mut worked = 0;
    for step in 0..=turn % 3 {
        worked += usize::from(disks.carry_out(turn / 3 + step, desk));
    }
    while let Some(done) = desk.poll_done() {
        session.on_done(done, desk);
        worked += 1;
    }
    session.go_on(desk);
    worked
}

fn drain(session: &mut Session, desk: &mut crate::Desk) -> usize {
    let mut sent = 0;
    while !session.outbox().is_empty() {
        let mut slices = [IoSlice::new(&[]); 3];
        let used = session.outbox().slices(&desk.buffers, &mut slices);
        let bytes = slices[..used].iter().map(|slice| slice.len()).sum();
        session.outbox().sent(bytes, &mut desk.pool);
        sent += bytes;
    }
    sent
}

/// The client goes in the middle of everything: all that was lent comes back.
fn finish(mut session: Session, mut desk: crate::Desk, mut disks: MemoryDisks) {
    session.release(&mut desk);
    disks.take(&mut desk);
    while disks.carry_out(0, &mut desk) {}
    while let Some(done) = desk.poll_done() {
        if let Some(piece) = done.job.piece {
            desk.pool.give_back(piece);
        }
    }
    assert_eq!((desk.open_jobs(), desk.pool.lent()), (0, 0), "something of a lost client was kept");
}

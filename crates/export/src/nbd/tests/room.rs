//! Sessions that share too little memory: everybody is served in the end.

use crate::memory_disk::MemoryDisks;
use crate::nbd::handshake::TlsPolicy;
use crate::nbd::session::Session;
use crate::nbd::testing::{Talk, go_data, option_bytes, request};
use crate::nbd::wire::{command, option};
use crate::protocol::Protocol;
use std::io::IoSlice;

/// Four clients each ask for reads of several pieces, with pieces for little more than one.
#[test]
fn gathered_replies_do_not_wait_for_each_other() {
    let (mut dispatcher, mut disks) = MemoryDisks::new(&[("", 8192)], [0, 0, 5]);
    let mut sessions: Vec<Session> = (0..4).map(|number| Session::new(TlsPolicy::None, number, 0)).collect();
    let size = 1 << 20;
    let mut received = vec![0; sessions.len()];
    for session in &mut sessions {
        let hello = [vec![0, 0, 0, 3], option_bytes(option::GO, &go_data(""))].concat();
        let mut bytes = [hello, request(command::READ, 0, 1, 0, size).repeat(3)].concat();
        while !bytes.is_empty() {
            let taken = session.on_bytes(&bytes, &mut dispatcher).unwrap();
            bytes.drain(..taken);
        }
    }
    for turn in 0..1000 {
        disks.take(&mut dispatcher);
        while disks.carry_out(turn, &mut dispatcher) {}
        while let Some(done) = dispatcher.poll_done() {
            let number = usize::try_from(done.job.owner.connection).unwrap();
            sessions[number].on_done(done, &mut dispatcher);
        }
        for (session, count) in sessions.iter_mut().zip(&mut received) {
            session.go_on(&mut dispatcher);
            while !session.send_queue().is_empty() {
                let mut slices = [IoSlice::new(&[]); 8];
                let used = session.send_queue().slices(&dispatcher.buffers, &mut slices);
                let bytes: usize = slices[..used].iter().map(|slice| slice.len()).sum();
                session.send_queue().sent(bytes, &mut dispatcher.pool);
                *count += bytes;
            }
        }
    }
    let each = 3 * (16 + usize::try_from(size).unwrap());
    assert!(received.iter().all(|&count| count >= each), "{received:?} of {each} bytes");
    assert_eq!(dispatcher.pool.lent(), 0);
}

#[test]
fn more_requests_than_a_client_may_have_wait_and_are_all_answered() {
    let mut talk = Talk::with(&[("a", 8192)], [2, 0, 0], TlsPolicy::None);
    talk.enter("a", false);
    let answer = talk.say(&request(command::READ, 0, 1, 0, 512).repeat(1000)).unwrap();
    assert_eq!(answer.len(), 1000 * (16 + 512));
}

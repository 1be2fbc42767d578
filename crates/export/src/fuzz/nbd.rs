//! Any bytes as what an NBD client sends.

use super::{BYTES_MAX, drain, finish, work};
use crate::memory_disk::MemoryDisks;
use crate::nbd::{Session, TlsPolicy};
use crate::protocol::{Phase, Protocol};

/// Plays a client that sends `data`, cut and timed as its first bytes say. Returns how many bytes the server answered.
///
/// # Panics
/// If the server breaks a promise.
pub fn nbd_client(data: &[u8]) -> usize {
    let Some((&[shape, pace], data)) = data.split_first_chunk::<2>() else { return 0 };
    let data = &data[..data.len().min(BYTES_MAX)];
    let tls = if shape & 1 == 0 { TlsPolicy::None } else { TlsPolicy::Required };
    let pieces = if shape & 2 == 0 { [1, 0, 1] } else { [8, 4, 4] };
    let (mut dispatcher, mut disks) = MemoryDisks::new(&[("", 1 << 12), ("a", 8), ("b-ro", 64)], pieces);
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
                dispatcher
                    .buffers
                    .bytes_mut(space.buffer, space.first, count)
                    .copy_from_slice(&data[at..][..count]);
                session.on_payload(count, &mut dispatcher);
                Ok(count)
            }
            _ => {
                let count = (1 + turn % 300).min(data.len() - at).min(session.text_wanted().max(1));
                session.on_bytes(&data[at..][..count], &mut dispatcher)
            }
        };
        let Ok(given) = given else { break };
        assert!(given <= data.len() - at, "more was taken than came");
        at += given;
        let worked = work(&mut session, &mut dispatcher, &mut disks, turn);
        let sent = drain(&mut session, &mut dispatcher);
        answered += sent;
        if session.phase() == Phase::StartTls {
            session.on_tls();
        } else if given + worked + sent == 0 {
            break;
        }
    }
    finish(&mut session, &mut dispatcher, &mut disks);
    answered
}

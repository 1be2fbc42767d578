//! Any bytes as what a client of Redis' protocol sends.

use super::BYTES_MAX;
use crate::resp::testing::World;

/// Plays two clients that send parts of `data`, cut and timed as its first bytes say. Returns how many bytes they were answered.
///
/// # Panics
/// If the server breaks a promise.
pub fn resp_client(data: &[u8]) -> usize {
    let Some((&[shape, pace], data)) = data.split_first_chunk::<2>() else { return 0 };
    let data = &data[..data.len().min(BYTES_MAX)];
    let memory = if shape & 1 == 0 { 1 << 20 } else { 100_000 };
    let mut world = World::new(2, memory, pace.into());
    if shape & 2 != 0 {
        world.store.capacity = 1000;
    }
    if shape & 4 != 0 {
        world.store.bad = Some(b"b".to_vec());
    }
    let (mut at, mut answered, mut turn) = (0, 0, usize::from(pace));
    while at < data.len() {
        turn = turn.wrapping_mul(5).wrapping_add(usize::from(pace) | 1);
        let count = (1 + turn % 300).min(data.len() - at);
        // The second client speaks now and then, whole lines or not.
        let client = usize::from(shape & 8 != 0 && turn.is_multiple_of(3));
        if world.send(client, &data[at..][..count]).is_err() {
            break;
        }
        at += count;
        for _ in 0..turn % 7 {
            world.step();
        }
        if turn.is_multiple_of(11) {
            world.pass(i64::from(pace));
        }
        answered += world.take_sent(0).len() + world.take_sent(1).len();
    }
    if shape & 16 == 0 {
        world.settle();
        answered += world.take_sent(0).len() + world.take_sent(1).len();
    }
    world.finish();
    answered
}

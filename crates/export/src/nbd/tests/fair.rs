//! A client beside others that take all they can: how much happens before it is answered, in counts and not in time.

use crate::Dispatcher;
use crate::memory_disk::MemoryDisks;
use crate::nbd::TlsPolicy;
use crate::nbd::session::Session;
use crate::nbd::testing::{context_data, go_data, option_bytes, request};
use crate::nbd::wire::{REQUEST_BYTES_MAX, command, command_flag, option};
use crate::pool::Pool;
use crate::protocol::Protocol;
use ocssd_base::Prng;
use std::io::IoSlice;

/// Blocks of the disk: 64 MiB.
const BLOCKS: u64 = 128 << 10;

/// A client: what it has yet to send, and how many bytes of answers it takes in a round.
struct Client {
    session: Session,
    to_send: Vec<u8>,
    takes: usize,
    received: usize,
}

impl Client {
    /// Past its handshake.
    fn enter(number: u32, takes: usize, structured: bool, dispatcher: &mut Dispatcher) -> Self {
        let mut hello = vec![0, 0, 0, 3];
        if structured {
            hello.extend(option_bytes(option::STRUCTURED_REPLY, &[]));
            hello.extend(option_bytes(option::SET_META_CONTEXT, &context_data("", &["base:allocation"])));
        }
        hello.extend(option_bytes(option::GO, &go_data("")));
        let mut client = Self {
            session: Session::new(TlsPolicy::None, number, 0),
            to_send: hello,
            takes: usize::MAX,
            received: 0,
        };
        while client.turn(dispatcher) {}
        (client.takes, client.received) = (takes, 0);
        client
    }

    /// Sends what is taken, and takes what it takes in a round. True if bytes moved.
    fn turn(&mut self, dispatcher: &mut Dispatcher) -> bool {
        self.session.go_on(dispatcher);
        let given = self.session.on_bytes(&self.to_send, dispatcher).expect("it keeps to the protocol");
        self.to_send.drain(..given);
        let mut left = self.takes;
        while left > 0 && !self.session.send_queue().is_empty() {
            let mut slices = [IoSlice::new(&[]); 8];
            let used = self.session.send_queue().slices(&dispatcher.buffers, &mut slices);
            let there: usize = slices[..used].iter().map(|slice| slice.len()).sum();
            let count = there.min(left);
            self.session.send_queue().sent(count, &mut dispatcher.pool);
            (self.received, left) = (self.received + count, left - count);
        }
        given > 0 || left < self.takes
    }
}

/// A server with clients. In a round every job that the target has ends.
struct World {
    dispatcher: Dispatcher,
    disks: MemoryDisks,
    clients: Vec<Client>,
}

impl World {
    fn new() -> Self {
        let (dispatcher, disks) = MemoryDisks::with_pool(&[("", BLOCKS)], Pool::new);
        Self { dispatcher, disks, clients: Vec::new() }
    }

    /// One more client, that has all this to ask at once.
    fn enter(&mut self, takes: usize, structured: bool, asks: Vec<u8>) {
        let number = u32::try_from(self.clients.len()).unwrap();
        let mut client = Client::enter(number, takes, structured, &mut self.dispatcher);
        client.to_send = asks;
        self.clients.push(client);
    }

    fn round(&mut self) {
        for client in &mut self.clients {
            client.turn(&mut self.dispatcher);
        }
        self.disks.take(&mut self.dispatcher);
        while self.disks.carry_out(0, &mut self.dispatcher) {}
        while let Some(done) = self.dispatcher.poll_done() {
            let place = usize::try_from(done.job.owner.connection).unwrap();
            self.clients[place].session.on_done(done, &mut self.dispatcher);
        }
    }

    /// Rounds until the last client has so many bytes of the answer to what it asks.
    fn rounds_until_answered(&mut self, asks: Vec<u8>, bytes: usize) -> usize {
        let last = self.clients.last_mut().unwrap();
        (last.to_send, last.received) = (asks, 0);
        for round in 1..=1000 {
            self.round();
            if self.clients.last().unwrap().received >= bytes {
                return round;
            }
        }
        usize::MAX
    }
}

/// How much a client may ask at once and get without waiting for others, in bytes: what it is guaranteed.
const GUARANTEED: u32 = 1 << 20;

/// Reads of all sizes by clients that take 64 bytes of the answers in a round, or none.
fn slow_reads(prng: &mut Prng) -> (bool, Vec<u8>) {
    let structured = prng.below(2) == 0;
    let length =
        [4096, 64 << 10, 256 << 10, 1 << 20, REQUEST_BYTES_MAX][usize::try_from(prng.below(5)).unwrap()];
    let flags = if structured && prng.below(4) == 0 { command_flag::DF } else { 0 };
    (structured, request(command::READ, flags, 1, 0, length).repeat(300))
}

#[test]
fn however_much_slow_readers_hold_a_client_finds_what_it_is_guaranteed() {
    for seed in 0..12 {
        let mut prng = Prng::new(seed);
        let mut world = World::new();
        for _ in 0..1 + prng.below(60) {
            let (structured, asks) = slow_reads(&mut prng);
            let takes = usize::try_from(64 * prng.below(2)).unwrap();
            world.enter(takes, structured, asks);
            (0..prng.below(4)).for_each(|_| world.round());
        }
        (0..20).for_each(|_| world.round());
        world.enter(usize::MAX, true, Vec::new());
        for length in [512, 4096, 64 << 10, 256 << 10, GUARANTEED / 2] {
            let asks = request(command::READ, 0, 1, 0, length);
            let rounds = world.rounds_until_answered(asks, usize::try_from(length).unwrap());
            assert!(
                rounds <= 3,
                "seed {seed}: {length} bytes took {rounds} rounds beside {} readers",
                world.clients.len()
            );
        }
    }
}

#[test]
fn questions_about_the_whole_disk_do_not_hold_up_a_read() {
    let mut world = World::new();
    for _ in 0..30 {
        let asks = request(command::BLOCK_STATUS, 0, 1, 0, 64 << 20).repeat(128);
        world.enter(usize::MAX, true, asks);
    }
    (0..5).for_each(|_| world.round());
    world.enter(usize::MAX, true, Vec::new());
    let rounds = world.rounds_until_answered(request(command::READ, 0, 1, 0, 4096), 4096);
    assert!(rounds <= 2, "{rounds} rounds");
    assert!(world.dispatcher.has_questions(), "the others still wait");
}

#[test]
fn a_client_that_keeps_asking_does_not_hold_up_another_kind_of_request() {
    for (command, length) in [(command::TRIM, 64 << 10), (command::FLUSH, 0), (command::CACHE, 1 << 20)] {
        let mut world = World::new();
        for _ in 0..20 {
            world.enter(usize::MAX, true, request(command, 0, 1, 0, length).repeat(1000));
        }
        (0..3).for_each(|_| world.round());
        world.enter(usize::MAX, true, Vec::new());
        let rounds = world.rounds_until_answered(request(command::READ, 0, 1, 0, 256 << 10), 256 << 10);
        // A turn of each of the others, of which a round has four.
        assert!(rounds <= 20 / 4 + 2, "command {command}: {rounds} rounds");
    }
}

/// A reply that is gathered waits for memory of the largest kind, and is served although others stream meanwhile.
#[test]
fn the_largest_read_is_served_beside_clients_that_ask_for_all_they_can() {
    let mut world = World::new();
    for _ in 0..10 {
        world.enter(1 << 20, true, request(command::READ, 0, 1, 0, REQUEST_BYTES_MAX).repeat(40));
    }
    (0..3).for_each(|_| world.round());
    world.enter(usize::MAX, false, Vec::new());
    let bytes = usize::try_from(REQUEST_BYTES_MAX).unwrap();
    let rounds = world.rounds_until_answered(request(command::READ, 0, 1, 0, REQUEST_BYTES_MAX), bytes);
    // A round is a MiB, and it has its part of each.
    assert!(rounds <= 11 * 32 + 11, "{rounds} rounds");
}

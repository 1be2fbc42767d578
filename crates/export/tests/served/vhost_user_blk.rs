//! vhost-user-blk over a real socket, with a client that is somebody else's.

use crate::blkio_client::{Disk, connect};
use crate::raw_frontend::{RawFrontend, request};
use crate::world::{ServerOptions, World};
use blkio::ReqFlags;
use ocssd_base::Prng;
use ocssd_export::DropReason;
use ocssd_export::reactor::Endpoint;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, PermissionsExt};

fn world() -> World {
    World::with(ServerOptions { vhost_user_blk: true, ..ServerOptions::default() })
}

fn pattern(bytes: usize, seed: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from((at / 7 + seed) % 251).expect("below 251")).collect()
}

#[test]
fn a_client_reads_what_it_wrote() {
    let world = world();
    let mut disk = Disk::open(&world.endpoint, 1);
    assert_eq!(disk.blkio.get_u64("capacity").expect("it is connected"), world.bytes);
    assert_eq!(disk.read(0, 4096), [0; 4096]);
    let data = pattern(100_000 / 512 * 512, 1);
    assert_eq!(disk.write(512, &data), 0);
    assert_eq!(disk.flush(), 0);
    assert!(disk.read(512, data.len()) == data);
    drop(disk);
    let stats = world.end();
    assert_eq!((stats.reads, stats.writes, stats.flushes, stats.errors), (2, 1, 1, 0));
    assert_eq!(stats.copies_per_byte(), (Some(1.0), Some(1.0)));
    assert_eq!(stats.dropped, [0; ocssd_export::DROP_REASONS.len()]);
}

#[test]
fn limits_are_told_and_a_request_as_long_as_they_allow_is_carried_out() {
    let world = world();
    let mut disk = Disk::open(&world.endpoint, 1);
    let number = |name: &str| disk.blkio.get_i32(name).expect("it is connected");
    assert_eq!(
        (number("max-queues"), number("request-alignment"), number("optimal-io-alignment")),
        (16, 512, 4096)
    );
    assert_eq!((number("max-segments"), number("max-segment-len")), (126, 256 << 10));
    let data = pattern(4 << 20, 3);
    assert_eq!(disk.write(0, &data), 0);
    assert!(disk.read(0, data.len()) == data);
    let bytes = world.bytes;
    disk.ask_read(0, bytes, 0, 512, 1);
    disk.ask_read(0, 0, 0, 100, 2);
    let mut ended = disk.wait(0, 2);
    ended.sort_unstable();
    assert!(ended.iter().all(|(_, result)| *result < 0), "{ended:?}");
    drop(disk);
    assert_eq!(world.end().errors, 2);
}

#[test]
fn discarded_and_zeroed_ranges_read_as_zeroes_and_their_neighbours_stay() {
    let world = world();
    let mut disk = Disk::open(&world.endpoint, 1);
    let mut model = pattern(64 << 10, 5);
    disk.write(0, &model);
    disk.queues[0].discard(4096, 8192, 1, ReqFlags::empty());
    disk.queues[0].write_zeroes(16384, 512, 2, ReqFlags::empty());
    disk.queues[0].write_zeroes(20480, 4096, 3, ReqFlags::NO_UNMAP);
    assert!(disk.wait(0, 3).iter().all(|(_, result)| *result == 0));
    for range in [4096..12288, 16384..16896, 20480..24576] {
        model[range].fill(0);
    }
    assert!(disk.read(0, model.len()) == model);
    drop(disk);
    let stats = world.end();
    assert_eq!((stats.trims, stats.zeroes, stats.errors), (1, 2, 0));
}

#[test]
fn queues_work_beside_each_other() {
    let world = world();
    let mut disk = Disk::open(&world.endpoint, 4);
    let bytes = 4096;
    let place = |queue: usize, number: usize| (queue * 32 + number) * bytes;
    for queue in 0..4 {
        for number in 0..32 {
            let at = place(queue, number);
            disk.put(at, &pattern(bytes, queue * 40 + number));
            disk.ask_write(queue, u64::try_from(at).expect("small"), at, bytes, number);
        }
    }
    for queue in 0..4 {
        let mut ended = disk.wait(queue, 32);
        ended.sort_unstable();
        assert_eq!(ended, (0..32).map(|number| (number, 0)).collect::<Vec<_>>());
    }
    for queue in 0..4 {
        (0..32).for_each(|number| {
            let at = place(queue, number);
            disk.ask_read((queue + 1) % 4, u64::try_from(at).expect("small"), (1 << 20) + at, bytes, number);
        });
        disk.wait((queue + 1) % 4, 32);
    }
    for queue in 0..4 {
        for number in 0..32 {
            let found = disk.get((1 << 20) + place(queue, number), bytes);
            assert!(found == pattern(bytes, queue * 40 + number), "queue {queue}, request {number}");
        }
    }
    drop(disk);
    assert_eq!(world.end().errors, 0);
}

#[test]
fn random_requests_are_answered_as_a_block_device_would() {
    let seed = 11;
    let mut prng = Prng::new(seed);
    let world = world();
    let blocks = 400_u64;
    let mut model = vec![0_u8; usize::try_from(blocks * 512).expect("small")];
    let mut disk = Disk::open(&world.endpoint, 1);
    for step in 0..600 {
        let count = 1 + prng.below(30);
        let first = prng.below(blocks - count);
        let place = usize::try_from(first * 512).expect("small")
            ..usize::try_from((first + count) * 512).expect("small");
        match prng.below(5) {
            0 | 1 => {
                model[place.clone()].fill(u8::try_from(prng.below(256)).expect("small"));
                assert_eq!(disk.write(first * 512, &model[place]), 0, "seed {seed}, step {step}");
            }
            2 => {
                model[place].fill(0);
                disk.queues[0].write_zeroes(first * 512, count * 512, 1, ReqFlags::empty());
                assert_eq!(disk.wait(0, 1), [(1, 0)], "seed {seed}, step {step}");
            }
            _ => {
                let read = disk.read(first * 512, place.len());
                assert!(read == model[place], "seed {seed}, step {step}: block {first}, {count} blocks");
            }
        }
    }
    drop(disk);
    assert_eq!(world.end().errors, 0);
}

#[test]
fn a_client_comes_again_and_finds_what_it_left() {
    let world = world();
    for round in 0..20 {
        let mut disk = Disk::open(&world.endpoint, 2);
        if round > 0 {
            assert!(disk.read(0, 8192) == pattern(8192, round - 1), "round {round}");
        }
        assert_eq!((disk.write(0, &pattern(8192, round)), disk.flush()), (0, 0));
    }
    let stats = world.end();
    assert_eq!((stats.connections, stats.errors), (20, 0));
}

#[test]
fn a_client_that_goes_in_mid_flight_takes_nothing_acknowledged_with_it() {
    let mut world = world();
    let kept = pattern(8192, 9);
    let mut disk = Disk::open(&world.endpoint, 1);
    assert_eq!((disk.write(0, &kept), disk.flush()), (0, 0));
    drop(disk);
    for round in 0..40 {
        let mut disk = Disk::open(&world.endpoint, 2);
        disk.put(0, &pattern(256 << 10, round));
        for number in 0..60 {
            let place = (1 << 20) + u64::try_from(number).expect("small") * 4096;
            disk.ask_write(number % 2, place, number * 4096, 4096, number);
        }
        disk.ask_write(0, 2 << 20, 0, 256 << 10, 99);
        // They are in the rings, and the server is told; nobody waits for what comes back.
        disk.wait(0, round % 3);
        disk.wait(1, 0);
    }
    world.until("all have gone", |stats| stats.connections == 41);
    let mut disk = Disk::open(&world.endpoint, 1);
    assert!(disk.read(0, 8192) == kept);
    drop(disk);
    assert_eq!(world.end().errors, 0);
}

/// Bytes of memory for requests in flight of one ring of 16 descriptors: a head and a state for each, padded to 64.
const IN_FLIGHT_BYTES: u64 = 320;

#[test]
fn a_frontend_that_keeps_what_is_in_flight_is_answered_once_by_who_serves_it_next() {
    let mut world = world();
    for round in 0..20 {
        let mut frontend = RawFrontend::connect(&world.endpoint);
        let log =
            rustix::fs::memfd_create("log", rustix::fs::MemfdFlags::ALLOW_SEALING).expect("there is memory");
        let log = File::from(log);
        log.set_len(IN_FLIGHT_BYTES).expect("there is memory");
        let greet = |frontend: &mut RawFrontend| {
            frontend.greet();
            frontend.send_words(request::SET_PROTOCOL_FEATURES, &[1 << 12], &[]);
            // Bytes and offset, then rings and descriptors of each in 16 bits.
            frontend.send_words(request::GET_INFLIGHT_FD, &[0, 0, 1 | 16 << 16], &[]);
            let answer = frontend.answer();
            assert_eq!(
                (&answer[..8], &answer[16..20]),
                (&IN_FLIGHT_BYTES.to_le_bytes()[..], &[1, 0, 16, 0][..])
            );
            frontend.send_words(
                request::SET_INFLIGHT_FD,
                &[IN_FLIGHT_BYTES, 0, 1 | 16 << 16],
                &[log.as_fd()],
            );
        };
        greet(&mut frontend);
        frontend.begin_ring();
        frontend.ask_read();
        if round % 2 == 0 {
            world.until("it was answered", |_| frontend.came_back() == 1);
        }
        // Else it goes with its request answered, taken, or neither.
        frontend.reconnect(&world.endpoint);
        world.until("the server met it", |stats| stats.connections == 2 * round + 2);
        greet(&mut frontend);
        frontend.begin_ring_at(frontend.came_back());
        world.until("its request was answered", |_| frontend.came_back() == 1);
        frontend.ask_read();
        world.until("the next was, too", |_| frontend.came_back() == 2);
        let mut state = [0; 16];
        log.read_exact_at(&mut state, 16).expect("it is there");
        assert_eq!(state[0], 0, "round {round}: chain 0 is in flight");
    }
    assert_eq!(world.end().errors, 0);
}

#[test]
fn a_second_frontend_is_turned_away_and_the_first_goes_on() {
    let mut world = world();
    let mut disk = Disk::open(&world.endpoint, 1);
    assert_eq!(disk.write(0, &[7; 512]), 0);
    for _ in 0..3 {
        assert!(connect(&world.endpoint, false).is_err());
    }
    let Endpoint::Unix(path) = &world.endpoint else { panic!("a unix socket") };
    for _ in 0..300 {
        // It is accepted and closed, or still waits to be accepted.
        drop(std::os::unix::net::UnixStream::connect(path).expect("somebody listens"));
    }
    assert_eq!(disk.read(0, 512), [7; 512]);
    let stats = world.until("they were turned away", |stats| stats.dropped_for(DropReason::Crowded) == 303);
    assert_eq!((stats.connections, stats.connections_max), (304, 1));
    drop(disk);
    world.end();
}

#[test]
fn a_read_only_export_is_a_read_only_disk() {
    let world =
        World::with(ServerOptions { vhost_user_blk: true, read_only: true, ..ServerOptions::default() });
    let mut blkio = connect(&world.endpoint, false).expect("it can be looked at");
    blkio.set_i32("num-queues", 1).expect("it is connected");
    assert!(blkio.start().is_err(), "it wants to write");
    drop(blkio);
    let mut disk = Disk::start(connect(&world.endpoint, true).expect("it only reads"), 1);
    assert_eq!(disk.read(0, 512), [0; 512]);
    drop(disk);
    world.end();
}

#[test]
fn a_socket_is_its_owners_alone_and_a_stop_lets_an_idle_client_go() {
    let world = world();
    let Endpoint::Unix(path) = world.endpoint.clone() else { panic!("a unix socket") };
    assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
    let mut disk = Disk::open(&world.endpoint, 1);
    assert_eq!(disk.write(0, &[1; 512]), 0);
    let stats = world.end();
    assert_eq!(stats.dropped, [0; ocssd_export::DROP_REASONS.len()]);
    assert!(!path.exists());
}

//! Frontends that do not keep to vhost-user: each is dropped with a reason, and the next one is served.

use crate::blkio_client::Disk;
use crate::raw_frontend::{MEMORY_BYTES, RawFrontend, request};
use crate::world::{ServerOptions, World};
use ocssd_base::Nanos;
use ocssd_export::DropReason;
use ocssd_export::reactor::Limits;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

fn world() -> World {
    World::with(ServerOptions { vhost_user_blk: true, ..ServerOptions::default() })
}

fn quick() -> World {
    let short = Nanos::from_millis(200);
    let limits =
        Limits { greeting: short, stall: short, stall_crowded: short, closing: short, ..Limits::default() };
    World::with(ServerOptions { vhost_user_blk: true, limits, ..ServerOptions::default() })
}

fn still_serves(world: &World) {
    let mut disk = Disk::open(&world.endpoint, 1);
    assert_eq!((disk.write(8192, &[9; 4096]), disk.flush()), (0, 0));
    assert_eq!(disk.read(8192, 4096), [9; 4096]);
}

/// What a frontend does drops it for a reason, and it alone.
fn check_dropped(reason: DropReason, act: impl FnOnce(&mut RawFrontend)) {
    let mut world = world();
    let mut frontend = RawFrontend::connect(&world.endpoint);
    act(&mut frontend);
    assert!(frontend.is_dropped(), "{reason:?}");
    let stats = world.until("it was dropped", |stats| stats.dropped_for(reason) == 1);
    assert_eq!(stats.dropped.iter().sum::<u64>(), 1);
    still_serves(&world);
    world.end();
}

#[test]
fn what_is_no_message_drops_who_sends_it() {
    check_dropped(DropReason::Oversized, |frontend| {
        frontend.stream.write_all(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n").expect("it is taken");
    });
    check_dropped(DropReason::Garbage, |frontend| frontend.send(9999, &[], &[]));
    check_dropped(DropReason::Garbage, |frontend| frontend.send(request::SET_FEATURES, &[1, 2, 3], &[]));
    check_dropped(DropReason::Garbage, |frontend| {
        frontend.send_words(request::SET_FEATURES, &[u64::MAX], &[])
    });
    check_dropped(DropReason::Garbage, |frontend| {
        frontend.send_words(request::SET_VRING_NUM, &[99 << 32 | 77], &[])
    });
    check_dropped(DropReason::Garbage, |frontend| {
        let files: Vec<File> = (0..30).map(|_| File::open("/dev/null").expect("it is there")).collect();
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        frontend.send(request::SET_OWNER, &[], &files);
    });
}

#[test]
fn memory_that_is_not_there_drops_who_sends_it() {
    check_dropped(DropReason::Garbage, |frontend| {
        let words = [1, 0, MEMORY_BYTES + 4096, 0, 0];
        frontend.send_words(request::SET_MEM_TABLE, &words, &[frontend.memory.as_fd()]);
    });
    check_dropped(DropReason::Garbage, |frontend| {
        frontend.send_words(request::SET_MEM_TABLE, &[1, 0, 4096, 0, 0], &[]);
    });
    check_dropped(DropReason::Garbage, |frontend| {
        let null = File::open("/dev/null").expect("it is there");
        frontend.send_words(request::SET_MEM_TABLE, &[1, 0, 4096, 0, 0], &[null.as_fd()]);
    });
    check_dropped(DropReason::Garbage, |frontend| {
        // A ring where no memory is.
        frontend.send_words(request::SET_VRING_ADDR, &[0, 0x1000, 0x2000, 0x3000, 0], &[]);
    });
}

#[test]
fn rings_that_are_broken_drop_whose_they_are() {
    check_dropped(DropReason::Garbage, |frontend| {
        frontend.greet();
        frontend.begin_ring();
        frontend.claim(17);
    });
    check_dropped(DropReason::Garbage, |frontend| {
        frontend.greet();
        frontend.begin_ring();
        frontend.descriptor(0, 0x3000, 16, 1, 0);
        frontend.offer(0);
    });
    check_dropped(DropReason::Garbage, |frontend| {
        frontend.greet();
        // Kicks by something that cannot be waited for.
        frontend.send_words(request::SET_VRING_KICK, &[0], &[frontend.memory.as_fd()]);
    });
}

#[test]
fn half_a_message_and_silence_are_waited_for_and_not_for_ever() {
    let mut world = quick();
    let mut silent = RawFrontend::connect(&world.endpoint);
    assert!(silent.is_dropped());
    let mut half = RawFrontend::connect(&world.endpoint);
    half.send(request::SET_OWNER, &[], &[]);
    half.stream.write_all(&[1, 0, 0, 0, 1]).expect("it is taken");
    assert!(half.is_dropped());
    world.until("both are dropped", |stats| {
        stats.dropped_for(DropReason::SlowGreeting) == 1 && stats.dropped_for(DropReason::Stalled) == 1
    });
    still_serves(&world);
    world.end();
}

#[test]
fn who_takes_no_answers_is_dropped_and_holds_up_nobody() {
    let mut world = quick();
    let frontend = RawFrontend::connect(&world.endpoint);
    frontend.send(request::SET_OWNER, &[], &[]);
    frontend.stream.set_nonblocking(true).expect("it is a socket");
    let question = [&request::GET_FEATURES.to_le_bytes()[..], &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
    // Until neither side has room.
    world.until("it is dropped", |stats| {
        for _ in 0..1000 {
            // It is full, or was dropped.
            let _ = (&frontend.stream).write(&question);
        }
        stats.dropped_for(DropReason::Stalled) + stats.dropped_for(DropReason::Vanished) == 1
    });
    still_serves(&world);
    world.end();
}

#[test]
fn a_ring_stops_when_what_was_taken_has_ended_and_says_where() {
    let world = world();
    let mut frontend = RawFrontend::connect(&world.endpoint);
    frontend.greet();
    frontend.begin_ring();
    // A descriptor for calls that is full: nobody waits for it.
    let full = rustix::event::eventfd(u32::MAX, rustix::event::EventfdFlags::empty()).expect("one more");
    rustix::io::write(&full, &(u64::MAX - 1 - u64::from(u32::MAX)).to_ne_bytes()).expect("it has room");
    frontend.send_words(request::SET_VRING_CALL, &[0], &[full.as_fd()]);
    (0..7).for_each(|_| frontend.ask_read());
    frontend.send_words(request::GET_VRING_BASE, &[0], &[]);
    let state = frontend.answer();
    let next = u16::from_le_bytes([state[4], state[5]]);
    assert_eq!(frontend.came_back(), next, "all that was taken came back before it stopped");
    frontend.ask_read();
    frontend.send(request::GET_FEATURES, &[], &[]);
    frontend.answer();
    assert_eq!(frontend.came_back(), next, "nothing is taken from a ring that was stopped");
    drop(frontend);
    still_serves(&world);
    world.end();
}

#[test]
fn a_frontend_that_goes_with_half_a_message_or_requests_open_leaves_nothing() {
    let mut world = world();
    for round in 0..20 {
        let mut frontend = RawFrontend::connect(&world.endpoint);
        frontend.greet();
        if round % 2 == 0 {
            frontend.begin_ring();
            (0..16).for_each(|_| frontend.ask_read());
        } else {
            frontend.stream.write_all(&[1, 0]).expect("it is taken");
        }
    }
    world.until("they have gone", |stats| stats.connections == 20);
    still_serves(&world);
    world.end();
}

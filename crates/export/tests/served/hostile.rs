//! Clients that do not keep to the protocol: each is dropped or answered, the server and everybody else go on.

use crate::client::{Client, connect, option_bytes};
use crate::world::{ServerOptions, World};
use ocssd_base::Nanos;
use ocssd_export::DropReason;
use ocssd_export::nbd::wire::{command, option};
use ocssd_export::reactor::Limits;
use std::io::{Read, Write};

fn quick() -> Limits {
    let short = Nanos::from_millis(200);
    Limits { greeting: short, stall: short, stall_crowded: short, closing: short, ..Limits::default() }
}

/// A sound client is served, whatever went before.
fn still_serves(world: &World) {
    let mut client = Client::enter(&world.endpoint);
    assert_eq!(client.write(8192, &[9; 4096]), (0, 1));
    assert_eq!(client.flush(), (0, 3));
    assert_eq!(client.read(8192, 4096), [9; 4096]);
}

#[test]
fn half_a_handshake_is_waited_for_and_not_for_ever() {
    let mut world = World::with(ServerOptions { limits: quick(), ..ServerOptions::default() });
    let mut silent = connect(&world.endpoint);
    let mut half = connect(&world.endpoint);
    half.write_all(&[&[0, 0, 0, 3][..], &option_bytes(option::GO, &[0; 6])[..9]].concat())
        .expect("the server takes it");
    let stats = world.until("both are dropped", |stats| stats.dropped_for(DropReason::SlowGreeting) == 2);
    assert_eq!(stats.connections, 2);
    let mut rest = Vec::new();
    silent.read_to_end(&mut rest).expect("the server takes it");
    still_serves(&world);
    world.end();
}

#[test]
fn garbage_drops_who_sends_it() {
    let mut world = World::new();
    let mut web = connect(&world.endpoint);
    web.write_all(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n").expect("the server takes it");
    let mut client = Client::enter(&world.endpoint);
    client.stream.write_all(&[0x5a; 28]).expect("the server takes it");
    assert!(client.is_dropped());
    world.until("both are dropped", |stats| stats.dropped_for(DropReason::Garbage) == 2);
    still_serves(&world);
    world.end();
}

#[test]
fn lengths_nobody_may_ask_for_are_refused_or_drop_the_client() {
    let mut world = World::new();
    let mut client = Client::enter(&world.endpoint);
    client.ask(command::READ, 5, 0, u32::MAX).expect("the server takes it");
    assert_eq!(client.reply().expect("the server takes it"), (22, 5));
    client.ask(command::READ, 6, u64::MAX - 511, 512).expect("the server takes it");
    assert_eq!(client.reply().expect("the server takes it"), (22, 6));
    client.ask(command::WRITE, 7, world.bytes, 512).expect("the server takes it");
    client.stream.write_all(&[0; 512]).expect("the server takes it");
    assert_eq!(client.reply().expect("the server takes it"), (28, 7));
    client.ask(command::WRITE, 8, 0, u32::MAX).expect("the server takes it");
    assert!(client.is_dropped());
    let mut other = connect(&world.endpoint);
    other
        .write_all(&[&[0, 0, 0, 3][..], b"IHAVEOPT", &[0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff]].concat())
        .expect("the server takes it");
    world.until("both are dropped", |stats| stats.dropped_for(DropReason::Oversized) == 2);
    still_serves(&world);
    world.end();
}

#[test]
fn a_client_that_goes_in_the_middle_of_a_transfer_takes_nothing_acknowledged_with_it() {
    let mut world = World::new();
    let mut witness = Client::enter(&world.endpoint);
    assert_eq!(witness.write(0, &[3; 8192]), (0, 1));
    for round in 0..40_u64 {
        let mut client = Client::enter(&world.endpoint);
        if round % 2 == 0 {
            client.ask(command::WRITE, 1, 1 << 20, 1 << 20).expect("the server takes it");
            client.stream.write_all(&vec![1; 300_000]).expect("the server takes it");
        } else {
            for cookie in 0..20 {
                client.ask(command::READ, cookie, 0, 1 << 20).expect("the server takes it");
            }
        }
    }
    world.until("all are gone", |stats| stats.dropped_for(DropReason::Vanished) == 40);
    assert_eq!(witness.read(0, 8192), [3; 8192]);
    still_serves(&world);
    world.end();
}

#[test]
fn a_crowd_is_bounded_and_the_server_outlives_it() {
    let limits = Limits { connections: 50, ..Limits::default() };
    let mut world = World::with(ServerOptions { limits, ..ServerOptions::default() });
    let mut inside: Vec<Client> = (0..49).map(|_| Client::enter(&world.endpoint)).collect();
    for _ in 0..2000 {
        // It is accepted and closed, or still waits to be accepted.
        drop(connect(&world.endpoint));
    }
    let stats = world.until("the crowd has come", |stats| stats.connections == 49 + 2000);
    assert!(stats.connections_max <= 50, "{} at once", stats.connections_max);
    assert_eq!(
        inside.last_mut().expect("the server takes it").read(0, 512),
        [0; 512],
        "those inside are served"
    );
    drop(inside);
    world.until("they have gone", |stats| stats.connections > 0);
    world.end();
}

#[test]
fn slow_readers_hold_up_nobody_and_are_dropped_when_they_hold_what_others_need() {
    let mut world = World::with(ServerOptions { limits: quick(), ..ServerOptions::default() });
    // Together they ask for more than all memory for payload, and read nothing.
    let mut slow: Vec<Client> = (0..3).map(|_| Client::enter(&world.endpoint)).collect();
    for client in &mut slow {
        for cookie in 0..8 {
            client.ask(command::READ, cookie, 0, 8 << 20).expect("the server takes it");
        }
    }
    still_serves(&world);
    let stats = world.until("they are dropped", |stats| stats.dropped_for(DropReason::Stalled) == 3);
    assert_eq!(stats.errors, 0);
    still_serves(&world);
    world.end();
}

#[test]
fn a_stop_waits_for_slow_readers_and_slow_writers_no_longer_than_the_limit_for_closing() {
    let closing = Nanos::from_millis(200);
    let limits = Limits { closing, ..Limits::default() };
    let mut world = World::with(ServerOptions { limits, ..ServerOptions::default() });
    let mut readers: Vec<Client> = (0..3).map(|_| Client::enter(&world.endpoint)).collect();
    for client in &mut readers {
        (0..8).for_each(|cookie| client.ask(command::READ, cookie, 0, 8 << 20).expect("the server takes it"));
    }
    let mut writer = Client::enter(&world.endpoint);
    writer.ask(command::WRITE, 1, 0, 1 << 20).expect("the server takes it");
    writer.stream.write_all(&[1]).expect("the server takes it");
    world.until("the readers have got some", |stats| stats.sent_bytes > 0);
    let began = std::time::Instant::now();
    let stats = world.end();
    // Without that limit it would wait until they count as stalled.
    let stalled = std::time::Duration::from_nanos(Limits::default().stall.0);
    assert!(began.elapsed() < stalled / 2, "it took {:?}", began.elapsed());
    assert_eq!(stats.dropped_for(DropReason::Stalled), 4, "the stop dropped those who owed a step");
}

#[test]
fn a_reader_that_is_slow_is_dropped_when_it_holds_more_than_its_part_and_not_before() {
    let mut world = World::new();
    let bytes = u32::try_from(world.bytes.min(32 << 20)).expect("a request's length");
    let mut slow = Client::enter(&world.endpoint);
    (0..4).for_each(|cookie| slow.ask(command::READ, cookie, 0, bytes).expect("the server takes it"));
    world.until("it has got some", |stats| stats.sent_bytes > 0);
    still_serves(&world);
    let mut others: Vec<Client> = (0..2).map(|_| Client::enter(&world.endpoint)).collect();
    for other in &mut others {
        other.ask(command::READ, 1, 0, bytes).expect("the server takes it");
        still_serves(&world);
    }
    let stats = world.until("somebody is dropped", |stats| stats.dropped_for(DropReason::Slow) > 0);
    assert_eq!((stats.dropped_for(DropReason::Stalled), stats.errors), (0, 0));
    still_serves(&world);
    world.end();
}

#[test]
fn handshakes_that_go_on_for_ever_lock_nobody_out() {
    let unix = ServerOptions::default().endpoint;
    let limits = Limits { connections: 16, ..Limits::default() };
    let tcp = "tcp:127.0.0.1:0".parse().expect("an endpoint");
    let mut world = World::with(ServerOptions {
        endpoint: tcp,
        beside: Some(unix.clone()),
        limits,
        ..ServerOptions::default()
    });
    let silent: Vec<_> = (0..64).map(|_| connect(&world.endpoint)).collect();
    world.until("the crowd has come", |stats| stats.connections == 64);
    let mut inside: Vec<Client> = (0..4).map(|_| Client::enter(&unix)).collect();
    inside.iter_mut().for_each(|client| assert_eq!(client.read(0, 512), [0; 512]));
    // At the crowd's own endpoint those make room who have taken longest, once that is too long.
    let endpoint = world.endpoint.clone();
    let entered = world.until("one more comes in", |stats| {
        Client::over(connect(&endpoint)).is_ok() && stats.connections > 0
    });
    assert!(entered.connections_max <= 16, "{} at once", entered.connections_max);
    let stats = world.until("somebody made room", |stats| stats.dropped_for(DropReason::SlowGreeting) > 0);
    assert!(stats.dropped_for(DropReason::Crowded) >= 64 - 12);
    drop(silent);
    world.end();
}

#[test]
fn slow_writers_are_dropped_and_what_they_held_serves_others() {
    let mut world = World::with(ServerOptions { limits: quick(), ..ServerOptions::default() });
    let mut slow: Vec<Client> = (0..300).map(|_| Client::enter(&world.endpoint)).collect();
    for client in &mut slow {
        client.ask(command::WRITE, 1, 0, 1 << 20).expect("the server takes it");
        client.stream.write_all(&[1]).expect("the server takes it");
    }
    world.until("they are dropped", |stats| stats.dropped_for(DropReason::Stalled) == 300);
    still_serves(&world);
    world.end();
}

#[test]
fn strangers_are_not_served() {
    let limits =
        Limits { allowed: vec!["192.0.2.0/24".parse().expect("the server takes it")], ..Limits::default() };
    let mut world = World::with(ServerOptions {
        endpoint: "tcp:127.0.0.1:0".parse().expect("the server takes it"),
        limits,
        ..ServerOptions::default()
    });
    let mut stranger = connect(&world.endpoint);
    let mut greeting = Vec::new();
    assert_eq!(stranger.read_to_end(&mut greeting).unwrap_or(0), 0);
    world.until("it is dropped", |stats| stats.dropped_for(DropReason::NotAllowed) == 1);
    world.end();
}

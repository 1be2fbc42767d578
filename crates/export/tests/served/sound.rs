//! Clients that keep to the protocol.

use crate::client::Client;
use crate::world::{ServerOptions, World};
use ocssd_base::Prng;
use ocssd_export::nbd::wire::{NbdError, command};
use ocssd_export::reactor::{Endpoint, Limits, Listener};
use std::os::unix::fs::PermissionsExt;

#[test]
fn what_one_client_wrote_another_reads_on_unix_and_tcp_sockets() {
    for endpoint in
        [ServerOptions::default().endpoint, "tcp:127.0.0.1:0".parse().expect("the server takes it")]
    {
        let world = World::with(ServerOptions { endpoint, ..ServerOptions::default() });
        let (mut one, mut other) = (Client::enter(&world.endpoint), Client::enter(&world.endpoint));
        let data: Vec<u8> = (0..100_000_u32 / 512 * 512)
            .map(|at| u8::try_from(at % 241).expect("the server takes it"))
            .collect();
        assert_eq!(one.write(512, &data), (0, 1));
        assert_eq!(one.flush(), (0, 3));
        assert_eq!(other.read(512, data.len()), data);
        one.ask(command::DISC, 0, 0, 0).expect("the server takes it");
        assert!(one.is_dropped());
        let stats = world.end();
        assert_eq!((stats.reads, stats.writes, stats.flushes, stats.connections), (1, 1, 1, 2));
        assert_eq!(stats.dropped, [0; ocssd_export::DROP_REASONS.len()]);
    }
}

#[test]
fn random_requests_are_answered_as_a_block_device_would() {
    let seed = 7;
    let mut prng = Prng::new(seed);
    let world = World::new();
    let blocks = 400_u64;
    let mut model = vec![0_u8; usize::try_from(blocks * 512).expect("the server takes it")];
    let mut client = Client::enter(&world.endpoint);
    for step in 0..600 {
        let count = 1 + prng.below(30);
        let first = prng.below(blocks - count);
        let place = usize::try_from(first * 512).expect("the server takes it")
            ..usize::try_from((first + count) * 512).expect("the server takes it");
        if prng.below(2) == 0 {
            let byte = u8::try_from(prng.below(256)).expect("the server takes it");
            model[place.clone()].fill(byte);
            assert_eq!(client.write(first * 512, &model[place]), (0, 1), "seed {seed}, step {step}");
        } else {
            let read = client.read(first * 512, place.len());
            assert!(read == model[place], "seed {seed}, step {step}: block {first}, {count} blocks");
        }
    }
    let stats = world.end();
    assert_eq!(stats.errors, 0);
}

#[test]
fn large_payload_is_received_where_it_belongs_and_sent_from_there() {
    let world = World::new();
    let mut client = Client::enter(&world.endpoint);
    let data = vec![5; 4 << 20];
    client.write(0, &data);
    assert!(client.read(0, data.len()) == data);
    let stats = world.end();
    let (write, read) = stats.copies_per_byte();
    assert!(write.expect("the server takes it") < 0.05, "{write:?} copies of a written byte");
    assert_eq!(read, Some(0.0));
}

#[test]
fn a_read_only_export_refuses_writes() {
    let world = World::with(ServerOptions { read_only: true, ..ServerOptions::default() });
    let mut client = Client::enter(&world.endpoint);
    assert_eq!(client.write(0, &[1; 512]), (NbdError::Perm.code(), 1));
    assert_eq!(client.read(0, 512), [0; 512]);
    world.end();
}

#[test]
fn a_socket_is_its_owners_alone_replaces_a_dead_one_only_and_goes_with_the_server() {
    let world = World::new();
    let Endpoint::Unix(path) = world.endpoint.clone() else { panic!("a unix socket") };
    assert_eq!(std::fs::metadata(&path).expect("the server takes it").permissions().mode() & 0o777, 0o600);
    let taken = Listener::bind(&world.endpoint).expect_err("it is refused").to_string();
    assert!(taken.contains("another server"), "{taken}");
    world.end();
    assert!(!path.exists());
    std::fs::write(&path, "not a socket").expect("the server takes it");
    let foreign = Listener::bind(&Endpoint::Unix(path.clone())).expect_err("it is refused").to_string();
    assert!(foreign.contains("no socket"), "{foreign}");
    std::fs::remove_file(&path).expect("the server takes it");
    // A listener whose process was killed leaves its name.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("the server takes it"));
    assert!(path.exists());
    drop(Listener::bind(&Endpoint::Unix(path.clone())).expect("the server takes it"));
    assert!(!path.exists());
}

#[test]
fn a_stop_answers_what_was_asked_and_refuses_what_comes_then() {
    let world = World::with(ServerOptions { limits: Limits::default(), ..ServerOptions::default() });
    let mut client = Client::enter(&world.endpoint);
    // Half a write: the server waits for the rest, and not for ever.
    client.ask(command::WRITE, 1, 0, 4096).expect("the server takes it");
    client.stream.write_all(&[1; 1000]).expect("the server takes it");
    let mut idle = Client::enter(&world.endpoint);
    assert_eq!(idle.read(0, 512), [0; 512]);
    let stopper = std::thread::spawn(move || world.end());
    assert!(idle.is_dropped(), "an idle client is let go");
    client.stream.write_all(&[1; 3096]).expect("the server takes it");
    assert_eq!(client.reply().expect("the server takes it"), (0, 1));
    assert!(client.is_dropped());
    assert_eq!(stopper.join().expect("the server takes it").writes, 1);
}

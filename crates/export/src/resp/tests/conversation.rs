//! The connection: both revisions, pipelines, what is malformed, who does not read.

use super::{MEMORY, ask, check};
use crate::protocol::{Phase, Protocol};
use crate::resp::testing::{World, request};

#[test]
fn a_client_chooses_a_revision_and_is_answered_in_it() {
    let mut world = World::new(1, MEMORY, 1);
    let hello = |proto| {
        format!("[server ocssd version 7.0.15 mode standalone role master proto {proto} id 1 modules []]")
    };
    check(
        &mut world,
        &[
            ("hello", &hello(2)),
            ("hello 4", "NOPROTO unsupported protocol version"),
            ("hello x", "ERR Protocol version is not an integer or out of range"),
            ("hello 3 auth a b", "WRONGPASS invalid username-password pair or user is disabled."),
            ("hello 3 nonsense", "ERR Syntax error in HELLO option 'nonsense'"),
            ("hello 3 setname me", &hello(3)),
            ("client getname", "me"),
            ("get a", "(null)"),
            ("reset", "RESET"),
            ("client getname", "(null)"),
            (
                "client setname 'a b'",
                "ERR Client names cannot contain spaces, newlines or special characters.",
            ),
            ("client id", "1"),
            ("client list", "id=1 name= age=0 db=0\n"),
            ("client kill", "ERR unknown subcommand 'kill'. Try CLIENT HELP."),
        ],
    );
    world.send(0, b"hello 3\r\nget a\r\n").unwrap();
    world.settle();
    let sent = world.take_sent(0);
    assert!(sent.starts_with(b"%7\r\n") && sent.ends_with(b"\r\n_\r\n"), "{}", sent.escape_ascii());
    world.finish();
}

#[test]
fn what_clients_ask_about_the_server_is_answered() {
    let mut world = World::new(1, MEMORY, 1);
    check(
        &mut world,
        &[
            ("ping", "PONG"),
            ("ping a", "a"),
            ("ping a b", "ERR wrong number of arguments for 'ping' command"),
            ("echo a", "a"),
            ("select 0", "OK"),
            ("select 1", "ERR DB index is out of range"),
            ("config get save", "[save ]"),
            ("config get append*", "[appendfsync always appendonly yes]"),
            (
                "config set save 1",
                "ERR CONFIG SET failed (possibly related to argument 'save') - can't set immutable config",
            ),
            ("config resetstat", "OK"),
            ("command info get nothing", "[[get 2 [readonly] 1 1 1] (null)]"),
            ("command docs get", "[get [summary The value of a key group string]]"),
            ("command getkeys mset a 1 b 2", "[a b]"),
            ("command getkeys ping", "ERR The command has no key arguments"),
            ("function flush", "OK"),
            ("time", "[1700000000 0]"),
        ],
    );
    assert!(ask(&mut world, 0, "info").contains("redis_version:7.0.15"));
    assert!(ask(&mut world, 0, "command").len() > 1000);
    world.finish();
}

#[test]
fn a_pipeline_is_answered_in_order_and_a_client_sees_what_it_changed() {
    for seed in 0..50 {
        let mut world = World::new(1, MEMORY, seed);
        let lines = [
            "set a 1",
            "set b 2",
            "get a",
            "get b",
            "incr a",
            "get a",
            "ping",
            "mset a 7 b 8",
            "mget a b",
            "del a",
            "get a",
        ];
        let bytes: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        world.send(0, bytes.as_bytes()).unwrap();
        world.settle();
        let expected = "+OK\r\n+OK\r\n$1\r\n1\r\n$1\r\n2\r\n:2\r\n$1\r\n2\r\n+PONG\r\n+OK\r\n*2\r\n$1\r\n7\r\n$1\r\n8\r\n:1\r\n$-1\r\n";
        assert_eq!(String::from_utf8(world.take_sent(0)).unwrap(), expected, "seed {seed}");
        world.finish();
    }
}

#[test]
fn what_is_malformed_ends_the_connection_after_what_came_before_it() {
    let mut world = World::new(1, MEMORY, 1);
    world.send(0, b"set a 1\r\n*1\r\nfoo\r\nset a 2\r\n").unwrap();
    world.settle();
    assert_eq!(world.take_sent(0), b"+OK\r\n-ERR Protocol error: expected '$', got 'f'\r\n");
    assert_eq!(world.session(0).phase(), Phase::Leaving);
    assert_eq!(world.store.pairs.len(), 1);
    world.finish();
}

#[test]
fn nothing_behind_a_closing_is_carried_out() {
    let mut world = World::new(1, MEMORY, 1);
    world.send(0, &[request(&[b"quit"]), request(&[b"set", b"a", b"1"])].concat()).unwrap();
    world.settle();
    assert_eq!(world.take_sent(0), b"+OK\r\n");
    assert!(world.session(0).phase() == Phase::Leaving && world.store.pairs.is_empty());
    world.finish();
}

#[test]
fn a_client_that_does_not_read_is_not_read_from_and_holds_nobody_up() {
    let mut world = World::new(2, MEMORY, 1);
    let value = vec![b'v'; 10_000];
    world.send(0, &request(&[b"set", b"a", &value])).unwrap();
    world.settle();
    world.take_sent(0);
    world.deaf = Some(0);
    let gets = request(&[b"get", b"a"]).repeat(1000);
    world.send(0, &gets).unwrap();
    world.settle();
    let left = world.untaken(0);
    assert!(left > gets.len() * 3 / 4, "{left} of {} bytes were not taken", gets.len());
    assert_eq!(ask(&mut world, 1, "strlen a"), "10000");
    world.deaf = None;
    world.settle();
    assert_eq!((world.untaken(0), world.take_sent(0).len()), (0, 1000 * (10_000 + 10)));
    world.finish();
}

#[test]
fn a_request_that_needs_too_much_memory_is_refused_and_the_next_is_not() {
    let mut world = World::new(1, 1 << 20, 1);
    let long = vec![b'v'; 3 << 20];
    world.send(0, &[request(&[b"set", b"a", &long]), request(&[b"set", b"b", b"1"])].concat()).unwrap();
    world.settle();
    assert_eq!(world.take_sent(0), b"-OOM command not allowed when used memory > 'maxmemory'.\r\n+OK\r\n");
    // One that is stored already, but is too long to be read with so little memory.
    world.store.pairs.insert(b"a".to_vec(), [&[0xC5, 1, 0, 0, 0, 0, 0, 0, 0, 0][..], &long].concat());
    check(
        &mut world,
        &[("get a", "OOM command not allowed when used memory > 'maxmemory'."), ("strlen a", "3145728")],
    );
    world.finish();
}

/// Zeroes that SETRANGE and SETBIT add were in nobody's count, and neither were values that an answer keeps while they change.
#[test]
fn what_commands_make_is_counted_as_memory() {
    let no_memory = "OOM command not allowed when used memory > 'maxmemory'.";
    let mut world = World::new(1, 1 << 20, 1);
    check(
        &mut world,
        &[
            ("setrange a 3000000 x", no_memory),
            ("setbit a 24000000 1", no_memory),
            ("exists a", "0"),
            ("setrange a 299999 x", "300000"),
            ("multi", "OK"),
            ("get a", "QUEUED"),
            ("setbit a 7 1", "QUEUED"),
            ("setbit a 6 1", "QUEUED"),
            ("get a", "QUEUED"),
            ("setbit a 5 1", "QUEUED"),
        ],
    );
    // Twice what was read, and the one that the first GET keeps; there is no room for that of the second.
    let told = ask(&mut world, 0, "exec");
    assert!(told.ends_with(&format!(" {no_memory}]")), "{} bytes", told.len());
    check(&mut world, &[("getbit a 6", "1"), ("getbit a 5", "0"), ("strlen a", "300000")]);
    world.finish();
}

/// The memory of a transaction was free from EXEC on, and its commands were there until they had been carried out.
#[test]
fn a_transaction_has_its_memory_until_it_is_answered() {
    let mut world = World::new(2, 1 << 20, 1);
    let sets = |client: usize| {
        let set = request(&[b"set", format!("key:{client}").as_bytes(), &[b'v'; 40_000]]);
        [request(&[b"multi"]), set.repeat(15)].concat()
    };
    world.send(0, &sets(0)).unwrap();
    world.send(0, &request(&[b"exec"])).unwrap();
    assert!(world.database.borrow().budget().used() > 500_000, "15 times 40 000 bytes are under way");
    world.send(1, &sets(1)).unwrap();
    world.receive(1);
    let told = String::from_utf8(world.take_sent(1)).unwrap();
    assert!(told.contains("+QUEUED") && told.contains("-OOM"), "{told}");
    world.settle();
    assert_eq!(world.take_sent(0).len(), 5 + 15 * 9 + 5 + 15 * 5);
    assert_eq!(world.database.borrow().counts().commands, 15);
    world.finish();
}

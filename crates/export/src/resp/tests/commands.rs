//! What single commands answer, in Redis' words.

use super::{MEMORY, ask, check};
use crate::resp::testing::World;

const NO_INTEGER: &str = "ERR value is not an integer or out of range";

#[test]
fn strings_are_stored_read_and_changed() {
    let mut world = World::new(1, MEMORY, 1);
    check(
        &mut world,
        &[
            ("get a", "(null)"),
            ("set a 1", "OK"),
            ("get a", "1"),
            ("set a 2 nx", "(null)"),
            ("set b 2 xx", "(null)"),
            ("set a 2 xx get", "1"),
            ("set c 3 get nx", "(null)"),
            ("mget a b c", "[2 (null) 3]"),
            ("set a 1 nx xx", "ERR syntax error"),
            ("set a 1 ex", "ERR syntax error"),
            ("set a 1 ex 10 keepttl", "ERR syntax error"),
            ("set a 1 ex 0", "ERR invalid expire time in 'set' command"),
            ("set a 1 ex 9223372036854775807", "ERR invalid expire time in 'set' command"),
            ("set a 1 px x", NO_INTEGER),
            ("setnx a 5", "0"),
            ("setnx d 5", "1"),
            ("getset d 6", "5"),
            ("getdel d", "6"),
            ("getdel d", "(null)"),
            ("append e ab", "2"),
            ("append e cd", "4"),
            ("strlen e", "4"),
            ("setrange e 6 x", "7"),
            ("getrange e 0 -1", "abcd\0\0x"),
            ("getrange e -1 -5", ""),
            ("getrange e -5000 1", "ab"),
            ("getrange e 5 4294967297", "\0x"),
            ("getrange nothing 0 -1", ""),
            ("substr e 0 0", "a"),
            ("setrange e -1 x", "ERR offset is out of range"),
            ("setrange e 536870908 world", "ERR string exceeds maximum allowed size (proto-max-bulk-len)"),
            ("setrange nothing 3 ''", "0"),
            ("mset x 1 y 2 x 3", "OK"),
            ("mget x y", "[3 2]"),
            ("mset x 1 y", "ERR wrong number of arguments for 'mset' command"),
            ("msetnx z 1 x 2", "0"),
            ("msetnx z 1 w 2 z 3", "1"),
            ("mget z w", "[3 2]"),
            ("setex x 0 v", "ERR invalid expire time in 'setex' command"),
            ("setbit bits 7 1", "0"),
            ("get bits", "\u{1}"),
            ("setbit bits 7 0", "1"),
            ("getbit bits 7", "0"),
            ("getbit bits 4294967296", "ERR bit offset is not an integer or out of range"),
            ("setbit bits 0 2", "ERR bit is not an integer or out of range"),
            ("get", "ERR wrong number of arguments for 'get' command"),
            ("lpush a b", "ERR unknown command 'lpush', with args beginning with: 'a' 'b' "),
        ],
    );
    world.finish();
}

#[test]
fn counters_count_and_refuse_what_is_no_number() {
    let mut world = World::new(1, MEMORY, 1);
    check(
        &mut world,
        &[
            ("incr n", "1"),
            ("incrby n 17179869184", "17179869185"),
            ("decrby n 5", "17179869180"),
            ("decr n", "17179869179"),
            ("set n 9223372036854775807", "OK"),
            ("incr n", "ERR increment or decrement would overflow"),
            ("decrby n -9223372036854775808", "ERR decrement would overflow"),
            ("get n", "9223372036854775807"),
            ("set n ' 11'", "OK"),
            ("incr n", NO_INTEGER),
            ("incrbyfloat n 1", "ERR value is not a valid float"),
            ("set n 1", "OK"),
            ("incrbyfloat n -1.1", "-0.1"),
            ("incrbyfloat n +inf", "ERR increment would produce NaN or Infinity"),
            ("get n", "-0.1"),
            ("object encoding n", "embstr"),
        ],
    );
    world.finish();
}

#[test]
fn keys_are_renamed_copied_deleted_and_listed() {
    let mut world = World::new(1, MEMORY, 1);
    check(
        &mut world,
        &[
            ("set a 1 ex 100", "OK"),
            ("rename a b", "OK"),
            ("ttl b", "100"),
            ("rename a b", "ERR no such key"),
            ("rename b b", "OK"),
            ("renamenx b b", "0"),
            ("copy b c", "1"),
            ("copy b c", "0"),
            ("copy b c replace", "1"),
            ("copy b c db x", NO_INTEGER),
            ("copy b c db 1", "ERR DB index is out of range"),
            ("copy b b", "ERR source and destination objects are the same"),
            ("pttl c", "100000"),
            ("exists a b c b", "3"),
            ("touch b", "1"),
            ("type b", "string"),
            ("type a", "none"),
            ("dbsize", "2"),
            ("keys *", "[b c]"),
            ("keys [b]", "[b]"),
            ("scan 0", "[0 [b c]]"),
            ("scan 0 match c*", "[0 [c]]"),
            ("scan 0 type list", "[0 []]"),
            ("scan 0 count 0", "ERR syntax error"),
            ("scan 0 count", "ERR syntax error"),
            ("scan x", "ERR invalid cursor"),
            ("scan 5", "ERR invalid cursor: it is of an earlier start, or one of too many; begin with 0"),
            ("del a b b", "1"),
            ("randomkey", "c"),
            ("flushall now", "ERR syntax error"),
            ("flushall async", "OK"),
            ("dbsize", "0"),
            ("randomkey", "(null)"),
            ("save", "OK"),
        ],
    );
    world.finish();
}

#[test]
fn a_scan_goes_on_where_it_was_and_sees_every_key_that_stays() {
    let mut world = World::new(1, MEMORY, 1);
    for number in 0..500 {
        ask(&mut world, 0, &format!("set key:{number} x"));
    }
    let (mut cursor, mut seen) = ("0".to_owned(), Vec::new());
    loop {
        let answer = ask(&mut world, 0, &format!("scan {cursor} count 7"));
        let mut words =
            answer.trim_matches(['[', ']']).split([' ', '[', ']']).filter(|word| !word.is_empty());
        cursor = words.next().unwrap().to_owned();
        seen.extend(words.map(str::to_owned));
        if cursor == "0" {
            break;
        }
        ask(&mut world, 0, &format!("set other:{} x", seen.len()));
        ask(&mut world, 0, &format!("del other:{}", seen.len() / 2));
    }
    seen.retain(|key| key.starts_with("key:"));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 500);
    world.finish();
}

#[test]
fn keys_end_when_they_are_told_to() {
    let mut world = World::new(1, MEMORY, 1);
    check(
        &mut world,
        &[
            ("set a 1", "OK"),
            ("ttl a", "-1"),
            ("ttl b", "-2"),
            ("expire a 100 xx", "0"),
            ("expire a 100 nx", "1"),
            ("expire a 200 nx", "0"),
            ("expire a 50 gt", "0"),
            ("expire a 50 lt", "1"),
            ("pttl a", "50000"),
            ("expiretime a", "1700000050"),
            ("expire a 1 nx gt", "ERR NX and XX, GT or LT options at the same time are not compatible"),
            ("expire a 1 gt lt", "ERR GT and LT options at the same time are not compatible"),
            ("expire a 1 ab", "ERR Unsupported option ab"),
            ("expire a 9223372036854775807", "ERR invalid expire time in 'expire' command"),
            ("expire a ''", NO_INTEGER),
            ("set a 2 keepttl", "OK"),
            ("pttl a", "50000"),
            ("getex a persist", "2"),
            ("ttl a", "-1"),
            ("persist a", "0"),
            ("getex a px 30", "2"),
            ("getex a nonsense", "ERR syntax error"),
            ("setex b 1 x", "OK"),
            ("set c x pxat 1", "OK"),
            ("exists a b c", "2"),
        ],
    );
    world.pass(29);
    assert_eq!(ask(&mut world, 0, "get a"), "2");
    world.pass(1);
    check(&mut world, &[("get a", "(null)"), ("dbsize", "1"), ("setnx a 7", "1"), ("expire a -1", "1")]);
    world.pass(1000);
    check(&mut world, &[("dbsize", "0"), ("pexpireat b 1", "0")]);
    world.finish();
}

#[test]
fn the_end_of_a_key_is_found_again_after_a_restart() {
    let mut world = World::new(1, MEMORY, 1);
    for number in 0..300 {
        ask(&mut world, 0, &format!("set volatile:{number} x px 5000"));
    }
    ask(&mut world, 0, "set lasting x");
    let pairs = std::mem::take(&mut world.store.pairs);
    let mut again = World::new(1, MEMORY, 2);
    again.store.pairs = pairs;
    assert_eq!(ask(&mut again, 0, "pttl volatile:7"), "5000");
    for _ in 0..10 {
        again.pass(100);
    }
    assert_eq!(ask(&mut again, 0, "dbsize"), "301");
    again.pass(4000);
    assert_eq!(again.store.pairs.len(), 1, "all that ended are removed, also those nobody asked for");
    again.finish();
}

#[test]
fn long_values_are_read_and_changed_piece_by_piece() {
    let mut world = World::new(1, MEMORY, 1);
    let long = "x".repeat(1_000_000);
    check(
        &mut world,
        &[
            (&format!("set a '{}'", &long[..60_000]), "OK"),
            ("get a", &long[..60_000]),
            ("setrange a 999999 x", "1000000"),
            ("strlen a", "1000000"),
            ("append a y", "1000001"),
            ("getrange a 999998 -1", "\0xy"),
            ("copy a b", "1"),
        ],
    );
    assert_eq!(ask(&mut world, 0, "get b").len(), 1_000_001);
    world.finish();
}

#[test]
fn what_cannot_be_stored_is_refused_and_changes_nothing() {
    let mut world = World::new(1, MEMORY, 1);
    world.store.capacity = 100;
    world.store.pairs.insert(b"foreign".to_vec(), b"of somebody else".to_vec());
    world.store.bad = Some(b"bad".to_vec());
    let (empty, long) = ("ERR a key has 1 to 255 bytes on this drive, and this one has ", "k".repeat(256));
    check(
        &mut world,
        &[
            ("get foreign", "WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("get bad", "ERR the value cannot be read"),
            ("set '' 1", &format!("{empty}0")),
            (&format!("get {long}"), &format!("{empty}256")),
            ("set a 1", "OK"),
            (&format!("append a {long}"), "OOM there is no room on the drive: delete keys"),
            ("get a", "1"),
            ("del a", "1"),
        ],
    );
    world.finish();
}

//! MULTI, EXEC, WATCH.

use super::{MEMORY, ask, check};
use crate::resp::testing::{World, request};

#[test]
fn a_transaction_happens_as_a_whole() {
    let mut world = World::new(2, MEMORY, 1);
    check(
        &mut world,
        &[
            ("exec", "ERR EXEC without MULTI"),
            ("discard", "ERR DISCARD without MULTI"),
            ("multi", "OK"),
            ("multi", "ERR MULTI calls can not be nested"),
            ("set a 1", "QUEUED"),
            ("incr a", "QUEUED"),
            ("incr b", "QUEUED"),
            ("get a", "QUEUED"),
            ("del b", "QUEUED"),
            ("set c x", "QUEUED"),
            ("incr c", "QUEUED"),
            ("exec", "[OK 2 1 2 1 OK ERR value is not an integer or out of range]"),
            ("mget a b c", "[2 (null) x]"),
            ("multi", "OK"),
            ("nonsense", "ERR unknown command 'nonsense', with args beginning with: "),
            ("set a 9", "QUEUED"),
            ("exec", "EXECABORT Transaction discarded because of previous errors."),
            ("multi", "OK"),
            ("keys *", "ERR Command not allowed inside a transaction"),
            ("watch a", "ERR WATCH inside MULTI is not allowed"),
            ("discard", "OK"),
            ("get a", "2"),
            ("multi", "OK"),
            ("exec", "[]"),
        ],
    );
    world.finish();
}

#[test]
fn a_transaction_is_not_carried_out_if_a_watched_key_changed() {
    for (before, change, aborts) in [
        ("set x 1", "set x 2", true),
        ("set x 1", "set y 2", false),
        ("del x", "set x 2", true),
        ("set x 1", "flushall", true),
        ("del x", "flushall", false),
        ("set x 1", "expire x 100", true),
        ("set x 1", "incrby x 0", true),
        ("set x 1", "get x", false),
        ("set x 1", "del y", false),
    ] {
        let mut world = World::new(2, MEMORY, 1);
        ask(&mut world, 1, before);
        check(&mut world, &[("watch x z", "OK")]);
        ask(&mut world, 1, change);
        check(&mut world, &[("multi", "OK"), ("set w 2", "QUEUED")]);
        assert_eq!(ask(&mut world, 0, "exec") == "(null)", aborts, "{before}, watched, {change}");
        assert_eq!(world.database.borrow().counts().aborted, u64::from(aborts));
        // It watches nothing any more.
        ask(&mut world, 1, "set x 9");
        check(&mut world, &[("multi", "OK"), ("ping", "QUEUED"), ("exec", "[PONG]")]);
        world.finish();
    }
}

#[test]
fn a_watched_key_that_ends_has_changed() {
    let mut world = World::new(1, MEMORY, 1);
    check(&mut world, &[("set x 1 px 10", "OK"), ("watch x", "OK"), ("multi", "OK"), ("get y", "QUEUED")]);
    world.pass(10);
    assert_eq!(ask(&mut world, 0, "exec"), "(null)");
    world.finish();
}

/// Words of a command of so many keys, with this behind each.
fn of_keys(name: &str, count: usize, behind: &str) -> String {
    (0..count).fold(name.to_owned(), |line, nth| format!("{line} key:{nth}{behind}"))
}

/// It was noted that the keys change before the change was found to be too large.
#[test]
fn a_command_of_too_many_changes_is_none_of_a_watched_key() {
    let mut world = World::new(2, MEMORY, 1);
    let most = world.database.borrow().settings().limits.changes_max;
    check(&mut world, &[("set key:7 1 px 10", "OK"), ("watch key:7", "OK")]);
    let refused = format!("ERR a command or transaction changes at most {most} keys on this drive");
    let bytes = request(&of_keys("mset", most + 1, " x").split(' ').map(str::as_bytes).collect::<Vec<_>>());
    world.send(1, &bytes).unwrap();
    world.settle();
    assert_eq!(String::from_utf8(world.take_sent(1)).unwrap(), format!("-{refused}\r\n"));
    check(&mut world, &[("multi", "OK"), ("incr key:7", "QUEUED"), ("exec", "[2]"), ("pttl key:7", "10")]);
    world.pass(10);
    check(&mut world, &[("dbsize", "0")]);
    world.finish();
}

#[test]
fn each_of_many_keys_is_watched() {
    for changed in [0, 128, 299, 300] {
        let mut world = World::new(2, MEMORY, 1);
        check(&mut world, &[(&of_keys("watch", 300, ""), "OK"), ("multi", "OK"), ("ping", "QUEUED")]);
        ask(&mut world, 1, &format!("set key:{changed} x"));
        check(&mut world, &[("exec", if changed < 300 { "(null)" } else { "[PONG]" })]);
        world.finish();
    }
    let mut world = World::new(1, MEMORY, 1);
    check(&mut world, &[(&of_keys("watch", 4097, ""), "ERR too many watched keys"), ("ping", "PONG")]);
    world.finish();
}

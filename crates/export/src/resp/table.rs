//! All commands. docs/resp.md lists them, and a test compares the two.

use super::command::{Access, Action, Command, Group, Keys, Own, Run, Whole};
use super::request::Request;
use super::view::Fetch;
use super::{counters, expiry, keys, strings};

const fn nothing(_: &Request) -> Fetch {
    Fetch::Nothing
}

const fn head(_: &Request) -> Fetch {
    Fetch::Head
}

const fn whole(_: &Request) -> Fetch {
    Fetch::Whole
}

type Row = (&'static str, i32, &'static str);

/// A command that looks at keys.
const fn reads(row: Row, keys: Keys, group: Group, fetch: fn(&Request) -> Fetch, run: Run) -> Command {
    let (name, arity, summary) = row;
    Command { name, arity, access: Access::Reads, keys, group, summary, action: Action::Data { fetch, run } }
}

/// A command that changes keys.
const fn writes(row: Row, keys: Keys, group: Group, fetch: fn(&Request) -> Fetch, run: Run) -> Command {
    let (name, arity, summary) = row;
    Command { name, arity, access: Access::Writes, keys, group, summary, action: Action::Data { fetch, run } }
}

/// A command that says something, and may do so within a transaction.
const fn says(row: Row, run: Run) -> Command {
    let (name, arity, summary) = row;
    let action = Action::Data { fetch: nothing, run };
    Command { name, arity, access: Access::None, keys: Keys::NONE, group: Connection, summary, action }
}

/// A command of the connection.
const fn own(row: Row, group: Group, own: Own) -> Command {
    let (name, arity, summary) = row;
    Command { name, arity, access: Access::None, keys: Keys::NONE, group, summary, action: Action::Own(own) }
}

/// A command over all keys.
const fn over_all(row: Row, group: Group, access: Access, whole: Whole) -> Command {
    let (name, arity, summary) = row;
    Command { name, arity, access, keys: Keys::NONE, group, summary, action: Action::Whole(whole) }
}

use Group::{Connection, Generic, Server, String as Strings, Transactions};

/// All commands, by name.
pub static COMMANDS: &[Command] = &[
    writes(("append", 3, "Appends to a value"), Keys::ONE, Strings, whole, strings::append),
    own(
        ("client", -2, "ID, GETNAME, SETNAME, SETINFO, INFO, LIST, NO-EVICT, REPLY ON"),
        Connection,
        Own::Client,
    ),
    own(("command", -1, "COUNT, LIST, INFO, DOCS, GETKEYS"), Server, Own::Command),
    own(("config", -2, "GET, RESETSTAT; SET is refused"), Server, Own::Config),
    writes(("copy", -3, "Copies a key; DB 0, REPLACE"), Keys::TWO, Generic, whole, keys::copy),
    over_all(("dbsize", 1, "Counts the keys; walks over all"), Server, Access::Reads, Whole::DbSize),
    writes(("decr", 2, "Subtracts one"), Keys::ONE, Strings, whole, counters::decr),
    writes(("decrby", 3, "Subtracts a number"), Keys::ONE, Strings, whole, counters::decrby),
    writes(("del", -2, "Deletes keys"), Keys::ALL, Generic, head, keys::del),
    own(("discard", 1, "Leaves a transaction"), Transactions, Own::Discard),
    says(("echo", 2, "Answers its argument"), keys::echo),
    own(("exec", 1, "Carries a transaction out, as one batch"), Transactions, Own::Exec),
    reads(("exists", -2, "Counts keys that exist"), Keys::ALL, Generic, head, keys::exists),
    writes(("expire", -3, "Sets when a key ends; NX, XX, GT, LT"), Keys::ONE, Generic, whole, expiry::expire),
    writes(("expireat", -3, "The same, as seconds since 1970"), Keys::ONE, Generic, whole, expiry::expireat),
    reads(("expiretime", 2, "When a key ends, in seconds"), Keys::ONE, Generic, head, expiry::expiretime),
    over_all(("flushall", -1, "Deletes all keys"), Server, Access::Writes, Whole::Flush),
    over_all(("flushdb", -1, "Deletes all keys"), Server, Access::Writes, Whole::Flush),
    own(("function", -2, "FLUSH and LIST: there are none"), Server, Own::Function),
    reads(("get", 2, "The value of a key"), Keys::ONE, Strings, whole, strings::get),
    reads(("getbit", 3, "A bit of a value"), Keys::ONE, Strings, whole, counters::getbit),
    writes(("getdel", 2, "The value of a key, which is deleted"), Keys::ONE, Strings, whole, strings::getdel),
    writes(
        ("getex", -2, "The value of a key, and sets when it ends: EX, PX, EXAT, PXAT, PERSIST"),
        Keys::ONE,
        Strings,
        whole,
        strings::getex,
    ),
    reads(("getrange", 4, "A part of a value"), Keys::ONE, Strings, whole, strings::getrange),
    writes(
        ("getset", 3, "The value of a key, which gets another"),
        Keys::ONE,
        Strings,
        whole,
        strings::getset,
    ),
    own(("hello", -1, "RESP2 or RESP3; SETNAME; AUTH is refused"), Connection, Own::Hello),
    writes(("incr", 2, "Adds one"), Keys::ONE, Strings, whole, counters::incr),
    writes(("incrby", 3, "Adds a number"), Keys::ONE, Strings, whole, counters::incrby),
    writes(("incrbyfloat", 3, "Adds a decimal fraction"), Keys::ONE, Strings, whole, counters::incrbyfloat),
    own(("info", -1, "How things stand"), Server, Own::Info),
    over_all(("keys", 2, "Keys that match a pattern; walks over all"), Generic, Access::Reads, Whole::Keys),
    reads(("mget", -2, "The values of keys"), Keys::ALL, Strings, whole, strings::mget),
    writes(("mset", -3, "Gives keys values"), Keys::PAIRS, Strings, nothing, strings::mset),
    writes(("msetnx", -3, "The same, if none exists"), Keys::PAIRS, Strings, head, strings::msetnx),
    own(("multi", 1, "Begins a transaction"), Transactions, Own::Multi),
    reads(
        ("object", -3, "ENCODING, REFCOUNT"),
        Keys { first: 2, last: 2, step: 1 },
        Generic,
        whole,
        keys::object,
    ),
    writes(("persist", 2, "A key does not end"), Keys::ONE, Generic, whole, expiry::persist),
    writes(("pexpire", -3, "EXPIRE in milliseconds"), Keys::ONE, Generic, whole, expiry::pexpire),
    writes(("pexpireat", -3, "EXPIREAT in milliseconds"), Keys::ONE, Generic, whole, expiry::pexpireat),
    reads(("pexpiretime", 2, "EXPIRETIME in milliseconds"), Keys::ONE, Generic, head, expiry::pexpiretime),
    says(("ping", -1, "PONG, or its argument"), keys::ping),
    writes(("psetex", 4, "SETEX in milliseconds"), Keys::ONE, Strings, nothing, strings::psetex),
    reads(("pttl", 2, "TTL in milliseconds"), Keys::ONE, Generic, head, expiry::pttl),
    own(("quit", -1, "Asks to disconnect"), Connection, Own::Quit),
    over_all(("randomkey", 1, "Some key"), Generic, Access::Reads, Whole::RandomKey),
    writes(("rename", 3, "Gives a key another name"), Keys::TWO, Generic, whole, keys::rename),
    writes(("renamenx", 3, "The same, if that does not exist"), Keys::TWO, Generic, whole, keys::renamenx),
    own(("reset", 1, "Forgets what was agreed"), Connection, Own::Reset),
    over_all(("save", 1, "Makes everything durable"), Server, Access::None, Whole::Save),
    over_all(
        ("scan", -2, "Some keys, and where to go on; MATCH, COUNT, TYPE"),
        Generic,
        Access::Reads,
        Whole::Scan,
    ),
    own(("select", 2, "Chooses database 0, the only one"), Connection, Own::Select),
    writes(
        ("set", -3, "Gives a key a value: NX, XX, GET, EX, PX, EXAT, PXAT, KEEPTTL"),
        Keys::ONE,
        Strings,
        strings::set_fetch,
        strings::set,
    ),
    writes(("setbit", 4, "Sets a bit of a value"), Keys::ONE, Strings, whole, counters::setbit),
    writes(("setex", 4, "Gives a key a value that ends"), Keys::ONE, Strings, nothing, strings::setex),
    writes(
        ("setnx", 3, "Gives a key a value, if it does not exist"),
        Keys::ONE,
        Strings,
        head,
        strings::setnx,
    ),
    writes(("setrange", 4, "Overwrites a part of a value"), Keys::ONE, Strings, whole, strings::setrange),
    reads(("strlen", 2, "Bytes of a value"), Keys::ONE, Strings, head, strings::strlen),
    reads(("substr", 4, "GETRANGE by its old name"), Keys::ONE, Strings, whole, strings::getrange),
    own(("time", 1, "Seconds since 1970, and microseconds"), Server, Own::Time),
    reads(("touch", -2, "Counts keys that exist"), Keys::ALL, Generic, head, keys::exists),
    reads(("ttl", 2, "Seconds until a key ends"), Keys::ONE, Generic, head, expiry::ttl),
    reads(("type", 2, "What a key holds"), Keys::ONE, Generic, head, keys::kind),
    writes(("unlink", -2, "Deletes keys"), Keys::ALL, Generic, head, keys::del),
    own(("unwatch", 1, "Watches no key any more"), Transactions, Own::Unwatch),
    reads(("watch", -2, "EXEC fails if these keys change before it"), Keys::ALL, Transactions, head, watch),
];

/// WATCH reads when its keys end; that they are watched is noted by the database once it has.
fn watch(call: &mut super::command::Call<'_>) -> Result<(), super::command::Refused> {
    call.reply.ok();
    Ok(())
}

/// Longest name of a command.
const NAME_BYTES_MAX: usize = 16;

/// The command of this name, in letters of any size.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Command> {
    let mut small = [0; NAME_BYTES_MAX];
    let small = small.get_mut(..name.len())?;
    small.copy_from_slice(name);
    small.make_ascii_lowercase();
    COMMANDS.binary_search_by(|command| command.name.as_bytes().cmp(small)).ok().map(|place| &COMMANDS[place])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// The commands of each group as tables of the documentation.
    fn markdown() -> String {
        let mut text = String::new();
        for group in [Strings, Generic, Transactions, Connection, Server] {
            let _ = write!(text, "| {} | |\n|---|---|\n", group.name());
            for command in COMMANDS.iter().filter(|command| command.group == group) {
                let _ = writeln!(text, "| {} | {} |", command.name.to_ascii_uppercase(), command.summary);
            }
            text.push('\n');
        }
        text
    }

    #[test]
    fn commands_are_in_order_and_found_in_any_letters() {
        assert!(COMMANDS.is_sorted_by(|one, next| one.name < next.name));
        assert!(COMMANDS.iter().all(|command| command.name.len() <= NAME_BYTES_MAX));
        assert_eq!(find(b"GeT").map(|command| command.name), Some("get"));
        assert!(find(b"lpush").is_none() && find(b"").is_none() && find(&[b'a'; 40]).is_none());
    }

    #[test]
    fn every_command_that_touches_keys_names_them() {
        for command in COMMANDS {
            let is_data = matches!(command.action, Action::Data { .. }) && command.access != Access::None;
            assert_eq!(is_data, command.keys != Keys::NONE, "{}", command.name);
        }
    }

    #[test]
    fn the_documentation_lists_every_command_as_it_is() {
        let documentation = include_str!("../../../../docs/resp.md");
        assert!(
            documentation.contains(&markdown()),
            "docs/resp.md does not have these tables as they are; put this in:\n{}",
            markdown()
        );
    }
}

//! The way to a target and back, against the simulator's model of a target.

use crate::dispatcher::Dispatcher;
use crate::exports::{ExportId, ExportKind};
use crate::memory_disk::MemoryDisks;
use crate::model_targets::keys;
use crate::protocol::Protocol;
use crate::reactor::Transport;
use crate::resp::testing::request;
use crate::resp::{Lane, Session, Setup, SharedDatabase};
use crate::shares::ClientId;
use ocssd_base::Nanos;
use ocssd_lightnvm::interface::Durability;
use std::io::IoSlice;

/// A target behind a lane, and one client.
struct Served {
    dispatcher: Dispatcher,
    disks: MemoryDisks,
    lane: Lane,
    database: SharedDatabase,
    session: Session,
}

impl Served {
    fn new(pieces: [u32; 3]) -> Self {
        let (dispatcher, disks) = MemoryDisks::beside(&[], vec![("k", keys())], pieces);
        let ExportKind::KeyValue(limits) = dispatcher.exports.get(ExportId(0)).kind else {
            panic!("it has keys")
        };
        let setup = Setup {
            export: ExportId(0),
            limits,
            is_read_only: false,
            durability: Durability::AtReply,
            memory_bytes: 1 << 20,
            epoch_ms: 1_700_000_000_000,
            at: Nanos::ZERO,
        };
        let database = setup.database().unwrap();
        let lane = Lane::new(database.clone(), setup, ClientId::FIRST_TRANSPORT);
        let session = Session::new(database.clone(), 0, 0);
        Self { dispatcher, disks, lane, database, session }
    }

    /// What the client is told for these bytes.
    fn ask(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        let (mut answer, mut quiet) = (Vec::new(), 0);
        while quiet < 50 {
            let count = bytes.len().min(self.session.text_wanted());
            let taken = self.session.on_bytes(&bytes[..count], &mut self.dispatcher).unwrap();
            bytes = &bytes[taken..];
            self.dispatcher.begin_round();
            let mut any = self.lane.give(&mut self.dispatcher) | self.lane.go_on(&mut self.dispatcher);
            self.disks.take(&mut self.dispatcher);
            any |= self.disks.carry_out(0, &mut self.dispatcher);
            while let Some(done) = self.dispatcher.poll_done() {
                self.lane.on_done(done, &mut self.dispatcher);
            }
            self.lane.tell(&mut self.dispatcher);
            while self.dispatcher.poll_call().is_some() {
                self.session.judge(&mut self.dispatcher).unwrap();
            }
            let mut slices = [IoSlice::new(&[]); 8];
            let used = self.session.send_queue().slices(&self.dispatcher.buffers, &mut slices);
            let sent: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.to_vec()).collect();
            self.session.send_queue().sent(sent.len(), &mut self.dispatcher.pool);
            any |= !sent.is_empty() || taken > 0;
            answer.extend(sent);
            quiet = if any { 0 } else { quiet + 1 };
        }
        assert!(bytes.is_empty(), "{} bytes were not taken", bytes.len());
        answer
    }

    fn line(&mut self, line: &str) -> String {
        String::from_utf8(self.ask(format!("{line}\r\n").as_bytes())).unwrap()
    }
}

#[test]
fn commands_reach_the_target_and_its_answers_come_back() {
    let mut served = Served::new([8, 8, 8]);
    for (line, expected) in [
        ("set a 1", "+OK\r\n"),
        ("get a", "$1\r\n1\r\n"),
        ("incr a", ":2\r\n"),
        ("mset a 3 b 4 'a key of sixteen' ''", "+OK\r\n"),
        ("mget a b c", "*3\r\n$1\r\n3\r\n$1\r\n4\r\n$-1\r\n"),
        ("keys *", "*3\r\n$1\r\na\r\n$16\r\na key of sixteen\r\n$1\r\nb\r\n"),
        (
            "mset 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9",
            "-ERR a command or transaction changes at most 8 keys on this drive\r\n",
        ),
        ("del a b c", ":2\r\n"),
        ("dbsize", ":1\r\n"),
        ("set 'a key of 17 bytes' 1", "-ERR a key has 1 to 16 bytes on this drive, and this one has 17\r\n"),
        ("save", "+OK\r\n"),
        ("flushall", "+OK\r\n"),
        ("randomkey", "$-1\r\n"),
    ] {
        assert_eq!(served.line(line), expected, "{line}");
    }
    assert!(served.database.borrow().is_idle());
    assert_eq!((served.dispatcher.open_jobs(), served.dispatcher.pool.lent()), (0, 0));
}

#[test]
fn long_values_lie_in_several_pieces_and_wait_for_them() {
    // The list's piece, and two for the value: there is one for nothing else.
    let mut served = Served::new([1, 0, 3]);
    let value: Vec<u8> = (0..290_000_u32).map(|at| (at % 251).to_le_bytes()[0]).collect();
    assert_eq!(served.ask(&request(&[b"set", b"long", &value])), b"+OK\r\n");
    let twice = [request(&[b"get", b"long"]), request(&[b"strlen", b"long"])].concat();
    let answer = served.ask(&twice);
    assert_eq!(answer.len(), value.len() + b"$290000\r\n\r\n:290000\r\n".len());
    assert_eq!(answer[9..][..value.len()], value[..]);
    let beyond = vec![b'x'; 300_000];
    let refused = String::from_utf8(served.ask(&request(&[b"append", b"long", &beyond[..20_000]]))).unwrap();
    assert_eq!(refused, "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n");
    assert_eq!(served.dispatcher.pool.lent(), 0);
}

#[test]
fn a_target_without_room_says_so_and_deletions_still_work() {
    let mut served = Served::new([8, 8, 8]);
    let value = vec![b'v'; 250_000];
    let mut answers = Vec::new();
    for number in 0..5 {
        answers.push(served.ask(&request(&[b"set", format!("k{number}").as_bytes(), &value])));
    }
    assert_eq!(
        answers.iter().filter(|answer| **answer == b"+OK\r\n").count(),
        3,
        "a megabyte holds three and their heads"
    );
    assert_eq!(answers[4], b"-OOM there is no room on the drive: delete keys\r\n");
    assert_eq!(served.line("del k0"), ":1\r\n");
    assert_eq!(served.ask(&request(&[b"set", b"k9", &value])), b"+OK\r\n");
}

#[test]
fn a_target_that_takes_too_little_is_refused() {
    let (dispatcher, _) = MemoryDisks::beside(&[], vec![("k", keys())], [1, 1, 1]);
    let ExportKind::KeyValue(limits) = dispatcher.exports.get(ExportId(0)).kind else {
        panic!("it has keys")
    };
    let setup = Setup {
        export: ExportId(0),
        limits: ocssd_lightnvm::interface::key_value::KvLimits { batch_entries_max: 1, ..limits },
        is_read_only: false,
        durability: Durability::AtFlush,
        memory_bytes: 0,
        epoch_ms: 0,
        at: Nanos::ZERO,
    };
    assert!(setup.database().unwrap_err().contains("batches of 2 entries"));
}

/// A value of 8 MiB was copied to its pieces at once, and everybody waited for it.
#[test]
fn a_long_value_is_copied_in_turns_and_others_come_in_between() {
    let mut served = Served::new([8, 8, 8]);
    assert_eq!(served.line("set short 1"), "+OK\r\n");
    let value = vec![b'v'; 290_000];
    let bytes = request(&[b"set", b"long", &value]);
    for part in bytes.chunks(served.session.text_wanted()) {
        assert_eq!(served.session.on_bytes(part, &mut served.dispatcher).unwrap(), part.len());
    }
    let mut other = Session::new(served.database.clone(), 1, 0);
    let mut turns = 0;
    while served.dispatcher.open_jobs() == 0 {
        turns += 1;
        served.dispatcher.begin_round();
        served.lane.give(&mut served.dispatcher);
        assert!(served.lane.go_on(&mut served.dispatcher), "nothing happened in turn {turns}");
        assert!(served.lane.is_eager(Nanos::ZERO) || served.dispatcher.open_jobs() > 0);
    }
    assert_eq!(turns, 3, "290 000 bytes, 128 KiB in a turn");
    // The same, with another that asks after the first turn.
    served.ask(b"");
    for part in bytes.chunks(served.session.text_wanted()) {
        served.session.on_bytes(part, &mut served.dispatcher).unwrap();
    }
    served.lane.go_on(&mut served.dispatcher);
    assert_eq!(served.dispatcher.open_jobs(), 0);
    other.on_bytes(&request(&[b"get", b"short"]), &mut served.dispatcher).unwrap();
    served.lane.give(&mut served.dispatcher);
    assert_eq!(served.dispatcher.open_jobs(), 1, "the short one is at the target first");
    served.dispatcher.charge(1 << 30);
    assert!(!served.lane.go_on(&mut served.dispatcher), "the round is over");
    assert_eq!(served.ask(b""), b"+OK\r\n");
    assert_eq!(served.ask(&request(&[b"strlen", b"long"])), b":290000\r\n");
    other.release(&mut served.dispatcher);
    assert_eq!((served.dispatcher.open_jobs(), served.dispatcher.pool.lent()), (0, 0));
}

/// All 128 that may be at the target were given at once, and a short command waited two rounds behind them.
#[test]
fn steps_of_long_commands_are_given_some_in_each_round() {
    let mut served = Served::new([200, 8, 8]);
    let keys: Vec<Vec<u8>> = (0..100).map(|nth| format!("key:{nth}").into_bytes()).collect();
    let mut exists: Vec<&[u8]> = vec![b"exists"];
    exists.extend(keys.iter().map(Vec::as_slice));
    let bytes = request(&exists);
    assert_eq!(served.session.on_bytes(&bytes, &mut served.dispatcher).unwrap(), bytes.len());
    while served.database.borrow_mut().go_on() {}
    for given in [32, 64, 96, 100] {
        served.dispatcher.begin_round();
        for _ in 0..3 {
            served.lane.give(&mut served.dispatcher);
        }
        assert_eq!(served.dispatcher.open_jobs(), given);
    }
    assert_eq!(served.ask(b""), b":0\r\n");
}

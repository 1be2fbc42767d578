//! Commands that take turns: what others wait for meanwhile, in counts, and that it is the same as if all were done at once.

use super::MEMORY;
use crate::resp::stored::{Expiry, HEAD_BYTES, Stored};
use crate::resp::testing::{World, request};
use ocssd_base::Prng;

/// The longest value that the store takes.
const LONGEST: usize = (8 << 20) - HEAD_BYTES;

/// Memory for a few of those.
const MUCH: u64 = 64 << 20;

/// Bytes that a turn copies, and that are copied before the first.
const OF_TURN: usize = 128 << 10;
const BEFORE_TURNS: usize = 64 << 10;

/// A value as it is stored.
fn of_value(value: &[u8]) -> Vec<u8> {
    Stored { expiry: Expiry::Never, value: value.into() }.to_vec()
}

/// Bytes that differ from their neighbours, and so from what is at another place.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251).to_le_bytes()[0]).collect()
}

/// Answers to GET.
fn told(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

/// Everything that the store is asked now happens.
fn carry_out_all(world: &mut World) {
    while let Some(step) = world.poll() {
        world.carry_out(step);
    }
}

/// Turns until none is left; another client asks for a key in each, and is answered before the next.
fn turns_beside_another(world: &mut World) -> usize {
    let mut turns = 0;
    while world.database.borrow_mut().go_on() {
        turns += 1;
        world.send(1, &request(&[b"get", b"short"])).unwrap();
        carry_out_all(world);
        assert_eq!(world.answered(1), told(b"s"), "turn {turns}: the other is answered at once");
    }
    turns
}

/// What is asked, and the value before and after it.
type Case<'a> = (&'a [&'a [u8]], &'a [u8], Vec<u8>);

/// 8 MiB were copied at once, and everybody waited for it.
#[test]
fn a_long_value_is_changed_in_part_in_turns() {
    let at = (5 << 20).to_string();
    let long = bytes(LONGEST);
    let set_range: [&[u8]; 4] = [b"setrange", b"long", at.as_bytes(), b"patch"];
    let set_bit: [&[u8]; 4] = [b"setbit", b"long", b"41943044", b"1"];
    let append: [&[u8]; 3] = [b"append", b"long", &[b'a'; 70_000]];
    let beyond: [&[u8]; 4] = [b"setrange", b"long", at.as_bytes(), b"patch"];
    let patched = [&long[..5 << 20], b"patch", &long[(5 << 20) + 5..]].concat();
    let with_bit = [&long[..5_242_880], &[long[5_242_880] | 8], &long[5_242_881..]].concat();
    let appended = [&long[..LONGEST - 70_000], &[b'a'; 70_000]].concat();
    let after_zeroes = [&[b'x'][..], &[0; (5 << 20) - 1], b"patch"].concat();
    let cases: [Case<'_>; 4] = [
        (&set_range, &long, patched),
        (&set_bit, &long, with_bit),
        (&append, &long[..LONGEST - 70_000], appended),
        (&beyond, b"x", after_zeroes),
    ];
    for (words, before, after) in cases {
        let name = String::from_utf8_lossy(words[0]);
        let mut world = World::new(3, MUCH, 1);
        world.store.pairs.insert(b"short".to_vec(), of_value(b"s"));
        world.store.pairs.insert(b"long".to_vec(), of_value(before));
        world.send(0, &request(words)).unwrap();
        carry_out_all(&mut world);
        // Who asks for the value itself waits for the new one.
        world.send(2, &request(&[b"get", b"long"])).unwrap();
        let turns = turns_beside_another(&mut world);
        assert_eq!(turns, (after.len() - BEFORE_TURNS).div_ceil(OF_TURN), "{name}");
        assert_eq!(world.answered(2), b"", "{name} is not stored");
        world.settle();
        assert!(world.take_sent(2) == told(&after), "{name}: another value");
        assert!(world.store.pairs[&b"long"[..]] == of_value(&after), "{name}: another value is stored");
        world.finish();
    }
}

/// Sizes at which something begins anew, and those beside them.
fn any_size(random: &mut Prng, bounds: &[usize]) -> usize {
    let of = |bound: usize, random: &mut Prng| {
        usize::try_from(random.below(u64::try_from(bound).unwrap())).unwrap()
    };
    match random.below(4) {
        0 => of(9, random),
        1 => of(300_000, random),
        _ => (bounds[of(bounds.len(), random)] + of(5, random)).saturating_sub(2),
    }
}

/// One change in part of a value, and what it is to be answered and to leave.
fn any_change(random: &mut Prng, value: &mut Vec<u8>) -> (Vec<u8>, String) {
    let size = any_size(random, &[0, BEFORE_TURNS, OF_TURN, 2 * OF_TURN]);
    let letter = b'a' + u8::try_from(random.below(26)).unwrap();
    let at = any_size(random, &[0, BEFORE_TURNS, BEFORE_TURNS + OF_TURN, value.len()]);
    match random.below(3) {
        0 => {
            let with = vec![letter; size];
            value.extend_from_slice(&with);
            (request(&[b"append", b"key", &with]), format!(":{}\r\n", value.len()))
        }
        1 => {
            let with = vec![letter; size];
            if size > 0 {
                value.resize(value.len().max(at + size), 0);
                value[at..][..size].copy_from_slice(&with);
            }
            let place = at.to_string();
            (request(&[b"setrange", b"key", place.as_bytes(), &with]), format!(":{}\r\n", value.len()))
        }
        _ => {
            value.resize(value.len().max(at + 1), 0);
            let (bit, was_set) = (random.below(8), value[at]);
            let mask = 0x80_u8 >> bit;
            let sets = random.below(2);
            value[at] = if sets == 1 { was_set | mask } else { was_set & !mask };
            let place = (8 * u64::try_from(at).unwrap() + bit).to_string();
            let bit = if sets == 1 { b"1" } else { b"0" };
            let was_set = u8::from(was_set & mask != 0);
            (request(&[b"setbit", b"key", place.as_bytes(), bit]), format!(":{was_set}\r\n"))
        }
    }
}

/// Commands one by one and in transactions, of sizes around those of turns, leave what a list of bytes would.
#[test]
fn values_changed_in_turns_are_what_a_list_of_bytes_would_be() {
    for seed in 0..150 {
        let mut random = Prng::new(seed);
        let mut world = World::new(1, MUCH, seed);
        let (mut value, mut exists) = (Vec::new(), false);
        for _ in 0..4 {
            let count = 1 + random.below(4);
            let (asked, expected): (Vec<_>, Vec<_>) =
                (0..count).map(|_| any_change(&mut random, &mut value)).unzip();
            let is_one_step = random.below(2) == 0;
            let (asked, expected) = if is_one_step {
                let queued = format!("+OK\r\n{}*{count}\r\n", "+QUEUED\r\n".repeat(asked.len()));
                let asked = [request(&[b"multi"]), asked.concat(), request(&[b"exec"])].concat();
                (asked, queued + &expected.concat())
            } else {
                (asked.concat(), expected.concat())
            };
            world.send(0, &asked).unwrap();
            world.settle();
            assert_eq!(String::from_utf8(world.take_sent(0)).unwrap(), expected, "seed {seed}");
            exists |= !value.is_empty();
            let stored = world.store.pairs.get(&b"key"[..]);
            let is_equal = stored.map_or(!exists, |stored| stored[HEAD_BYTES..] == value[..]);
            assert!(is_equal, "seed {seed}: another value is stored");
        }
        world.finish();
    }
}

/// Two values that are changed alike by transactions, and in turns, are equal whenever somebody looks.
#[test]
fn values_that_are_changed_in_turns_are_seen_as_they_were_at_one_time() {
    const CLIENTS: u64 = 5;
    let both = |words: [&[u8]; 3], more: &[&[u8]]| {
        let command = |key| request(&[&[words[0], key], &words[2..], more].concat());
        [request(&[b"multi"]), command(b"one"), command(b"two"), request(&[b"exec"])].concat()
    };
    let mut seen = 0;
    for seed in 0..60 {
        let mut random = Prng::new(seed);
        let mut world = World::with(u32::try_from(CLIENTS).unwrap(), MUCH, seed, seed % 2 == 0);
        for _ in 0..40 {
            let client = usize::try_from(random.below(CLIENTS)).unwrap();
            let letters = vec![b'a' + u8::try_from(random.below(26)).unwrap(); 50_000];
            let bytes = match random.below(6) {
                0 => both([b"append", b"", &letters], &[]),
                1 => both([b"setrange", b"", b"100000"], &[&letters]),
                2 => both([b"setbit", b"", b"1200000"], &[b"1"]),
                3 => request(&[b"mset", b"one", b"", b"two", b""]),
                _ => request(&[b"mget", b"one", b"two"]),
            };
            world.send(client, &bytes).unwrap();
            for _ in 0..random.below(12) {
                world.step();
            }
        }
        world.settle();
        for client in 0..usize::try_from(CLIENTS).unwrap() {
            let sent = world.take_sent(client);
            let mut rest = &sent[..];
            while let Some((line, behind)) = line(rest) {
                rest = behind;
                if line == b"*2" && rest.first() == Some(&b'$') {
                    let one = value(&mut rest);
                    let two = value(&mut rest);
                    assert!(one == two, "seed {seed}: values of {} and {} bytes", one.len(), two.len());
                    seen += usize::from(one.len() > BEFORE_TURNS);
                }
            }
        }
        world.finish();
    }
    assert!(seen > 200, "{seen} looks at long values");
}

/// The first line of `rest`, and what is behind it.
fn line(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = rest.windows(2).position(|end| end == b"\r\n")?;
    Some((&rest[..end], &rest[end + 2..]))
}

/// The bulk string that `rest` begins with, which is taken from it; nothing if there is none.
fn value<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let (length, behind) = line(rest).expect("an answer has a line");
    let Ok(length) = std::str::from_utf8(&length[1..]).unwrap().parse() else {
        *rest = behind;
        return b"";
    };
    let (value, behind) = behind.split_at(length);
    *rest = &behind[2..];
    value
}

/// It looked at all keys, and stored all, while everybody waited.
#[test]
fn a_look_that_none_of_many_keys_exists_takes_turns_and_so_does_storing_them() {
    let keys: Vec<Vec<u8>> = (0..5000).map(|nth| format!("key:{nth}").into_bytes()).collect();
    let words = |value: &'static [u8]| {
        let pairs = keys.iter().flat_map(|key| [key.as_slice(), value]);
        request(&[b"msetnx".as_slice()].into_iter().chain(pairs).collect::<Vec<&[u8]>>())
    };
    let mut world = World::new(2, MEMORY, 1);
    world.store.pairs.insert(b"short".to_vec(), of_value(b"s"));
    let turns_of_keys = 5000_usize.div_ceil(128);
    // To find, join, ask for, look at, store and note them; the second ends at its first key, and leaves them before its answer
    // is taken here.
    for (value, times, answer) in [(&b"1"[..], 6, &b":1\r\n"[..]), (b"2", 5, b":0\r\n")] {
        world.send(0, &words(value)).unwrap();
        let turns = turns_beside_another(&mut world);
        world.settle();
        assert_eq!(world.take_sent(0), answer);
        assert!(turns >= times * (turns_of_keys - 1), "{turns} turns");
        assert_eq!(world.store.pairs.len(), 5001);
        assert_eq!(world.store.pairs[&keys[4999]], of_value(b"1"));
    }
    world.finish();
}

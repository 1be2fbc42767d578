//! Many clients at once, and outcomes in any order: as if commands came one after the other.

use super::{MEMORY, ask};
use crate::resp::store::{Outcome, StoreOp, StoreRequest};
use crate::resp::stored::{Expiry, Stored};
use crate::resp::testing::{World, request};
use ocssd_base::Prng;

/// A value as it is stored.
fn of_value(value: &[u8]) -> Vec<u8> {
    Stored { expiry: Expiry::Never, value: value.into() }.to_vec()
}

const CLIENTS: usize = 6;

/// A transfer, a look at both accounts, a counter, or all keys at once.
fn any_request(random: &mut Prng) -> Vec<u8> {
    match random.below(8) {
        0 => request(&[b"mget", b"one", b"two"]),
        1 => request(&[b"mset", b"one", b"7", b"two", b"7"]),
        2 => request(&[b"incr", b"count"]),
        3 => [
            request(&[b"multi"]),
            request(&[b"incr", b"one"]),
            request(&[b"incr", b"two"]),
            request(&[b"incr", b"count"]),
            request(&[b"exec"]),
        ]
        .concat(),
        4 => request(&[b"dbsize"]),
        5 => request(&[b"rename", b"other", b"other2"]),
        6 => request(&[b"set", b"other", b"x"]),
        _ => request(&[b"del", b"one", b"two"]),
    }
}

/// Clients ask at random, and outcomes come in any order.
fn ask_at_random(world: &mut World, random: &mut Prng) {
    for _ in 0..60 {
        let client = usize::try_from(random.below(CLIENTS.try_into().unwrap())).unwrap();
        let bytes = match random.below(8) {
            0 => request(&[b"get", b"one"]),
            1 => request(&[b"set", b"one", b"8", b"nx"]),
            2 => request(&[b"set", b"one", &[b'9'; 10_000]]),
            // It is copied in its own time.
            3 => request(&[b"set", b"one", &[b'9'; 70_000]]),
            _ => any_request(random),
        };
        world.send(client, &bytes).unwrap();
        for _ in 0..random.below(5) {
            world.step();
        }
    }
    world.settle();
}

/// What a reply showed must still be there after a power cut, so nobody looks at a key while a change of it is not durable.
#[test]
fn nobody_sees_what_is_not_durable_if_replies_promise_that() {
    let mut undurable_reads = [0, 0];
    for seed in 0..60 {
        for (of, is_durable_at_reply) in undurable_reads.iter_mut().zip([true, false]) {
            let mut world = World::with(u32::try_from(CLIENTS).unwrap(), MEMORY, seed, is_durable_at_reply);
            ask_at_random(&mut world, &mut Prng::new(seed));
            *of += world.store.undurable_reads;
            assert!(
                *of == 0 || !is_durable_at_reply,
                "seed {seed}: a reply shows what a power cut may take away"
            );
            world.finish();
        }
    }
    assert!(undurable_reads[1] > 100, "looks and changes hardly met: {undurable_reads:?}");
}

/// The two are equal in every answer of MGET, as all that changes them changes both.
#[test]
fn several_keys_are_seen_as_they_were_at_one_time() {
    for seed in 0..60 {
        let mut random = Prng::new(seed);
        let mut world = World::new(u32::try_from(CLIENTS).unwrap(), MEMORY, seed);
        let (mut counted, mut seen) = (0, 0);
        for _ in 0..60 {
            let client = usize::try_from(random.below(CLIENTS.try_into().unwrap())).unwrap();
            let bytes = any_request(&mut random);
            let text = String::from_utf8(bytes.clone()).unwrap();
            counted += text.matches("count\r\n").count();
            world.send(client, &bytes).unwrap();
            for _ in 0..random.below(5) {
                world.step();
            }
        }
        world.settle();
        for client in 0..CLIENTS {
            let sent = String::from_utf8(world.take_sent(client)).unwrap();
            for answer in sent.split("*2\r\n").skip(1) {
                let mut words = answer.split("\r\n");
                let mut value = || {
                    let length = words.next().unwrap();
                    if length == "$-1" { "none" } else { words.next().unwrap() }
                };
                assert_eq!(value(), value(), "seed {seed}: {answer:?}");
                seen += 1;
            }
        }
        assert_eq!(ask(&mut world, 0, "incrby count 0"), counted.to_string(), "seed {seed}");
        assert!(seen > 0, "seed {seed} saw nothing");
        world.finish();
    }
}

/// A flush of all keys is alone: no key of one MSET is left behind by it.
#[test]
fn a_flush_of_all_keys_is_alone() {
    for seed in 0..40 {
        let mut random = Prng::new(seed);
        let mut world = World::new(3, MEMORY, seed);
        for round in 0..20_u64 {
            let key = |nth: u64| format!("key:{}", round * 100 + nth).into_bytes();
            let words: Vec<Vec<u8>> = (0..30).flat_map(|nth| [key(nth), b"x".to_vec()]).collect();
            let mut mset: Vec<&[u8]> = vec![b"mset"];
            mset.extend(words.iter().map(Vec::as_slice));
            world.send(0, &request(&mset)).unwrap();
            if random.below(2) == 0 {
                world.send(1, &request(&[b"flushall"])).unwrap();
            }
            world.send(2, &request(&[b"dbsize"])).unwrap();
            for _ in 0..random.below(40) {
                world.step();
            }
        }
        world.settle();
        let sizes = String::from_utf8(world.take_sent(2)).unwrap();
        assert_eq!(sizes.matches(':').count(), 20);
        assert_eq!(world.store.pairs.len() % 30, 0, "seed {seed}");
        world.finish();
    }
}

/// Before there were lines of their own, two looks at 3000 keys kept another client's look waiting for 6000.
#[test]
fn a_short_command_waits_for_few_steps_of_long_ones() {
    let mut world = World::new(5, MEMORY, 1);
    let keys: Vec<Vec<u8>> = (0..3000).map(|nth| format!("key:{nth}").into_bytes()).collect();
    let mut mget: Vec<&[u8]> = vec![b"mget"];
    mget.extend(keys.iter().map(Vec::as_slice));
    (0..2).for_each(|client| world.send(client, &request(&mget)).unwrap());
    (2..4).for_each(|client| world.send(client, &request(&[b"keys", b"*"])).unwrap());
    while world.database.borrow_mut().go_on() {}
    let poll = |world: &World| world.database.borrow_mut().poll_request(true).map(|(request, _)| request);
    let mut steps: Vec<StoreRequest> = std::iter::from_fn(|| poll(&world)).collect();
    assert!(steps.len() <= 128, "{} steps are at the store at once", steps.len());
    let lists = steps.iter().filter(|step| matches!(step.op, StoreOp::List { .. })).count();
    assert_eq!(lists, 2, "walks take their turn");
    world.send(4, &request(&[b"get", b"mine"])).unwrap();
    let next = poll(&world).expect("it waits for none of those that the store has not got");
    assert!(matches!(&next.op, StoreOp::Retrieve { key, .. } if key == b"mine"), "{:?}", next.op);
    steps.push(next);
    for StoreRequest { token, op } in steps {
        let outcome =
            if matches!(op, StoreOp::List { .. }) { Outcome::Keys(Vec::new()) } else { Outcome::Absent };
        world.database.borrow_mut().on_outcome(token, outcome);
    }
    world.settle();
    assert_eq!(world.take_sent(4), b"$-1\r\n");
    assert_eq!(world.take_sent(0).len(), b"*3000\r\n".len() + 3000 * b"$-1\r\n".len());
    world.finish();
}

/// A hundred keys that are changed together, by commands and transactions that take turns, are equal whenever somebody looks.
#[test]
fn long_commands_are_one_step_for_others() {
    let names: Vec<Vec<u8>> = (0..100).map(|nth| format!("key:{nth:02}").into_bytes()).collect();
    let all = |name: &'static str| -> Vec<&[u8]> {
        [name.as_bytes()].into_iter().chain(names.iter().map(Vec::as_slice)).collect()
    };
    let set_all = |value: &[u8]| {
        let pairs = names.iter().flat_map(|name| [name.as_slice(), value]);
        request(&[b"mset".as_slice()].into_iter().chain(pairs).collect::<Vec<&[u8]>>())
    };
    let count_all = || {
        let counts = names.iter().rev().map(|name| request(&[b"incr", name])).collect::<Vec<_>>().concat();
        [request(&[b"multi"]), counts, request(&[b"exec"])].concat()
    };
    let mut seen = 0;
    for seed in 0..60 {
        let mut random = Prng::new(seed);
        let mut world = World::with(u32::try_from(CLIENTS).unwrap(), MEMORY, seed, seed % 2 == 0);
        for _ in 0..40 {
            let client = usize::try_from(random.below(CLIENTS.try_into().unwrap())).unwrap();
            let bytes = match random.below(7) {
                0 => set_all(random.below(1000).to_string().as_bytes()),
                1 => count_all(),
                2 => request(&all("del")),
                3 => request(&[b"mget", b"key:03", b"key:90"]),
                4 => request(&[b"flushall"]),
                5 => request(&[b"set", b"other", &[b'x'; 70_000]]),
                _ => request(&all("mget")),
            };
            world.send(client, &bytes).unwrap();
            for _ in 0..random.below(30) {
                world.step();
            }
        }
        world.settle();
        for client in 0..CLIENTS {
            let sent = String::from_utf8(world.take_sent(client)).unwrap();
            let mut lines = sent.split("\r\n");
            while let Some(line) = lines.next() {
                // Looks only: what a transaction counted is an array of numbers.
                let count = line.strip_prefix('*').map_or(0, |count| count.parse::<usize>().unwrap());
                let mut value = || match lines.next().unwrap() {
                    "$-1" => "none",
                    length if length.starts_with('$') => lines.next().unwrap(),
                    other => other,
                };
                let values: Vec<&str> = (0..count).map(|_| value()).collect();
                let is_equal = values.windows(2).all(|two| two[0] == two[1]);
                assert!(is_equal, "seed {seed}: {values:?}");
                seen += usize::from(count > 0);
            }
        }
        world.finish();
    }
    assert!(seen > 500, "{seen} looks");
}

/// It took the processor all at once for 5000 keys: to find them, to wait for them, to read, answer and forget them. A short
/// command came in between nowhere but before the reads.
#[test]
fn a_command_of_many_keys_takes_turns() {
    let mut world = World::new(2, MEMORY, 1);
    let keys: Vec<Vec<u8>> = (0..5000).map(|nth| format!("key:{nth}").into_bytes()).collect();
    for key in &keys {
        world.store.pairs.insert(key.clone(), of_value(&[b'v'; 1000]));
    }
    let mut mget: Vec<&[u8]> = vec![b"mget"];
    mget.extend(keys.iter().map(Vec::as_slice));
    world.send(0, &request(&mget)).unwrap();
    let (mut turns, mut asked, mut told) = (0, 0, 0);
    while world.database.borrow_mut().go_on() {
        turns += 1;
        world.send(1, &request(&[b"strlen", b"key:4999"])).unwrap();
        let mut steps = Vec::new();
        while let Some(step) = world.poll() {
            steps.push(step);
        }
        assert!(steps.len() <= 129, "{} steps in one turn", steps.len());
        asked += steps.len() - 1;
        steps.into_iter().for_each(|step| world.carry_out(step));
        assert_eq!(world.answered(1), b":1000\r\n", "turn {turns}: the other is answered at once");
        told += world.answered(0).len();
    }
    assert_eq!((asked, told), (5000, b"*5000\r\n".len() + 5000 * b"$1000\r\n\r\n".len() + 5_000_000));
    // Each of five times a 128th of the keys, but answers of 64 KiB at most.
    assert!(turns > 4 * 39 + 5_000_000 / (64 << 10), "{turns} turns");
    world.finish();
}

//! The faithful mode with a ring that is full all the time: who may enter it, and when.

use super::basic::{MIX, geometry, options};
use super::mix::Mix;
use super::world::{Answer, World, config};
use ocssd_base::{Nanos, Prng};
use ocssd_lightnvm::Target;
use ocssd_lightnvm::block::{BlockOp, CounterValue};
use ocssd_targets::pblk::{Mode, Options};

/// Users of whom none ever rests, with more than the ring holds.
const USERS: Mix = Mix { requests: 400, depth: 14, reads: 0, flushes: 2, discards: 0, fua: 2, ..MIX };
/// How often they make so many requests: each time the ring is filled twenty times at least.
const ROUNDS: u32 = 12;

/// Units of the ring in each state: not acknowledged, acknowledged, kept as a cache.
fn units(world: &World) -> [u64; 3] {
    let counters = world.pblk().counters();
    let gauge = |name| match counters.iter().find(|counter| counter.name == name).map(|counter| counter.value)
    {
        Some(CounterValue::Gauge(value)) => value,
        other => panic!("{name} is {other:?}"),
    };
    ["buffer_unwritten_units", "buffer_unreadable_units", "buffer_cached_units"].map(gauge)
}

/// Asserts that writes got in as they came, and that nobody waited for much longer than others.
fn check_waits(answered: &[Answer], label: &str) {
    let is_write = |answer: &&Answer| answer.request.op == BlockOp::Write { fua: false };
    let tags: Vec<u32> = answered.iter().filter(is_write).map(|answer| answer.request.tag.0).collect();
    assert!(tags.is_sorted(), "{label}: somebody was overtaken");
    let sum: Nanos = answered.iter().fold(Nanos::ZERO, |sum, answer| sum + answer.waited);
    let mean = Nanos(sum.0 / u64::try_from(answered.len()).expect("few"));
    for Answer { request, waited } in answered {
        assert!(*waited < mean * 4, "{label}: {request:?} waited {waited}, {mean} is usual");
    }
}

#[test]
fn a_full_ring_is_entered_in_order_and_nobody_waits_for_long() {
    for (buffer_units, seed) in
        [12, 16, 32].into_iter().flat_map(|buffer_units| [0, 1].map(|seed| (buffer_units, seed)))
    {
        let label = format!("{buffer_units} units, seed {seed}");
        let write_buffer_bytes = Some(buffer_units * 4 * 4096);
        let options = Options { write_buffer_bytes, small_write_buffer: true, ..options(Mode::Faithful) };
        let (mut world, mut prng) = (World::new(config(geometry()), options, &label), Prng::new(seed));
        let mut took = Vec::new();
        for round in 0..ROUNDS {
            let (started, before) = (world.clock_now(), world.pblk().stats().clone());
            assert!(world.run(&USERS, &mut prng), "{label}");
            world.check();
            took.push(world.clock_now() - started);
            let now = world.pblk().stats();
            let waits = now.waits_for_buffer - before.waits_for_buffer;
            assert!(waits > 400, "{label}, round {round}: {waits} found the ring full");
            let is_collecting =
                now.victims > before.victims && now.waits_for_limiter > before.waits_for_limiter;
            assert!(round < 2 || is_collecting, "{label}, round {round}: nothing was collected");
            assert_eq!(units(&world).iter().sum::<u64>(), buffer_units, "{label}: a full ring stays full");
        }
        // How much is collected beside settles.
        let settled = &took[4..];
        let (least, most) = (settled.iter().min().expect("some"), settled.iter().max().expect("some"));
        assert!(*most < *least * 2, "{label}: {took:?}");
        check_waits(&world.answered, &label);
        let flushes = world.answered.iter().filter(|answer| answer.request.op == BlockOp::Flush).count();
        assert!(flushes > 40, "{label}: {flushes} flushes came back while others wrote");
        world.read_all(false);
        world.flush();
        world.survive_cut(&mut prng);
    }
}

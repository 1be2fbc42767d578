//! Doorbells in memory.

use super::super::GuestMemory;
use super::super::bench::{Bench, ENABLE, ENTRIES, page};
use ocssd_lightnvm::Status;
use ocssd_nvme::{HostAddress, Sqe};

const DOORBELLS: u64 = page(10);
const EVENT_INDEXES: u64 = page(11);
/// The tail of submission queue 1, and the head of completion queue 1.
const TAIL: u64 = 8;
const HEAD: u64 = 12;

fn shadowed() -> Bench {
    let mut bench = Bench::new();
    bench.enable();
    let config = Sqe { opcode: 0x7C, ..Sqe::default() };
    let config = config.with_prps(HostAddress(DOORBELLS), HostAddress(EVENT_INDEXES));
    // What a driver left there before it began again.
    bench.put(DOORBELLS, &[3; 4096]);
    assert_eq!(bench.admin(config), Status::SUCCESS);
    bench.make_queue(1);
    bench
}

fn store(bench: &Bench, at: u64, value: u32) {
    bench.function.port.memory.store(HostAddress(at), value).unwrap();
}

fn load(bench: &Bench, at: u64) -> u32 {
    bench.function.port.memory.load(HostAddress(at)).unwrap()
}

#[test]
fn a_new_queue_begins_with_what_the_controller_knows() {
    let mut bench = shadowed();
    assert_eq!((load(&bench, DOORBELLS + TAIL), load(&bench, DOORBELLS + HEAD)), (0, 0));
    bench.run();
    assert!(bench.peek(1).is_none() && bench.csts() == 1);
}

#[test]
fn commands_are_found_without_a_register() {
    let mut bench = shadowed();
    for _ in 0..3 * ENTRIES {
        bench.queue(1, Sqe::flush(1));
        store(&bench, DOORBELLS + TAIL, bench.tail(1));
        let rung = bench.function.counters().doorbells;
        bench.run();
        assert_eq!(bench.function.counters().doorbells, rung);
        assert!(bench.take(1).is_some());
        store(&bench, DOORBELLS + HEAD, bench.head(1));
    }
    assert!(bench.function.counters().shadow_doorbells >= u64::from(3 * ENTRIES));
}

#[test]
fn who_sleeps_says_when_to_be_woken_and_looks_once_more() {
    let mut bench = shadowed();
    bench.run();
    assert!(bench.function.arm());
    assert_eq!(load(&bench, EVENT_INDEXES + TAIL), 0);
    bench.queue(1, Sqe::flush(1));
    store(&bench, DOORBELLS + TAIL, 1);
    assert!(!bench.function.arm(), "the guest was faster");
    bench.run();
    assert!(bench.function.arm());
    assert_eq!(load(&bench, EVENT_INDEXES + TAIL), 1);
    // A register that is late says nothing new.
    bench.write(0x1008, 0);
    bench.run();
    assert_eq!(bench.function.port.submission(1).unwrap().tail, 1);
}

#[test]
fn a_full_completion_queue_is_woken_by_its_head() {
    let mut bench = shadowed();
    for _ in 0..ENTRIES - 1 {
        bench.queue(1, Sqe::flush(1));
    }
    store(&bench, DOORBELLS + TAIL, bench.tail(1));
    bench.run();
    bench.queue(1, Sqe::flush(1));
    store(&bench, DOORBELLS + TAIL, bench.tail(1));
    bench.run();
    assert!(bench.function.arm());
    store(&bench, DOORBELLS + HEAD, 3);
    assert!(!bench.function.arm());
    bench.run();
    assert!(bench.function.port.completion(1).unwrap().backlog.is_empty() && bench.function.arm());
}

#[test]
fn nonsense_in_a_shadow_is_no_work_without_end() {
    let mut bench = shadowed();
    for (at, value) in [(TAIL, ENTRIES), (TAIL, u32::MAX), (HEAD, 5), (HEAD, u32::MAX)] {
        store(&bench, DOORBELLS + at, value);
        bench.run();
        assert!(bench.function.arm(), "{at} {value}");
    }
    assert_eq!(bench.csts(), 1);
    store(&bench, DOORBELLS + TAIL, 0);
    bench.queue(1, Sqe::flush(1));
    store(&bench, DOORBELLS + TAIL, 1);
    bench.run();
    assert!(bench.peek(1).is_some());
}

#[test]
fn a_reset_ends_doorbells_in_memory() {
    let mut bench = shadowed();
    bench.write(0x14, ENABLE & !1);
    bench.enable();
    bench.make_queue(1);
    store(&bench, DOORBELLS + TAIL, 5);
    bench.run();
    assert!(bench.peek(1).is_none());
    assert_eq!(bench.io(Sqe::flush(1)), Status::SUCCESS);
}

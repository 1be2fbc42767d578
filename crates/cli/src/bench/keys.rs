//! Gets and stores of 1 KiB on `kv`, on a store 80 % full whose garbage is collected all the time.
//!
//! Processor time of host, target and drive under virtual time, content included: what is stored is copied to the write buffer and
//! to the media, what is retrieved is read from there, checked and copied. Deliberately not here: how long media take.

use crate::cpu;
use crate::report;
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Caller, Host, RunEnd, VirtualClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::counter::CounterValue;
use ocssd_lightnvm::interface::key_value::{Key, KvOp, KvReply, KvRequest, KvTarget, StoreCondition};
use ocssd_lightnvm::interface::{Content, Durability, Piece};
use ocssd_lightnvm::media_manager::UnitSelection;
use ocssd_lightnvm::{BufId, Buffers, Payload, Source, Tag, TargetId};
use ocssd_targets::kv::{Kv, Options};

/// Name of this benchmark.
pub const NAME: &str = "kv_1k_80_full";
/// Bytes of a value.
const VALUE_BYTES: u32 = 1_024;
/// Bytes of a key.
const KEY_BYTES: u64 = 16;
/// What is stored, in percent of what keys and values may take.
const FULL_PERCENT: u64 = 80;
/// Requests outstanding (chosen: as the other benchmarks of reads).
const DEPTH: usize = 64;
/// Requests that are measured, unless asked for otherwise (chosen: some seconds).
const REQUESTS: u64 = 2_000_000;

type KeyHost = Host<Flash, VirtualClock, dyn KvTarget>;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Get,
    Store,
}

/// A thousand mebibytes of the zn540's media on eight units, in chunks of 3 MiB.
fn fresh(options: &[(String, String)]) -> KeyHost {
    let mut config = presets::find("zn540").expect("a preset").config();
    (config.geometry.groups, config.geometry.pus_per_group) = (4, 2);
    (config.geometry.chunks_per_pu, config.geometry.sectors_per_chunk) = (48, 768);
    config.payload = Payload::Bytes;
    let mut flash = Flash::format(config).expect("a sound preset");
    let units = UnitSelection::All.resolve(&flash.config().geometry).expect("every unit");
    let mut buffers = Buffers::new(flash.payload_format());
    let mut clock = VirtualClock::default();
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let mut chosen = Options::default();
    for (name, value) in options {
        chosen.set(name, value).expect("an option of kv");
    }
    let (target, _) = Kv::mount(&mut caller, &units, &chosen).expect("the drive is large enough");
    let mut host: KeyHost = Host::new(flash, clock, buffers);
    host.add(Box::new(target));
    host
}

/// Keys: numbers, spread over all bytes so that the next one lies anywhere.
fn key(number: u64) -> Key {
    let spread = (number ^ number >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&spread.to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    Key::inline(&bytes).expect("sixteen bytes")
}

/// So many requests, a few outstanding, of keys in order or drawn.
struct Load {
    kind: Kind,
    left: u64,
    keys: u64,
    /// Keys are drawn; else in order.
    prng: Option<Prng>,
    next: u64,
    spare: Vec<BufId>,
    held: Vec<Option<BufId>>,
    free: Vec<u32>,
    refused: Option<KvRequest>,
}

impl Load {
    fn new(kind: Kind, keys: u64, requests: u64, prng: Option<Prng>, buffers: &mut Buffers) -> Self {
        let sectors =
            VALUE_BYTES.div_ceil(u32::try_from(buffers.format().sector_bytes).expect("a sector is short"));
        let spare: Vec<BufId> = (0..DEPTH).map(|_| buffers.take_whole(sectors)).collect();
        let free = (0..u32::try_from(DEPTH).expect("few")).collect();
        Self {
            kind,
            left: requests,
            keys,
            prng,
            next: 0,
            spare,
            held: vec![None; DEPTH],
            free,
            refused: None,
        }
    }

    fn next_key(&mut self) -> Key {
        self.next += 1;
        let number = self.prng.as_mut().map_or(self.next - 1, |prng| prng.below(self.keys));
        key(number)
    }

    fn give_back(self, buffers: &mut Buffers) {
        self.spare.into_iter().for_each(|buffer| buffers.give_back(buffer));
    }
}

impl Source<dyn KvTarget> for Load {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, KvRequest)> {
        if let Some(request) = self.refused.take() {
            return Some((TargetId(0), request));
        }
        if self.left == 0 {
            return None;
        }
        let tag = self.free.pop()?;
        self.left -= 1;
        let buffer = self.spare.pop().expect("a buffer for each place");
        self.held[usize::try_from(tag).expect("few")] = Some(buffer);
        let content = Content::Piece(Piece { buffer, first_byte: 0, bytes: VALUE_BYTES });
        let key = self.next_key();
        let op = match self.kind {
            Kind::Get => KvOp::Retrieve { key, offset: 0, into: content },
            Kind::Store => {
                let (condition, durability) = (StoreCondition::Always, Durability::AtFlush);
                KvOp::Store { key, content, condition, durability }
            }
        };
        Some((TargetId(0), KvRequest { tag: Tag(tag), op }))
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, request: KvRequest) {
        self.refused = Some(request);
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: KvReply, _buffers: &mut Buffers) {
        assert!(reply.status.is_success(), "{reply:?}");
        let buffer = self.held[usize::try_from(reply.tag.0).expect("few")].take();
        self.spare.push(buffer.expect("a request holds a buffer until it is answered"));
        self.free.push(reply.tag.0);
    }

    fn is_finished(&self) -> bool {
        self.left == 0 && self.refused.is_none() && self.free.len() == DEPTH
    }
}

/// Runs requests: the processor time they took.
fn run(host: &mut KeyHost, kind: Kind, keys: u64, requests: u64, prng: Option<Prng>) -> Nanos {
    let mut load = Load::new(kind, keys, requests, prng, host.buffers_mut());
    let before = cpu::thread_time();
    assert_eq!(host.run(&mut load, Nanos::MAX), RunEnd::Finished, "requests are lost");
    let spent = cpu::thread_time() - before;
    load.give_back(host.buffers_mut());
    spent
}

fn count(host: &KeyHost, name: &str) -> u64 {
    let counters = host.target(TargetId(0)).counters();
    match counters.iter().find(|counter| counter.name == name).expect("the target counts it").value {
        CounterValue::Count(value) | CounterValue::Gauge(value) => value,
        CounterValue::Ratio(_) => unreachable!("{name} is a number"),
    }
}

/// Prints what a get and a store take of a processor.
#[expect(clippy::cast_precision_loss, reason = "figures of a benchmark")]
pub fn measure(requests: Option<u64>, options: &[(String, String)]) {
    let requests = requests.unwrap_or(REQUESTS);
    let mut host = fresh(options);
    let capacity = host.target(TargetId(0)).limits().capacity_bytes;
    let keys = capacity * FULL_PERCENT / 100 / (u64::from(VALUE_BYTES) + KEY_BYTES);
    let prng = Prng::new(1);
    run(&mut host, Kind::Store, keys, keys, None);
    // All of them once more, so that garbage collection is in its steady state.
    run(&mut host, Kind::Store, keys, keys, Some(prng.split("age")));
    for (kind, name) in [(Kind::Store, "store"), (Kind::Get, "get")] {
        let written = count(&host, "units");
        let spent = run(&mut host, kind, keys, requests, Some(prng.split(name)));
        report(NAME, &format!("{name}_rate"), requests as f64 / spent.as_secs_f64(), "requests/cpu-s");
        report(NAME, &format!("{name}_each"), spent.0 as f64 / requests as f64, "ns");
        if kind == Kind::Store {
            let units = count(&host, "units") - written;
            report(NAME, "units_written", units as f64 / requests as f64, "units/store");
        }
    }
    report(NAME, "index", count(&host, "index_bytes") as f64 / keys as f64, "B/key");
    host.target(TargetId(0)).check();
}

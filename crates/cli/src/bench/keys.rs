//! Gets and stores of 1 KiB on `kv`, on a store 80 % full whose garbage is collected all the time; and what a mount costs for each
//! key.
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
/// Name of that of mounts after a shutdown.
pub const NAME_MOUNT: &str = "kv_mount_100m_keys";
/// Keys of the stores that are mounted: a hundred million take some 20 GB with their drive, so the line through two says what they
/// would take. `--ios=N` asks for a larger one.
const MOUNT_KEYS: [u64; 2] = [1_000_000, 4_000_000];
/// What the line is drawn to.
const MOUNT_KEYS_ASKED: f64 = 1e8;
/// Mounts of the same store, of which the least is taken: the machine has other work too.
const MOUNTS: usize = 3;
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

/// Chunks of a unit of a drive of a thousand mebibytes.
const CHUNKS: u32 = 48;

/// The zn540's media on eight units, in chunks of 3 MiB.
fn fresh_drive(chunks_per_pu: u32) -> Flash {
    let mut config = presets::find("zn540").expect("a preset").config();
    (config.geometry.groups, config.geometry.pus_per_group) = (4, 2);
    (config.geometry.chunks_per_pu, config.geometry.sectors_per_chunk) = (chunks_per_pu, 768);
    config.payload = Payload::Bytes;
    Flash::format(config).expect("a sound preset")
}

/// Mounts; what that took.
fn mounted(mut flash: Flash, options: &[(String, String)]) -> (KeyHost, Nanos) {
    let units = UnitSelection::All.resolve(&flash.config().geometry).expect("every unit");
    let mut buffers = Buffers::new(flash.payload_format());
    let mut clock = VirtualClock::default();
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let mut chosen = Options::default();
    for (name, value) in options {
        chosen.set(name, value).expect("an option of kv");
    }
    let before = cpu::thread_time();
    let (target, _) = Kv::mount(&mut caller, &units, &chosen).expect("the drive is large enough");
    let spent = cpu::thread_time() - before;
    let mut host: KeyHost = Host::new(flash, clock, buffers);
    host.add(Box::new(target));
    (host, spent)
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
    value_bytes: u32,
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
    fn new(
        kind: Kind,
        (keys, value_bytes): (u64, u32),
        requests: u64,
        prng: Option<Prng>,
        buffers: &mut Buffers,
    ) -> Self {
        let sectors =
            VALUE_BYTES.div_ceil(u32::try_from(buffers.format().sector_bytes).expect("a sector is short"));
        let spare: Vec<BufId> = (0..DEPTH).map(|_| buffers.take_whole(sectors)).collect();
        let free = (0..u32::try_from(DEPTH).expect("few")).collect();
        Self {
            kind,
            value_bytes,
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
        let content = Content::Piece(Piece { buffer, first_byte: 0, bytes: self.value_bytes });
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
    let load = Load::new(kind, (keys, VALUE_BYTES), requests, prng, host.buffers_mut());
    run_load(host, load)
}

fn run_load(host: &mut KeyHost, mut load: Load) -> Nanos {
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
    let (mut host, _) = mounted(fresh_drive(CHUNKS), options);
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

/// A store of so many keys without a value, on a drive with room for them, and for their index three times.
fn store_of(keys: u64, options: &[(String, String)]) -> KeyHost {
    let chunks = 3 * u64::from(CHUNKS) * keys.div_ceil(MOUNT_KEYS[1]);
    let (mut host, _) = mounted(fresh_drive(u32::try_from(chunks).expect("not so many keys")), options);
    let load = Load::new(Kind::Store, (keys, 0), keys, None, host.buffers_mut());
    run_load(&mut host, load);
    host
}

/// Shuts down and mounts: the least it took, in seconds of a processor.
fn least_mount(mut host: KeyHost, keys: u64, options: &[(String, String)]) -> f64 {
    let mut least = Nanos::MAX;
    for _ in 0..MOUNTS {
        let end = host.ask(KvRequest { tag: Tag(0), op: KvOp::Shutdown });
        assert!(end.status.is_success(), "a shutdown ends well: {end:?}");
        let (again, spent) = mounted(host.into_device(), options);
        assert_eq!(count(&again, "keys"), keys, "every key is there");
        (host, least) = (again, least.min(spent));
    }
    least.as_secs_f64()
}

/// Prints what a mount after a shutdown takes of a processor: of two stores of empty values, and of a hundred million keys by the
/// line through both; with the whole index in memory, and with its pages on media.
#[expect(clippy::cast_precision_loss, reason = "figures of a benchmark")]
pub fn measure_mount(keys: Option<u64>) {
    let stores = [MOUNT_KEYS[0], keys.unwrap_or(MOUNT_KEYS[1]).max(2 * MOUNT_KEYS[0])];
    for (index, cache) in [("whole", None), ("on_media", Some("0"))] {
        // Entries of so many keys without values are more than the usual part of the drive.
        let mut options = vec![("index_percent".to_owned(), "15".to_owned())];
        options.extend(cache.map(|bytes| ("index_cache_bytes".to_owned(), bytes.to_owned())));
        let [less, more] = stores.map(|keys| least_mount(store_of(keys, &options), keys, &options));
        let [few, many] = stores.map(|keys| keys as f64);
        let each = (more - less) / (many - few);
        let name = |metric: &str| format!("{index}_{metric}");
        report(NAME_MOUNT, &name("larger_keys"), many, "keys");
        report(NAME_MOUNT, &name("larger"), more, "cpu-s");
        report(NAME_MOUNT, &name("each_key"), each * 1e9, "ns");
        report(NAME_MOUNT, &name("extrapolated"), less + each * (MOUNT_KEYS_ASKED - few), "cpu-s");
    }
}

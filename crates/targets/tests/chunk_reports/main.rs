//! One mount of each kind of target on a drive that reports chunks otherwise than they are: too low, too high, or as no chunk
//! can be.

mod others;

use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Caller, Host, Requests, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockRequest, BlockTarget};
use ocssd_lightnvm::{
    Addresses, BlockingDevice, Buffers, ChunkDescriptor, ChunkId, ChunkState, Command, Completion, Device,
    Geometry, Op, Payload, PowerCut, PuId, Status, Tag, Target, TargetId,
};
use ocssd_targets::Layout;
use ocssd_targets::registry::{self, Kind, TargetOptions, TargetSpec};
use std::collections::BTreeMap;

/// Units of the drive.
const UNITS: u32 = 4;
/// Blocks that are written (chosen: chunks are closed by that, and others stay open).
const BLOCKS: u32 = 150;
/// Sectors that must follow one in an OPEN chunk before it can be read.
const WINDOW: u32 = 8;

fn config() -> Config {
    let geometry = Geometry { mw_cunits: WINDOW, ws_min: 4, ..Geometry::example(2, 2, 60, 32, 4) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.payload = Payload::Bytes;
    config.geometry = geometry;
    config
}

/// The drive, with what it reports of some chunks until a write names them, or for ever.
struct Reporting<'a> {
    inner: Caller<'a, Flash, VirtualClock>,
    shown: BTreeMap<ChunkId, ChunkDescriptor>,
    looks_again: bool,
    writes: u32,
}

impl BlockingDevice for Reporting<'_> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.shown.get(&chunk).copied().unwrap_or_else(|| self.inner.chunk(chunk))
    }

    fn buffers(&mut self) -> &mut Buffers {
        self.inner.buffers()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn call(&mut self, commands: &[Command]) -> Result<Vec<Completion>, PowerCut> {
        for command in commands {
            if let (Op::Write { .. }, Addresses::Run { first, .. }) = (command.op, command.addresses)
                && self.looks_again
            {
                self.shown.remove(&first.chunk);
            }
        }
        let done = self.inner.call(commands)?;
        for (command, end) in commands.iter().zip(&done) {
            self.writes += u32::from(matches!(command.op, Op::Write { .. }) && end.status.is_success());
        }
        Ok(done)
    }

    fn wait(&mut self, time: Nanos) -> Result<(), PowerCut> {
        self.inner.wait(time)
    }
}

fn options(kind: &str) -> TargetOptions {
    let creates = matches!(kind, "linux-pblk" | "zns");
    if creates { vec![("create".to_owned(), "yes".to_owned())] } else { Vec::new() }
}

/// A host whose only target is what `make` makes on the drive with these reports.
fn mount<T: Target + ?Sized>(
    mut flash: Flash,
    shown: BTreeMap<ChunkId, ChunkDescriptor>,
    kind: &str,
    make: impl FnOnce(&Kind, &mut Reporting<'_>, &TargetSpec<'_>) -> Result<Box<T>, String>,
) -> Result<Host<Flash, VirtualClock, T>, String> {
    let (mut clock, mut buffers) = (VirtualClock::default(), Buffers::new(flash.payload_format()));
    let inner = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let mut device = Reporting { inner, shown, looks_again: true, writes: 0 };
    let units: Vec<PuId> = (0..UNITS).map(PuId).collect();
    let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &options(kind) };
    let target = make(registry::find(kind).expect("a kind"), &mut device, &spec)?;
    let mut host = Host::new(flash, clock, buffers);
    host.add(target);
    Ok(host)
}

/// A block target on the drive, asked one request at a time.
struct Blocks {
    host: Host<Flash, VirtualClock, dyn BlockTarget>,
    tag: u32,
}

impl Blocks {
    /// Mounts it with these reports.
    fn mount(kind: &str, flash: Flash, shown: BTreeMap<ChunkId, ChunkDescriptor>) -> Result<Self, String> {
        let host = mount(flash, shown, kind, |kind, device, spec| Ok(kind.make(device, spec)?.target))?;
        Ok(Self { host, tag: 0 })
    }

    fn ask(&mut self, op: BlockOp, block: u64, byte: u8) -> (Status, u8) {
        let buffers = self.host.buffers_mut();
        let buffer = buffers.take(1);
        buffers.data_mut(buffer, 0, 1).fill(byte);
        self.tag += 1;
        let count = u32::from(matches!(op, BlockOp::Read | BlockOp::Write { .. }));
        let named = (count > 0).then_some(buffer);
        let mut requests = Requests::default();
        requests.push(BlockRequest { tag: Tag(self.tag), op, block, count, buffer: named });
        let ended = self.host.run(&mut requests, Nanos::MAX);
        assert_eq!(ended, RunEnd::Finished, "{op:?} of block {block} is not answered");
        let status = requests.take_replies()[0].status;
        let buffers = self.host.buffers_mut();
        let found = buffers.data(buffer, 0, 1)[0];
        buffers.give_back(buffer);
        (status, found)
    }

    /// Every block holds what was written last.
    fn compare(&mut self, what: &str) {
        for block in 0..BLOCKS {
            let (status, found) = self.ask(BlockOp::Read, u64::from(block), 0);
            assert_eq!((status, found), (Status::SUCCESS, byte(block)), "{what}: block {block}");
        }
        self.host.target(TargetId(0)).check();
    }
}

fn byte(block: u32) -> u8 {
    u8::try_from(1 + block % 250).expect("small")
}

/// A drive on which blocks were written and flushed, and whose power went.
fn written(kind: &str) -> Flash {
    let flash = Flash::format(config()).expect("a sound drive");
    let mut blocks = Blocks::mount(kind, flash, BTreeMap::new()).expect("it fits");
    for version in [7, 0] {
        for block in 0..BLOCKS {
            let op = BlockOp::Write { fua: false };
            let byte = if version > 0 { version } else { byte(block) };
            assert_eq!(blocks.ask(op, u64::from(block), byte).0, Status::SUCCESS, "{kind}: block {block}");
        }
        assert_eq!(blocks.ask(BlockOp::Flush, 0, 0).0, Status::SUCCESS);
    }
    let mut flash = blocks.host.device().fork().expect("a drive in memory");
    flash.power_cut(Nanos::from_secs(1), &mut Prng::new(1)).expect("memory does not fail");
    flash
}

/// What is shown of every chunk with content that can be read.
fn shown(
    flash: &Flash,
    show: impl Fn(ChunkDescriptor) -> ChunkDescriptor,
) -> BTreeMap<ChunkId, ChunkDescriptor> {
    let chunks = (0..flash.geometry().chunk_count()).map(ChunkId);
    let readable = |now: &ChunkDescriptor| match (now.state, now.write_pointer) {
        (ChunkState::Closed, Some(at)) => at > 0,
        (ChunkState::Open, Some(at)) => at > WINDOW,
        _ => false,
    };
    let with = chunks.map(|chunk| (chunk, flash.chunk(chunk))).filter(|(_, now)| readable(now));
    let shown: BTreeMap<ChunkId, ChunkDescriptor> = with.map(|(chunk, now)| (chunk, show(now))).collect();
    assert!(shown.len() > 3, "{} chunks have content", shown.len());
    shown
}

/// Reports that cannot be believed, each of every chunk with content.
const UNTRUE: [(&str, ChunkState, Option<u32>); 6] = [
    ("free", ChunkState::Free, Some(0)),
    ("offline", ChunkState::Offline, None),
    ("open, and written less far", ChunkState::Open, Some(4)),
    ("free with a write pointer", ChunkState::Free, Some(12)),
    ("open at its end", ChunkState::Open, Some(32)),
    ("closed beyond its end", ChunkState::Closed, Some(4000)),
];

/// Sectors that OPEN chunks are said to be written farther than they are (chosen: less than what hides content, that, and more).
const FARTHER: [u32; 4] = [4, WINDOW, WINDOW + 4, 2 * WINDOW];

/// Sectors that OPEN chunks are said to be written less far than they are, all of them hidden by MW_CUNITS.
const NEARER: [u32; 1] = [4];

/// What may be shown of a drive's chunks, and what that is.
fn all_shown(flash: &Flash) -> Vec<(String, BTreeMap<ChunkId, ChunkDescriptor>)> {
    let untrue = |(what, state, write_pointer): (&str, _, _)| {
        (what.to_owned(), shown(flash, |now| ChunkDescriptor { state, write_pointer, ..now }))
    };
    let end = flash.geometry().sectors_per_chunk - flash.geometry().ws_opt;
    let open = || {
        let chunks = (0..flash.geometry().chunk_count()).map(ChunkId);
        let all = chunks.map(|chunk| (chunk, flash.chunk(chunk)));
        all.filter(|(_, now)| now.state == ChunkState::Open)
    };
    let farther = |sectors: u32| {
        let show = |now: ChunkDescriptor| {
            let write_pointer = now.write_pointer.map(|at| (at + sectors).min(end));
            ChunkDescriptor { write_pointer, ..now }
        };
        (
            format!("open, and written {sectors} sectors farther"),
            open().map(|(chunk, now)| (chunk, show(now))).collect(),
        )
    };
    let nearer = |sectors: u32| {
        let show = |(chunk, now): (ChunkId, ChunkDescriptor)| {
            let before = now.write_pointer.and_then(|at| at.checked_sub(sectors)).filter(|&at| at > 0)?;
            Some((chunk, ChunkDescriptor { write_pointer: Some(before), ..now }))
        };
        let shown: BTreeMap<ChunkId, ChunkDescriptor> = open().filter_map(show).collect();
        assert!(!shown.is_empty(), "no OPEN chunk is written {sectors} sectors farther than its first");
        (format!("open, and written {sectors} sectors less far"), shown)
    };
    let all = UNTRUE.into_iter().map(untrue).chain(FARTHER.map(farther)).chain(NEARER.map(nearer));
    all.chain(all_hidden(flash)).collect()
}

/// Each OPEN chunk of which MW_CUNITS hides all shown as one without content, beside one of each unit that is shown too low.
fn all_hidden(flash: &Flash) -> Vec<(String, BTreeMap<ChunkId, ChunkDescriptor>)> {
    let chunks = (0..flash.geometry().chunk_count()).map(ChunkId).map(|chunk| (chunk, flash.chunk(chunk)));
    let open: Vec<(ChunkId, ChunkDescriptor, u32)> = chunks
        .filter(|(_, now)| now.state == ChunkState::Open)
        .filter_map(|(chunk, now)| Some((chunk, now, now.write_pointer?)))
        .collect();
    let low = open.iter().filter(|&&(.., at)| at > WINDOW);
    let low: BTreeMap<ChunkId, ChunkDescriptor> =
        low.map(|&(chunk, now, _)| (chunk, ChunkDescriptor { write_pointer: Some(4), ..now })).collect();
    let is_caught =
        |chunk: ChunkId| low.keys().any(|low| flash.geometry().pu_of(*low) == flash.geometry().pu_of(chunk));
    let of = |(what, state, write_pointer): (&str, ChunkState, Option<u32>)| {
        let hidden = open.iter().filter(|&&(chunk, _, at)| at <= WINDOW && is_caught(chunk));
        let mut shown: BTreeMap<ChunkId, ChunkDescriptor> =
            hidden.map(|&(chunk, now, _)| (chunk, ChunkDescriptor { state, write_pointer, ..now })).collect();
        println!("{} chunks of which all is hidden are shown as {what}", shown.len());
        shown.extend(&low);
        (format!("{what}, and all of it hidden"), shown)
    };
    [("free", ChunkState::Free, Some(0)), ("offline", ChunkState::Offline, None)].map(of).to_vec()
}

fn finds_all(kind: &str) {
    let flash = written(kind);
    for (what, shown) in all_shown(&flash) {
        let flash = flash.fork().expect("a drive in memory");
        let mut blocks =
            Blocks::mount(kind, flash, shown).unwrap_or_else(|error| panic!("{kind}, {what}: {error}"));
        blocks.compare(&format!("{kind}, {what}"));
        let op = BlockOp::Write { fua: true };
        assert_eq!(blocks.ask(op, u64::from(BLOCKS - 1), byte(BLOCKS - 1)).0, Status::SUCCESS);
        assert_eq!(blocks.ask(BlockOp::Shutdown, 0, 0).0, Status::SUCCESS, "{kind}, {what}");
        let flash = blocks.host.into_device();
        let mut again = Blocks::mount(kind, flash, BTreeMap::new()).expect("it was shut down");
        again.compare(&format!("{kind}, {what}, mounted again"));
    }
}

#[test]
fn pblk_finds_what_reports_hide() {
    finds_all("pblk");
}

#[test]
fn block_ssd_finds_what_reports_hide() {
    finds_all("block_ssd");
}

#[test]
fn ox_block_finds_what_reports_hide() {
    finds_all("ox-block");
}

#[test]
fn linux_pblk_finds_what_reports_hide() {
    finds_all("linux-pblk");
}

/// A drive whose reports stay nonsense is refused in one sentence, and nothing is written to it.
#[test]
fn every_target_refuses_a_drive_that_goes_on_to_report_nonsense() {
    for kind in ["pblk", "block_ssd", "linux-pblk", "ox-block", "eleos", "lightlsm", "kv", "zns"] {
        let mut flash = Flash::format(config()).expect("a sound drive");
        let (mut clock, mut buffers) = (VirtualClock::default(), Buffers::new(flash.payload_format()));
        let now = flash.chunk(ChunkId(17));
        let shown = ChunkDescriptor { state: ChunkState::Closed, write_pointer: Some(77), ..now };
        let inner = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
        let shown = BTreeMap::from([(ChunkId(17), shown)]);
        let mut device = Reporting { inner, shown, looks_again: false, writes: 0 };
        let units: Vec<PuId> = (0..UNITS).map(PuId).collect();
        let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &options(kind) };
        let made = registry::find(kind).expect("a kind").make_any(&mut device, &spec);
        let error = made.map(|_| ()).expect_err("chunk 17 makes no sense");
        assert!(error.contains("CLOSED, with its write pointer at 77"), "{kind}: {error}");
        assert_eq!(device.writes, 0, "{kind}: something was written");
        device.shown.clear();
        let made = registry::find(kind).expect("a kind").make_any(&mut device, &spec);
        made.map(|_| ()).unwrap_or_else(|error| panic!("{kind}, with reports that are true: {error}"));
    }
}

//! What pblk costs a steady sequential write, against the raw drive: Westlake cut to one of its 16 groups, whose units and
//! channel keep their sizes and times, so chunks have their real share of heads, tails and erases.

use ocssd_base::Nanos;
use ocssd_engine::{Caller, Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::{BufId, Buffers, Geometry, PuId, Source, Tag, TargetId};
use ocssd_targets::{Layout, registry};

mod few_lines;

/// Westlake's media in another shape: so many groups of units, with so many chunks of so many sectors.
fn config_of(groups: u32, units: u32, chunks: u32, sectors: u32) -> Config {
    let mut config = presets::find("westlake").expect("a preset").config();
    let whole = config.geometry.clone();
    config.geometry = Geometry {
        mw_cunits: whole.mw_cunits,
        capabilities: whole.capabilities,
        times: whole.times,
        ..Geometry::example(groups, units, chunks, sectors, whole.ws_opt)
    };
    config
}

/// One group of Westlake, 8 units of 40 chunks of 4096 sectors: lines of 32 768 sectors.
fn config() -> Config {
    config_of(1, 8, 40, 4096)
}

/// Sectors of a line, which is also a zone of the raw window.
const LINE: u64 = 8 * 4096;
/// Lines written, over and over.
const LINES: u64 = 6;
/// Sectors of a write.
const SECTORS: u32 = 64;
/// Writes in flight: each of the 8 units has several.
const DEPTH: u32 = 64;

/// Writes the lines in order, so many times; zones are reset before they are written again.
struct Writer {
    /// What is to be written, pass after pass.
    next: u64,
    end: u64,
    resets: bool,
    /// A reset is asked for, or on its way.
    reset_due: bool,
    resetting: bool,
    free: Vec<u32>,
    buffers: Vec<BufId>,
    refused: Option<(TargetId, BlockRequest)>,
    /// When each pass had ended.
    passes: Vec<Nanos>,
    answered: u64,
}

impl Writer {
    fn new(passes: u64, resets: bool, buffers: &mut Buffers) -> Self {
        Self {
            next: 0,
            end: passes * LINES * LINE,
            resets,
            reset_due: false,
            resetting: false,
            free: (0..DEPTH).collect(),
            buffers: (0..DEPTH).map(|_| buffers.take(SECTORS)).collect(),
            refused: None,
            passes: Vec::new(),
            answered: 0,
        }
    }
}

impl Source for Writer {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        if self.refused.is_some() {
            return self.refused.take();
        }
        if self.next == self.end || self.resetting {
            return None;
        }
        let block = self.next % (LINES * LINE);
        let again = self.next >= LINES * LINE && block.is_multiple_of(LINE);
        if self.resets && again && !std::mem::replace(&mut self.reset_due, true) {
            self.resetting = true;
            let op = BlockOp::ResetZone;
            return Some((TargetId(0), BlockRequest { tag: Tag(DEPTH), op, block, count: 0, buffer: None }));
        }
        let slot = self.free.pop()?;
        self.reset_due = false;
        self.next += u64::from(SECTORS);
        let buffer = self.buffers.get(usize::try_from(slot).expect("few")).copied();
        let op = BlockOp::Write { fua: false };
        Some((TargetId(0), BlockRequest { tag: Tag(slot), op, block, count: SECTORS, buffer }))
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, request: BlockRequest) {
        self.refused = Some((target, request));
    }

    fn on_reply(&mut self, now: Nanos, _target: TargetId, reply: BlockReply, _buffers: &mut Buffers) {
        assert!(reply.status.is_success(), "{reply:?}");
        if reply.tag == Tag(DEPTH) {
            self.resetting = false;
            return;
        }
        self.free.push(reply.tag.0);
        self.answered += u64::from(SECTORS);
        if self.answered.is_multiple_of(LINES * LINE) {
            self.passes.push(now);
        }
    }

    fn is_finished(&self) -> bool {
        self.answered == self.end
    }
}

/// Sectors a virtual second in the first pass, and in each later one.
fn rates(kind: &str, options: &[(&str, &str)], passes: u64) -> Vec<f64> {
    let mut flash = Flash::format(config()).expect("a sound drive");
    let mut buffers = Buffers::new(flash.payload_format());
    let mut clock = VirtualClock::default();
    let units: Vec<PuId> = (0..8).map(PuId).collect();
    let options: Vec<_> =
        options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let spec = registry::TargetSpec { units: &units, layout: Layout::Striped, options: &options };
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let kind = registry::find(kind).expect("a kind of target");
    let target: Box<dyn BlockTarget> = kind.make(&mut caller, &spec).expect("it fits").target;
    let is_raw = target.zones().is_some_and(|zones| {
        assert_eq!(zones.blocks, LINE, "a zone is what a line is");
        true
    });
    let mut writer = Writer::new(passes, is_raw, &mut buffers);
    let started = clock.now();
    let mut host = Host::new(flash, clock, buffers);
    host.add(target);
    assert_eq!(host.run(&mut writer, Nanos::MAX), RunEnd::Finished);
    let begins = std::iter::once(started).chain(writer.passes.iter().copied());
    let times = begins.zip(&writer.passes).map(|(begin, end)| (*end - begin).as_secs_f64());
    times.map(|seconds| (LINES * LINE) as f64 / seconds).collect()
}

#[test]
fn steady_sequential_writes_on_pblk_are_within_three_percent_of_the_raw_drive() {
    let raw = rates("linear", &[], 3);
    let pblk = rates("pblk", &[("over_provisioning_percent", "30")], 3);
    let share: Vec<f64> = pblk.iter().zip(&raw).map(|(ours, raw)| ours / raw).collect();
    println!("raw {raw:.0?}, pblk {pblk:.0?} sectors a second: {share:.4?}");
    for (pass, share) in share.iter().enumerate() {
        assert!(*share >= 0.97, "pass {pass}: {share:.4} of the raw drive ({raw:.0?}, {pblk:.0?})");
    }
    assert!(share[0] <= 1.005, "faster than the raw drive: {share:.4?}");
}

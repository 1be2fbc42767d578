//! An `ox-block` on a small drive, and what it must hold.

use ocssd_base::{Nanos, Prng, usize_of};
use ocssd_engine::{Clock, Host, Requests, VirtualClock};
use ocssd_flash::{Config, FaultKind, Flash, ScheduledFault, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, CounterValue};
use ocssd_lightnvm::{BufId, Buffers, ChunkId, Geometry, Ppa, PuId, Status, Tag, Target, TargetId};
use ocssd_targets::MountError;
use ocssd_targets::ox_block::{Options, OxBlock};

/// Blocks the tests write.
pub const BLOCKS: u32 = 96;

/// A drive of two units.
pub fn config(chunks_per_pu: u32) -> Config {
    let geometry = Geometry { mw_cunits: 8, ..Geometry::example(1, 2, chunks_per_pu, 32, 4) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.queue_depth = 4096;
    config.geometry = geometry;
    config
}

pub struct Rig {
    pub host: Host<Flash, VirtualClock, OxBlock>,
    options: Vec<(&'static str, &'static str)>,
    next: u32,
    /// What each block holds.
    pub content: Vec<u64>,
    pub label: String,
}

impl Rig {
    /// A new instance of these options, made at `now`.
    pub fn new(config: Config, options: &[(&'static str, &'static str)], now: Nanos, label: &str) -> Self {
        let flash = Flash::format(config).unwrap_or_else(|problems| panic!("{problems}"));
        Self::mount(flash, options, now, label)
    }

    pub fn mount(flash: Flash, pairs: &[(&'static str, &'static str)], now: Nanos, label: &str) -> Self {
        Self::try_mount(flash, pairs, now, label).unwrap_or_else(|error| panic!("{label}: {error}"))
    }

    pub fn try_mount(
        flash: Flash,
        pairs: &[(&'static str, &'static str)],
        now: Nanos,
        label: &str,
    ) -> Result<Self, MountError> {
        let mut clock = VirtualClock::default();
        clock.wait_until(now);
        let geometry = flash.config().geometry.clone();
        let buffers = Buffers::new(flash.payload_format());
        let mut host = Host::new(flash, clock, buffers);
        let mut options = Options::default();
        for (name, value) in pairs {
            options.set(name, value).unwrap_or_else(|error| panic!("{label}: {error}"));
        }
        let units: Vec<PuId> = (0..geometry.groups * geometry.pus_per_group).map(PuId).collect();
        let (target, _) = OxBlock::mount(&mut host.caller(), &units, &options)?;
        host.add(Box::new(target));
        let content = vec![0; usize_of(BLOCKS)];
        Ok(Self { host, options: pairs.to_vec(), next: 0, content, label: label.to_owned() })
    }

    pub fn now(&self) -> Nanos {
        self.host.clock().now()
    }

    pub fn counter(&self, name: &str) -> u64 {
        let counters = self.host.target(TargetId(0)).counters();
        let found = counters.iter().find(|counter| counter.name == name);
        match found.unwrap_or_else(|| panic!("no counter {name}")).value {
            CounterValue::Count(value) | CounterValue::Gauge(value) => value,
            ref other => panic!("{name} is {other:?}"),
        }
    }

    pub fn request(&mut self, op: BlockOp, block: u32, count: u32, buffer: Option<BufId>) -> BlockRequest {
        self.next += 1;
        BlockRequest { tag: Tag(self.next), op, block: u64::from(block), count, buffer }
    }

    /// A write of `content` to blocks.
    pub fn write_of(&mut self, block: u32, count: u32, content: u64) -> BlockRequest {
        let buffer = self.host.buffers_mut().take(count);
        for sector in 0..count {
            let data = self.host.buffers_mut().data_mut(buffer, sector, 1);
            data.fill(0);
            data[..8].copy_from_slice(&content.to_le_bytes());
        }
        self.request(BlockOp::Write { fua: false }, block, count, Some(buffer))
    }

    pub fn ask(&mut self, request: BlockRequest) -> BlockReply {
        let reply = self.host.ask(request);
        self.done(&request);
        reply
    }

    /// A request was answered: its buffer is free.
    pub fn done(&mut self, request: &BlockRequest) {
        if let Some(buffer) = request.buffer {
            self.host.buffers_mut().give_back(buffer);
        }
    }

    pub fn blocks(block: u32, count: u32) -> std::ops::Range<usize> {
        usize_of(block)..usize_of(block + count)
    }

    pub fn write(&mut self, block: u32, count: u32, content: u64) {
        let request = self.write_of(block, count, content);
        let status = self.ask(request).status;
        assert!(status.is_success(), "{}: {status}", self.label);
        self.content[Self::blocks(block, count)].fill(content);
    }

    /// Something that leaves blocks zero.
    pub fn zero(&mut self, op: BlockOp, block: u32, count: u32) {
        let request = self.request(op, block, count, None);
        let status = self.ask(request).status;
        assert!(status.is_success(), "{}: {status}", self.label);
        self.content[Self::blocks(block, count)].fill(0);
    }

    /// So many writes of random length, one after the other.
    pub fn write_at_random(&mut self, writes: u64, prng: &mut Prng) {
        for nth in 1..=writes {
            let count = 1 + u32::try_from(prng.below(8)).expect("small");
            let block = u32::try_from(prng.below(u64::from(BLOCKS - count))).expect("small");
            self.write(block, count, nth << 8 | prng.below(200));
        }
    }

    pub fn read(&mut self, block: u32) -> Result<u64, Status> {
        let buffer = self.host.buffers_mut().take(1);
        self.host.buffers_mut().data_mut(buffer, 0, 1).fill(0xA5);
        let request = self.request(BlockOp::Read, block, 1, Some(buffer));
        let status = self.host.ask(request).status;
        let found = self.number_in(buffer);
        self.host.buffers_mut().give_back(buffer);
        if status.is_success() { Ok(found) } else { Err(status) }
    }

    pub fn number_in(&mut self, buffer: BufId) -> u64 {
        let bytes = self.host.buffers_mut().data(buffer, 0, 1)[..8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes)
    }

    /// What all blocks hold.
    pub fn found(&mut self) -> Vec<u64> {
        (0..BLOCKS)
            .map(|block| {
                let found = self.read(block);
                found.unwrap_or_else(|status| panic!("{}: block {block}: {status}", self.label))
            })
            .collect()
    }

    /// All is as it must be.
    pub fn verify(&mut self) {
        assert_eq!(self.found(), self.content, "{}", self.label);
        self.host.target(TargetId(0)).check();
    }

    /// The same drive after a power cut, mounted again.
    pub fn cut(&self, seed: u64) -> Self {
        let mut flash = self.host.device().fork().expect("a drive in memory");
        let now = self.now();
        flash.power_cut(now, &mut Prng::new(seed)).expect("memory does not fail");
        let label = format!("{}, cut at {} ns", self.label, now.0);
        let mut cut = Self::mount(flash, &self.options, now, &label);
        cut.content.clone_from(&self.content);
        cut
    }

    /// The next write to each chunk meets this, at any sector or at that one.
    pub fn fail_writes(&mut self, kind: FaultKind, sector: Option<u32>) {
        let geometry = self.host.device().config().geometry.clone();
        let chunks = geometry.groups * geometry.pus_per_group * geometry.chunks_per_pu;
        for chunk in (0..chunks).map(ChunkId) {
            self.host.device_mut().schedule_fault(ScheduledFault { kind, chunk, sector, times: 1 });
        }
    }

    /// Every sector that is written on the media.
    pub fn media(&mut self) -> Vec<(Ppa, Vec<u8>)> {
        let geometry = self.host.device().config().geometry.clone();
        let chunks = geometry.groups * geometry.pus_per_group * geometry.chunks_per_pu;
        let places = (0..chunks)
            .flat_map(|chunk| (0..geometry.sectors_per_chunk).map(move |s| Ppa::new(ChunkId(chunk), s)));
        let device = self.host.device_mut();
        places.filter_map(|at| Some((at, device.content(at)?))).collect()
    }

    /// Carries requests out until `stop`.
    pub fn run(&mut self, requests: &mut Requests<OxBlock>, stop: Nanos) -> Vec<BlockReply> {
        self.host.run(requests, stop);
        requests.take_replies()
    }
}

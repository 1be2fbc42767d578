//! A drive, and the writes that Linux's pblk would do on it: lines with their metadata, as `docs/pblk-format.md` has them.

use ocssd_base::{Nanos, usize_of};
use ocssd_engine::{Caller, Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_ftl::{InstanceGeometry, LineId};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, CounterValue};
use ocssd_lightnvm::{
    Addresses, BlockingDevice, BufId, Buffers, ChunkState, Command, Device, Geometry, Op, Payload, PlaneMode,
    Ppa, PuId, Source, Status, Tag, TargetId,
};
use ocssd_targets::linux_pblk::format::{
    ADDR_EMPTY, EMETA_VERSION_MINOR, Emeta, Header, LineLayout, LineOffset, LineParts, SMETA_VERSION_MINOR,
    SectorMeta, Smeta, Uuid, WaCounters, lba_list_mut,
};
use ocssd_targets::linux_pblk::{LinuxPblk, MountError, MountReport, Options};

/// The instance all lines belong to, unless a test says otherwise.
pub const OURS: Uuid = Uuid([0x5A; 16]);

/// What lies beside metadata: Linux does not set it, so it may be the address of any block.
pub const METADATA: u64 = 3;

/// A small drive that Linux would take: sectors of real bytes, units of four.
pub fn config(change: impl FnOnce(&mut Geometry)) -> Config {
    let mut config = presets::find("tiny").expect("a preset").config();
    config.geometry = Geometry { ws_min: 4, ..Geometry::example(2, 2, 40, 32, 4) };
    config.geometry.lba_format = Geometry::example(2, 2, 40, 32, 4).lba_format;
    change(&mut config.geometry);
    config.media.planes = 1;
    config.media.sectors_per_page = config.geometry.ws_min;
    config.payload = Payload::Bytes;
    config
}

/// The drive.
pub struct Linux {
    pub flash: Flash,
    pub buffers: Buffers,
    pub clock: VirtualClock,
    pub units: Vec<PuId>,
    pub layout: LineLayout,
    pub shape: InstanceGeometry,
    buffer: BufId,
    /// The next line to be opened has this number.
    pub seq_nr: u64,
    pub uuid: Uuid,
}

/// What a block holds after its `version`th write.
pub fn content(lba: u64, version: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&lba.to_le_bytes());
    bytes[8..].copy_from_slice(&version.to_le_bytes());
    bytes
}

impl Linux {
    pub fn new(config: Config) -> Self {
        let flash = Flash::format(config).expect("a sound drive");
        let geometry = flash.geometry().clone();
        let units: Vec<PuId> = (0..geometry.pu_count()).map(PuId).collect();
        let mut buffers = Buffers::new(flash.payload_format());
        Self {
            layout: LineLayout::new(&geometry, &units).expect("Linux takes it"),
            shape: InstanceGeometry::new(&geometry, &units),
            buffer: buffers.take(geometry.ws_opt),
            flash,
            buffers,
            clock: VirtualClock::default(),
            units,
            seq_nr: 0,
            uuid: OURS,
        }
    }

    pub fn parts(&self, line: u32) -> LineParts {
        let is_bad = |position| {
            let chunk = self.shape.chunk(LineId(line), self.layout.unit_at(position));
            self.flash.chunk(chunk).state == ChunkState::Offline
        };
        LineParts::new(&self.layout, is_bad).expect("enough good chunks")
    }

    fn is_packed(&self) -> bool {
        self.flash.geometry().oob_bytes < 16
    }

    pub fn ppa(&self, line: u32, offset: LineOffset) -> Ppa {
        let (position, sector) = self.layout.split(offset);
        Ppa::new(self.shape.chunk(LineId(line), self.layout.unit_at(position)), sector)
    }

    /// Writes a unit: its bytes, and the addresses beside its sectors (all ones for none).
    pub fn write(&mut self, line: u32, offset: LineOffset, bytes: &[u8], lbas: &[u64]) {
        let status = self.try_write(line, offset, bytes, lbas);
        assert!(status.is_success(), "line {line}, {offset:?}: {status}");
    }

    /// The same, of which the media may make what they will.
    pub fn try_write(&mut self, line: u32, offset: LineOffset, bytes: &[u8], lbas: &[u64]) -> Status {
        let unit = self.layout.unit;
        let first = self.ppa(line, offset);
        self.buffers.data_mut(self.buffer, 0, unit).copy_from_slice(bytes);
        let entries: Vec<u8> = lbas
            .iter()
            .flat_map(|&lba| SectorMeta { lba: Some(lba).filter(|&lba| lba != ADDR_EMPTY) }.encode())
            .collect();
        // Metadata of lines are never packed: they need all of their sectors.
        if self.is_packed() && lbas.iter().any(|&lba| lba != METADATA) {
            self.buffers.data_mut(self.buffer, unit - 1, 1)[..entries.len()].copy_from_slice(&entries);
        } else if !self.is_packed() {
            let stride = self.buffers.format().oob_bytes;
            let beside = self.buffers.oob_mut(self.buffer, 0, unit).chunks_exact_mut(stride);
            beside
                .zip(entries.chunks_exact(16))
                .for_each(|(place, entry)| place[..16].copy_from_slice(entry));
        }
        let command = Command {
            tag: Tag(0),
            op: Op::Write { fua: true },
            addresses: Addresses::Run { first, count: unit },
            buffer: Some(self.buffer),
            buffer_first: 0,
            oob: true,
            plane_mode: PlaneMode::Single,
        };
        let (device, clock, buffers) = (&mut self.flash, &mut self.clock, &mut self.buffers);
        let done = Caller { device, clock, buffers, cut_at: None }.call(&[command]).expect("the power stays");
        done[0].status
    }

    /// Opens a line: writes its start.
    pub fn open(&mut self, line: u32) {
        let header = Header { uuid: self.uuid, version_minor: SMETA_VERSION_MINOR, id: line };
        let smeta = Smeta { header, prev_id: None, seq_nr: self.seq_nr, window_wr_lun: self.layout.units() };
        self.seq_nr += 1;
        let mut bytes = vec![0; self.layout.smeta_bytes()];
        smeta.encode(&self.layout, &mut bytes);
        let parts = self.parts(line);
        self.write(line, parts.smeta, &bytes, &vec![METADATA; usize_of(self.layout.unit)]);
    }

    /// Writes blocks of a version to the next units of an open line, padding the last; how many units are written then.
    pub fn data(&mut self, line: u32, from: usize, lbas: &[u64], version: u64) -> usize {
        let parts = self.parts(line);
        let units: Vec<LineOffset> = parts.data_units(&self.layout).collect();
        let room = usize_of(self.layout.unit) - usize::from(self.is_packed());
        let mut at = from;
        for lbas in lbas.chunks(room) {
            let mut bytes = vec![0; self.layout.smeta_bytes()];
            for (sector, &lba) in bytes.chunks_exact_mut(self.layout.sector_bytes).zip(lbas) {
                sector[..16].copy_from_slice(&content(lba, version));
            }
            let mut named = lbas.to_vec();
            named.resize(usize_of(self.layout.unit), ADDR_EMPTY);
            self.write(line, units[at], &bytes, &named);
            at += 1;
        }
        at
    }

    /// The end metadata of a line whose units hold these blocks.
    pub fn emeta(&self, line: u32, lbas: &[u64]) -> Vec<u8> {
        let parts = self.parts(line);
        let room = usize_of(self.layout.unit) - usize::from(self.is_packed());
        let mut bytes = vec![0; self.layout.emeta_bytes()];
        let list = lba_list_mut(&self.layout, &mut bytes);
        for (unit, lbas) in parts.data_units(&self.layout).zip(lbas.chunks(room)) {
            for sector in 0..usize_of(self.layout.unit) {
                list[usize_of(unit.0) + sector] = lbas.get(sector).unwrap_or(&ADDR_EMPTY).to_le_bytes();
            }
        }
        let valid = lbas.iter().filter(|&&lba| lba != ADDR_EMPTY).count();
        let emeta = Emeta {
            header: Header { uuid: self.uuid, version_minor: EMETA_VERSION_MINOR, id: line },
            prev_id: None,
            seq_nr: self.seq_nr - 1,
            next_id: None,
            nr_valid_lbas: u64::try_from(valid).expect("few"),
            counters: WaCounters { user: 1000 + u64::from(line), gc: 0, pad: 7 },
        };
        let counts = vec![None; usize_of(self.layout.lines)];
        emeta.encode(&self.layout, &parts, counts.into_iter(), &mut bytes);
        bytes
    }

    /// Writes the end of a line.
    pub fn close(&mut self, line: u32, emeta: &[u8]) {
        let units: Vec<LineOffset> = self.parts(line).emeta_units(&self.layout).collect();
        let unit = self.layout.smeta_bytes();
        for (offset, bytes) in units.into_iter().zip(emeta.chunks(unit)) {
            self.write(line, offset, bytes, &vec![METADATA; usize_of(self.layout.unit)]);
        }
    }

    /// Blocks that a line takes.
    pub fn room(&self, line: u32) -> usize {
        let unit = usize_of(self.layout.unit) - usize::from(self.is_packed());
        self.parts(line).data_units(&self.layout).count() * unit
    }

    /// A whole line: the blocks given, then padding, then its end.
    pub fn line(&mut self, line: u32, lbas: &[u64], version: u64) {
        self.open(line);
        let mut all = lbas.to_vec();
        assert!(all.len() <= self.room(line), "the line takes fewer blocks");
        all.resize(self.room(line), ADDR_EMPTY);
        self.data(line, 0, &all, version);
        let emeta = self.emeta(line, &all);
        self.close(line, &emeta);
    }

    pub fn mount(&mut self, options: &Options) -> Result<(LinuxPblk, MountReport), MountError> {
        let (device, clock, buffers) = (&mut self.flash, &mut self.clock, &mut self.buffers);
        let taken = buffers.in_use();
        let mut caller = Caller { device, clock, buffers, cut_at: None };
        let mounted = LinuxPblk::mount(&mut caller, &self.units, options);
        assert!(mounted.is_ok() || self.buffers.in_use() == taken, "a mount that failed kept buffers");
        mounted
    }

    /// Mounts what must be there, to be asked.
    pub fn mounted(self) -> (Mounted, MountReport) {
        self.mounted_as(&Options::default())
    }

    /// The same, with options.
    pub fn mounted_as(mut self, options: &Options) -> (Mounted, MountReport) {
        let (target, report) = self.mount(options).expect("it is there");
        (self.hold(target), report)
    }

    /// An instance that was mounted, to be asked.
    pub fn hold(mut self, target: LinuxPblk) -> Mounted {
        let buffer = self.buffers.take(256);
        let Self { flash, clock, buffers, layout, shape, units, .. } = self;
        let mut host: Host<_, _> = Host::new(flash, clock, buffers);
        host.add(Box::new(target));
        Mounted { host, buffer, layout, shape, units }
    }
}

/// The instance, mounted.
pub struct Mounted {
    host: Host<Flash, VirtualClock>,
    pub buffer: BufId,
    layout: LineLayout,
    shape: InstanceGeometry,
    units: Vec<PuId>,
}

/// One request.
struct Once(Option<BlockRequest>, Option<BlockReply>);

impl Source for Once {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        self.0.take().map(|request| (TargetId(0), request))
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, request: BlockRequest) {
        self.0 = Some(request);
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: BlockReply, _buffers: &mut Buffers) {
        self.1 = Some(reply);
    }

    fn is_finished(&self) -> bool {
        self.1.is_some()
    }
}

impl Mounted {
    pub fn ask(&mut self, op: BlockOp, block: u64, count: u32) -> Status {
        let buffer = matches!(op, BlockOp::Read | BlockOp::Write { .. }).then_some(self.buffer);
        let mut once = Once(Some(BlockRequest { tag: Tag(7), op, block, count, buffer }), None);
        assert_eq!(self.host.run(&mut once, Nanos::MAX), RunEnd::Finished);
        self.host.target(TargetId(0)).check();
        once.1.expect("it was replied to").status
    }

    /// Runs a source for so long; how that ended.
    pub fn run(&mut self, source: &mut impl Source, time: Nanos) -> RunEnd {
        let until = self.host.clock().now() + time;
        self.host.run(source, until)
    }

    /// A buffer of one block.
    pub fn take_buffer(&mut self) -> BufId {
        self.host.buffers_mut().take(1)
    }

    /// The first bytes of blocks.
    pub fn read(&mut self, block: u64, count: u32) -> Vec<[u8; 16]> {
        assert_eq!(self.ask(BlockOp::Read, block, count), Status::SUCCESS, "blocks from {block} on");
        let buffers = self.host.buffers_mut();
        let first = |sector| buffers.data(self.buffer, sector, 1)[..16].try_into().expect("sixteen");
        (0..count).map(first).collect()
    }

    /// Writes a version of each block from `block` on.
    pub fn write(&mut self, op: BlockOp, block: u64, versions: &[u64]) -> Status {
        let count = u32::try_from(versions.len()).expect("few");
        let buffers = self.host.buffers_mut();
        for ((sector, lba), &version) in (0..count).zip(block..).zip(versions) {
            buffers.data_mut(self.buffer, sector, 1)[..16].copy_from_slice(&content(lba, version));
        }
        self.ask(op, block, count)
    }

    /// The drive without the target, as it left it.
    pub fn leave(mut self) -> Linux {
        let (clock, mut buffers) = (self.host.clock().clone(), self.host.take_buffers());
        let flash = self.host.into_device();
        buffers.reclaim();
        Linux {
            buffer: buffers.take(self.layout.unit),
            flash,
            buffers,
            clock,
            units: self.units,
            layout: self.layout,
            shape: self.shape,
            seq_nr: 0,
            uuid: OURS,
        }
    }

    /// What a counter stands at.
    pub fn count(&self, name: &str) -> u64 {
        let counters = self.host.target(TargetId(0)).counters();
        let counter =
            counters.iter().find(|counter| counter.name == name).expect("there is one of that name");
        match counter.value {
            CounterValue::Count(count) | CounterValue::Gauge(count) => count,
            CounterValue::Ratio(_) => panic!("{name} is no count"),
        }
    }

    pub fn blocks(&self) -> u64 {
        self.host.target(TargetId(0)).block_count()
    }

    pub fn is_mapped(&self, block: u64) -> Option<bool> {
        self.host.target(TargetId(0)).is_mapped(block)
    }

    pub fn flash(&mut self) -> &mut Flash {
        self.host.device_mut()
    }
}

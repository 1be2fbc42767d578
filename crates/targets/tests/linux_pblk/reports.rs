//! A mount whose drive reports chunks otherwise than they are, until a write or reset names them.

use super::linux::{Linux, Mounted, config, content};
use ocssd_base::Nanos;
use ocssd_engine::{Caller, VirtualClock};
use ocssd_flash::Flash;
use ocssd_lightnvm::{
    Addresses, BlockingDevice, Buffers, ChunkDescriptor, ChunkId, ChunkState, Command, Completion, Geometry,
    Op, PowerCut,
};
use ocssd_targets::linux_pblk::{LinuxPblk, MountError, Options};
use std::collections::BTreeMap;

/// The drive, with what it reports of some chunks.
struct Reporting<'a> {
    inner: Caller<'a, Flash, VirtualClock>,
    shown: BTreeMap<ChunkId, ChunkDescriptor>,
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
            if let (Op::Write { .. }, Addresses::Run { first, .. }) = (command.op, command.addresses) {
                self.shown.remove(&first.chunk);
            }
        }
        self.inner.call(commands)
    }

    fn wait(&mut self, time: Nanos) -> Result<(), PowerCut> {
        self.inner.wait(time)
    }
}

/// A drive that hides the last eight sectors of an open chunk, and the first line on it: its start and these blocks, a unit for
/// each chunk.
fn left_open(blocks: u64) -> Linux {
    let mut linux = Linux::new(config(|geometry| geometry.mw_cunits = 8));
    linux.line(5, &[90], 1);
    linux.open(0);
    for block in 0..blocks {
        linux.data(0, usize::try_from(block).expect("few"), &[block], 2);
    }
    linux
}

/// Mounts it while all chunks of its first lines are reported as `state`, written so far.
fn mount(
    mut linux: Linux,
    lines: u32,
    (state, written): (ChunkState, u32),
    options: &Options,
) -> Result<Mounted, MountError> {
    let chunks = (0..4).flat_map(|unit| (0..lines).map(move |line| ChunkId(unit * 40 + line)));
    let report = |chunk: ChunkId| {
        let now = linux.flash.chunk(chunk);
        (chunk, ChunkDescriptor { state, write_pointer: Some(written), ..now })
    };
    let shown = chunks.map(report).collect();
    let Linux { flash: device, buffers, clock, units, .. } = &mut linux;
    let inner = Caller { device, clock, buffers, cut_at: None };
    let (target, _) = LinuxPblk::mount(&mut Reporting { inner, shown }, units, options)?;
    Ok(linux.hold(target))
}

/// What the reports are behind by does not matter: the start and the blocks lie in sectors that cannot be read before the chunks
/// are filled from where they really end.
#[test]
fn what_mw_cunits_hides_is_found_though_chunks_are_reported_as_their_earlier_lives_ended() {
    for written in [12, 16, 24, 28] {
        let options = Options::default();
        let mounted = mount(left_open(8), 1, (ChunkState::Open, written), &options);
        let mut mounted = mounted.unwrap_or_else(|error| panic!("{written} sectors: {error}"));
        for block in 0..8 {
            assert_eq!(mounted.read(block, 1), [content(block, 2)], "{written} sectors are reported");
        }
        assert_eq!(mounted.read(90, 1), [content(90, 1)]);
    }
}

/// Lines that were reset since the report are free, whatever it says.
#[test]
fn lines_that_are_reported_as_written_and_were_reset_are_free() {
    for report in [(ChunkState::Closed, 32), (ChunkState::Open, 12), (ChunkState::Open, 4)] {
        let mut linux = Linux::new(config(|geometry| geometry.mw_cunits = 8));
        linux.line(5, &[90], 1);
        let mut mounted = mount(linux, 4, report, &Options::default()).expect("it is there");
        assert_eq!(mounted.read(90, 1), [content(90, 1)]);
        let blocks = mounted.blocks();
        for block in 0..blocks {
            let op = ocssd_lightnvm::block::BlockOp::Write { fua: false };
            assert!(mounted.write(op, block, &[3]).is_success(), "{report:?}: block {block}");
        }
        assert_eq!(mounted.count("failed_units"), 0, "{report:?}: every line that was taken was reset first");
        assert_eq!(mounted.read(90, 1), [content(90, 3)]);
    }
}

/// A mount that may not write cannot look behind such a report, and does not take what is hidden for nothing.
#[test]
fn a_mount_that_may_only_read_refuses_what_is_hidden() {
    let options = Options { read_only: true, ..Options::default() };
    let mounted = mount(left_open(8), 1, (ChunkState::Open, 24), &options);
    let error = mounted.map(|_| ()).expect_err("8 blocks are hidden");
    assert!(error.to_string().contains("mount the instance without read_only"), "{error}");
}

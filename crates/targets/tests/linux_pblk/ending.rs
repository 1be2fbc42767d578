//! How a mount ends lines that a power cut left open: in which order, and what if the drive cannot.

use super::linux::{Linux, config, content};
use ocssd_base::Nanos;
use ocssd_engine::{Caller, VirtualClock};
use ocssd_flash::{FaultKind, Flash, ScheduledFault};
use ocssd_ftl::LineId;
use ocssd_lightnvm::{
    Addresses, BlockingDevice, Buffers, ChunkDescriptor, ChunkId, Command, Completion, Geometry, Op,
    PowerCut, Ppa, Status,
};
use ocssd_targets::linux_pblk::format::{ADDR_EMPTY, LineOffset};
use ocssd_targets::linux_pblk::{LinuxPblk, Options};

/// The drive, with notes of what it was asked.
struct Noted<'a> {
    inner: Caller<'a, Flash, VirtualClock>,
    asked: Vec<(Op, Option<Ppa>)>,
    can_flush: bool,
}

impl BlockingDevice for Noted<'_> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.inner.chunk(chunk)
    }

    fn buffers(&mut self) -> &mut Buffers {
        self.inner.buffers()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn call(&mut self, commands: &[Command]) -> Result<Vec<Completion>, PowerCut> {
        for command in commands {
            let first = match command.addresses {
                Addresses::Run { first, .. } => Some(first),
                Addresses::List { .. } | Addresses::None => None,
            };
            self.asked.push((command.op, first));
        }
        let mut done = self.inner.call(commands)?;
        for (command, completion) in commands.iter().zip(&mut done) {
            if command.op == Op::Flush && !self.can_flush {
                completion.status = Status::WRITE_FAULT;
            }
        }
        Ok(done)
    }

    fn wait(&mut self, time: Nanos) -> Result<(), PowerCut> {
        self.inner.wait(time)
    }
}

/// Two lines that are not full: the first is ended by a mount.
fn left_open() -> Linux {
    let mut linux = Linux::new(config(|_| ()));
    linux.open(0);
    linux.data(0, 0, &[1, 2, 3, 4, 5], 1);
    linux.open(1);
    linux.data(1, 0, &[2], 2);
    linux
}

/// Mounts it; what the mount says, and what the drive was asked.
fn mount(linux: &mut Linux, can_flush: bool) -> (String, Vec<(Op, Option<Ppa>)>) {
    let Linux { flash: device, buffers, clock, units, .. } = linux;
    let inner = Caller { device, clock, buffers, cut_at: None };
    let mut noted = Noted { inner, asked: Vec::new(), can_flush };
    let (target, report) = LinuxPblk::mount(&mut noted, units, &Options::default()).expect("it is there");
    (target.describe(&report), noted.asked)
}

#[test]
fn the_end_of_a_line_is_written_when_what_it_names_is_durable() {
    let mut linux = left_open();
    let parts = linux.parts(0);
    let end = linux.ppa(0, parts.emeta);
    let (said, asked) = mount(&mut linux, true);
    assert!(!said.contains("have no list"), "{said}");
    let line =
        |ppa: &Ppa| (0..4).any(|unit| linux.shape.chunk(LineId(0), ocssd_ftl::UnitIndex(unit)) == ppa.chunk);
    let is_write = |op: Op| matches!(op, Op::Write { .. });
    let is_data =
        |&(op, ppa): &(Op, Option<Ppa>)| is_write(op) && ppa.is_some_and(|ppa| line(&ppa) && ppa != end);
    let padded = asked.iter().rposition(is_data).expect("the line is padded");
    let ended = asked.iter().position(|&(op, ppa)| is_write(op) && ppa == Some(end)).expect("it is ended");
    assert!(padded < ended, "data go first: {padded}, {ended}");
    assert!(asked[padded..ended].iter().any(|&(op, _)| op == Op::Flush), "a barrier is between them");
}

#[test]
fn a_line_whose_data_the_drive_cannot_make_durable_gets_an_end_that_says_nothing() {
    let mut linux = left_open();
    let (said, _) = mount(&mut linux, false);
    assert!(said.contains("1 lines have no list"), "{said}");
    let (mut mounted, report) = linux.mounted();
    assert_eq!((report.by_list, report.by_sectors), (0, 2), "nobody believes it");
    assert_eq!(mounted.read(1, 2), [content(1, 1), content(2, 2)]);
}

#[test]
fn a_line_whose_end_cannot_be_written_does_not_go_on() {
    let mut linux = Linux::new(config(|geometry| geometry.mw_cunits = 4));
    linux.open(0);
    let parts = linux.parts(0);
    let units: Vec<LineOffset> = parts.data_units(&linux.layout).collect();
    let (last, _) = linux.layout.split(parts.emeta);
    // The last chunk is full but for the end, and takes no more; the others fell behind.
    for (unit, &offset) in units.iter().enumerate() {
        let (position, sector) = linux.layout.split(offset);
        if position == last || sector < 20 {
            linux.data(0, unit, &[u64::try_from(unit).expect("few")], 1);
        }
    }
    let chunk = linux.ppa(0, parts.emeta).chunk;
    linux.flash.schedule_fault(ScheduledFault { kind: FaultKind::EarlyClose, chunk, sector: None, times: 1 });
    let bytes = vec![0; linux.layout.smeta_bytes()];
    assert!(!linux.try_write(0, parts.emeta, &bytes, &[ADDR_EMPTY; 4]).is_success());
    let layout = linux.layout.clone();
    let (mut mounted, _) = linux.mounted();
    for (unit, &offset) in (0..).zip(&units) {
        let (position, sector) = layout.split(offset);
        let expected = if position == last || sector < 20 { content(unit, 1) } else { [0; 16] };
        assert_eq!(mounted.read(unit, 1), [expected], "unit {unit}");
    }
}

//! Any bytes as what a guest does to an NVMe controller on PCI: registers, queues, pointers and shadows.

use super::BYTES_MAX;
use crate::pci_nvme::{BAR0, CONFIG, FlatMemory, Function, GuestMemory, PciFunction, PciId, PretendDrive};
use ocssd_base::Nanos;
use ocssd_nvme::HostAddress;

/// Where the guest's memory begins, and how much there is: queues and a few pages of everything else.
const MEMORY: u64 = 0x1_0000;
const MEMORY_BYTES: usize = 64 << 10;
/// Commands the drive takes at once, so that it is full now and then.
const ROOM: usize = 5;
/// Turns after which a function that still has something to do never ends.
const TURNS_MAX: usize = 10_000;
/// Commands that mean something: admin and I/O.
const OPCODES: [u8; 20] = [
    0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x08, 0x09, 0x0A, 0x0C, 0x7C, 0x90, 0x91, 0x92, 0x93, 0xE2, 0xF1,
    0xF2, 0x01, 0x02,
];

/// The bytes, as numbers.
struct Input<'a> {
    data: &'a [u8],
}

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.data.split_first()?;
        self.data = rest;
        Some(byte)
    }

    fn dword(&mut self) -> Option<u32> {
        let (bytes, rest) = self.data.split_first_chunk::<4>()?;
        self.data = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    /// A number that is small more often than not.
    fn number(&mut self) -> Option<u32> {
        let shift = self.byte()? % 33;
        Some(self.dword()?.checked_shr(shift.into()).unwrap_or(0))
    }

    /// A place of the guest's memory, mostly; often the beginning of a page.
    fn place(&mut self) -> Option<u64> {
        let kind = self.byte()?;
        let number = u64::from(self.dword()?);
        let bytes = u64::try_from(MEMORY_BYTES).expect("small");
        Some(match kind % 8 {
            0 => number,
            1 => number << 32 | number,
            2 | 3 => MEMORY + number % bytes,
            4 => MEMORY + number % bytes / 4 * 4,
            _ => MEMORY + number % (bytes / 4096) * 4096,
        })
    }
}

type Guest = Function<PretendDrive, FlatMemory>;

/// Plays a guest that does what `data` says. Returns how many completions it got.
///
/// # Panics
/// If the controller breaks a promise.
pub fn pci_nvme_guest(data: &[u8]) -> u64 {
    let mut input = Input { data: &data[..data.len().min(BYTES_MAX)] };
    let Some(shape) = input.byte() else { return 0 };
    let drive = PretendDrive {
        is_quick: shape & 1 == 0,
        room: (shape & 2 != 0).then_some(ROOM),
        is_v12: shape & 4 != 0,
        ..PretendDrive::default()
    };
    let mut function = Function::new(drive, FlatMemory::new(MEMORY, MEMORY_BYTES), PciId::Qemu);
    if shape & 8 == 0 {
        begin(&mut function);
    }
    while act(&mut function, &mut input).is_some() {
        check(&mut function);
    }
    settle(&mut function);
    function.reset(Nanos::ZERO);
    assert!(function.drive_mut().begun.is_empty(), "a reset left commands in the drive");
    function.counters().completions
}

fn write(function: &mut Guest, offset: u64, value: u32) {
    function.write(Nanos::ZERO, BAR0, offset, &value.to_le_bytes()).expect("a place of BAR0");
}

/// What a driver begins with: admin queues of 16 entries, enabled.
fn begin(function: &mut Guest) {
    for (offset, value) in [(0x24, 15 << 16 | 15), (0x28, MEMORY), (0x30, MEMORY + 4096), (0x14, 0x46_0001)] {
        write(function, offset, u32::try_from(value).expect("low"));
    }
}

/// One thing a guest can do; `None` at the end of the input.
fn act(function: &mut Guest, input: &mut Input<'_>) -> Option<()> {
    match input.byte()? % 16 {
        0 => write(function, u64::from(input.byte()?) % 16 * 4, input.number()?),
        1 => write(function, 0x14, 0x46_0000 | input.number()? & 0xFFFF),
        2 => write(function, u64::from(input.dword()? % 0x4000 / 4 * 4), input.number()?),
        3 => {
            let at = u64::from(input.number()?);
            let count = usize::from(input.byte()?) % 9;
            let bytes = input.dword()?.to_le_bytes().repeat(3);
            // Places that are not there are refused.
            let _ = function.write(Nanos::ZERO, u32::from(input.byte()?) % 9, at, &bytes[..count]);
            let mut bytes = [0; 9];
            let _ = function.read(if at % 2 == 0 { BAR0 } else { CONFIG }, at, &mut bytes);
        }
        4 => {
            let (at, value) = (input.place()?, input.dword()?);
            let _ = function.memory_mut().write(HostAddress(at), &value.to_le_bytes());
        }
        5..=8 => submit(function, input)?,
        9 => write(function, 0x1000 + u64::from(input.byte()?) % 8 * 4, input.number()? % 20),
        10 => function.drive_mut().end_one(),
        11 => drop(function.arm()),
        12 => function.mask(input.byte()?.into(), input.byte()? & 1 == 0),
        13 => function.drive_mut().news = Some(input.dword()?),
        14 if input.byte()? == 0 => function.reset(Nanos::ZERO),
        _ => settle(function),
    }
    Some(())
}

/// A command at the tail of the admin queue, or anywhere, and its doorbell.
fn submit(function: &mut Guest, input: &mut Input<'_>) -> Option<()> {
    let (queue, slot) = (u64::from(input.byte()?) % 4, u64::from(input.byte()?) % 16);
    let mut entry = [0; 64];
    let opcode = usize::from(input.byte()?);
    entry[0] = OPCODES.get(opcode % 24).copied().unwrap_or(entry[0]);
    entry[1] = if input.byte()? < 200 { 0 } else { input.byte()? };
    entry[4] = 1;
    let places = [16, 24, 32].map(|at| (at, input.place()));
    for (at, place) in places {
        entry[at..at + 8].copy_from_slice(&place?.to_le_bytes());
    }
    if input.byte()? < 128 {
        entry[16..24].fill(0);
    }
    for at in [40, 44, 48, 56] {
        entry[at..at + 4].copy_from_slice(&input.number()?.to_le_bytes());
    }
    if opcode % 3 == 0 {
        // As commands that make queues have it: a small number and size, a small vector, in one piece.
        entry[40..44].copy_from_slice(&[input.byte()? % 5, 0, input.byte()? % 16, 0]);
        entry[44..48].copy_from_slice(&[3, 0, input.byte()? % 5, 0]);
    }
    let at = MEMORY + queue * 8192 + slot * 64;
    function.memory_mut().write(HostAddress(at), &entry).expect("its own memory");
    let tail = u32::try_from((slot + 1) % 16).expect("small");
    write(function, 0x1000 + queue * 8, tail);
    Some(())
}

/// It works until there is nothing to do.
fn settle(function: &mut Guest) {
    for _ in 0..TURNS_MAX {
        while function.take_interrupt().is_some() {}
        if !function.turn(Nanos::ZERO) {
            return;
        }
    }
    panic!("the function has something to do for ever");
}

/// What holds at all times.
fn check(function: &mut Guest) {
    let in_flight = function.in_flight();
    let begun = u64::try_from(function.drive_mut().begun.len()).expect("few");
    assert!(
        in_flight == begun || in_flight + 1 == begun,
        "{in_flight} commands are in progress, and the drive has {begun}"
    );
}

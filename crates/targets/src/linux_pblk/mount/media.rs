//! Write units read in batches, whole, with what lies beside their sectors.
//!
//! Deliberately not here: what is read, and why.

use ocssd_lightnvm::{Addresses, BlockingDevice, BufId, Command, Op, PowerCut, Ppa, Tag, VECTOR_MAX};

/// Commands of a batch (chosen: enough for every unit of a large drive).
const BATCH: usize = 256;

/// A device with buffers to read units into.
pub struct Reader<'a> {
    pub device: &'a mut dyn BlockingDevice,
    /// Sectors of a unit.
    unit: u32,
    buffers: Vec<BufId>,
    pub sectors_read: u64,
}

/// A unit that was read.
pub struct ReadUnit<'a> {
    /// All bytes of its sectors.
    pub bytes: &'a [u8],
    /// What lies beside them.
    pub oob: &'a [u8],
    /// Bit `i`: the media did not give sector `i`.
    pub lost: u64,
}

impl<'a> Reader<'a> {
    pub fn new(device: &'a mut dyn BlockingDevice, unit: u32) -> Self {
        assert!((1..=VECTOR_MAX).contains(&unit), "a unit of {unit} sectors is no command");
        Self { device, unit, buffers: Vec::new(), sectors_read: 0 }
    }

    /// Reads units; `each` is told them in order, by their number.
    pub fn read_units(
        &mut self,
        firsts: &[Ppa],
        mut each: impl FnMut(usize, ReadUnit<'_>),
    ) -> Result<(), PowerCut> {
        while self.buffers.len() < firsts.len().min(BATCH) {
            let buffer = self.device.buffers().take_whole(self.unit);
            self.buffers.push(buffer);
        }
        for (number, batch) in firsts.chunks(BATCH).enumerate() {
            let command = |(index, &first): (u32, &Ppa)| Command {
                tag: Tag(index),
                op: Op::Read,
                addresses: Addresses::Run { first, count: self.unit },
                buffer: Some(self.buffers[ocssd_base::usize_of(index)]),
                buffer_first: 0,
                oob: true,
            };
            let commands: Vec<Command> = (0..).zip(batch).map(command).collect();
            let completions = self.device.call(&commands)?;
            assert_eq!(completions.len(), batch.len(), "every command has an end");
            let buffers = self.device.buffers();
            for (index, completion) in completions.iter().enumerate() {
                let lost = if completion.status.has_data() { 0 } else { completion.failed.max(1) };
                let buffer = self.buffers[index];
                let (bytes, oob) = (buffers.whole(buffer, 0, self.unit), buffers.oob(buffer, 0, self.unit));
                each(number * BATCH + index, ReadUnit { bytes, oob, lost });
            }
            self.sectors_read += u64::from(self.unit) * u64::try_from(batch.len()).expect("a batch is small");
        }
        Ok(())
    }

    /// Gives the buffers back to the pool; says how many sectors were read.
    pub fn end(self) -> u64 {
        let buffers = self.device.buffers();
        self.buffers.into_iter().for_each(|buffer| buffers.give_back(buffer));
        self.sectors_read
    }
}

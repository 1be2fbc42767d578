//! Erase, write and read by physical page address (OCSSD 1.2 section 4).
//!
//! An address that does not exist refuses the command. The rest are the drive's own rules: pages are written in
//! order, and a page that was not written reads as empty.

use super::shape::{Place, log_form};
use crate::addresses::AddressList;
use crate::controller::completion::{INVALID_FIELD, Refused, SHORT_BUFFER};
use crate::controller::front_end::{Begun, Controller, IoBuffers, Submission, Work};
use crate::controller::pending::{Counted, Shape};
use crate::controller::vector::{ENTRIES_MAX, check_count};
use crate::exec::{OperationKind, ReadPolicy};
use ocssd_lightnvm::{Geometry, Lba, PlaneMode as Planes, Ppa};
use ocssd_nvme::ocssd12::{IoFlags, PlaneMode, Ppa as WirePpa};
use ocssd_nvme::sqe::PpaIo;
use ocssd_nvme::{AddressList as WireList, IoOpcode};

/// The addresses of one command, as they came.
struct WirePpas {
    ppas: [WirePpa; ENTRIES_MAX],
    count: usize,
}

impl WirePpas {
    fn of(wire: WireList<WirePpa>, list: &[u64]) -> Result<Self, Refused> {
        let count = usize::from(wire.count());
        assert!((1..=ENTRIES_MAX).contains(&count), "the count has 6 bits");
        let mut ppas = [WirePpa::default(); ENTRIES_MAX];
        match wire {
            WireList::One(ppa) => ppas[0] = ppa,
            WireList::Many { .. } => {
                let list = list.get(..count).ok_or(SHORT_BUFFER)?;
                ppas.iter_mut().zip(list).for_each(|(ppa, &bits)| *ppa = WirePpa(bits));
            }
        }
        Ok(Self { ppas, count })
    }

    fn as_slice(&self) -> &[WirePpa] {
        &self.ppas[..self.count]
    }
}

/// The chunks an erase empties, and which entries of the command name each.
struct Erase {
    chunks: Vec<Ppa>,
    entries: Vec<u64>,
    /// One bit per plane that was named.
    planes: Vec<u8>,
}

impl Erase {
    /// Gathers the planes of each block. With a plane mode one address stands for all planes, and naming more planes
    /// of the block changes nothing; without, every plane must be named. A plane named twice refuses the command.
    fn gather(places: &[Place], planes: u32, mode: PlaneMode) -> Result<Self, Refused> {
        let mut erase = Self { chunks: Vec::new(), entries: Vec::new(), planes: Vec::new() };
        for (entry, place) in places.iter().enumerate() {
            let index = erase.index_of(place.ppa);
            if erase.planes[index] >> place.plane & 1 == 1 {
                return Err(INVALID_FIELD);
            }
            erase.planes[index] |= 1 << place.plane;
            erase.entries[index] |= 1 << entry;
        }
        let named: u32 = erase.entries.iter().map(|entries| entries.count_ones()).sum();
        assert_eq!(usize::try_from(named), Ok(places.len()), "each entry names one block");
        let all = u8::try_from((1u32 << planes) - 1).expect("at most four planes");
        if mode == PlaneMode::Single && erase.planes.iter().any(|&named| named != all) {
            return Err(INVALID_FIELD);
        }
        Ok(erase)
    }

    fn index_of(&mut self, chunk: Ppa) -> usize {
        self.chunks.iter().position(|&known| known == chunk).unwrap_or_else(|| {
            self.chunks.push(chunk);
            self.entries.push(0);
            self.planes.push(0);
            self.chunks.len() - 1
        })
    }
}

/// A command that was decoded and whose flags are sound.
struct Command12 {
    ppas: WirePpas,
    flags: IoFlags,
    lba: Lba,
}

impl Controller {
    pub(in crate::controller) fn vector_12(
        &mut self,
        submission: &Submission,
        buffers: &mut IoBuffers<'_>,
    ) -> Result<Begun, Refused> {
        check_count(&submission.sqe)?;
        let io = PpaIo::of(&submission.sqe).map_err(|_| INVALID_FIELD)?;
        let ppas = WirePpas::of(io.ppas, buffers.lba_list)?;
        let lba = log_form(ppas.as_slice()[0]);
        let command = Command12 { ppas, flags: io.flags, lba };
        let opcode = submission.sqe.io_opcode();
        self.check_flags(opcode, command.flags)?;
        match opcode {
            IoOpcode::VECTOR_RESET => self.erase_12(submission, &command),
            IoOpcode::VECTOR_READ => self.move_12(submission, &command, Counted::Read, buffers),
            _ => self.move_12(submission, &command, Counted::Write, buffers),
        }
    }

    /// SLC mode would change what is stored, and there is none (MCCAP). An erase stores nothing: its bit means nothing there,
    /// and liblightnvm sets it (its flag `NVM_CMD_PRP`, 100h, goes into the upper half of CDW12 as it is). A plane mode
    /// drives all planes or one.
    fn check_flags(&self, opcode: IoOpcode, flags: IoFlags) -> Result<(), Refused> {
        let together = u32::from(flags.plane_mode.plane_count());
        let planes = self.page_shape().planes;
        let is_slc = flags.slc_mode && opcode != IoOpcode::VECTOR_RESET;
        if is_slc || (together != 1 && together != planes) {
            return Err(INVALID_FIELD);
        }
        Ok(())
    }

    fn page_shape(&self) -> super::PageShape {
        self.v12.as_ref().expect("1.2 commands are dispatched on 1.2 drives").shape
    }

    fn erase_12(&mut self, submission: &Submission, command: &Command12) -> Result<Begun, Refused> {
        let (shape, geometry) = (self.page_shape(), self.geometry());
        let place = |&ppa: &WirePpa| shape.block_place(geometry, ppa).ok_or(INVALID_FIELD);
        assert!(command.ppas.count <= ENTRIES_MAX, "at most 64 entries");
        let places = command.ppas.as_slice().iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let erase = Erase::gather(&places, shape.planes, command.flags.plane_mode)?;
        let work = Work {
            shape: Shape::Merged(erase.entries),
            counted: Counted::Neither,
            kind: OperationKind::Reset,
            lba: command.lba,
            addresses: AddressList::List(&erase.chunks),
            data: &mut [],
            oob: &mut [],
        };
        Ok(self.execute(submission, work))
    }

    fn move_12(
        &mut self,
        submission: &Submission,
        command: &Command12,
        counted: Counted,
        buffers: &mut IoBuffers<'_>,
    ) -> Result<Begun, Refused> {
        let shape = self.page_shape();
        let (list, count) = sectors(&shape, self.geometry(), &command.ppas)?;
        let kind = if counted == Counted::Read {
            OperationKind::Read(ReadPolicy {
                limited_retry: command.flags.limited_retry,
                plane_mode: match command.flags.plane_mode {
                    PlaneMode::Single => Planes::Single,
                    PlaneMode::Dual | PlaneMode::Quad => Planes::Multi,
                },
                ..ReadPolicy::STRICT
            })
        } else {
            // Planes that work together are written together.
            if command.flags.plane_mode != PlaneMode::Single && !count.is_multiple_of(shape.row_sectors()) {
                return Err(INVALID_FIELD);
            }
            self.write_kind(command.flags.force_unit_access)
        };
        let (data, oob) = self.sector_buffers(submission, count, buffers)?;
        let addresses = AddressList::List(&list[..command.ppas.count]);
        let lba = command.lba;
        Ok(self.execute(submission, Work { shape: Shape::Vector, counted, kind, lba, addresses, data, oob }))
    }
}

/// Every sector of a command; refused if one does not exist.
fn sectors(
    shape: &super::PageShape,
    geometry: &Geometry,
    wire: &WirePpas,
) -> Result<([Ppa; ENTRIES_MAX], u32), Refused> {
    let mut list = [Ppa::NOWHERE; ENTRIES_MAX];
    for (ppa, &wire) in list.iter_mut().zip(wire.as_slice()) {
        *ppa = shape.place(geometry, wire).ok_or(INVALID_FIELD)?.ppa;
    }
    Ok((list, u32::try_from(wire.count).expect("at most 64")))
}

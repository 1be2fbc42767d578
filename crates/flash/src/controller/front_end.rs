//! The controller itself: owner of the drive, and the way of an I/O command through it.
//!
//! What a command does to the drive's content is settled when it is submitted; time decides when the completion comes.
//! So the slices of [`IoBuffers`] are needed during [`Controller::submit`] only: a read has filled them when it
//! returns.

use super::beside_targets::Beside;
use super::completion::{INVALID_FIELD, Refused, cqe, status_field};
use super::events::Events;
use super::features::Features;
use super::health::{CommandEnd, Health};
use super::pending::{Answer, Counted, PendingCommand, PendingCommands, Shape};
use super::v12::Compat12;
use crate::addresses::AddressList;
use crate::config::{Config, Revision};
use crate::drive::Flash;
use crate::exec::{Operation, OperationKind};
use crate::power_cut::PowerCutReport;
use crate::store::StoreError;
use ocssd_base::{Nanos, Prng};
use ocssd_lightnvm::{Completion, Device, Geometry, Lba, Payload, Ppa, Status, VECTOR_MAX};
use ocssd_nvme::identify::Uuid;
use ocssd_nvme::sqe::{Fuse, Psdt};
use ocssd_nvme::{IoOpcode, Sqe, StatusField};
use std::fmt;

/// The one namespace.
pub(super) const NSID: u32 = 1;
/// All namespaces, which is the one.
pub(super) const NSID_ALL: u32 = u32::MAX;

/// Chosen: Linux and liblightnvm ask for at most 256 KiB at once, and liblightnvm's tests expect 512 KiB to be
/// refused.
const TRANSFER_BYTES: u64 = 256 << 10;

/// What the media answer when they lose data.
const MEDIA_FAILURES: [Status; 3] = [Status::UNRECOVERED_READ, Status::WRITE_NEXT_UNIT, Status::EARLY_CLOSE];

/// As many commands are in progress as the drive takes; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the drive has as many commands in progress as its queue_depth allows; submit again after a completion")
    }
}

impl std::error::Error for Busy {}

/// What an I/O command's pointers point to, as far as it has any. The transport resolves them.
#[derive(Debug, Default)]
pub struct IoBuffers<'a> {
    /// The data behind DPTR: sectors, or the ranges of a Dataset Management.
    pub data: &'a mut [u8],
    /// The metadata behind MPTR: `oob_bytes` per sector; for a vector reset, 32 bytes per chunk for its descriptor.
    /// Empty for none.
    pub metadata: &'a mut [u8],
    /// The list behind LBAL, when the command has more than one address; a single one is in the command itself.
    pub lba_list: &'a [u64],
    /// The list behind DLBAL of a copy, likewise.
    pub destination_list: &'a [u64],
}

/// A submission entry with when and where it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submission {
    pub(super) now: Nanos,
    pub(super) queue: u16,
    pub(super) sqe: Sqe,
}

/// How the controller began a command that it did not refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// The drive has it.
    InDrive,
    /// There is nothing to do: success.
    Nothing,
    /// The drive took no more.
    Busy,
}

/// The end of a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ended {
    /// It came as an entry, from this queue.
    Entry(u16, [u8; 16]),
    /// It came as an entry, and nobody waits for it any more.
    Unheard,
    /// A target gave it.
    Typed(Completion),
}

/// What the drive is to do for a command.
pub(super) struct Work<'a> {
    pub(super) shape: Shape,
    pub(super) counted: Counted,
    pub(super) kind: OperationKind<'a>,
    pub(super) lba: Lba,
    pub(super) addresses: AddressList<'a>,
    pub(super) data: &'a mut [u8],
    pub(super) oob: &'a mut [u8],
}

/// An NVMe controller in front of a drive.
///
/// While a controller has a drive, commands come through the controller only: entries through [`Controller::submit`], those
/// of targets on the same drive through its [`Device`]. [`Controller::flash_mut`] is for faults, notifications and inspection.
pub struct Controller {
    pub(super) flash: Flash,
    pub(super) features: Features,
    pub(super) events: Events,
    pub(super) health: Health,
    pub(super) pending: PendingCommands,
    /// What only a 1.2 drive has.
    pub(super) v12: Option<Compat12>,
    /// The addresses of a command that has more than a vector; kept for its memory.
    pub(super) scattered: Vec<Ppa>,
    /// Commands of targets on the same drive.
    pub(super) beside: Beside,
    /// Which drive it is, of all.
    pub(super) uuid: Uuid,
}

impl Controller {
    /// A controller for `flash`, powered on.
    ///
    /// # Errors
    /// A sentence if the drive has no bytes to serve (payload stamps), or has a shape that OCSSD 1.2 cannot describe.
    pub fn new(flash: Flash) -> Result<Self, String> {
        let config = flash.config();
        if config.payload != Payload::Bytes {
            return Err("an NVMe controller serves real sectors, but this drive keeps stamps of 16 bytes; \
                        set its payload to bytes"
                .to_owned());
        }
        let v12 = match config.revision {
            Revision::V20 => None,
            Revision::V12 => Some(Compat12::new(config)?),
        };
        Ok(Self {
            features: Features::new(config),
            events: Events::default(),
            health: Health::default(),
            pending: PendingCommands::new(config.queue_depth),
            v12,
            scattered: Vec::new(),
            beside: Beside::default(),
            uuid: Uuid::of_seed(flash.config.seed),
            flash,
        })
    }

    /// The same, called by this UUID: its names in Identify are made of it. Without one they are made of the drive's seed, and
    /// two drives of one seed are one drive to their hosts.
    #[must_use]
    pub fn with_uuid(self, uuid: Uuid) -> Self {
        assert!(!uuid.is_nil(), "a drive is told from others by its UUID");
        Self { uuid, ..self }
    }

    /// The drive.
    #[must_use]
    pub const fn flash(&self) -> &Flash {
        &self.flash
    }

    /// The drive, to schedule faults or to sync. Commands submitted past the controller would confuse it.
    pub const fn flash_mut(&mut self) -> &mut Flash {
        &mut self.flash
    }

    /// The drive back; commands in progress end unheard.
    #[must_use]
    pub fn into_flash(self) -> Flash {
        self.flash
    }

    pub(super) const fn config(&self) -> &Config {
        &self.flash.config
    }

    pub(super) const fn geometry(&self) -> &Geometry {
        &self.flash.config.geometry
    }

    /// Most bytes of one transfer (MDTS): 256 KiB, or a vector command of 64 sectors if that is more.
    #[must_use]
    pub fn transfer_bytes_max(&self) -> u64 {
        let vector = u64::from(VECTOR_MAX) * u64::from(self.geometry().sector_bytes);
        let bytes = TRANSFER_BYTES.max(vector).next_power_of_two();
        assert!(bytes >= 4096, "a transfer of {bytes} bytes is less than a page");
        bytes
    }

    /// Takes an I/O command from queue `queue`. See [`IoBuffers`] for what must be there.
    ///
    /// # Errors
    /// [`Busy`] if the drive takes no more; nothing was changed. A refused command is no error: its completion says
    /// why.
    pub fn submit(
        &mut self,
        now: Nanos,
        queue: u16,
        sqe: &[u8; Sqe::BYTES],
        mut buffers: IoBuffers<'_>,
    ) -> Result<(), Busy> {
        if self.pending.is_full() {
            return Err(Busy);
        }
        let idle = self.pending.count() == 0;
        let submission = Submission { now, queue, sqe: Sqe::decode(sqe) };
        let answer = match self.begin(&submission, &mut buffers) {
            Ok(Begun::InDrive) => None,
            Ok(Begun::Nothing) => Some(StatusField::SUCCESS),
            Ok(Begun::Busy) => return Err(Busy),
            Err(Refused(status)) => Some(StatusField::rule(status)),
        };
        if let Some(status) = answer {
            // Even a refusal takes the controller its time.
            let at = now + self.config().link.command;
            let Sqe { cid, nsid, .. } = submission.sqe;
            self.pending.answer(Answer { at, completion: cqe(queue, cid, status), nsid });
        }
        if idle {
            self.health.work_begins(now);
        }
        Ok(())
    }

    fn begin(&mut self, submission: &Submission, buffers: &mut IoBuffers<'_>) -> Result<Begun, Refused> {
        let Submission { sqe, .. } = submission;
        let opcode = sqe.io_opcode();
        let known = match (self.config().revision, opcode) {
            (
                _,
                IoOpcode::FLUSH | IoOpcode::VECTOR_RESET | IoOpcode::VECTOR_WRITE | IoOpcode::VECTOR_READ,
            ) => true,
            (Revision::V20, IoOpcode::READ | IoOpcode::WRITE | IoOpcode::DATASET_MANAGEMENT) => true,
            (Revision::V20, IoOpcode::VECTOR_COPY) => self.geometry().capabilities.vector_copy,
            _ => false,
        };
        if !known {
            return Err(Refused(Status::INVALID_OPCODE));
        }
        check_entry(sqe)?;
        let everywhere = opcode == IoOpcode::FLUSH && sqe.nsid == NSID_ALL;
        if sqe.nsid != NSID && !everywhere {
            return Err(Refused(Status::INVALID_NAMESPACE));
        }
        match opcode {
            IoOpcode::FLUSH => Ok(self.flush(submission)),
            IoOpcode::READ => self.scalar_read(submission, buffers),
            IoOpcode::WRITE => self.scalar_write(submission, buffers),
            IoOpcode::DATASET_MANAGEMENT => self.dataset_management(submission, buffers),
            _ if self.v12.is_some() => self.vector_12(submission, buffers),
            _ => self.vector(submission, buffers),
        }
    }

    /// Gives the drive its work.
    pub(super) fn execute(&mut self, submission: &Submission, work: Work<'_>) -> Begun {
        let Submission { now, queue, sqe } = *submission;
        let Work { shape, counted, kind, lba, addresses, data, oob } = work;
        let format = self.flash.payload_format();
        assert_eq!(format.payload, Payload::Bytes, "the controller was made for a drive of bytes");
        assert!(data.len().is_multiple_of(format.data_bytes), "{} bytes are no whole sectors", data.len());
        if let Shape::Merged(entries) = &shape {
            assert_eq!(
                Ok(addresses.count()),
                u32::try_from(entries.len()),
                "a bitmap for each address of the drive"
            );
        }
        let tag = self.pending.insert(PendingCommand {
            queue,
            cid: sqe.cid,
            shape,
            counted,
            lba,
            forgotten: false,
        });
        match self.flash.execute(now, Operation { tag, kind, addresses, data, oob, whole: &mut [] }) {
            Ok(()) => Begun::InDrive,
            Err(_) => {
                self.pending.remove(tag);
                Begun::Busy
            }
        }
    }

    /// The next completion due at `now`, and the submission queue its command came from.
    pub fn poll(&mut self, now: Nanos) -> Option<(u16, [u8; 16])> {
        if let Some(ended) = self.beside.entries_ended.pop_front() {
            return Some(ended);
        }
        loop {
            match self.poll_end(now)? {
                Ended::Entry(queue, completion) => return Some((queue, completion)),
                Ended::Typed(completion) => self.beside.typed_ended.push_back(completion),
                Ended::Unheard => {}
            }
        }
    }

    /// The next end of a command, whoever gave it.
    pub(super) fn poll_end(&mut self, now: Nanos) -> Option<Ended> {
        let (completion, end) = if let Some(answer) = self.pending.take_answer(now) {
            let Answer { completion, nsid, .. } = answer;
            let end =
                CommandEnd { completion, counted: Counted::Neither, lba: Lba(0), nsid, media_failed: false };
            (Some(completion), end)
        } else {
            self.flash.advance(now);
            let (_, completion) = self.flash.flow.poll(now, &mut self.flash.media)?;
            if !PendingCommands::is_entry(completion.tag) {
                return Some(Ended::Typed(completion));
            }
            self.entry_end(&completion)
        };
        self.health.command_ended(&end);
        if self.pending.count() == 0 {
            self.health.work_ends(now);
        }
        let heard = |completion: ocssd_nvme::Cqe| Ended::Entry(completion.sqid, completion.encode());
        Some(completion.map_or(Ended::Unheard, heard))
    }

    /// The completion of an entry that the drive has finished, if anybody waits for it.
    fn entry_end(&mut self, completion: &Completion) -> (Option<ocssd_nvme::Cqe>, CommandEnd) {
        let pending = self.pending.remove(completion.tag);
        let status = status_field(self.config().revision, completion);
        let bitmap = pending.shape.bitmap(completion.failed);
        assert!(!completion.status.is_success() || completion.failed == 0, "a success has no failed entries");
        assert!(completion.violation.is_none() || !status.status.is_success(), "a broken rule is no success");
        let cqe = cqe(pending.queue, pending.cid, status).with_failed_entries(bitmap);
        let lba =
            completion.violation.map_or(pending.lba, |violation| self.log_lba(violation.at, pending.lba));
        let media_failed = MEDIA_FAILURES.contains(&completion.status);
        let end = CommandEnd { completion: cqe, counted: pending.counted, lba, nsid: NSID, media_failed };
        ((!pending.forgotten).then_some(cqe), end)
    }

    /// The address of an error for the error log: where the rule was broken if that is a place, else the command's
    /// first.
    fn log_lba(&self, at: Ppa, first: Lba) -> Lba {
        if self.v12.is_none() && self.flash.chunks.exists(at) { self.geometry().lba_of(at) } else { first }
    }

    /// When [`Controller::poll`] next has something to do; `None` while the drive is idle.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanos> {
        if self.beside.has_ended() {
            return Some(Nanos::ZERO);
        }
        self.pending.next_answer_at().into_iter().chain(self.flash.deadline()).min()
    }

    /// A controller reset (CC.EN cleared, or the host gone): features are as after power-on, event requests are gone,
    /// and commands in progress finish without a completion. The drive's content is as they left it.
    pub fn reset(&mut self, now: Nanos) {
        self.pending.forget();
        self.beside.entries_ended.clear();
        if self.pending.count() == 0 {
            self.health.work_ends(now);
        }
        self.features = Features::new(&self.flash.config);
        self.events = Events::default();
    }

    /// Cuts the power and turns it on again: [`Flash::power_cut`], and the controller forgets what it held. The error
    /// log and the counters of the health log are kept.
    ///
    /// # Errors
    /// If the drive's backing cannot keep what is left.
    pub fn power_cut(&mut self, now: Nanos, prng: &mut Prng) -> Result<PowerCutReport, StoreError> {
        let report = self.flash.power_cut(now, prng)?;
        self.reset(now);
        assert_eq!(
            report.commands,
            self.pending.in_drive() + self.beside.in_drive(),
            "the drive and the controller lost the same commands"
        );
        self.beside = Beside::default();
        self.pending = PendingCommands::new(self.flash.config.queue_depth);
        self.health.power_was_cut(now);
        Ok(report)
    }
}

/// What every command must obey: not fused (nothing here can be), and a data pointer of a kind that exists.
pub(super) fn check_entry(sqe: &Sqe) -> Result<(), Refused> {
    if sqe.fuse != Fuse::Normal || sqe.psdt == Psdt::Reserved {
        return Err(INVALID_FIELD);
    }
    Ok(())
}

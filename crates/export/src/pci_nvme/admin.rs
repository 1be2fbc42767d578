//! The admin queue: what belongs to queues and PCI is done here, all else is the drive's.

use super::drive::OpenChannelDrive;
use super::fetch::refusal;
use super::function::Function;
use super::memory::GuestMemory;
use super::queue_admin::QUEUES;
use super::sgl::SGLS;
use super::transfer::Moves;
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::identify::{Cns, IdentifyController};
use ocssd_nvme::sqe::{GetFeatures, GetLogPage, Identify, Psdt, SetFeatures};
use ocssd_nvme::{AdminOpcode, Cqe, Sqe, StatusField};

/// Doorbell Buffer Config (NVMe base 1.4 section 5.7).
const DOORBELL_BUFFER_CONFIG: AdminOpcode = AdminOpcode(0x7C);
/// OACS bit 8: there is Doorbell Buffer Config.
const OACS_DOORBELL_BUFFER: u16 = 1 << 8;

/// What the guest was granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Adapted {
    /// I/O submission queues.
    pub(super) submission_queues: u16,
    /// I/O completion queues.
    pub(super) completion_queues: u16,
}

impl Default for Adapted {
    fn default() -> Self {
        Self { submission_queues: QUEUES - 1, completion_queues: QUEUES - 1 }
    }
}

impl<D: OpenChannelDrive, M: GuestMemory> Function<D, M> {
    /// Carries out an admin command.
    pub(super) fn admin(&mut self, now: Nanos, sqe: &Sqe) {
        // On PCI, admin commands have PRPs (NVMe base 1.4 figure 105, PSDT).
        if sqe.psdt != Psdt::Prp {
            return self.end_admin(sqe.cid, StatusField::rule(Status::INVALID_FIELD), 0);
        }
        let done = match sqe.admin_opcode() {
            AdminOpcode::CREATE_IO_CQ => self.create_completion(sqe),
            AdminOpcode::CREATE_IO_SQ => self.create_submission(sqe),
            AdminOpcode::DELETE_IO_CQ => self.delete_completion(sqe),
            DOORBELL_BUFFER_CONFIG => self.configure_shadow(sqe),
            AdminOpcode::DELETE_IO_SQ => return self.delete_submission(sqe),
            AdminOpcode::ASYNC_EVENT_REQUEST => return self.hold_event(sqe),
            _ => return self.forward(now, sqe),
        };
        let status = done.map_or_else(StatusField::rule, |()| StatusField::SUCCESS);
        self.end_admin(sqe.cid, status, 0);
    }

    /// The drive answers.
    fn forward(&mut self, now: Nanos, sqe: &Sqe) {
        let moves = Moves::of_admin(sqe, &self.units);
        let limit = self.units.transfer_bytes_max;
        let loaded = if moves.data > limit {
            Err(Status::INVALID_FIELD)
        } else {
            self.staging.load(&self.memory, sqe, &moves, limit)
        };
        if let Err(status) = loaded {
            return self.end_admin(sqe.cid, refusal(status), 0);
        }
        if moves.addresses > 0 {
            // A list of the bad block table: the drive takes it as data.
            self.staging.data =
                self.staging.addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        }
        let asked = self.capped(sqe);
        let completion = self.drive.admin(now, &asked, &mut self.staging.data);
        let mut completion = completion.expect("event requests are not forwarded");
        if completion.status.status.is_success() {
            self.adapt(sqe, &mut completion);
            self.counters.sent_bytes += self.staging.store(&self.memory);
        }
        self.put(0, Cqe { cid: sqe.cid, ..completion });
    }

    /// A request for more queues than there are is one for all; the reserved value stays what it is.
    fn capped(&self, sqe: &Sqe) -> Sqe {
        let is_queues = sqe.admin_opcode() == AdminOpcode::SET_FEATURES
            && SetFeatures::of(sqe).fid == FeatureId::NUMBER_OF_QUEUES;
        if !is_queues { *sqe } else { Sqe { cdw11: cap(sqe.cdw11, &[0xFFFF]), ..*sqe } }
    }

    /// Adds what the drive does not know to its answer.
    fn adapt(&mut self, sqe: &Sqe, completion: &mut Cqe) {
        match sqe.admin_opcode() {
            AdminOpcode::IDENTIFY if Identify::of(sqe).cns == Cns::CONTROLLER => {
                let identify = &self.identify;
                let oacs = identify.oacs | OACS_DOORBELL_BUFFER;
                let adapted = IdentifyController { oacs, sgls: SGLS, ..identify.clone() };
                self.staging.data.copy_from_slice(&adapted.encode());
            }
            AdminOpcode::GET_LOG_PAGE => self.events.log_was_read(&GetLogPage::of(sqe)),
            AdminOpcode::SET_FEATURES if SetFeatures::of(sqe).fid == FeatureId::NUMBER_OF_QUEUES => {
                completion.dw0 = cap(completion.dw0, &[]);
                let [submissions, completions] = [completion.dw0 & 0xFFFF, completion.dw0 >> 16];
                let granted = |count: u32| u16::try_from(count + 1).expect("capped");
                (self.adapted.submission_queues, self.adapted.completion_queues) =
                    (granted(submissions), granted(completions));
            }
            AdminOpcode::GET_FEATURES if GetFeatures::of(sqe).fid == FeatureId::NUMBER_OF_QUEUES => {
                completion.dw0 = cap(completion.dw0, &[]);
            }
            _ => {}
        }
    }
}

/// Two 0-based counts of queues, each at most what there is, but for values that mean something else.
fn cap(value: u32, others: &[u32]) -> u32 {
    let most = u32::from(QUEUES) - 2;
    let one = |count: u32| if others.contains(&count) { count } else { count.min(most) };
    one(value & 0xFFFF) | one(value >> 16) << 16
}

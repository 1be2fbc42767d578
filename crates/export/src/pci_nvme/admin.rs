//! The admin queue: what belongs to queues and PCI is done here, all else is the drive's.

use super::drive::OpenChannelDrive;
use super::fetch::refusal;
use super::function::Function;
use super::memory::GuestMemory;
use super::port::OACS_DOORBELL_BUFFER;
use super::queue_admin::QUEUES;
use super::sgl::SGLS;
use super::transfer::Moves;
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::identify::{Cns, IdentifyController};
use ocssd_nvme::sqe::{GetFeatures, GetLogPage, Identify, Psdt, SetFeatures};
use ocssd_nvme::{AdminOpcode, Cqe, Sqe, StatusField};

impl<D: OpenChannelDrive, M: GuestMemory> Function<D, M> {
    /// Carries out an admin command.
    pub(super) fn admin(&mut self, now: Nanos, sqe: &Sqe) {
        // On PCI, admin commands have PRPs (NVMe base 1.4 figure 105, PSDT).
        if sqe.psdt != Psdt::Prp {
            return self.port.end_admin(sqe.cid, StatusField::rule(Status::INVALID_FIELD), 0);
        }
        if self.port.carry_out_own(sqe) {
            return;
        }
        match sqe.admin_opcode() {
            // AERL is 0-based.
            AdminOpcode::ASYNC_EVENT_REQUEST => {
                self.port.hold_event(sqe, usize::from(self.identify.aerl) + 1);
            }
            _ => self.forward(now, sqe),
        }
    }

    /// Tells news, if there is some and somebody asked. True if so. The drive is given one request at a time.
    pub(super) fn tell_events(&mut self, now: Nanos) -> bool {
        if !self.port.awaits_news() {
            return false;
        }
        let Some(dw0) = self.port.poll_news().or_else(|| self.news_of_drive(now)) else { return false };
        self.port.tell(dw0);
        true
    }

    fn news_of_drive(&mut self, now: Nanos) -> Option<u32> {
        if !self.drive_asked {
            let refused = self.drive.admin(now, &Sqe::async_event_request(), &mut []);
            assert!(refused.is_none(), "a drive that holds no event request refused one");
            self.drive_asked = true;
        }
        let dw0 = self.drive.poll_event()?;
        self.drive_asked = false;
        Some(dw0)
    }

    /// The drive answers.
    fn forward(&mut self, now: Nanos, sqe: &Sqe) {
        let moves = Moves::of_admin(sqe, &self.units);
        let limit = self.units.transfer_bytes_max;
        let loaded = if moves.data > limit {
            Err(Status::INVALID_FIELD)
        } else {
            self.staging.load(&self.port.memory, sqe, &moves, limit)
        };
        if let Err(status) = loaded {
            return self.port.end_admin(sqe.cid, refusal(status), 0);
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
            self.port.counters.sent_bytes += self.staging.store(&self.port.memory);
        }
        self.port.put(0, Cqe { cid: sqe.cid, ..completion });
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
            AdminOpcode::GET_LOG_PAGE => self.port.events.log_was_read(&GetLogPage::of(sqe)),
            AdminOpcode::SET_FEATURES if SetFeatures::of(sqe).fid == FeatureId::NUMBER_OF_QUEUES => {
                completion.dw0 = cap(completion.dw0, &[]);
                let [submissions, completions] = [completion.dw0 & 0xFFFF, completion.dw0 >> 16];
                let granted = |count: u32| u16::try_from(count + 1).expect("capped");
                (self.port.granted.submission_queues, self.port.granted.completion_queues) =
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

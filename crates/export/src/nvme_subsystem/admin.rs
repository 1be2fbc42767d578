//! Admin commands that mean the same whatever carries them: identify, log pages, features, keep alive.
//!
//! What is the raw namespace's own goes to its drive. Deliberately not here: event requests and aborts, which a transport
//! holds, and the structures that are returned.

use super::association::Bound;
use super::subsystem::{Namespace, namespace};
use crate::dispatcher::Dispatcher;
use crate::raw_lane::RawLane;
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::log_page::LogPageId;
use ocssd_nvme::sqe::{GetFeatures, GetLogPage};
use ocssd_nvme::{AdminOpcode, Cqe, Sqe};

/// Event requests held at once; AERL is this less one (the NVMe specification recommends at least four).
pub const EVENT_REQUESTS_MAX: usize = 4;

/// What an admin command comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// DW0 of the completion.
    Dword(u32),
    /// Data for the host.
    Data(Vec<u8>),
}

impl Bound {
    /// Carries out an admin command whose host has room for `room` bytes.
    ///
    /// # Errors
    /// The status of one that cannot be carried out.
    pub fn admin(&self, sqe: &Sqe, room: usize, dispatcher: &mut Dispatcher) -> Result<Reply, Status> {
        match sqe.admin_opcode() {
            AdminOpcode::IDENTIFY => self.identify(sqe, dispatcher).map(Reply::Data),
            AdminOpcode::GET_LOG_PAGE => self.log_page(sqe, room, dispatcher).map(Reply::Data),
            AdminOpcode::GET_FEATURES => self.get_features(sqe, dispatcher).map(Reply::Dword),
            AdminOpcode::SET_FEATURES => self.set_features(sqe, dispatcher).map(Reply::Dword),
            AdminOpcode::KEEP_ALIVE => self.keep_alive(dispatcher).map(|()| Reply::Dword(0)),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    fn keep_alive(&self, dispatcher: &mut Dispatcher) -> Result<(), Status> {
        let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
        let association = subsystem.association_mut(self.cntlid).ok_or(Status::COMMAND_SEQUENCE_ERROR)?;
        if !association.transport.keeps_alive {
            return Err(Status::INVALID_OPCODE);
        }
        association.heard = dispatcher.now;
        Ok(())
    }
}

/// An admin command of the raw drive: its own namespace is 1.
pub fn of_raw(raw: &mut RawLane, now: Nanos, sqe: &Sqe, data: &mut [u8]) -> Cqe {
    raw.drive.admin(now, &Sqe { nsid: 1, ..*sqe }, data)
}

/// The raw drive's own commands, pages and features, for its namespace.
#[must_use]
pub fn is_of_raw(sqe: &Sqe, dispatcher: &Dispatcher) -> bool {
    if namespace(sqe.nsid, &dispatcher.exports, dispatcher.raw.is_some()) != Some(Namespace::Raw) {
        return false;
    }
    let own_features = [FeatureId::ERROR_RECOVERY, FeatureId::MEDIA_FEEDBACK];
    let own_pages = [LogPageId::CHUNK_INFORMATION, LogPageId::CHUNK_NOTIFICATION];
    match sqe.admin_opcode() {
        AdminOpcode::GEOMETRY => true,
        AdminOpcode::GET_LOG_PAGE => own_pages.contains(&GetLogPage::of(sqe).lid),
        AdminOpcode::GET_FEATURES | AdminOpcode::SET_FEATURES => {
            own_features.contains(&GetFeatures::of(sqe).fid)
        }
        _ => false,
    }
}

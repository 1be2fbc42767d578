//! The admin queue: commands that are executed at once.
//!
//! Deliberately not here: creating and deleting queues, which are the transport's.

use super::completion::{INVALID_FIELD, Refused, SHORT_BUFFER, cqe};
use super::front_end::{Controller, check_entry};
use super::health::CommandEnd;
use super::pending::Counted;
use crate::config::Revision;
use ocssd_base::Nanos;
use ocssd_lightnvm::{Lba, Status};
use ocssd_nvme::{AdminOpcode, Cqe, Sqe, StatusField};

/// What became of an admin command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminOutcome {
    /// It is complete.
    Done([u8; Cqe::BYTES]),
    /// An Asynchronous Event Request: [`Controller::poll_event`] completes it when there is news.
    Held,
}

/// What an admin command that was not refused comes to.
enum Reply {
    /// DW0 of the completion.
    Dword(u32),
    Held,
}

impl Controller {
    /// Executes an admin command. `data` is what DPTR points to; a reply fills its beginning, nothing is written if
    /// the command is refused.
    pub fn admin(&mut self, now: Nanos, sqe: &[u8; Sqe::BYTES], data: &mut [u8]) -> AdminOutcome {
        let sqe = Sqe::decode(sqe);
        let completion = match self.admin_reply(now, &sqe, data) {
            Ok(Reply::Held) => return AdminOutcome::Held,
            Ok(Reply::Dword(dw0)) => Cqe { dw0, ..cqe(0, sqe.cid, StatusField::SUCCESS) },
            Err(Refused(status)) => {
                let completion = cqe(0, sqe.cid, StatusField::rule(status));
                let (counted, lba, nsid) = (Counted::Neither, Lba(0), sqe.nsid);
                self.health.log_error(&CommandEnd { completion, counted, lba, nsid, media_failed: false });
                completion
            }
        };
        AdminOutcome::Done(completion.encode())
    }

    fn admin_reply(&mut self, now: Nanos, sqe: &Sqe, data: &mut [u8]) -> Result<Reply, Refused> {
        let opcode = sqe.admin_opcode();
        let bad_blocks = matches!(opcode, AdminOpcode::GET_BBT | AdminOpcode::SET_BBT);
        if bad_blocks && self.config().revision == Revision::V20 {
            return Err(Refused(Status::INVALID_OPCODE));
        }
        match opcode {
            AdminOpcode::IDENTIFY
            | AdminOpcode::GEOMETRY
            | AdminOpcode::GET_LOG_PAGE
            | AdminOpcode::GET_FEATURES
            | AdminOpcode::SET_FEATURES
            | AdminOpcode::GET_BBT
            | AdminOpcode::SET_BBT
            | AdminOpcode::ABORT
            | AdminOpcode::KEEP_ALIVE
            | AdminOpcode::ASYNC_EVENT_REQUEST => check_entry(sqe)?,
            _ => return Err(Refused(Status::INVALID_OPCODE)),
        }
        let done = |()| Reply::Dword(0);
        match opcode {
            AdminOpcode::IDENTIFY => self.identify(sqe, data).map(done),
            AdminOpcode::GEOMETRY => self.geometry_page(sqe, data).map(done),
            AdminOpcode::GET_LOG_PAGE => self.get_log_page(now, sqe, data).map(done),
            AdminOpcode::GET_FEATURES => self.get_features(sqe).map(Reply::Dword),
            AdminOpcode::SET_FEATURES => self.set_features(sqe).map(Reply::Dword),
            AdminOpcode::GET_BBT => self.get_bad_blocks(sqe, data).map(done),
            AdminOpcode::SET_BBT => self.set_bad_blocks(sqe, data).map(done),
            AdminOpcode::ASYNC_EVENT_REQUEST => self.events.hold(sqe.cid).map(|()| Reply::Held),
            // Bit 0 of DW0: the command was not aborted. What a drive has begun it finishes.
            AdminOpcode::ABORT => Ok(Reply::Dword(1)),
            // The transport keeps the time; that the command arrived is all there is to it.
            AdminOpcode::KEEP_ALIVE => Ok(Reply::Dword(0)),
            _ => Err(INVALID_FIELD),
        }
    }
}

/// Places a reply at the beginning of the host's buffer.
pub(super) fn put_reply(data: &mut [u8], reply: &[u8]) -> Result<(), Refused> {
    assert!(!reply.is_empty(), "every reply has something to say");
    data.get_mut(..reply.len()).ok_or(SHORT_BUFFER)?.copy_from_slice(reply);
    Ok(())
}

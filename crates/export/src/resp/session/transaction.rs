//! MULTI, EXEC, DISCARD: commands are queued, and carried out as one batch.

use super::super::budget::Reservation;
use super::super::command::{Action, Command, Own};
use super::super::database::NO_MEMORY;
use super::super::reply::Reply;
use super::super::request::Request;
use super::{Kind, Session};

/// Commands of a transaction (chosen: far more than clients have).
const COMMANDS_MAX: usize = 16 << 10;

/// A transaction that has begun.
#[derive(Debug)]
pub(super) struct Transaction {
    calls: Vec<(&'static Command, Request)>,
    bytes: usize,
    /// Memory of all of them together, of which each brings its own beyond the first 64 KiB.
    reservation: Reservation,
    /// A command was refused: EXEC is not carried out.
    pub(super) has_failed: bool,
}

/// Commands that are carried out within a transaction at once.
pub(super) const fn passes(command: &Command) -> bool {
    matches!(command.action, Action::Own(Own::Exec | Own::Discard | Own::Multi | Own::Quit | Own::Reset))
}

impl Session {
    /// MULTI.
    pub(super) fn multi(&mut self, reply: &mut Reply) {
        if self.transaction.is_some() {
            reply.error("ERR MULTI calls can not be nested");
            return;
        }
        let reservation = self.database.borrow().budget().nothing();
        self.transaction = Some(Transaction { calls: Vec::new(), bytes: 0, reservation, has_failed: false });
        reply.ok();
    }

    /// DISCARD.
    pub(super) fn discard(&mut self, reply: &mut Reply) {
        if self.transaction.take().is_none() {
            reply.error("ERR DISCARD without MULTI");
            return;
        }
        self.database.borrow_mut().unwatch(self.id);
        reply.ok();
    }

    /// A command of a transaction.
    pub(super) fn queue(&mut self, command: &'static Command, request: Request) {
        let Some(transaction) = &mut self.transaction else { unreachable!("there is a transaction") };
        if command.name == "watch" {
            return self.answer_error("ERR WATCH inside MULTI is not allowed");
        }
        if !matches!(command.action, Action::Data { .. }) {
            return self.refuse("ERR Command not allowed inside a transaction");
        }
        transaction.bytes += request.bytes();
        if transaction.calls.len() >= COMMANDS_MAX || !transaction.reservation.cover(transaction.bytes) {
            return self.refuse(NO_MEMORY);
        }
        transaction.calls.push((command, request));
        let mut reply = Reply::new(self.version);
        reply.simple("QUEUED");
        self.answer(reply);
    }

    /// EXEC.
    pub(super) fn exec(&mut self) {
        let Some(transaction) = self.transaction.take() else {
            return self.answer_error("ERR EXEC without MULTI");
        };
        if transaction.has_failed {
            self.database.borrow_mut().unwatch(self.id);
            return self.answer_error("EXECABORT Transaction discarded because of previous errors.");
        }
        let Transaction { calls, bytes, reservation, .. } = transaction;
        self.submit(calls, Some((bytes, reservation)), Kind::Alone);
    }
}

//! One NVMe/TCP connection: greeting, Connect, then the commands of one queue.
//!
//! Its parts are files: `receive` takes what the host sends, `judge` says what it is, `respond` does what commands have come to.
//! Only the seam to the reactor is here.

use super::copies::{Assembly, Copies};
use super::packet::{Expect, Header};
use super::queue::Queue;
use super::receive::Intake;
use super::wire::{self, Agreed};
use crate::dispatcher::Dispatcher;
use crate::job::Done;
use crate::nvme_subsystem::{Bound, Commands, Name, State};
use crate::protocol::{Phase, Protocol, ProtocolError, STAGING_BYTES, Space};
use crate::send_queue::SendQueue;
use crate::stats::DropReason;
use ocssd_base::Nanos;
use std::net::SocketAddr;

/// Bytes received at once while no data is expected (chosen: 227 commands).
const TEXT_BYTES: usize = 16 << 10;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The host has not greeted.
    Hello,
    /// It has, and has not said which queue this is.
    Unbound,
    /// The queue of an association.
    Bound(Bound),
    /// Nothing more is done.
    Over,
}

/// One NVMe/TCP connection.
#[derive(Debug)]
pub struct Session {
    pub(super) stage: Stage,
    pub(super) agreed: Agreed,
    pub(super) header: Header,
    pub(super) intake: Intake,
    /// How data come to their place,
    pub(super) copies: Copies,
    /// and what is put together on the way.
    pub(super) assembly: Assembly,
    pub(super) queue: Queue,
    /// Its commands; with each, how many bytes of its data have come.
    pub(super) commands: Commands<usize>,
    pub(super) send_queue: SendQueue,
    /// What its jobs are called.
    pub(super) name: Name,
    /// Where the host came to.
    pub(super) local: Option<SocketAddr>,
    /// When the host sent a command last.
    pub(super) heard: Nanos,
    /// The last PDU carried data: the next probably does too.
    pub(super) writing: bool,
}

impl Session {
    /// A connection that has just begun; its jobs are told to (`connection`, `generation`).
    #[must_use]
    pub fn new(connection: u32, generation: u32, local: Option<SocketAddr>) -> Self {
        Self {
            stage: Stage::Hello,
            agreed: Agreed::default(),
            header: Header::default(),
            intake: Intake::Header,
            copies: Copies::default(),
            assembly: Assembly::default(),
            queue: Queue::new(0, 1, true),
            commands: Commands::new((connection, generation), 0, 1),
            send_queue: SendQueue::default(),
            name: (connection, generation),
            local,
            heard: Nanos::ZERO,
            writing: false,
        }
    }

    /// The same, whose data come another way.
    #[must_use]
    pub fn with_copies(self, copies: Copies) -> Self {
        Self { copies, ..self }
    }

    pub(super) const fn bound(&self) -> Option<Bound> {
        if let Stage::Bound(bound) = self.stage { Some(bound) } else { None }
    }

    pub(super) const fn expect(&self) -> Expect {
        if matches!(self.stage, Stage::Hello) { Expect::Hello } else { Expect::Commands }
    }

    /// Commands that will be answered without the host doing anything more.
    fn has_open_commands(&self) -> bool {
        self.commands.is_shutting_down()
            || self.commands.iter().any(|(_, command)| command.state != State::Held)
    }

    /// The association has ended, or the queue: nothing is owed any more.
    fn leave(&mut self, dispatcher: &mut Dispatcher) {
        self.give_up_commands(dispatcher);
        self.send_queue.clear(&mut dispatcher.pool);
        self.stage = Stage::Over;
    }

    /// The host has asked to disconnect: what is in the send queue is sent, and nothing else.
    pub(super) fn finish(&mut self, dispatcher: &mut Dispatcher) {
        self.give_up_commands(dispatcher);
        self.stage = Stage::Over;
    }

    /// Commands that are not answered: what they hold comes back. Jobs that are out end without them.
    fn give_up_commands(&mut self, dispatcher: &mut Dispatcher) {
        self.commands.give_up(dispatcher);
        self.assembly.clear();
        self.intake = Intake::Header;
    }

    /// Bytes until the next header is whole, if it is one like the last.
    fn next_header(&self, hlen: usize) -> usize {
        hlen + self.agreed.header_digest_bytes()
    }
}

impl Protocol for Session {
    fn on_bytes(&mut self, bytes: &[u8], dispatcher: &mut Dispatcher) -> Result<usize, ProtocolError> {
        self.receive(bytes, dispatcher).map_err(|fault| {
            wire::push_term(&mut self.send_queue, fault.error, fault.offset, self.header.bytes());
            ProtocolError { reason: fault.reason, sentence: fault.sentence }
        })
    }

    fn payload_space(&self) -> Option<Space> {
        let Intake::Data(filling) = &self.intake else { return None };
        if filling.pad > 0 || filling.at == filling.end || self.copies == Copies::Ox {
            return None;
        }
        let piece = self.commands.get(filling.command).piece.as_ref()?;
        Some(Space { buffer: piece.buffer, first: filling.at, count: filling.end - filling.at })
    }

    fn on_payload(&mut self, count: usize, dispatcher: &mut Dispatcher) {
        self.on_filled(count, dispatcher);
    }

    fn text_wanted(&self) -> usize {
        let is_stuck = |filling: &super::receive::Filling| self.commands.get(filling.command).piece.is_none();
        match (&self.intake, self.copies.receive_bytes()) {
            _ if self.stage == Stage::Over => 0,
            (Intake::Data(filling), _) if is_stuck(filling) => 0,
            (_, Some(bytes)) => bytes,
            (Intake::Header, None) if self.writing => self.header.missing(&self.agreed).max(1),
            (Intake::Header | Intake::Skip { .. }, None) => TEXT_BYTES,
            (Intake::Data(filling), None) => {
                let hlen = if filling.in_capsule { wire::COMMAND_BYTES } else { wire::DATA_BYTES };
                filling.pad + self.agreed.data_digest_bytes() + self.next_header(hlen)
            }
            (Intake::Digest { have, .. }, None) => wire::DIGEST_BYTES - have,
        }
    }

    fn staging_bytes(&self) -> usize {
        self.copies.receive_bytes().unwrap_or(STAGING_BYTES)
    }

    fn is_owed(&self) -> bool {
        let receives = self.commands.iter().any(|(_, command)| command.state == State::Receiving);
        receives || !self.header.is_empty() || !matches!(self.intake, Intake::Header)
    }

    fn judge(&mut self, dispatcher: &mut Dispatcher) -> Result<(), ProtocolError> {
        let Some(Bound { cntlid, .. }) = self.bound() else { return Ok(()) };
        let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
        let (name, now) = (self.name, dispatcher.now);
        let Some(association) = subsystem.association_mut(cntlid) else {
            // A server that stops closes each queue when it is idle; the admin queue may be first.
            if !self.commands.stopping {
                self.leave(dispatcher);
            }
            return Ok(());
        };
        association.heard = association.heard.max(self.heard);
        self.commands.always_durable = !association.features.write_cache;
        if self.queue.qid > 0 {
            if !association.queues.iter().any(|(_, queue)| *queue == name) {
                self.leave(dispatcher);
            }
            return Ok(());
        }
        if association.is_silent(now) {
            let kato = association.kato.unwrap_or_default();
            let sentence =
                format!("host {} was silent for longer than the {kato} it promised", association.hostnqn);
            return Err(ProtocolError { reason: DropReason::Silent, sentence });
        }
        self.tell_events(dispatcher);
        self.settle(dispatcher);
        Ok(())
    }

    fn on_done(&mut self, done: Done, dispatcher: &mut Dispatcher) {
        if self.stage == Stage::Over {
            // Its command was given up: nobody waits for the end.
            return done.into_pieces().for_each(|piece| dispatcher.pool.give_back(piece));
        }
        self.commands.on_done(done, dispatcher);
        self.settle(dispatcher);
    }

    fn go_on(&mut self, dispatcher: &mut Dispatcher) -> bool {
        let starved = self.find_piece(dispatcher);
        self.commands.issue(dispatcher);
        self.settle(dispatcher);
        starved || self.commands.waits_for_room()
    }

    fn send_queue(&mut self) -> &mut SendQueue {
        &mut self.send_queue
    }

    fn phase(&self) -> Phase {
        match self.stage {
            Stage::Hello | Stage::Unbound => Phase::Greeting,
            Stage::Bound(_) => Phase::Serving,
            Stage::Over => Phase::Leaving,
        }
    }

    fn on_tls(&mut self) {
        unreachable!("TLS is never begun here");
    }

    fn on_stop(&mut self) {
        self.commands.stopping = true;
    }

    fn is_idle(&self) -> bool {
        !self.has_open_commands() && self.header.is_empty() && matches!(self.intake, Intake::Header)
    }

    fn release(&mut self, dispatcher: &mut Dispatcher) {
        if let Some(Bound { cntlid, .. }) = self.bound() {
            let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
            for (connection, generation) in subsystem.leave(cntlid, self.name) {
                dispatcher.call(connection, generation);
            }
            if self.queue.qid == 0 {
                self.commands.leave_stages(dispatcher);
            }
        }
        self.leave(dispatcher);
    }
}

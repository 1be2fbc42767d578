//! What the host sends: headers, then the data behind them, each byte to its place.
//!
//! Deliberately not here: what headers may say (`packet`), and what commands do.

use super::copies::Copies;
use super::packet::{DataPart, Fault, Packet};
use super::session::{Session, Stage};
use super::wire::{Agreed, DIGEST_BYTES, FatalError};
use crate::dispatcher::Dispatcher;
use crate::nvme_subsystem::{Command, Refusal, State, Transfer};
use crate::shares::Want;
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;
use ocssd_nvme::{Sqe, StatusField};

/// Data on its way into the piece of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filling {
    pub(super) command: SlabKey,
    /// Bytes to drop first.
    pub(super) pad: usize,
    /// Where in the command's data the next byte belongs,
    pub(super) at: usize,
    /// and where the last ends.
    pub(super) end: usize,
    /// The checksum so far.
    crc: u32,
    /// It came with the command.
    pub(super) in_capsule: bool,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intake {
    /// A header.
    Header,
    /// Data.
    Data(Filling),
    /// The digest of data.
    Digest { filling: Filling, held: [u8; DIGEST_BYTES], have: usize },
    /// What belongs to a command that is refused.
    Skip { left: usize, sqe: Sqe, refusal: Refusal },
}

impl Session {
    /// Takes what the host sent; returns how much.
    pub(super) fn receive(&mut self, bytes: &[u8], dispatcher: &mut Dispatcher) -> Result<usize, Fault> {
        let mut used = 0;
        while used < bytes.len() && self.stage != Stage::Over {
            let rest = &bytes[used..];
            let taken = match &mut self.intake {
                Intake::Header if self.header.is_empty() && self.send_queue.is_long() => 0,
                Intake::Header => {
                    let (taken, packet) = self.header.take(rest, &self.agreed, self.expect())?;
                    if let Some(packet) = packet {
                        self.on_packet(packet, dispatcher)?;
                        self.header.clear();
                    }
                    taken
                }
                Intake::Data(_) => self.copy_payload(rest, dispatcher),
                Intake::Digest { filling, held, have } => {
                    let taken = rest.len().min(DIGEST_BYTES - *have);
                    held[*have..][..taken].copy_from_slice(&rest[..taken]);
                    *have += taken;
                    if *have == DIGEST_BYTES {
                        let (filling, found) = (*filling, u32::from_le_bytes(*held));
                        self.on_data(filling, found == filling.crc, dispatcher);
                    }
                    taken
                }
                Intake::Skip { left, sqe, refusal } => {
                    let taken = rest.len().min(*left);
                    *left -= taken;
                    if *left == 0 {
                        let (sqe, refusal) = (*sqe, *refusal);
                        self.intake = Intake::Header;
                        self.refuse(&sqe, refusal, dispatcher);
                    }
                    taken
                }
            };
            if taken == 0 {
                break;
            }
            used += taken;
        }
        Ok(used)
    }

    fn on_packet(&mut self, packet: Packet, dispatcher: &mut Dispatcher) -> Result<(), Fault> {
        match packet {
            Packet::Hello { alignment, header_digest, data_digest } => {
                self.agreed = Agreed { header_digest, data_digest, alignment };
                self.agreed.push_hello(&mut self.send_queue, self.copies.data_bytes_max());
                self.stage = Stage::Unbound;
                Ok(())
            }
            Packet::Command { sqe, data } => self.on_command(sqe, data, dispatcher),
            Packet::Data { cid, tag, offset, data, is_last } => {
                self.on_data_header(tag, cid, offset, data, is_last)
            }
            Packet::Closing { error } => {
                let sentence = format!("the host ended the connection with fatal error {error}");
                Err(Fault::new(FatalError::SequenceError, 0, sentence))
            }
        }
    }

    fn on_command(&mut self, sqe: Sqe, data: DataPart, dispatcher: &mut Dispatcher) -> Result<(), Fault> {
        if self.commands.is_full() {
            let sentence = "more commands came than the queue has entries";
            return Err(Fault::new(FatalError::SequenceError, 0, sentence));
        }
        self.queue.advance();
        self.heard = dispatcher.now;
        self.writing = data.bytes > 0;
        match self.judge_command(&sqe, data.bytes, dispatcher) {
            Ok(command) => self.begin(command, data, dispatcher),
            Err(refusal) if data.bytes > 0 => {
                let left = data.pad + data.bytes + self.agreed.data_digest_bytes();
                self.intake = Intake::Skip { left, sqe, refusal };
            }
            Err(refusal) => self.refuse(&sqe, refusal, dispatcher),
        }
        Ok(())
    }

    /// A command that can be carried out has come, but perhaps not its data.
    fn begin(&mut self, command: Command<usize>, data: DataPart, dispatcher: &mut Dispatcher) {
        if let Transfer::InCapsule { bytes } = command.transfer {
            assert_eq!(bytes, data.bytes, "what a capsule carries was judged");
            let key = self.commands.begin_receiving(command, dispatcher);
            self.intake = Intake::Data(Filling::new(key, data, 0, true));
            self.find_piece(dispatcher);
        } else {
            self.commands.begin(command, dispatcher);
            self.settle(dispatcher);
        }
    }

    fn on_data_header(
        &mut self,
        tag: u16,
        cid: u16,
        offset: usize,
        data: DataPart,
        is_last: bool,
    ) -> Result<(), Fault> {
        self.writing = true;
        let is_asked = |(key, command): &(SlabKey, &Command<usize>)| {
            *key == SlabKey(tag.into())
                && command.sqe.cid == cid
                && command.state == State::Receiving
                && matches!(command.transfer, Transfer::FromHost { .. })
        };
        let Some((key, command)) = self.commands.iter().find(is_asked) else {
            let sentence = format!("data came for tag {tag} and command {cid}, which nobody asked for");
            return Err(Fault::new(FatalError::InvalidHeaderField, 10, sentence));
        };
        let (received, whole) = (command.kept, command.transfer.bytes());
        if offset != received || data.bytes > whole - received {
            let sentence = format!(
                "data at {offset} of {} bytes came where {received} of {whole} bytes had come",
                data.bytes
            );
            return Err(Fault::new(FatalError::DataOutOfRange, 12, sentence));
        }
        if is_last != (offset + data.bytes == whole) {
            let sentence = format!("the flag for the last data was wrong at {offset} of {whole} bytes");
            return Err(Fault::new(FatalError::InvalidHeaderField, 1, sentence));
        }
        self.intake = Intake::Data(Filling::new(key, data, offset, false));
        Ok(())
    }

    /// Memory for the data of a capsule, whatever the connection holds: data that it asked for may be behind it. True if it must
    /// wait.
    pub(super) fn find_piece(&mut self, dispatcher: &mut Dispatcher) -> bool {
        let Intake::Data(filling) = &self.intake else { return false };
        let client = self.commands.client();
        let command = self.commands.get_mut(filling.command);
        !command.take_memory(client, Want::Last, &mut dispatcher.pool)
    }

    /// Data that came behind a header is copied to where it belongs; returns how much.
    fn copy_payload(&mut self, bytes: &[u8], dispatcher: &mut Dispatcher) -> usize {
        let Intake::Data(filling) = &mut self.intake else { return 0 };
        let Some(piece) = &self.commands.get(filling.command).piece else { return 0 };
        let pad = filling.pad.min(bytes.len());
        filling.pad -= pad;
        let bytes = &bytes[pad..];
        if self.copies == Copies::Ox {
            return pad + self.assemble(bytes, dispatcher);
        }
        let count = bytes.len().min(filling.end - filling.at);
        dispatcher.buffers.bytes_mut(piece.buffer, filling.at, count).copy_from_slice(&bytes[..count]);
        dispatcher.stats.received_copied_bytes += u64::try_from(count).expect("a length");
        if count > 0 {
            self.on_filled(count, dispatcher);
        }
        pad + count
    }

    /// Data of a message as OX takes it: put together if it was split, then copied as a whole; returns how much was taken.
    fn assemble(&mut self, bytes: &[u8], dispatcher: &mut Dispatcher) -> usize {
        let Intake::Data(filling) = self.intake else { return 0 };
        let whole = filling.end - filling.at;
        let taken = self.assembly.take(bytes, whole);
        let copied = if taken.is_split { taken.bytes } else { 0 } + if taken.is_whole { whole } else { 0 };
        dispatcher.stats.received_copied_bytes += u64::try_from(copied).expect("a length");
        if taken.is_whole {
            let piece = self.commands.get(filling.command).piece.as_ref().expect("it was looked at");
            let message = if taken.is_split { self.assembly.bytes() } else { &bytes[..whole] };
            dispatcher.buffers.bytes_mut(piece.buffer, filling.at, whole).copy_from_slice(message);
            self.assembly.clear();
            self.on_filled(whole, dispatcher);
        }
        taken.bytes
    }

    /// `count` bytes of data are where they belong.
    pub(super) fn on_filled(&mut self, count: usize, dispatcher: &mut Dispatcher) {
        let Intake::Data(filling) = &mut self.intake else {
            unreachable!("data came where there is no place for it")
        };
        dispatcher.stats.received_bytes += u64::try_from(count).expect("a length");
        if self.agreed.data_digest {
            let piece = self.commands.get(filling.command).piece.as_ref();
            let piece = piece.expect("data came into it");
            let bytes = dispatcher.buffers.bytes(piece.buffer, filling.at, count);
            filling.crc = crc32c::crc32c_append(filling.crc, bytes);
        }
        filling.at += count;
        assert!(filling.at <= filling.end, "more data came than there is a place for");
        let filling = *filling;
        if filling.at < filling.end {
            return;
        }
        if self.agreed.data_digest {
            self.intake = Intake::Digest { filling, held: [0; DIGEST_BYTES], have: 0 };
        } else {
            self.on_data(filling, true, dispatcher);
        }
    }

    /// The data of a PDU is whole.
    fn on_data(&mut self, filling: Filling, is_sound: bool, dispatcher: &mut Dispatcher) {
        self.intake = Intake::Header;
        let command = self.commands.get_mut(filling.command);
        command.kept = filling.end;
        if !is_sound {
            dispatcher.stats.digest_errors += 1;
            // Not fatal: the command fails, and may be tried again (section 3.3.1.2).
            command.failure.get_or_insert(StatusField::retry(Status::TRANSIENT_TRANSPORT_ERROR));
        }
        if command.kept < command.transfer.bytes() {
            return;
        }
        self.commands.on_received(filling.command, dispatcher);
        self.settle(dispatcher);
    }
}

impl Filling {
    fn new(command: SlabKey, data: DataPart, at: usize, in_capsule: bool) -> Self {
        Self { command, pad: data.pad, at, end: at + data.bytes, crc: 0, in_capsule }
    }
}

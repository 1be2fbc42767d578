//! Long values on their way: pieces of one length, and what is left of them at the end.
//!
//! A stage writes what is appended as soon as there is enough for a piece, so that a value of hundreds of megabytes needs no
//! memory; a store of it writes the rest. Deliberately not here: the record that gives the value to a key (`change`).

use super::buffer_units::Stream;
use super::long_values::ValuePiece;
use super::record::{RecordHeader, RecordKind};
use super::state::{Kv, record_bytes};
use ocssd_base::usize_of;
use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::interface::{Content, StageId, StageOp, StageRefusal};

/// A value that is being written.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    /// Its number, once it has a piece.
    value: Option<u64>,
    /// Bytes in pieces.
    written: u32,
    /// What follows.
    content: Vec<u8>,
    /// Bytes of `content` that are in pieces.
    at: usize,
}

impl Writer {
    /// All of a value.
    pub const fn of(content: Vec<u8>) -> Self {
        Self { value: None, written: 0, content, at: 0 }
    }

    /// The number of the value; 0 of one without a piece.
    pub fn value(&self) -> u64 {
        self.value.unwrap_or(0)
    }

    /// Bytes in pieces.
    pub const fn written(&self) -> u32 {
        self.written
    }

    fn left(&self) -> usize {
        self.content.len() - self.at
    }
}

/// A stage.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    /// Bytes it will have.
    bytes: u32,
    /// Bytes it has.
    staged: u32,
    pub writer: Writer,
}

impl Kv {
    /// Looks at what is to be done to a stage.
    pub(super) fn look_at_stage(&self, op: &StageOp, buffers: &Buffers) -> Result<(), StageRefusal> {
        let limits = self.sizes.limits().stages;
        match *op {
            StageOp::Open { stage, .. } | StageOp::Append { stage, .. } | StageOp::Abort { stage }
                if stage.0 >= limits.stages_max =>
            {
                Err(StageRefusal::NameOutOfRange)
            }
            StageOp::Open { stage, .. } if self.stages.contains_key(&stage) => Err(StageRefusal::IsOpen),
            StageOp::Open { bytes, .. } if bytes > limits.bytes_max => Err(StageRefusal::TooLong),
            StageOp::Open { .. } => Ok(()),
            StageOp::Abort { stage } => self.stages.get(&stage).map(|_| ()).ok_or(StageRefusal::NotOpen),
            StageOp::Append { stage, offset, content } => {
                let found = self.stages.get(&stage).ok_or(StageRefusal::NotOpen)?;
                let end = u64::from(found.staged) + u64::from(content.bytes());
                match content {
                    _ if offset != found.staged => Err(StageRefusal::OutOfOrder { staged: found.staged }),
                    _ if end > u64::from(found.bytes) => Err(StageRefusal::BeyondEnd),
                    Content::Staged { .. } => Err(StageRefusal::BadContent),
                    _ if !content.lies_within(buffers) => Err(StageRefusal::BadContent),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Looks at a stage that a store names.
    pub(super) fn look_at_staged(&self, stage: StageId, bytes: u32) -> Result<(), StageRefusal> {
        let found = self.stages.get(&stage).ok_or(StageRefusal::NotOpen)?;
        let is_whole = found.staged == found.bytes && found.staged == bytes;
        if is_whole { Ok(()) } else { Err(StageRefusal::Incomplete { staged: found.staged }) }
    }

    /// Does what was looked at; of an append, the content is taken. Its pieces follow ([`Self::go_on_staging`]).
    pub(super) fn change_stage(&mut self, op: &StageOp, buffers: &Buffers) {
        match *op {
            StageOp::Open { stage, bytes } => {
                let before =
                    self.stages.insert(stage, Stage { bytes, staged: 0, writer: Writer::of(Vec::new()) });
                assert!(before.is_none(), "stage {} is opened twice", stage.0);
            }
            StageOp::Append { stage, content, .. } => {
                let found = self.stages.get_mut(&stage).expect("it was looked at");
                found.writer.content.extend_from_slice(&content.gathered(buffers));
                found.staged += content.bytes();
                assert!(found.staged <= found.bytes, "a stage has more than {} bytes", found.bytes);
            }
            StageOp::Abort { stage } => {
                let found = self.stages.remove(&stage).expect("it was looked at");
                self.forget_long(found.writer.value());
            }
        }
    }

    /// Writes the pieces of a stage that are whole. True if there is none left.
    pub(super) fn go_on_staging(&mut self, stage: StageId, buffers: &mut Buffers) -> bool {
        self.write_stage(stage, false, buffers)
    }

    /// Writes what is left of a stage. True if nothing is.
    pub(super) fn end_staged(&mut self, stage: StageId, buffers: &mut Buffers) -> bool {
        self.write_stage(stage, true, buffers)
    }

    fn write_stage(&mut self, stage: StageId, to_end: bool, buffers: &mut Buffers) -> bool {
        let mut found = self.stages.remove(&stage).expect("a stage that is written is there");
        let is_written = self.write_pieces(&mut found.writer, to_end, buffers);
        self.stages.insert(stage, found);
        is_written
    }

    /// Writes the pieces of a value, as far as there are buffer units; the last one only if it is to end. True if all are written.
    pub(super) fn write_pieces(&mut self, writer: &mut Writer, to_end: bool, buffers: &mut Buffers) -> bool {
        let piece = self.sizes.piece_bytes();
        assert!(
            piece > 0 && writer.at <= writer.content.len(),
            "{} bytes of {} are written",
            writer.at,
            writer.content.len()
        );
        if writer.value.is_none() {
            writer.value = Some(self.next_sequence());
        }
        let value = writer.value();
        while writer.left() >= usize_of(piece) || to_end && writer.left() > 0 {
            let bytes = u32::try_from(writer.left()).unwrap_or(u32::MAX).min(piece);
            if !self.make_room(Stream::Long, std::iter::once(record_bytes(0, bytes))) {
                return false;
            }
            let payload = &writer.content[writer.at..writer.at + usize_of(bytes)];
            let single = self.single(RecordKind::Piece, &[], payload);
            let header = RecordHeader { value, offset: writer.written, ..single };
            let at = self.append(Stream::Long, &header, (&[], payload), buffers);
            let before = self.long.set(value, ValuePiece { offset: writer.written, bytes, at: Some(at) });
            assert!(before.is_none(), "piece {} of value {value} is written twice", writer.written);
            writer.written += bytes;
            writer.at += usize_of(bytes);
        }
        writer.content.drain(..writer.at);
        assert!(
            !to_end || writer.content.is_empty(),
            "a value ended with {} bytes left",
            writer.content.len()
        );
        assert!(writer.content.len() < usize_of(piece), "a piece was left behind");
        writer.at = 0;
        true
    }
}

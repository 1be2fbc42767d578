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
use ocssd_lightnvm::interface::{Content, Piece, StageId, StageOp, StageRefusal};

/// Where the rest of a value is.
#[derive(Clone, Debug)]
enum Rest {
    /// In a row where the request has it until its reply.
    Row(Piece),
    /// Here, from one of its bytes on.
    Kept(Vec<u8>, usize),
}

/// A value that is being written.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    /// Its number, once it has a piece.
    value: Option<u64>,
    /// Bytes in pieces.
    written: u32,
    rest: Rest,
}

impl Writer {
    /// All of a value: it is copied here if it does not lie in a row.
    pub fn of(content: Content, buffers: &Buffers) -> Self {
        let rest = match (content, content.row(buffers)) {
            (Content::Piece(piece), Some(_)) => Rest::Row(piece),
            _ => Rest::Kept(content.gathered(buffers), 0),
        };
        Self { value: None, written: 0, rest }
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
        match &self.rest {
            Rest::Row(piece) => usize_of(piece.bytes),
            Rest::Kept(content, at) => content.len() - at,
        }
    }

    /// More of it comes.
    fn extend(&mut self, content: &Content, buffers: &Buffers) {
        let Rest::Kept(kept, _) = &mut self.rest else { unreachable!("what is staged is kept") };
        content.gather(buffers, kept);
    }

    /// So many bytes are in one more piece.
    fn has_written(&mut self, bytes: u32) {
        self.written += bytes;
        match &mut self.rest {
            Rest::Row(piece) => {
                (piece.first_byte, piece.bytes) = (piece.first_byte + bytes, piece.bytes - bytes);
            }
            Rest::Kept(content, at) => {
                *at += usize_of(bytes);
                assert!(*at <= content.len(), "{at} bytes of {} are written", content.len());
            }
        }
    }

    /// What is written is forgotten.
    fn forget_written(&mut self) {
        if let Rest::Kept(content, at) = &mut self.rest {
            content.drain(..*at);
            *at = 0;
        }
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
                let writer = Writer::of(Content::Empty, buffers);
                let before = self.stages.insert(stage, Stage { bytes, staged: 0, writer });
                assert!(before.is_none(), "stage {} is opened twice", stage.0);
            }
            StageOp::Append { stage, content, .. } => {
                let found = self.stages.get_mut(&stage).expect("it was looked at");
                found.writer.extend(&content, buffers);
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

    /// Writes the pieces of a value, as far as there are buffer units and this turn may copy; the last one only if it is to end.
    /// True if all are written.
    pub(super) fn write_pieces(&mut self, writer: &mut Writer, to_end: bool, buffers: &mut Buffers) -> bool {
        let piece = self.sizes.piece_bytes();
        assert!(piece > 0, "a piece holds nothing");
        if writer.value.is_none() {
            writer.value = Some(self.next_sequence());
        }
        while writer.left() >= usize_of(piece) || to_end && writer.left() > 0 {
            let bytes = u32::try_from(writer.left()).unwrap_or(u32::MAX).min(piece);
            if !self.make_room(Stream::Long, std::iter::once(record_bytes(0, bytes)))
                || !self.copies.take(bytes)
            {
                return false;
            }
            self.write_piece(writer, bytes, buffers);
        }
        writer.forget_written();
        assert!(!to_end || writer.left() == 0, "a value ended with {} bytes left", writer.left());
        assert!(writer.left() < usize_of(piece), "a piece was left behind");
        true
    }

    /// Writes so many bytes of a value as its next piece; there is room for it.
    fn write_piece(&mut self, writer: &mut Writer, bytes: u32, buffers: &mut Buffers) {
        let (value, offset) = (writer.value(), writer.written());
        let header = RecordHeader { value, offset, ..self.single_of(RecordKind::Piece, 0, bytes) };
        let at = match &writer.rest {
            Rest::Row(piece) => {
                let content = Content::Piece(Piece { bytes, ..*piece });
                self.append_content(Stream::Long, &header, (&[], &content), buffers)
            }
            Rest::Kept(content, at) => {
                let payload = &content[*at..*at + usize_of(bytes)];
                self.append(Stream::Long, &header, (&[], payload), buffers)
            }
        };
        let before = self.long.set(value, ValuePiece { offset, bytes, at: Some(at) });
        assert!(before.is_none(), "piece {offset} of value {value} is written twice");
        writer.has_written(bytes);
    }
}

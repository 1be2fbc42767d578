//! Payload of requests that is no run of blocks: any bytes of any buffers, and stages for what is longer.
//!
//! In a whole buffer a piece names bytes. In a buffer of stamps it names sectors: both its ends lie between two sectors,
//! and a sector's content is its stamp, repeated. So terabytes of sector-sized pages are simulated with stamps, and pages
//! of any length with whole buffers. Deliberately not here: who keeps staged content (the target).

use super::list::{Entry, List, u32_at, whole, whole_mut};
use crate::buffers::{BufId, Buffers};
use crate::status::Status;
use std::fmt;

/// Most pieces of a gather list: an 8 MiB flush buffer in pages of 4 KiB is 2,048 (a PRP list over vfio-user), and a
/// buffer twice as long is still one request (chosen).
pub const PIECES_MAX: u32 = 4_096;

/// When a change survives a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Once a flush is answered that the target took after answering the change.
    #[default]
    AtFlush,
    /// Once the change is answered: NVMe's FUA.
    AtReply,
}

/// Some bytes of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The buffer.
    pub buffer: BufId,
    /// First byte of the buffer's sectors; in a buffer of stamps a multiple of the sector.
    pub first_byte: u32,
    /// How many bytes; in a buffer of stamps a multiple of the sector.
    pub bytes: u32,
}

impl Entry for Piece {
    const BYTES: usize = 16;

    fn encode(&self, bytes: &mut [u8]) {
        bytes[..4].copy_from_slice(&self.buffer.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.first_byte.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[12..].fill(0);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (buffer, first_byte, length) = (u32_at(bytes, 0), u32_at(bytes, 4), u32_at(bytes, 8));
        (bytes[12..] == [0; 4]).then_some(Self { buffer: BufId(buffer), first_byte, bytes: length })
    }
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

impl Piece {
    /// True if the buffer has these bytes, and if it holds stamps only, both ends lie between two sectors.
    #[must_use]
    pub fn lies_within(&self, buffers: &Buffers) -> bool {
        let sector = buffers.format().sector_bytes;
        let (first, bytes) = (index(self.first_byte), index(self.bytes));
        let is_aligned = first.is_multiple_of(sector) && bytes.is_multiple_of(sector);
        first + bytes <= index(buffers.sectors(self.buffer)) * sector
            && (is_aligned || buffers.is_whole(self.buffer))
    }

    /// Appends the bytes it names to `to`; of stamps, each sector's stamp repeated to the sector's end.
    ///
    /// # Panics
    /// If it does not lie within its buffer.
    pub fn gather(&self, buffers: &Buffers, to: &mut Vec<u8>) {
        assert!(self.lies_within(buffers), "{self:?} is outside of its buffer, or no run of stamps");
        let (first, bytes, sector) =
            (index(self.first_byte), index(self.bytes), buffers.format().sector_bytes);
        if buffers.is_whole(self.buffer) {
            to.extend_from_slice(&whole(buffers, self.buffer)[first..][..bytes]);
            return;
        }
        for at in (first..first + bytes).step_by(sector) {
            let place = u32::try_from(at / sector).expect("a sector of a buffer");
            let stamp = buffers.data(self.buffer, place, 1);
            to.extend(stamp.iter().cycle().take(sector));
        }
    }

    /// Writes `content` to the first bytes it names; of a buffer of stamps, the begin of each sector as its stamp.
    ///
    /// # Panics
    /// If it does not lie within its buffer, or is shorter than `content`.
    pub fn scatter(&self, buffers: &mut Buffers, content: &[u8]) {
        assert!(self.lies_within(buffers), "{self:?} is outside of its buffer, or no run of stamps");
        assert!(content.len() <= index(self.bytes), "{} bytes into {self:?}", content.len());
        let (first, format) = (index(self.first_byte), buffers.format());
        if buffers.is_whole(self.buffer) {
            whole_mut(buffers, self.buffer)[first..][..content.len()].copy_from_slice(content);
            return;
        }
        for (nth, sector) in content.chunks(format.sector_bytes).enumerate() {
            let place = u32::try_from(first / format.sector_bytes + nth).expect("a sector of a buffer");
            let length = sector.len().min(format.data_bytes);
            buffers.data_mut(self.buffer, place, 1)[..length].copy_from_slice(&sector[..length]);
        }
    }
}

/// The host's name for a stage, below [`StageLimits::stages_max`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageId(pub u32);

/// The payload of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// None: zero bytes.
    #[default]
    Empty,
    /// One piece.
    Piece(Piece),
    /// Pieces one after the other, at most [`PIECES_MAX`].
    Pieces {
        /// The pieces.
        list: List<Piece>,
        /// Bytes of all of them.
        bytes: u32,
    },
    /// What was staged. The request ends the stage when it succeeds; a refused one leaves the stage as it is.
    Staged {
        /// The stage.
        stage: StageId,
        /// Bytes of the stage.
        bytes: u32,
    },
}

const _: () = assert!(size_of::<Content>() == 16, "content grew");

impl Content {
    /// How many bytes.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        match *self {
            Self::Empty => 0,
            Self::Piece(piece) => piece.bytes,
            Self::Pieces { bytes, .. } | Self::Staged { bytes, .. } => bytes,
        }
    }

    /// The pieces in order; none of what was staged.
    fn pieces<'a>(&'a self, buffers: &'a Buffers) -> impl Iterator<Item = Option<Piece>> + 'a {
        let (one, list) = match self {
            Self::Piece(piece) => (Some(Some(*piece)), None),
            Self::Pieces { list, .. } => (None, Some(list.entries(buffers))),
            Self::Empty | Self::Staged { .. } => (None, None),
        };
        one.into_iter().chain(list.into_iter().flatten())
    }

    /// True if every piece lies within its buffer, a list is not too long, and the pieces have as many bytes as it says.
    /// Cost: a look at each piece.
    #[must_use]
    pub fn lies_within(&self, buffers: &Buffers) -> bool {
        if let Self::Pieces { list, .. } = self
            && (list.count > PIECES_MAX || !list.lies_within(buffers))
        {
            return false;
        }
        let mut bytes = 0;
        for piece in self.pieces(buffers) {
            let Some(piece) = piece.filter(|piece| piece.lies_within(buffers)) else { return false };
            bytes += u64::from(piece.bytes);
        }
        matches!(self, Self::Staged { .. }) || bytes == u64::from(self.bytes())
    }

    /// The bytes of all pieces in order; none of what was staged, which the target has.
    ///
    /// # Panics
    /// If it does not lie within its buffers.
    #[must_use]
    pub fn gathered(&self, buffers: &Buffers) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(index(self.bytes()));
        self.gather(buffers, &mut bytes);
        bytes
    }

    /// Appends the bytes of all pieces, in order, to `to`; none of what was staged.
    ///
    /// # Panics
    /// If it does not lie within its buffers.
    pub fn gather(&self, buffers: &Buffers, to: &mut Vec<u8>) {
        assert!(self.lies_within(buffers), "{self:?} is outside of its buffers");
        for piece in self.pieces(buffers) {
            piece.expect("every piece was looked at").gather(buffers, to);
        }
    }

    /// Writes `content` over the first bytes of its pieces, in order.
    ///
    /// # Panics
    /// If it does not lie within its buffers, or is shorter than `content`.
    pub fn scatter(&self, buffers: &mut Buffers, content: &[u8]) {
        assert!(self.lies_within(buffers), "{self:?} is outside of its buffers");
        assert!(content.len() <= index(self.bytes()), "{} bytes into {self:?}", content.len());
        if let Self::Piece(piece) = self {
            return piece.scatter(buffers, content);
        }
        let pieces: Vec<Piece> = self.pieces(buffers).flatten().collect();
        let mut rest = content;
        for piece in pieces {
            let (now, later) = rest.split_at(rest.len().min(index(piece.bytes)));
            piece.scatter(buffers, now);
            rest = later;
        }
    }

    /// The buffer that holds all of its bytes, and the byte they begin at, if they lie in a row in one whole buffer: then they can
    /// be copied from there, or to there, part by part ([`Buffers::copy_whole`]).
    #[must_use]
    pub fn row(&self, buffers: &Buffers) -> Option<(BufId, usize)> {
        match self {
            Self::Piece(piece) if buffers.is_whole(piece.buffer) => {
                Some((piece.buffer, index(piece.first_byte)))
            }
            _ => None,
        }
    }

    /// Copies the bytes of all pieces, in order, to a whole buffer from one of its bytes on. Bytes of a piece that lies in a whole
    /// buffer are copied once.
    ///
    /// # Panics
    /// If it does not lie within its buffers, or the buffer has no room for it.
    pub fn gather_to(&self, buffers: &mut Buffers, (to, first): (BufId, usize)) {
        match self.row(buffers) {
            Some(from) => buffers.copy_whole(from, (to, first), index(self.bytes())),
            None => {
                let bytes = self.gathered(buffers);
                whole_mut(buffers, to)[first..][..bytes.len()].copy_from_slice(&bytes);
            }
        }
    }

    /// Writes `count` bytes of a whole buffer, from one of its bytes on, over the first bytes of the pieces. Into a piece that lies
    /// in a whole buffer they are copied once.
    ///
    /// # Panics
    /// If it does not lie within its buffers, or is shorter than `count`.
    pub fn scatter_from(&self, buffers: &mut Buffers, (from, first): (BufId, usize), count: usize) {
        assert!(count <= index(self.bytes()), "{count} bytes into {self:?}");
        match self.row(buffers) {
            Some(to) => buffers.copy_whole((from, first), to, count),
            None => {
                let bytes = whole(buffers, from)[first..][..count].to_vec();
                self.scatter(buffers, &bytes);
            }
        }
    }
}

/// How much a target stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageLimits {
    /// Stages at the same time; their names are below.
    pub stages_max: u32,
    /// Bytes of one stage.
    pub bytes_max: u32,
}

/// What is done to a stage. Every interface has these among its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageOp {
    /// Begins a stage for `bytes` bytes, so that a target may make room for them, or refuse, before they come.
    Open {
        /// A name that is not in use.
        stage: StageId,
        /// Bytes it will have.
        bytes: u32,
    },
    /// Appends content.
    Append {
        /// A stage that was begun.
        stage: StageId,
        /// Bytes staged so far: a piece that was sent twice, or lost, is refused.
        offset: u32,
        /// What is appended; not staged itself.
        content: Content,
    },
    /// Ends the stage and forgets its content.
    Abort {
        /// A stage that was begun.
        stage: StageId,
    },
}

/// Why something about a stage was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageRefusal {
    /// No stage can have this name.
    NameOutOfRange,
    /// The stage was begun before and is not over.
    IsOpen,
    /// No such stage is begun.
    NotOpen,
    /// More bytes than a stage may have.
    TooLong,
    /// A piece that does not follow the bytes staged so far.
    OutOfOrder {
        /// Bytes staged so far.
        staged: u32,
    },
    /// More bytes than the stage was begun for.
    BeyondEnd,
    /// The stage was named as content before all its bytes were there, or with another length.
    Incomplete {
        /// Bytes staged so far.
        staged: u32,
    },
    /// A piece lies outside of its buffer, or a stage was appended to a stage.
    BadContent,
}

impl StageRefusal {
    /// The status of the reply: Command Sequence Error for what came at the wrong time, Invalid Field for the rest.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::IsOpen | Self::NotOpen | Self::OutOfOrder { .. } | Self::Incomplete { .. } => {
                Status::COMMAND_SEQUENCE_ERROR
            }
            Self::NameOutOfRange | Self::TooLong | Self::BeyondEnd | Self::BadContent => {
                Status::INVALID_FIELD
            }
        }
    }
}

impl fmt::Display for StageRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameOutOfRange => {
                f.write_str("a stage's name is below the number of stages the target has")
            }
            Self::IsOpen => {
                f.write_str("the stage is open: abort it, or name it in a request, before it is opened again")
            }
            Self::NotOpen => f.write_str("no such stage is open: open it first; a power cut ends all stages"),
            Self::TooLong => f.write_str("a stage has no more bytes than the target's limit"),
            Self::OutOfOrder { staged } => write!(f, "the next piece of the stage begins at byte {staged}"),
            Self::BeyondEnd => f.write_str("a stage takes no more bytes than it was opened for"),
            Self::Incomplete { staged } => {
                write!(f, "a request names a stage by its whole length, and {staged} bytes were staged")
            }
            Self::BadContent => f.write_str("a piece lies within its buffer, and is not staged itself"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::{Payload, PayloadFormat};
    use crate::geometry::Geometry;

    fn pool(payload: Payload) -> Buffers {
        Buffers::new(PayloadFormat::new(payload, &Geometry::example(1, 1, 4, 24, 24)))
    }

    #[test]
    fn bytes_are_gathered_over_buffers_and_scattered_again() {
        for payload in [Payload::Bytes, Payload::Stamp] {
            let mut buffers = pool(payload);
            let (a, b, list) = (buffers.take_whole(1), buffers.take_whole(2), buffers.take_whole(1));
            let pieces = [
                Piece { buffer: a, first_byte: 5, bytes: 3 },
                Piece { buffer: b, first_byte: 4_095, bytes: 2 },
                Piece { buffer: a, first_byte: 0, bytes: 1 },
            ];
            let content = Content::Pieces { list: List::write(&mut buffers, list, &pieces), bytes: 6 };
            content.scatter(&mut buffers, &[1, 2, 3, 4, 5, 6]);
            assert_eq!(content.gathered(&buffers), [1, 2, 3, 4, 5, 6]);
            let (before, first) = (buffers.whole(b, 0, 2)[4_094], &buffers.whole(a, 0, 1)[..8]);
            assert_eq!((before, first), (0, &[6, 0, 0, 0, 0, 1, 2, 3][..]), "{payload:?}");
        }
    }

    #[test]
    fn stamps_stand_for_sectors_that_repeat_them() {
        let mut buffers = pool(Payload::Stamp);
        let buffer = buffers.take(3);
        let content: Vec<u8> = [[7; 4_096], [9; 4_096]].concat();
        let piece = Piece { buffer, first_byte: 4_096, bytes: 8_192 };
        Content::Piece(piece).scatter(&mut buffers, &content);
        assert_eq!(buffers.data(buffer, 1, 2), [[7; 16], [9; 16]].concat());
        assert_eq!(Content::Piece(piece).gathered(&buffers), content);
    }

    #[test]
    fn content_outside_of_its_buffers_is_told() {
        let mut buffers = pool(Payload::Stamp);
        let (plain, whole, list) = (buffers.take(2), buffers.take_whole(2), buffers.take_whole(1));
        let piece = |buffer, first_byte, bytes| Piece { buffer, first_byte, bytes };
        for (at, fits) in [
            (piece(plain, 0, 8_192), true),
            (piece(plain, 4_096, 4_096), true),
            (piece(plain, 0, 100), false),
            (piece(plain, 100, 4_096), false),
            (piece(whole, 100, 8_092), true),
            (piece(whole, 100, 8_093), false),
            (piece(whole, u32::MAX, 1), false),
        ] {
            assert_eq!(Content::Piece(at).lies_within(&buffers), fits, "{at:?}");
        }
        let pieces = List::write(&mut buffers, list, &[piece(whole, 0, 10), piece(whole, 50, 5)]);
        for (content, fits) in [
            (Content::Pieces { list: pieces, bytes: 15 }, true),
            (Content::Pieces { list: pieces, bytes: 14 }, false),
            (Content::Pieces { list: List::new(list, PIECES_MAX + 1), bytes: 15 }, false),
            (Content::Staged { stage: StageId(3), bytes: 1 << 28 }, true),
            (Content::Empty, true),
        ] {
            assert_eq!(content.lies_within(&buffers), fits, "{content:?}");
        }
    }

    #[test]
    fn every_refusal_has_a_sentence_and_a_status_that_is_no_success() {
        for refusal in [
            StageRefusal::NameOutOfRange,
            StageRefusal::IsOpen,
            StageRefusal::NotOpen,
            StageRefusal::TooLong,
            StageRefusal::OutOfOrder { staged: 5 },
            StageRefusal::BeyondEnd,
            StageRefusal::Incomplete { staged: 5 },
            StageRefusal::BadContent,
        ] {
            assert!(!refusal.status().is_success() && refusal.to_string().len() > 30, "{refusal:?}");
        }
    }
}

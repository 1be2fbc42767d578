//! Records go to the buffer units of a stream, each at its place on media from then on.
//!
//! All buffer units that a change needs are opened before its first record is appended, so that a checkpoint never comes between
//! the records of one change. Deliberately not here: what records say (`change`, `stage`, `collect`), and when buffer units go out
//! (`program`).

use super::buffer_units::Stream;
use super::record::{RECORD_HEADER_BYTES, RecordHeader, RecordKind};
use super::space::Claim;
use super::state::Kv;
use ocssd_base::usize_of;
use ocssd_ftl::{PhysicalAddress, checksum};
use ocssd_lightnvm::interface::Content;
use ocssd_lightnvm::{BufId, Buffers};

/// Where a record goes.
#[derive(Clone, Copy)]
struct Room {
    buffer: BufId,
    begin: usize,
    bytes: usize,
}

impl Room {
    fn of(self, buffers: &mut Buffers) -> &mut [u8] {
        let sectors = buffers.sectors(self.buffer);
        &mut buffers.whole_mut(self.buffer, 0, sectors)[self.begin..][..self.bytes]
    }
}

impl Stream {
    const fn claim(self) -> Claim {
        match self {
            Self::Small | Self::Long => Claim::User,
            // Pages that users' changes push out are written only while chunks are plenty (`index_pages`).
            Self::Cold | Self::Index => Claim::Gc,
        }
    }
}

impl Kv {
    /// Opens buffer units until a stream takes records of these sizes, in this order. False if there is no room for them now; what
    /// was opened stays so.
    pub(super) fn make_room(&mut self, stream: Stream, records: impl Iterator<Item = u32>) -> bool {
        let unit = self.sizes.unit_room();
        let (empty, mut left) = self.buffer_units.room(stream);
        let mut needed = 0;
        for bytes in records {
            assert!(bytes <= self.sizes.record_bytes_max, "a record of {bytes} bytes");
            if bytes > left {
                needed += 1;
                left = unit;
            }
            left -= bytes;
        }
        (empty..needed).all(|_| self.open_buffer_unit(stream))
    }

    fn open_buffer_unit(&mut self, stream: Stream) -> bool {
        if !self.buffer_units.has_free(stream) || self.refuses_changes().is_some() {
            return false;
        }
        let stays = stream == Stream::Cold && self.gc.is_levelling();
        let Self { points, space, sizes, buffer_units, wear, .. } = self;
        let at = points.streams[stream.index()].next(sizes.unit, |units| {
            if stays {
                return space.open_worn(units, |chunk| wear.resets(chunk));
            }
            space.open(units, stream.claim())
        });
        let Some(at) = at else { return false };
        assert_eq!(at.sector % sizes.unit, 0, "a buffer unit begins within a unit, at {at:?}");
        let place = PhysicalAddress(space.shape.first_place(at.chunk).0 + u64::from(at.sector));
        buffer_units.open(stream, (at, place), space.shape.split_chunk(at.chunk).1);
        true
    }

    /// Appends a record to a stream that has room for it: the byte of the instance it begins at.
    pub(super) fn append(
        &mut self,
        stream: Stream,
        header: &RecordHeader,
        (key, payload): (&[u8], &[u8]),
        buffers: &mut Buffers,
    ) -> u64 {
        let (room, at) = self.take_room(stream, header);
        header.encode(key, payload, room.of(buffers));
        at
    }

    /// Appends a record whose payload is the content of a request, which is copied once.
    pub(super) fn append_content(
        &mut self,
        stream: Stream,
        header: &RecordHeader,
        (key, content): (&[u8], &Content),
        buffers: &mut Buffers,
    ) -> u64 {
        let (room, at) = self.take_room(stream, header);
        let payload = RECORD_HEADER_BYTES + key.len();
        assert_eq!(content.bytes(), header.payload_bytes, "content of another length");
        content.gather_to(buffers, (room.buffer, room.begin + payload));
        let record = room.of(buffers);
        record[RECORD_HEADER_BYTES..payload].copy_from_slice(key);
        let sum = checksum(&record[payload..]);
        header.encode_around(sum, record);
        at
    }

    /// Appends a record whose key and payload are those of another, which begins at a byte of a buffer. Its payload has this
    /// checksum.
    pub(super) fn append_copy(
        &mut self,
        stream: Stream,
        header: &RecordHeader,
        (from, begin, payload_checksum): (BufId, usize, u32),
        buffers: &mut Buffers,
    ) -> u64 {
        let (room, at) = self.take_room(stream, header);
        let behind = |begin: usize| begin + RECORD_HEADER_BYTES;
        let count = room.bytes - RECORD_HEADER_BYTES;
        buffers.copy_whole((from, behind(begin)), (room.buffer, behind(room.begin)), count);
        header.encode_around(payload_checksum, room.of(buffers));
        at
    }

    /// Room for a record in a stream that has it, and the byte of the instance it begins at.
    fn take_room(&mut self, stream: Stream, header: &RecordHeader) -> (Room, u64) {
        let bytes = u32::try_from(header.bytes()).expect("a record is shorter than a unit");
        let (buffer, begin, at, place) = self.buffer_units.take(stream, bytes, header.sequence);
        assert!(header.sequence <= self.sequence, "{header:?} comes after {}", self.sequence);
        assert!(bytes <= self.sizes.record_bytes_max, "a record of {bytes} bytes is appended");
        if header.kind.is_kept() {
            self.space.add(at.chunk, u64::from(bytes));
        }
        let written = match stream {
            Stream::Small | Stream::Long => &mut self.stats.user_written_bytes,
            Stream::Cold => &mut self.stats.gc_written_bytes,
            Stream::Index => &mut self.stats.index_written_bytes,
        };
        *written += u64::from(bytes);
        self.written += u64::from(bytes);
        self.work_due = true;
        let byte = place.0 * u64::from(self.sizes.sector_bytes) + u64::from(begin);
        (Room { buffer, begin: usize_of(begin), bytes: usize_of(bytes) }, byte)
    }

    /// A record of its own: of no batch.
    pub(super) fn single(&mut self, kind: RecordKind, key: &[u8], payload: &[u8]) -> RecordHeader {
        let key_bytes = u8::try_from(key.len()).expect("a key has at most 255 bytes");
        self.single_of(kind, key_bytes, u32::try_from(payload.len()).expect("a payload fits a record"))
    }

    /// The same for a key and a payload of these lengths.
    pub(super) fn single_of(&mut self, kind: RecordKind, key_bytes: u8, payload_bytes: u32) -> RecordHeader {
        RecordHeader {
            kind,
            key_bytes,
            payload_bytes,
            sequence: self.next_sequence(),
            value: 0,
            offset: 0,
            part: 0,
            parts: 1,
        }
    }
}

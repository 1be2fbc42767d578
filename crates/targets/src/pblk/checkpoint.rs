//! Map checkpoints: what bounds recovery, and makes a mount after a shutdown quick.
//!
//! pblk had none: it read every line at mount (Linux `pblk-recovery.c`), and padded a whole line at shutdown. Here writes are held
//! for as long as those in flight take; what is durable then is what the checkpoint covers. The map is written piece by
//! piece while writes go on: an entry changed meanwhile is found again in what was written after the hold, where the
//! newest sequence wins. The header is written last, behind a barrier: what a drive's cache lost, no complete checkpoint
//! names. Pieces go to lines of their own stream; the lines of older checkpoints are freed when one is
//! complete, as far as it names nothing in them. A piece is a sector: 16 bytes of number and CRC-32, then content.
//! Deliberately not here: reading them back (`mount`), what one holds (`plan`), the layout of the header.

mod plan;

use super::Pblk;
use super::canary::Canary;
use super::due::Due;
use super::map_shards::MapShards;
use super::pieces::{self, PieceLayout};
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::{Kind, LineContent, LineId, LineSequence, PhysicalAddress, SectorTag, Sequence};
use ocssd_lightnvm::{BufId, Buffers, STAMP_BYTES, Status};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// Writes are held until none is in flight.
    Holding,
    Writing,
    /// All pieces are acknowledged; a barrier is wanted, or sent.
    Written {
        sent: bool,
    },
}

/// The checkpoint being taken, and what the last one left.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    state: State,
    asked: bool,
    clean: bool,
    /// Of the checkpoint being taken, or the last one.
    number: u64,
    /// Sectors users wrote since the last one began; copies of garbage collection are not counted.
    since: u64,
    /// Users do not wait for it.
    unpaced: bool,
    /// It is due, and begins when discards that are on their way are on media.
    awaits_discards: bool,
    header: Vec<u8>,
    header_pieces: u64,
    /// Of these, how many wait for the rest: all.
    held: u64,
    /// Shards of the map that are among the pieces.
    shards: Vec<u32>,
    /// Where the shards are that the newest checkpoint names, whether it is complete or being taken.
    pub(super) on_media: MapShards,
    /// No shard is kept in lines up to this one by the next checkpoint: one of them is wanted for other data.
    leaves: LineSequence,
    /// Lines whose valid bits are among the pieces, behind the map.
    rows: Vec<LineId>,
    /// Where the records of discards were when it was begun, in order: these are valid, but no block's.
    discard_places: Vec<PhysicalAddress>,
    pieces: u64,
    next: u64,
    done: u64,
    /// Everything but the header is on media, and all that it names: the header may follow.
    committing: bool,
    /// Pieces whose write failed, in the buffer they are still in.
    lost: Vec<((u32, u32), BufId)>,
    /// Discards that are durable and so covered.
    covered: Vec<Sequence>,
    /// The oldest line with a piece of it.
    first_line: Option<LineSequence>,
    /// The first line of the last complete checkpoint: older ones of this stream are worthless.
    keep_from: LineSequence,
    /// Lines that hold nothing but checkpoints which power cuts left incomplete.
    incomplete: Vec<LineSequence>,
}

impl Checkpoints {
    pub fn new(number: u64, keep_from: LineSequence) -> Self {
        Self {
            state: State::Idle,
            asked: false,
            clean: false,
            number,
            since: 0,
            unpaced: false,
            awaits_discards: false,
            header: Vec::new(),
            header_pieces: 0,
            held: 0,
            shards: Vec::new(),
            on_media: MapShards::default(),
            leaves: LineSequence(0),
            rows: Vec::new(),
            discard_places: Vec::new(),
            pieces: 0,
            next: 0,
            done: 0,
            committing: false,
            lost: Vec::new(),
            covered: Vec::new(),
            first_line: None,
            keep_from,
            incomplete: Vec::new(),
        }
    }

    /// Notes the closed lines that a mount found behind the checkpoint it read. Were they kept until the next is complete, power
    /// cuts one after the other would use up lines that users' writes need.
    pub fn found_incomplete(&mut self, lines: Vec<LineSequence>) {
        assert!(
            lines.iter().all(|&line| line >= self.keep_from),
            "a line of an older checkpoint is called one of a younger"
        );
        self.incomplete = lines;
    }

    /// A checkpoint is wanted soon.
    pub const fn ask(&mut self) {
        self.asked = true;
    }

    /// A checkpoint is wanted soon, and nothing it names may be in this line or an older one: the line is to be free.
    pub fn ask_leaving(&mut self, line: LineSequence) {
        assert!(!self.is_obsolete(line), "a line of checkpoints is left that is free to go");
        self.asked = true;
        self.leaves = self.leaves.max(line);
    }

    /// True if none is under way, and none was asked for.
    pub fn may_ask(&self) -> bool {
        self.is_idle() && !self.asked
    }

    /// The last checkpoint: nothing is written after it.
    pub const fn ask_clean(&mut self) {
        self.asked = true;
        self.clean = true;
    }

    pub const fn note_written(&mut self, sectors: u32) {
        self.since += sectors as u64;
    }

    /// Nothing is written until it begins.
    pub fn is_held(&self) -> bool {
        self.state == State::Holding
    }

    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Further discards wait: the next checkpoint waits for those before.
    pub const fn awaits_discards(&self) -> bool {
        self.awaits_discards
    }

    /// True if users wait: as much was written since this checkpoint was begun as between two, and it is not complete. Else what
    /// a mount has to read would grow with the time a checkpoint takes, and so with the map.
    pub fn is_behind(&self, interval: u64) -> bool {
        let is_under_way = matches!(self.state, State::Writing | State::Written { .. });
        is_under_way && !self.unpaced && interval > 0 && self.since >= interval
    }

    /// Nobody waits for this checkpoint any more: it cannot go on by itself.
    pub const fn unpace(&mut self) {
        self.unpaced = true;
    }

    pub fn is_obsolete(&self, line: LineSequence) -> bool {
        line < self.keep_from || self.incomplete.contains(&line)
    }

    pub const fn piece_done(&mut self, count: u32) {
        self.done += count as u64;
    }

    pub fn lost(&mut self, pieces: (u32, u32), buffer: BufId) {
        assert!(pieces.1 > 0, "no piece was lost");
        self.lost.push((pieces, buffer));
    }

    pub fn wants_barrier(&self) -> bool {
        self.state == State::Written { sent: false }
    }

    pub fn barrier_sent(&mut self) {
        assert!(self.wants_barrier(), "a barrier was sent that nobody wanted");
        self.state = State::Written { sent: true };
    }

    /// Lets go of a checkpoint that cannot be finished; gives back the buffers of its pieces.
    pub fn abandon(&mut self) -> Vec<BufId> {
        self.state = State::Idle;
        self.asked = false;
        // Some of what it should have is nowhere.
        self.on_media.forget_all();
        std::mem::take(&mut self.lost).into_iter().map(|(_, buffer)| buffer).collect()
    }

    /// The end of the pieces that may be written now.
    const fn end(&self) -> u64 {
        if self.committing { self.held } else { self.pieces }
    }

    /// True if all pieces that may be written now are acknowledged.
    const fn is_written(&self) -> bool {
        self.done == if self.committing { self.pieces } else { self.pieces - self.held }
    }

    /// True if the checkpoint is complete now. After the first barrier its header follows.
    pub fn barrier_done(&mut self, sound: bool) -> bool {
        if self.state != (State::Written { sent: true }) {
            return false;
        }
        self.state = State::Written { sent: false };
        if sound && !self.committing {
            self.committing = true;
            self.next = 0;
            self.state = State::Writing;
            return false;
        }
        sound
    }
}

impl Pblk {
    /// Begins a checkpoint when one is due, and goes on with it. True if anything was done.
    pub(super) fn checkpoint(&mut self, buffers: &mut Buffers) -> bool {
        match self.checkpoints.state {
            State::Idle if self.checkpoint_is_due() => {
                if self.awaits_discard() {
                    let newest = self.discards.newest_pending().expect("a discard is on its way");
                    return self.close_older(newest);
                }
                self.checkpoints.state = State::Holding;
                true
            }
            State::Idle => false,
            State::Holding => {
                // A record on media covers blocks of a discard that the map may still have.
                let is_torn = self.is_discard_begun() && !self.has_canary(Canary::CheckpointTearsDiscard);
                if is_torn || self.is_programming() {
                    return false;
                }
                if self.awaits_discard() {
                    // A write failed meanwhile.
                    self.checkpoints.state = State::Idle;
                } else {
                    self.begin_checkpoint(buffers);
                }
                true
            }
            State::Writing => self.write_pieces(buffers),
            State::Written { .. } => false,
        }
    }

    /// True if a checkpoint is to begin, and none is under way.
    pub(super) fn checkpoint_is_due(&self) -> bool {
        let interval = self.capacity.checkpoint_interval;
        let is_due = self.checkpoints.asked || interval > 0 && self.checkpoints.since >= interval;
        self.checkpoints.is_idle() && is_due && !self.is_read_only()
    }

    /// True if a checkpoint must wait for discards that are on their way; no others are taken until then.
    fn awaits_discard(&mut self) -> bool {
        self.checkpoints.awaits_discards = self.is_discard_needed();
        self.checkpoints.awaits_discards
    }

    /// Sends pieces as long as there are buffers for them.
    fn write_pieces(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        loop {
            if self.checkpoints.is_written() {
                assert!(self.checkpoints.lost.is_empty(), "a piece was lost and counted as written");
                self.checkpoints.state = State::Written { sent: false };
                return true;
            }
            let more = self.checkpoints.next < self.checkpoints.end() || !self.checkpoints.lost.is_empty();
            if !more || !self.flight.has_room(1) || self.whole.is_empty() && self.checkpoints.lost.is_empty()
            {
                return any;
            }
            let stream = self.map_stream();
            let Some(line) = self.writable_line(stream) else { return any };
            let Some(write) = self.open_line(line).next_data() else { return any };
            if write.piece == LineContent::Head {
                if !self.write_head(stream, line, write, buffers) {
                    return any;
                }
            } else {
                let sequence = self.lines.get(line).sequence;
                let first = self.checkpoints.first_line.get_or_insert(sequence);
                *first = sequence.min(*first);
                self.lines.add_data(line, self.capacity.layout.unit);
                let (pieces, buffer) = self.next_pieces(buffers);
                let number = Sequence(self.checkpoints.number);
                let tag_of = |sector: u32| {
                    if sector < pieces.1 {
                        SectorTag { kind: Kind::Map, block: u64::from(pieces.0 + sector), sequence: number }
                    } else {
                        SectorTag::PAD
                    }
                };
                self.write_meta((line, write), buffer, pieces, tag_of, buffers);
            }
            any = true;
        }
    }

    /// The next pieces, in a buffer: those that were lost before any new ones.
    fn next_pieces(&mut self, buffers: &mut Buffers) -> ((u32, u32), BufId) {
        if let Some(lost) = self.checkpoints.lost.pop() {
            return lost;
        }
        let buffer = self.whole.pop().expect("it was asked for before");
        let unit = self.capacity.layout.unit;
        let left = self.checkpoints.end() - self.checkpoints.next;
        let count = u32::try_from(left.min(u64::from(unit))).expect("at most a unit");
        assert!(count > 0, "a checkpoint without pieces left goes on");
        let first = self.checkpoints.next;
        buffers.data_mut(buffer, 0, unit).fill(0);
        for index in 0..count {
            let bytes = buffers.whole_mut(buffer, index, 1);
            let layout = self.piece_layout(bytes.len());
            let (content, rest) = bytes[pieces::PIECE_HEADER_BYTES..].split_at_mut(layout.content_bytes);
            self.fill_piece(&layout, first + u64::from(index), content);
            rest.fill(0);
            pieces::encode_tags(self.checkpoints.number, layout.content_bytes, bytes);
            // Where content is stamps, a piece's stamp is how it begins.
            let mut begin = [0; STAMP_BYTES];
            begin.copy_from_slice(&bytes[..STAMP_BYTES]);
            buffers.data_mut(buffer, index, 1)[..STAMP_BYTES].copy_from_slice(&begin);
        }
        self.checkpoints.next += u64::from(count);
        ((u32::try_from(first).expect("fewer pieces than 2^32"), count), buffer)
    }

    /// The content of a piece.
    fn fill_piece(&self, layout: &PieceLayout, number: u64, content: &mut [u8]) {
        let piece = layout.content_bytes;
        assert_eq!(content.len(), piece, "a piece has another length than was said");
        if number < self.checkpoints.header_pieces {
            let rest = &self.checkpoints.header[usize::try_from(number).expect("few") * piece..];
            let length = rest.len().min(piece);
            content[..length].copy_from_slice(&rest[..length]);
            content[length..].fill(0);
            return;
        }
        let number = usize::try_from(number - self.checkpoints.header_pieces).expect("an index");
        let (entries, per_shard) = (layout.entries(), layout.per_shard());
        let map_pieces = self.checkpoints.shards.len() * per_shard;
        if number < map_pieces {
            let is_misplaced = self.has_canary(Canary::ShardMisplaced);
            let shard = usize_of(self.checkpoints.shards[if is_misplaced { 0 } else { number / per_shard }]);
            self.fill_entries(shard, number % per_shard * entries, entries, content);
        } else {
            self.fill_rows((number - map_pieces) * piece, content);
        }
    }

    /// How checkpoints of this instance are cut.
    pub(super) fn piece_layout(&self, sector_bytes: usize) -> PieceLayout {
        let bytes = pieces::content_bytes(sector_bytes, self.options.knobs.checkpoint_piece_bytes);
        PieceLayout::new(bytes, self.l2p.shard_size(), &self.l2p)
    }

    fn fill_entries(&self, shard: usize, from: usize, entries: usize, content: &mut [u8]) {
        let sectors = self.l2p.shard_sectors(shard);
        let first = sectors.start + u64_of(from);
        let count = sectors.end.saturating_sub(first).min(u64_of(entries));
        let length = usize::try_from(count).expect("an index") * usize_of(self.l2p.entry_bytes());
        content[length..].fill(0);
        if length > 0 {
            self.l2p.encode(first, &mut content[..length], |_, slot| {
                self.write_buffer.durable_place(slot).or(self.write_buffer.entry(slot).previous)
            });
        }
    }

    /// Valid bits, row after row, from byte `from` of all of them on.
    ///
    /// They come behind the map, so that a bit is as old as the entry that names its place, or younger: of a place written
    /// before the checkpoint it says whether its block changed since (`mount::bits` relies on that).
    fn fill_rows(&self, from: usize, content: &mut [u8]) {
        let row_bytes = self.valid.line_bytes();
        let (mut at, mut filled) = (from, 0);
        while filled < content.len() && at < self.checkpoints.rows.len() * row_bytes {
            let (line, first) = (self.checkpoints.rows[at / row_bytes], at % row_bytes);
            let length = (row_bytes - first).min(content.len() - filled);
            let bytes = &mut content[filled..filled + length];
            self.valid.encode_part(line, first, bytes);
            self.leave_out_discards(line, first, bytes);
            filled += length;
            at += length;
        }
        content[filled..].fill(0);
    }

    /// Clears the bits of records of discards in a part of a row, from byte `from` on.
    fn leave_out_discards(&self, line: LineId, from: usize, bytes: &mut [u8]) {
        let start = u64::from(line.0) * self.shape.sectors_per_line() + u64_of(from) * 8;
        let end = start + u64_of(bytes.len()) * 8;
        let places = &self.checkpoints.discard_places;
        assert!(places.is_sorted(), "places of records are out of order");
        let first = places.partition_point(|place| place.0 < start);
        for place in places[first..].iter().take_while(|place| place.0 < end) {
            let bit = usize::try_from(place.0 - start).expect("within a part of a row");
            bytes[bit / 8] &= !(1 << (bit % 8));
        }
    }

    /// A checkpoint is durable: what it covers can go.
    pub(super) fn checkpoint_complete(&mut self) {
        assert_eq!(
            self.checkpoints.done, self.checkpoints.pieces,
            "a checkpoint is complete before its pieces"
        );
        let state = &mut self.checkpoints;
        state.state = State::Idle;
        assert_eq!(state.done, state.pieces, "a checkpoint is complete without all its pieces");
        let first_line = state.first_line.expect("a checkpoint has pieces");
        let oldest = state.on_media.oldest();
        assert!(oldest.is_none_or(|oldest| oldest >= state.keep_from), "a shard is in a line free to go");
        state.on_media.complete(state.number, first_line);
        // A line that a power cut left open may be older than what the checkpoint before names.
        let keep_from = oldest.map_or(first_line, |oldest| oldest.min(first_line));
        state.keep_from = keep_from;
        state.incomplete.retain(|&line| line >= keep_from);
        for sequence in std::mem::take(&mut state.covered) {
            if let Some(place) = self.discards.remove(sequence) {
                self.invalidate(place);
            }
        }
        for (line, entry) in self.lines.iter() {
            if self.is_map_stream(entry.stream) {
                self.reclaimer.suspect(line);
            }
        }
        self.stats.checkpoints += 1;
        if self.checkpoints.clean && !self.shutdown.ending {
            self.shutdown_complete();
        }
    }
}

/// The end of an instance's life until the next mount.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shutdown {
    request: Option<SlabKey>,
    checkpointing: bool,
    /// Only what was written is made durable.
    ending: bool,
}

impl Shutdown {
    pub const fn is_begun(&self) -> bool {
        self.request.is_some()
    }

    pub const fn begin(&mut self, request: SlabKey) {
        self.request = Some(request);
    }
}

impl Pblk {
    /// Ends everything that is under way, then asks for the last checkpoint.
    pub(super) fn shut_down(&mut self) -> bool {
        if !self.shutdown.is_begun() || self.shutdown.checkpointing || !self.checkpoints.is_idle() {
            return false;
        }
        let waits = self.requests.next_read().is_some() || self.requests.next_change().is_some();
        if waits || !self.flushes.is_idle() || !self.gc.is_idle() {
            return false;
        }
        if self.close_filling() {
            return true;
        }
        if self.write_buffer.in_use() > 0 || self.flight.len() > 0 || self.reclaimer.due().len() > 0 {
            return false;
        }
        if self.is_read_only() {
            return self.end_shutdown();
        }
        self.shutdown.checkpointing = true;
        self.checkpoints.ask_clean();
        self.call(Due::ALL);
        true
    }

    /// Ends a shutdown without a checkpoint, for which there is no space: what was written is made durable, no more. True if
    /// there was one to end.
    pub(super) fn end_shutdown(&mut self) -> bool {
        let Some(key) = self.shutdown.request.filter(|_| !self.shutdown.ending) else { return false };
        self.shutdown.ending = true;
        assert!(self.is_read_only(), "a shutdown was ended without its checkpoint");
        assert!(self.requests.next_change().is_none(), "a write was left behind at shutdown");
        self.shutdown.checkpointing = true;
        let buffers = self.checkpoints.abandon();
        self.whole.extend(buffers);
        self.await_durable(key);
        true
    }

    /// Answers a shutdown of a drive that failed. True if one waited for that.
    pub(super) fn end_stopped_shutdown(&mut self, status: Status) -> bool {
        let Some(key) = self.shutdown.request.filter(|_| !self.shutdown.ending) else { return false };
        assert!(
            self.stopped().is_some() && self.requests.next_change().is_none(),
            "a shutdown is cut short without need"
        );
        self.shutdown.ending = true;
        self.requests.fail(key, status);
        self.requests.end(key);
        true
    }

    fn shutdown_complete(&mut self) {
        let key = self.shutdown.request.expect("a shutdown was asked for");
        let pending = self.requests.get_mut(key);
        pending.done = pending.request.count;
        self.requests.end(key);
        assert!(self.requests.next_change().is_none(), "a write was left behind at shutdown");
        assert!(self.write_buffer.in_use() == 0, "a buffer unit was left behind at shutdown");
    }
}

fn u64_of(value: usize) -> u64 {
    u64::try_from(value).expect("an index fits 64 bits")
}

//! What a checkpoint that begins now holds: the state of every line, what is valid, and the shards of the map that changed
//! since the last one. The others it names where they are (`map_shards`).
//!
//! A shard has changed if the map's entry of a block in it was set since, or a block of it waited in the write buffer when the
//! last one was begun: what its entry stands for on media changes when the block is programmed, and not the entry.
//! Deliberately not here: when it begins, and how it is written (`checkpoint`).

use super::super::Pblk;
use super::super::canary::Canary;
use super::super::checkpoint_header::{CheckpointHeader, LineRow, RowState};
use super::super::map_shards::{LogLines, Plan};
use super::super::pieces::PieceLayout;
use super::{Checkpoints, State, u64_of};
use ocssd_base::usize_of;
use ocssd_ftl::{Kind, LineId, LineSequence, LineState, UnitIndex};
use ocssd_lightnvm::Buffers;

impl Pblk {
    /// Notes what is durable now.
    pub(in super::super) fn begin_checkpoint(&mut self, buffers: &Buffers) {
        let in_flight: u32 = self.open.iter().flatten().map(|open| open.in_flight()).sum();
        assert_eq!(in_flight, 0, "a checkpoint begins under writes in flight");
        assert!(self.checkpoints.lost.is_empty(), "a checkpoint begins before the last one ended");
        self.drop_superseded();
        assert!(!self.is_discard_needed(), "a checkpoint begins before a discard is on media");
        let layout = self.piece_layout(buffers.format().sector_bytes);
        let in_use =
            |line: LineId| !self.is_map_stream(self.lines.get(line).stream) && self.valid.count(line) > 0;
        let rows: Vec<LineId> = (0..self.lines.count()).map(LineId).filter(|&line| in_use(line)).collect();
        let row_pieces = (rows.len() * self.valid.line_bytes()).div_ceil(layout.content_bytes);
        let mut header = self.checkpoint_header(&rows);
        let plan = self.plan_shards(&header, row_pieces, layout);
        header.kept = self.checkpoints.on_media.describe(&plan.kept);
        header.shards.clone_from(&plan.written);
        let header_pieces = header.encoded_bytes().div_ceil(layout.content_bytes);
        header.pieces = u64_of(header_pieces + plan.written.len() * layout.per_shard() + row_pieces);
        self.checkpoints.on_media.begin(
            &plan,
            header.number,
            u64_of(header_pieces),
            u64_of(layout.per_shard()),
        );
        self.stats.map_shards_written += u64_of(plan.written.len());
        self.stats.map_shards_kept += u64_of(plan.kept.len());
        self.note_unchanged();
        let (covered, places) = (self.discards.durable(), self.discards.places());
        let held = if self.has_canary(Canary::CheckpointUnordered) { 0 } else { u64_of(header_pieces) };
        self.checkpoints.begin(&header, u64_of(header_pieces), held, rows);
        self.checkpoints.covers(covered, places);
        self.work_due = true;
    }

    /// What a checkpoint says of the instance; not yet which shards it has.
    fn checkpoint_header(&self, rows: &[LineId]) -> CheckpointHeader {
        let lines = (0..self.lines.count()).map(LineId);
        let header = CheckpointHeader {
            instance: self.instance,
            number: self.checkpoints.number + 1,
            clean: self.checkpoints.clean,
            sequence: self.sequence,
            next_line: self.lines.next_sequence(),
            sectors: self.l2p.sectors(),
            entry_bytes: self.l2p.entry_bytes(),
            shard: self.l2p.shard_size(),
            pieces: 0,
            lines: lines.map(|line| LineRow::of(&self.lines, line, rows.contains(&line))).collect(),
            open: self.open.iter().flatten().map(|open| self.open_row(open)).collect(),
            shards: Vec::new(),
            kept: Vec::new(),
        };
        assert!(
            header.lines.iter().filter(|row| row.state == RowState::Open).count() >= header.open.len(),
            "a line is open that is not"
        );
        header
    }

    fn open_row(&self, open: &ocssd_ftl::OpenLine) -> (u32, Vec<u32>) {
        // Nothing comes after the end of a chunk, wherever it is: what is in it is in the map, or superseded.
        let pointer =
            |unit| if open.has_ended(unit) { self.capacity.layout.sectors } else { open.pointer(unit) };
        (open.line().0, (0..self.shape.units()).map(UnitIndex).map(pointer).collect())
    }

    /// Which shards that hold something are written, and which are left where they are.
    fn plan_shards(&self, header: &CheckpointHeader, row_pieces: usize, layout: PieceLayout) -> Plan {
        let shards = (0..self.l2p.shard_count()).filter(|&shard| !self.l2p.shard_is_empty(shard));
        let shards: Vec<u32> =
            shards.map(|shard| u32::try_from(shard).expect("fewer shards than 2^32")).collect();
        let is_deaf = self.has_canary(Canary::ChangedShardKept);
        let changed = |shard: u32| self.l2p.shard_is_changed(usize_of(shard)) && !is_deaf;
        // Whatever is written and kept, the header is not longer than if it named each shard twice.
        let header_bytes = header.encoded_bytes() + CheckpointHeader::bytes_of_shards(shards.len());
        let units = 2 * usize_of(self.capacity.layout.unit);
        let others = header_bytes.div_ceil(layout.content_bytes) + row_pieces + units;
        let sizes = (u64_of(layout.per_shard()), u64_of(others));
        self.checkpoints.on_media.plan(&shards, changed, self.checkpoints.leaves, sizes, &self.log_lines())
    }

    /// The lines of checkpoints that are in use.
    fn log_lines(&self) -> LogLines {
        let of_map = self.lines.iter().map(|(_, line)| line).filter(|line| self.is_map_stream(line.stream));
        let in_use = of_map.filter(|line| match line.state {
            LineState::Open => true,
            LineState::Closed => !self.checkpoints.is_obsolete(line.sequence),
            LineState::Free { .. } | LineState::Erasing | LineState::Bad => false,
        });
        let mut lines: Vec<LineSequence> = in_use.map(|line| line.sequence).collect();
        lines.sort_unstable();
        let open = self.open.iter().flatten().map(|open| (self.lines.get(open.line()), open.room()));
        let open: Vec<(LineSequence, u64)> = open
            .filter(|(line, room)| self.is_map_stream(line.stream) && *room > 0)
            .map(|(line, room)| (line.sequence, room))
            .collect();
        let room = open.iter().map(|(_, room)| room).sum();
        let open = open.iter().map(|&(line, _)| line).min();
        let capacity = &self.capacity;
        let line_sectors = u64::from(self.shape.units()) * u64::from(capacity.layout.data_sectors());
        assert!(capacity.map_lines > capacity.checkpoint_lines, "two checkpoints do not fit their lines");
        let lines_max = u64::from(capacity.map_lines - capacity.checkpoint_lines);
        LogLines { lines, open, room, line_sectors, lines_max }
    }

    /// From now on shards are as this checkpoint has them, but for those of blocks that wait in the buffer.
    fn note_unchanged(&mut self) {
        let Self { l2p, write_buffer, .. } = self;
        l2p.mark_all_unchanged();
        for buffer_unit in write_buffer.waiting() {
            for (_, entry) in write_buffer.entries(buffer_unit) {
                if matches!(entry.tag.kind, Kind::Data | Kind::Lost) {
                    l2p.mark_changed(entry.tag.block);
                }
            }
        }
    }
}

impl Checkpoints {
    /// Begins the checkpoint of this header, whose pieces up to `held` wait for all others.
    fn begin(&mut self, header: &CheckpointHeader, header_pieces: u64, held: u64, rows: Vec<LineId>) {
        assert!(
            held <= header_pieces && header_pieces <= header.pieces,
            "more pieces of a header than pieces"
        );
        *self = Self {
            state: State::Writing,
            clean: self.clean,
            header: header.encode(),
            header_pieces,
            held,
            next: held,
            pieces: header.pieces,
            shards: header.shards.clone(),
            on_media: std::mem::take(&mut self.on_media),
            rows,
            incomplete: std::mem::take(&mut self.incomplete),
            ..Self::new(header.number, self.keep_from)
        };
    }

    /// Notes the discards that this checkpoint covers, and the places of all their records.
    fn covers(&mut self, covered: Vec<ocssd_ftl::Sequence>, places: Vec<ocssd_ftl::PhysicalAddress>) {
        (self.covered, self.discard_places) = (covered, places);
    }
}

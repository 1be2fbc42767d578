//! From what was found to the state of an instance: lines, valid sectors, discards, open lines that go on.
//!
//! Deliberately not here: reading anything.

use super::super::canary::Canary;
use super::super::checkpoint::Checkpoints;
use super::super::checkpoint_header::{CheckpointHeader, LineRow, RowState};
use super::super::state::Pblk;
use super::bits::ValidRun;
use super::load::Loaded;
use super::replay::{Window, is_read_from};
use super::survey::{FoundChunk, FoundLine, Survey, readable};
use ocssd_base::usize_of;
use ocssd_ftl::{
    Line, LineId, LineSequence, LineState, OpenLine, PhysicalAddress, Sequence, Stream, UnitIndex,
};
use ocssd_lightnvm::ChunkState;

/// Takes over the map and what of it is valid, by passes over the whole of it: for when the checkpoint does not say which
/// sectors are valid, or lines it names were reset.
pub fn restore_map(pblk: &mut Pblk, survey: &Survey, loaded: Option<&Loaded>, window: &Window) {
    if let Some(loaded) = loaded {
        drop_stale(pblk, survey, loaded);
    }
    let known = loaded.map_or(Sequence(0), |loaded| loaded.header.sequence);
    window.apply(&mut pblk.l2p, known, &pblk.options, |_| ());
    find_valid(pblk);
}

/// Takes over what numbers go on from, and the records of discards.
pub fn restore_numbers(
    pblk: &mut Pblk,
    survey: &Survey,
    loaded: Option<&Loaded>,
    window: &Window,
    newest_checkpoint: u64,
    sector_bytes: usize,
) {
    if let Some(loaded) = loaded {
        pblk.lines.skip_sequences(LineSequence(loaded.header.next_line.0 - 1));
    }
    let known = loaded.map_or(Sequence(0), |loaded| loaded.header.sequence);
    let opened = survey.lines.iter().flatten().map(|line| line.opened_at).max().unwrap_or_default();
    pblk.sequence = known.max(window.newest).max(opened);
    let keep_from = loaded.map_or(LineSequence(0), |loaded| loaded.first_line);
    pblk.checkpoints = Checkpoints::new(newest_checkpoint, keep_from);
    let is_cut_alike = |loaded: &&Loaded| {
        loaded.layout == pblk.piece_layout(sector_bytes) && loaded.header.shard == pblk.l2p.shard_size()
    };
    if let Some(loaded) = loaded.filter(is_cut_alike) {
        pblk.checkpoints.on_media = loaded.on_media.clone();
    }
    if pblk.keeps_discards() {
        for (&sequence, &(_, place, range)) in &window.discards {
            let range = range.expect("records without a range were dropped");
            pblk.discards.restore(sequence, range, place);
            pblk.valid.set(place);
        }
    }
}

/// Open chunks with valid sectors too close to their pointer to be read: the buffer they were read from is gone.
pub fn unreadable(pblk: &Pblk, survey: &Survey) -> Vec<(LineId, UnitIndex)> {
    let layout = pblk.capacity.layout;
    let holds = |line: LineId, unit: UnitIndex, chunk: &FoundChunk| {
        let start = pblk.shape.chunk_start(line, unit).0;
        let from = PhysicalAddress(start + u64::from(readable(&layout, chunk)));
        let next = pblk.valid.next_valid(line, from);
        next.is_some_and(|place| place.0 < start + u64::from(chunk.written))
    };
    let open = survey.iter().filter(|(_, _, chunk)| chunk.state == ChunkState::Open && layout.mw_cunits > 0);
    open.filter(|&(line, unit, chunk)| holds(line, unit, chunk)).map(|(line, unit, _)| (line, unit)).collect()
}

/// Takes over the lines in use.
pub fn restore_lines(pblk: &mut Pblk, survey: &Survey, loaded: Option<&Loaded>) {
    for line in (0..pblk.shape.lines()).map(LineId) {
        if let Some(found) = survey.lines[line.index()] {
            restore_line(pblk, survey, loaded, line, found);
        }
        pblk.reclaimer.suspect(line);
    }
}

/// Lets go of entries whose line was reset since the checkpoint: their blocks were discarded, or the window has them.
fn drop_stale(pblk: &mut Pblk, survey: &Survey, loaded: &Loaded) {
    let units = pblk.shape.units();
    let alive: Vec<Option<u32>> = survey
        .iter()
        .map(|(line, _, chunk)| {
            let row = loaded.header.lines.get(line.index())?;
            let same =
                chunk.line == Some(row.sequence) && matches!(row.state, RowState::Open | RowState::Closed);
            same.then_some(chunk.written)
        })
        .collect();
    let all_alive = (0..).map(LineId).zip(&loaded.header.lines).all(|(line, row)| {
        let first = line.index() * usize_of(units);
        let chunks = &alive[first..first + usize_of(units)];
        !names(pblk, &loaded.header, row) || has_all(&loaded.header, line, row, chunks)
    });
    // What was written while the pieces were may be named by them, in lines that were free when they were begun. At a
    // shutdown nothing was.
    let may_name_free =
        !loaded.header.clean && loaded.header.lines.iter().any(|row| row.state == RowState::Free);
    if all_alive && !may_name_free || pblk.has_canary(Canary::StaleGeneration) {
        return;
    }
    let Pblk { l2p, shape, .. } = pblk;
    l2p.retain_media(|place| {
        let (line, unit, sector) = shape.split(place);
        alive[line.index() * usize_of(units) + unit.index()].is_some_and(|written| sector < written)
    });
}

/// Whether entries of a checkpoint may name sectors of a line that its header knows like this.
fn names(pblk: &Pblk, header: &CheckpointHeader, row: &LineRow) -> bool {
    let is_data = matches!(row.state, RowState::Open | RowState::Closed) && !pblk.is_map_stream(row.stream);
    // At a shutdown the header says which lines hold anything.
    is_data && (row.has_bits || !header.clean)
}

/// Whether every chunk of a line that was written when the checkpoint was begun is still there. `alive` says it of all.
fn has_all(header: &CheckpointHeader, line: LineId, row: &LineRow, alive: &[Option<u32>]) -> bool {
    let pointers = header.open.iter().find(|(open, _)| *open == line.0).map(|(_, pointers)| pointers);
    match (row.state, pointers) {
        (RowState::Open, Some(pointers)) if pointers.len() == alive.len() => {
            let has = |alive: &Option<u32>, pointer: u32| alive.is_some_and(|written| written >= pointer);
            alive.iter().zip(pointers).all(|(alive, &pointer)| pointer == 0 || has(alive, pointer))
        }
        _ => alive.iter().all(Option::is_some),
    }
}

/// A line in use. It goes on if it was open and can be written where it was left.
pub fn restore_line(
    pblk: &mut Pblk,
    survey: &Survey,
    loaded: Option<&Loaded>,
    line: LineId,
    found: FoundLine,
) {
    assert!(found.sequence > LineSequence(0), "line {} is of no generation", line.0);
    assert!(pblk.open[line.index()].is_none(), "line {} is restored twice", line.0);
    let layout = pblk.capacity.layout;
    let row = loaded.and_then(|loaded| loaded.header.lines.get(line.index()));
    let row = row.filter(|row| row.sequence == found.sequence);
    let ours = |unit: UnitIndex| {
        let chunk = survey.chunk(line, unit);
        chunk.line == Some(found.sequence) || chunk.state == ChunkState::Free
    };
    // Where the checkpoint knows the line, its entries may name what was in it.
    let was_open =
        row.is_none_or(|row| row.state != RowState::Closed && is_being_written(pblk, survey, line, found));
    let is_of_map = pblk.is_map_stream(found.stream);
    let order: Vec<(UnitIndex, u32)> = pblk
        .stripe
        .iter()
        .copied()
        .filter(|&unit| ours(unit) && goes_on(survey.chunk(line, unit), was_open))
        .map(|unit| (unit, survey.chunk(line, unit).written))
        .filter(|&(unit, pointer)| is_of_map || is_read_from(loaded, (line, unit), found.sequence, pointer))
        .collect();
    let data_sectors: u64 = (0..pblk.shape.units())
        .map(|unit| survey.chunk(line, UnitIndex(unit)))
        .filter(|chunk| chunk.line == Some(found.sequence))
        .map(|chunk| u64::from(chunk.written.min(layout.data_end()).saturating_sub(layout.unit)))
        .sum();
    let of_line = (0..pblk.shape.units()).map(|unit| survey.chunk(line, UnitIndex(unit)));
    let heads = of_line.filter(|chunk| chunk.line == Some(found.sequence)).count();
    let heads = u32::try_from(heads).expect("fewer units than 2^32");
    let state = if order.is_empty() { LineState::Closed } else { LineState::Open };
    let resets = row.map_or(0, |row| row.resets).max(found.resets);
    let entry = Line {
        state,
        sequence: found.sequence,
        stream: adopt(pblk, found.stream),
        readers: 0,
        opened_at: found.opened_at,
        data_sectors,
        resets,
        good_chunks: 0,
        heads,
    };
    pblk.lines.restore(line, entry);
    if !order.is_empty() {
        let layout = pblk.layout_of(entry.stream);
        let open = OpenLine::resume(line, layout, pblk.turns(), pblk.shape.units(), &order);
        if open.next_tail().is_some() {
            pblk.tails_due.push_back(line);
        }
        pblk.open[line.index()] = Some(Box::new(open));
    }
}

/// Closes lines that were left open and leave no room under the drive's limit for those every stream must be able to open:
/// another classification may have left them.
pub fn close_surplus(pblk: &mut Pblk) {
    let wanted = usize_of(pblk.streams_count()) + 1;
    loop {
        let open: Vec<(Stream, u64, LineId)> = pblk
            .open
            .iter()
            .flatten()
            .map(|open| (pblk.lines.get(open.line()).stream, open.room(), open.line()))
            .collect();
        let mut streams: Vec<Stream> =
            open.iter().filter(|(_, room, _)| *room > 0).map(|&(stream, _, _)| stream).collect();
        streams.sort_unstable();
        streams.dedup();
        assert!(streams.len() <= wanted, "a line was left open for a stream nobody writes");
        if open.len() + wanted - streams.len() <= pblk.open_lines_max {
            return;
        }
        let (_, _, line) = open.into_iter().min_by_key(|&(_, room, _)| room).expect("one is open");
        pblk.open[line.index()] = None;
        pblk.tails_due.retain(|&due| due != line);
        pblk.lines.close(line);
    }
}

/// Closed lines of checkpoints behind the one that was read: what was begun there, no mount will read. A line that goes on may
/// take the next checkpoint, and is kept.
pub fn incomplete_checkpoints(pblk: &Pblk, loaded: Option<&Loaded>) -> Vec<LineSequence> {
    let last = loaded.map_or(LineSequence(0), |loaded| loaded.last_line);
    let closed = pblk.lines.iter().filter(|(_, line)| line.state == LineState::Closed);
    let of_map = closed.filter(|(_, line)| pblk.is_map_stream(line.stream));
    of_map.map(|(_, line)| line.sequence).filter(|&sequence| sequence > last).collect()
}

/// The stream that goes on with a line of `stream`: with another classification there may be fewer.
fn adopt(pblk: &Pblk, stream: Stream) -> Stream {
    let last = Stream(u8::try_from(pblk.streams_count() - 1).expect("few streams"));
    if pblk.is_map_stream(stream) { stream } else { stream.min(last) }
}

/// Whether a line was surely being written when the power went. One of which every chunk is full or free may have been closed
/// since the checkpoint, and be half reset: were it written on, entries of the checkpoint would name the new content.
fn is_being_written(pblk: &Pblk, survey: &Survey, line: LineId, found: FoundLine) -> bool {
    (0..pblk.shape.units())
        .map(|unit| survey.chunk(line, UnitIndex(unit)))
        .any(|chunk| chunk.line == Some(found.sequence) && chunk.state == ChunkState::Open)
}

/// A chunk that was left open is written on; one never begun only where the line was open: in a line being reset, free
/// chunks are those already done.
fn goes_on(chunk: &FoundChunk, was_open: bool) -> bool {
    match chunk.state {
        ChunkState::Open => true,
        ChunkState::Free => was_open,
        ChunkState::Closed | ChunkState::Offline => false,
    }
}

/// Valid sectors are those the map names.
fn find_valid(pblk: &mut Pblk) {
    for line in (0..pblk.shape.lines()).map(LineId) {
        pblk.valid.clear_line(line);
    }
    let Pblk { l2p, valid, .. } = pblk;
    let mut run = ValidRun::new(valid);
    l2p.for_each_media(|_, place| run.add(place));
    run.end();
    assert_eq!(
        valid.total(),
        l2p.count_mapped(),
        "every block is on media at mount, and no two in one place"
    );
}

/// Open chunks nobody goes on with: they must be full before they can be reset.
pub fn unusable(survey: &Survey, pblk: &Pblk) -> Vec<(LineId, UnitIndex)> {
    survey
        .iter()
        .filter(|&(line, unit, chunk)| {
            let open = pblk.open[line.index()].as_ref();
            chunk.state == ChunkState::Open && open.is_none_or(|open| open.has_ended(unit))
        })
        .map(|(line, unit, _)| (line, unit))
        .collect()
}

/// Lines not in use: reset if every good chunk is free.
pub fn free_lines(pblk: &mut Pblk, survey: &Survey) {
    for line in (0..pblk.shape.lines()).map(LineId) {
        if !matches!(pblk.lines.get(line).state, LineState::Free { .. }) {
            continue;
        }
        let units = (0..pblk.shape.units()).map(UnitIndex);
        let was_reset = units
            .filter(|&unit| !pblk.lines.is_bad(line, unit))
            .all(|unit| survey.chunk(line, unit).state == ChunkState::Free);
        let resets = pblk.lines.get(line).resets;
        pblk.lines.restore_free(line, was_reset, resets);
    }
}

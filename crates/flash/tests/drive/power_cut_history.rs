//! What the host did and what it was told, chunk by chunk; and what of it must be there after a power cut.

use crate::rig::{BUFFER_SECTORS, Rig, index, ppa};
use ocssd_flash::Flash;
use ocssd_lightnvm::{ChunkId, ChunkState, Device, Op, Status, Tag};

/// A write (or the destination of a copy) that was taken.
#[derive(Clone, Debug)]
pub struct Write {
    pub tag: Tag,
    pub first: u32,
    pub ids: Vec<u64>,
    pub durable: bool,
}

/// A chunk between two resets.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// The reset that began it, and whether the host was told of its end.
    pub reset: Option<Tag>,
    pub reset_told: bool,
    pub writes: Vec<Write>,
}

impl Life {
    pub fn pointer(&self) -> u32 {
        self.writes.last().map_or(0, Write::end)
    }

    /// What its sectors hold if nothing was lost.
    pub fn ids(&self) -> Vec<u64> {
        self.writes.iter().flat_map(|write| write.ids.iter().copied()).collect()
    }

    /// Sectors from the start that must survive.
    fn durable(&self) -> u32 {
        self.writes.iter().filter(|write| write.durable).map(Write::end).max().unwrap_or(0)
    }
}

impl Write {
    fn end(&self) -> u32 {
        self.first + u32::try_from(self.ids.len()).expect("a short write")
    }
}

/// Every life of every chunk.
#[derive(Clone, Debug)]
pub struct History {
    pub chunks: Vec<Vec<Life>>,
}

/// What was found after a cut.
#[derive(Debug, Default)]
pub struct Found {
    pub torn_units: u32,
    pub lost_sectors: u32,
    pub resets_undone: u32,
}

impl History {
    pub fn new(drive: &Flash) -> Self {
        Self { chunks: vec![vec![Life::default()]; index(drive.geometry().chunk_count())] }
    }

    pub fn life(&mut self, chunk: u32) -> &mut Life {
        self.chunks[index(chunk)].last_mut().expect("a chunk has a life")
    }

    /// The host was told that this command ended, and that means its data is on media.
    pub fn on_durable(&mut self, tag: Tag) {
        for life in self.chunks.iter_mut().flatten() {
            life.reset_told |= life.reset == Some(tag);
            for write in life.writes.iter_mut().filter(|write| write.tag == tag) {
                write.durable = true;
            }
        }
    }

    /// Compares a drive after a power cut with what was promised.
    pub fn judge(&self, rig: &mut Rig, context: &str) -> Found {
        let mut found = Found::default();
        let mut torn_in = vec![0u32; index(rig.drive.geometry().pu_count())];
        for (chunk, lives) in (0..).zip(&self.chunks) {
            let torn = judge_chunk(rig, chunk, lives, &mut found, context);
            torn_in[rig.drive.geometry().pu_of(ChunkId(chunk)).index()] += torn;
            found.torn_units += torn;
        }
        assert!(
            torn_in.iter().all(|&torn| torn <= 1),
            "{context}: a unit programs one write unit at a time: {torn_in:?}"
        );
        rig.drive.check();
        found
    }
}

/// The life a chunk is in after the cut, and what is left of it. Returns how many units were torn.
fn judge_chunk(rig: &mut Rig, chunk: u32, lives: &[Life], found: &mut Found, context: &str) -> u32 {
    let descriptor = rig.drive.chunk(ChunkId(chunk));
    let size = rig.drive.geometry().sectors_per_chunk;
    let pointer = descriptor.write_pointer.expect("no chunk goes offline");
    let state = match pointer {
        0 => ChunkState::Free,
        pointer if pointer == size => ChunkState::Closed,
        _ => ChunkState::Open,
    };
    assert_eq!(descriptor.state, state, "{context}: chunk {chunk} at {pointer}");
    // A life is final once its reset was told, or something in it is durable.
    let is_final = |life: &Life| life.reset_told || life.durable() > 0;
    let earliest = lives.iter().rposition(is_final).unwrap_or(0);
    let cycle = index(rig.drive.cycles(ChunkId(chunk)));
    assert!(
        (earliest..lives.len()).contains(&cycle),
        "{context}: chunk {chunk} is in life {cycle}, possible are {earliest} to {}",
        lives.len() - 1
    );
    found.resets_undone += u32::from(cycle + 1 < lives.len());
    let life = &lives[cycle];
    assert!(
        (life.durable()..=life.pointer()).contains(&pointer),
        "{context}: chunk {chunk} ends at {pointer}, {} of {} were promised",
        life.durable(),
        life.pointer()
    );
    found.lost_sectors += life.pointer() - pointer;
    judge_sectors(rig, chunk, life, pointer, context)
}

/// Every sector is as written, or lost in the one unit that was being programmed.
fn judge_sectors(rig: &mut Rig, chunk: u32, life: &Life, pointer: u32, context: &str) -> u32 {
    if pointer == 0 {
        return 0;
    }
    let (unit, page) = (rig.drive.geometry().ws_opt, rig.drive.config().media.sectors_per_page);
    assert!(pointer <= BUFFER_SECTORS, "a chunk fits the buffer");
    let first = ppa(chunk, 0);
    let mut lost: Vec<u32> = Vec::new();
    for start in (0..pointer).step_by(32) {
        let count = 32.min(pointer - start);
        let (_, end) = rig.read(ppa(first.chunk.0, start), count);
        let allowed = [Status::SUCCESS, Status::UNRECOVERED_READ].contains(&end.status);
        assert!(allowed, "{context}: chunk {chunk} from {start}: {end:?}");
        for entry in 0..count {
            if end.failed >> entry & 1 == 1 {
                lost.push(start + entry);
            } else {
                let id = rig.id_of(rig.buffer, entry);
                assert_eq!(
                    id,
                    life.ids()[index(start + entry)],
                    "{context}: chunk {chunk} sector {}",
                    start + entry
                );
            }
        }
    }
    let (Some(&from), Some(&last)) = (lost.first(), lost.last()) else { return 0 };
    assert!(
        from >= life.durable(),
        "{context}: chunk {chunk} lost sector {from} of {} durable",
        life.durable()
    );
    assert_eq!(from / unit, last / unit, "{context}: chunk {chunk} lost sectors of two units: {lost:?}");
    assert_eq!(
        index(last - from) + 1,
        lost.len(),
        "{context}: chunk {chunk} lost sectors with a gap: {lost:?}"
    );
    assert_eq!(last + 1, pointer, "{context}: chunk {chunk} is torn before its last unit: {lost:?}");
    assert!(from.is_multiple_of(page), "{context}: chunk {chunk} is torn inside a page: {lost:?}");
    1
}

/// After a cut the drive is a drive like any other: everything can be filled, reset, written again and read.
pub fn works_on(rig: &mut Rig, context: &str) {
    let (size, unit) = (rig.drive.geometry().sectors_per_chunk, rig.drive.geometry().ws_opt);
    let minimum = rig.drive.geometry().ws_min;
    for chunk in 0..rig.drive.geometry().chunk_count() {
        loop {
            let at = rig.drive.chunk(ChunkId(chunk)).write_pointer.expect("no chunk goes offline");
            let count = (unit - at % unit).min(size - at);
            assert!(at.is_multiple_of(minimum), "{context}: chunk {chunk} at {at}");
            if count == 0 {
                break;
            }
            assert_eq!(
                rig.write(ppa(chunk, at), count, 1).1.status,
                Status::SUCCESS,
                "{context}: chunk {chunk} at {at}"
            );
        }
        assert_eq!(rig.reset(chunk).1.status, Status::SUCCESS, "{context}: chunk {chunk}");
        let whole = rig.command(Op::Write { fua: true }, crate::rig::run(ppa(chunk, 0), size));
        for sector in 0..size {
            rig.fill(rig.buffer, sector, u64::from(chunk * size + sector));
        }
        assert_eq!(rig.one(whole).1.status, Status::SUCCESS, "{context}: chunk {chunk}");
    }
    for chunk in 0..rig.drive.geometry().chunk_count() {
        assert_eq!(rig.read(ppa(chunk, 0), size).1.status, Status::SUCCESS, "{context}: chunk {chunk}");
        let good = (0..size).all(|sector| rig.id_of(rig.buffer, sector) == u64::from(chunk * size + sector));
        assert!(good, "{context}: chunk {chunk} holds something else");
    }
    rig.drive.check();
}

//! The chunk table: state, write pointer, wear and what is on media, for every chunk; and how many are open.
//!
//! Owned by the drive; procedures in `exec` change it through these methods only, so the open counts cannot drift.
//! Deliberately not here: deciding whether a change is allowed (`rules`).

use crate::config::WearConfig;
use ocssd_base::Divisor;
use ocssd_lightnvm::{ChunkDescriptor, ChunkId, ChunkState, Geometry, Ppa, PuId};
use std::collections::BTreeMap;

/// What a chunk is. Kept in the image of a backed drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRecord {
    /// State.
    pub state: ChunkState,
    /// Next sector to write, from the chunk's start. Meaningless when OFFLINE.
    pub write_pointer: u32,
    /// Resets so far.
    pub cycles: u32,
}

/// A chunk as the table holds it: 16 bytes, so that a 2 TB drive's table (136 576 chunks) is 2.1 MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) state: ChunkState,
    /// Some sectors cannot be read: see [`Chunks::unreadable`].
    pub(crate) has_unreadable: bool,
    /// An explicit fault waits for this chunk.
    pub(crate) has_scheduled: bool,
    /// A reset is not finished on media.
    pub(crate) resetting: bool,
    pub(crate) cycles: u32,
    pub(crate) write_pointer: u32,
    /// Sectors from the start that are programmed; the rest up to the write pointer is in flight or in the cache.
    pub(crate) programmed: u32,
}

const _: () = assert!(std::mem::size_of::<Chunk>() == 16, "the table's size is stated in the documentation");

/// All chunks of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Chunks {
    chunks: Vec<Chunk>,
    by_pu: Divisor,
    sectors_per_chunk: u32,
    endurance: u32,
    open: u32,
    open_per_pu: Vec<u32>,
    /// Sum of all cycles of chunks not offline, for the average wear index.
    cycles_total: u64,
    usable: u32,
    /// Which sectors of a chunk cannot be read (torn or failed writes), one bit each.
    unreadable: BTreeMap<ChunkId, Vec<u64>>,
}

impl Chunks {
    pub(crate) fn new(geometry: &Geometry, wear: &WearConfig) -> Self {
        let fresh = Chunk {
            state: ChunkState::Free,
            has_unreadable: false,
            has_scheduled: false,
            resetting: false,
            cycles: wear.initial_cycles,
            write_pointer: 0,
            programmed: 0,
        };
        Self {
            chunks: vec![fresh; ChunkId(geometry.chunk_count()).index()],
            by_pu: Divisor::new(u64::from(geometry.chunks_per_pu)),
            sectors_per_chunk: geometry.sectors_per_chunk,
            endurance: wear.endurance,
            open: 0,
            open_per_pu: vec![0; PuId(geometry.pu_count()).index()],
            cycles_total: u64::from(wear.initial_cycles) * u64::from(geometry.chunk_count()),
            usable: geometry.chunk_count(),
            unreadable: BTreeMap::new(),
        }
    }

    pub(crate) fn exists(&self, ppa: Ppa) -> bool {
        ppa.chunk.index() < self.chunks.len() && ppa.sector < self.sectors_per_chunk
    }

    pub(crate) fn get(&self, chunk: ChunkId) -> &Chunk {
        &self.chunks[chunk.index()]
    }

    pub(crate) fn find(&self, chunk: ChunkId) -> Option<&Chunk> {
        self.chunks.get(chunk.index())
    }

    /// Flags that do not count towards anything.
    pub(crate) fn flags_mut(&mut self, chunk: ChunkId) -> &mut Chunk {
        &mut self.chunks[chunk.index()]
    }

    /// Chunks that are not offline.
    pub(crate) const fn usable_count(&self) -> u32 {
        self.usable
    }

    /// Resets of all chunks that are not offline, together.
    pub(crate) const fn cycles_total(&self) -> u64 {
        self.cycles_total
    }

    pub(crate) const fn open_count(&self) -> u32 {
        self.open
    }

    pub(crate) fn open_count_of(&self, chunk: ChunkId) -> u32 {
        self.open_per_pu[self.pu_of(chunk).index()]
    }

    /// The parallel unit of an existing chunk.
    #[inline(always)]
    pub(crate) fn pu_of(&self, chunk: ChunkId) -> PuId {
        PuId(self.by_pu.div_rem_u32(chunk.0).0)
    }

    fn set_state(&mut self, chunk: ChunkId, state: ChunkState) {
        let pu = self.pu_of(chunk).index();
        let entry = &mut self.chunks[chunk.index()];
        assert!(entry.state != ChunkState::Offline || state == ChunkState::Offline, "OFFLINE is final");
        let (was, is) = (entry.state == ChunkState::Open, state == ChunkState::Open);
        if state == ChunkState::Offline && entry.state != ChunkState::Offline {
            self.cycles_total -= u64::from(entry.cycles);
            self.usable -= 1;
        }
        entry.state = state;
        if was && !is {
            assert!(self.open > 0 && self.open_per_pu[pu] > 0, "a chunk closed that was not counted open");
            self.open -= 1;
            self.open_per_pu[pu] -= 1;
        } else if is && !was {
            self.open += 1;
            self.open_per_pu[pu] += 1;
        }
    }

    /// `count` sectors were accepted at the write pointer.
    pub(crate) fn advance(&mut self, chunk: ChunkId, count: u32) {
        let entry = &mut self.chunks[chunk.index()];
        assert!(
            matches!(entry.state, ChunkState::Free | ChunkState::Open),
            "a {} chunk was written",
            entry.state
        );
        assert!(
            count > 0 && count <= self.sectors_per_chunk - entry.write_pointer,
            "a write beyond the chunk"
        );
        entry.write_pointer += count;
        let full = entry.write_pointer == self.sectors_per_chunk;
        self.set_state(chunk, if full { ChunkState::Closed } else { ChunkState::Open });
    }

    /// The drive closed the chunk before its end.
    pub(crate) fn close(&mut self, chunk: ChunkId) {
        self.set_state(chunk, ChunkState::Closed);
    }

    /// The chunk is empty again and a cycle older. Its sectors are readable anew when written.
    pub(crate) fn reset(&mut self, chunk: ChunkId) {
        self.set_state(chunk, ChunkState::Free);
        let entry = &mut self.chunks[chunk.index()];
        assert!(entry.cycles < self.endurance, "a worn-out chunk was reset once more");
        entry.write_pointer = 0;
        entry.programmed = 0;
        entry.cycles += 1;
        entry.has_unreadable = false;
        self.cycles_total += 1;
        self.unreadable.remove(&chunk);
    }

    /// The chunk is lost for good.
    pub(crate) fn take_offline(&mut self, chunk: ChunkId) {
        self.set_state(chunk, ChunkState::Offline);
        let entry = &mut self.chunks[chunk.index()];
        entry.write_pointer = 0;
        entry.programmed = 0;
        entry.has_unreadable = false;
        self.unreadable.remove(&chunk);
    }

    /// Sets a chunk to what an image or a power cut says it is.
    pub(crate) fn put(&mut self, chunk: ChunkId, record: ChunkRecord) {
        assert!(record.write_pointer <= self.sectors_per_chunk, "a write pointer beyond the chunk");
        let offline = self.chunks[chunk.index()].state == ChunkState::Offline;
        if !offline {
            let entry = &mut self.chunks[chunk.index()];
            self.cycles_total = self.cycles_total - u64::from(entry.cycles) + u64::from(record.cycles);
            entry.cycles = record.cycles;
        }
        self.set_state(chunk, record.state);
        let entry = &mut self.chunks[chunk.index()];
        entry.write_pointer = record.write_pointer;
        entry.programmed = record.write_pointer;
    }

    pub(crate) fn record(&self, chunk: ChunkId) -> ChunkRecord {
        let entry = self.get(chunk);
        ChunkRecord { state: entry.state, write_pointer: entry.write_pointer, cycles: entry.cycles }
    }

    /// A program of the chunk's current life is done up to `end`.
    pub(crate) fn programmed_to(&mut self, chunk: ChunkId, end: u32, cycles: u32) {
        assert!(end <= self.sectors_per_chunk, "a program ends beyond its chunk");
        let entry = &mut self.chunks[chunk.index()];
        if entry.cycles == cycles && entry.state != ChunkState::Offline {
            assert!(end <= entry.write_pointer, "more was programmed than was written");
            entry.programmed = entry.programmed.max(end);
        }
    }

    /// 0 new to 255 worn out (OCSSD 2.0 section 3.2.2, WLI; as the QEMU model scales it).
    pub(crate) fn wear_index(&self, chunk: ChunkId) -> u8 {
        wear_index(self.get(chunk).cycles.into(), self.endurance)
    }

    /// The average wear index of the chunks that are not offline.
    pub(crate) fn wear_average(&self) -> u8 {
        let usable = u64::from(self.usable.max(1));
        wear_index(self.cycles_total / usable, self.endurance)
    }

    /// The sectors of a chunk that cannot be read, one bit each; none if the slice is empty.
    pub(crate) fn unreadable(&self, chunk: ChunkId) -> &[u64] {
        self.unreadable.get(&chunk).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn is_unreadable(&self, ppa: Ppa) -> bool {
        let (word, bit) = (ppa.sector / 64, ppa.sector % 64);
        let word = usize::try_from(word).expect("32 bits fit an index");
        self.unreadable(ppa.chunk).get(word).is_some_and(|bits| bits >> bit & 1 == 1)
    }

    /// Marks `count` sectors from `first` on as lost.
    pub(crate) fn mark_unreadable(&mut self, first: Ppa, count: u32) {
        let words = usize::try_from(self.sectors_per_chunk.div_ceil(64)).expect("32 bits fit an index");
        let bits = self.unreadable.entry(first.chunk).or_insert_with(|| vec![0; words]);
        for sector in first.sector..first.sector + count {
            bits[usize::try_from(sector / 64).expect("32 bits fit an index")] |= 1 << (sector % 64);
        }
        self.chunks[first.chunk.index()].has_unreadable = true;
    }

    /// What lies from `sector` on was never written after all: it has no marks.
    pub(crate) fn unmark_from(&mut self, chunk: ChunkId, sector: u32) {
        let Some(bits) = self.unreadable.get_mut(&chunk) else { return };
        for (word, first) in bits.iter_mut().zip((0..).step_by(64)) {
            let kept = u64::MAX.checked_shl(sector.saturating_sub(first)).unwrap_or(0);
            *word &= !kept;
        }
        if bits.iter().all(|&word| word == 0) {
            self.unreadable.remove(&chunk);
            self.chunks[chunk.index()].has_unreadable = false;
        }
    }

    /// Takes the marks an image has kept.
    pub(crate) fn put_unreadable(&mut self, chunk: ChunkId, bits: Vec<u64>) {
        self.chunks[chunk.index()].has_unreadable = bits.iter().any(|&word| word != 0);
        self.unreadable.insert(chunk, bits);
    }

    pub(crate) fn descriptor(&self, geometry: &Geometry, chunk: ChunkId) -> ChunkDescriptor {
        let entry = self.get(chunk);
        ChunkDescriptor {
            state: entry.state,
            wear_index: self.wear_index(chunk),
            first: geometry.lba_of(Ppa::new(chunk, 0)),
            sectors: self.sectors_per_chunk,
            write_pointer: (entry.state != ChunkState::Offline).then_some(entry.write_pointer),
        }
    }

    /// Asserts that counts and entries agree, and that every entry is possible.
    pub(crate) fn check(&self) {
        let open = self.chunks.iter().filter(|chunk| chunk.state == ChunkState::Open).count();
        assert_eq!(Ok(open), usize::try_from(self.open), "open chunks are miscounted");
        let usable = self.chunks.iter().filter(|chunk| chunk.state != ChunkState::Offline);
        assert_eq!(
            usable.map(|chunk| u64::from(chunk.cycles)).sum::<u64>(),
            self.cycles_total,
            "cycles miscounted"
        );
        for chunk in &self.chunks {
            assert!(chunk.programmed <= chunk.write_pointer, "more is on media than was written");
            let pointer = chunk.write_pointer;
            match chunk.state {
                ChunkState::Free => assert_eq!(pointer, 0, "a FREE chunk has a write pointer"),
                ChunkState::Open => {
                    assert!(pointer > 0 && pointer < self.sectors_per_chunk, "OPEN at {pointer}")
                }
                ChunkState::Closed => assert!(pointer <= self.sectors_per_chunk, "CLOSED at {pointer}"),
                ChunkState::Offline => assert_eq!(pointer, 0, "an OFFLINE chunk has a write pointer"),
            }
        }
    }
}

fn wear_index(cycles: u64, endurance: u32) -> u8 {
    let scaled = cycles * 255 / u64::from(endurance);
    u8::try_from(scaled.min(255)).expect("at most 255")
}

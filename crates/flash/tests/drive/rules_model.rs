//! Random commands, many of them invalid, against a naive model of chunks that shares no code with the drive.

use crate::rig::{BUFFER_SECTORS, Rig, index, ppa, preset};
use ocssd_base::Prng;
use ocssd_flash::{Config, Flash};
use ocssd_lightnvm::wrap::Check;
use ocssd_lightnvm::{ChunkId, ChunkState, Device, Geometry, Op, Payload, Ppa, Status};

/// A chunk as the specification describes it, and what each of its sectors holds.
#[derive(Clone)]
struct Chunk {
    state: ChunkState,
    pointer: u32,
    ids: Vec<u64>,
}

struct Model {
    geometry: Geometry,
    chunks: Vec<Chunk>,
}

/// How a command ends: status and failed entries.
type Outcome = (Status, u64);

fn every(count: usize) -> u64 {
    (0..count.min(64)).fold(0, |bits, entry| bits | 1 << entry)
}

impl Model {
    fn new(geometry: &Geometry) -> Self {
        let fresh =
            Chunk { state: ChunkState::Free, pointer: 0, ids: vec![0; index(geometry.sectors_per_chunk)] };
        Self { geometry: geometry.clone(), chunks: vec![fresh; index(geometry.chunk_count())] }
    }

    fn readable(&self, at: Ppa) -> bool {
        let Some(chunk) = self.chunks.get(index(at.chunk.0)) else { return false };
        match chunk.state {
            ChunkState::Closed => at.sector < chunk.pointer,
            ChunkState::Open => {
                u64::from(at.sector) + u64::from(self.geometry.mw_cunits) < u64::from(chunk.pointer)
            }
            ChunkState::Free | ChunkState::Offline => false,
        }
    }

    fn read(&self, list: &[Ppa]) -> (Outcome, Vec<Option<u64>>) {
        let ids: Vec<Option<u64>> = list
            .iter()
            .map(|&at| self.readable(at).then(|| self.chunks[index(at.chunk.0)].ids[index(at.sector)]))
            .collect();
        let failed =
            ids.iter().enumerate().fold(0, |bits, (entry, id)| bits | u64::from(id.is_none()) << entry);
        ((if failed == 0 { Status::SUCCESS } else { Status::UNWRITTEN }, failed), ids)
    }

    fn write(&mut self, list: &[Ppa], ids: &[u64]) -> Outcome {
        let before = self.chunks.clone();
        let mut at = 0;
        while at < list.len() {
            let first = list[at];
            let mut count = 1;
            while list.get(at + count).is_some_and(|next| {
                next.chunk == first.chunk
                    && u64::from(next.sector)
                        == u64::from(first.sector) + u64::try_from(count).expect("a short list")
            }) {
                count += 1;
            }
            if let Err(status) = self.write_run(first, &ids[at..at + count]) {
                self.chunks = before;
                return (status, every(list.len()));
            }
            at += count;
        }
        (Status::SUCCESS, 0)
    }

    fn open_in(&self, chunks: std::ops::Range<u32>) -> u32 {
        let open = self.chunks[index(chunks.start)..index(chunks.end)].iter();
        u32::try_from(open.filter(|chunk| chunk.state == ChunkState::Open).count()).expect("few chunks")
    }

    fn write_run(&mut self, first: Ppa, ids: &[u64]) -> Result<(), Status> {
        let size = self.geometry.sectors_per_chunk;
        let count = u32::try_from(ids.len()).expect("a short run");
        let chunk = self.chunks.get(index(first.chunk.0)).ok_or(Status::WRITE_FAULT)?;
        if first.sector >= size || !matches!(chunk.state, ChunkState::Free | ChunkState::Open) {
            return Err(Status::WRITE_FAULT);
        }
        if first.sector + count > size {
            return Err(Status::WRITE_FAULT);
        }
        if count % self.geometry.ws_min != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if first.sector != chunk.pointer {
            return Err(Status::OUT_OF_ORDER);
        }
        if chunk.state == ChunkState::Free && count < size {
            let per_pu = self.geometry.chunks_per_pu;
            let unit = first.chunk.0 / per_pu * per_pu;
            let over = |limit: u32, open: u32| limit > 0 && open >= limit;
            if over(self.geometry.max_open_chunks, self.open_in(0..self.geometry.chunk_count()))
                || over(self.geometry.max_open_chunks_per_pu, self.open_in(unit..unit + per_pu))
            {
                return Err(Status::WRITE_FAULT);
            }
        }
        let chunk = &mut self.chunks[index(first.chunk.0)];
        chunk.ids[index(first.sector)..][..ids.len()].copy_from_slice(ids);
        chunk.pointer += count;
        chunk.state = if chunk.pointer == size { ChunkState::Closed } else { ChunkState::Open };
        Ok(())
    }

    fn reset(&mut self, list: &[Ppa]) -> Outcome {
        let mut failed = 0;
        for (entry, at) in list.iter().enumerate() {
            let chunk = self.chunks.get_mut(index(at.chunk.0));
            match chunk.filter(|chunk| at.sector == 0 && chunk.state == ChunkState::Closed) {
                Some(chunk) => (chunk.state, chunk.pointer) = (ChunkState::Free, 0),
                None => failed |= 1 << entry,
            }
        }
        (if failed == 0 { Status::SUCCESS } else { Status::INVALID_RESET }, failed)
    }

    fn copy(&mut self, list: &[Ppa]) -> Outcome {
        let (from, to) = list.split_at(list.len() / 2);
        if !self.geometry.capabilities.vector_copy {
            return (Status::INVALID_OPCODE, every(from.len()));
        }
        if !from.iter().all(|&at| self.readable(at)) {
            return (Status::UNWRITTEN, every(from.len()));
        }
        let ids: Vec<u64> = self.read(from).1.into_iter().flatten().collect();
        self.write(to, &ids)
    }
}

/// Draws commands: mostly near what is valid.
struct Generator {
    prng: Prng,
    next_id: u64,
}

impl Generator {
    fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.prng.below(u64::from(bound))).expect("below 32 bits")
    }

    fn chunk(&mut self, geometry: &Geometry) -> u32 {
        match self.below(40) {
            0 => geometry.chunk_count(),
            1 => u32::MAX,
            // A few chunks, so that they fill and close.
            _ => self.below(6) * (geometry.chunks_per_pu - 1),
        }
    }

    fn run(&mut self, model: &Model, writes: bool) -> Vec<Ppa> {
        let chunk = self.chunk(&model.geometry);
        let pointer = model.chunks.get(index(chunk)).map_or(0, |chunk| chunk.pointer);
        let size = model.geometry.sectors_per_chunk;
        let first = match self.below(12) {
            0 => self.below(size + 8),
            1 => u32::MAX - 3,
            _ if writes => pointer,
            _ => self.below(pointer + 4),
        };
        let unit = model.geometry.ws_min;
        let count =
            if !writes || self.below(12) == 0 { 1 + self.below(12) } else { unit * (1 + self.below(2)) };
        (0..count).map(|step| ppa(chunk, first.saturating_add(step))).collect()
    }

    fn list(&mut self, model: &Model, writes: bool) -> Vec<Ppa> {
        let runs = 1 + self.below(3);
        let mut list: Vec<Ppa> = (0..runs).flat_map(|_| self.run(model, writes)).collect();
        list.truncate(64);
        list
    }

    fn ids(&mut self, count: usize) -> Vec<u64> {
        let first = self.next_id;
        self.next_id += u64::try_from(count).expect("a short list");
        (first..self.next_id).collect()
    }
}

/// One random command to both; both must say the same.
fn step(rig: &mut Rig<Check<Flash>>, model: &mut Model, generator: &mut Generator, context: &str) {
    let kind = generator.below(10);
    let (op, list) = match kind {
        0..=3 => (Op::Write { fua: kind == 0 }, generator.list(model, true)),
        4..=6 => (Op::Read, generator.list(model, false)),
        7 => {
            let source = generator.list(model, false);
            let mut list: Vec<Ppa> = source.iter().copied().take(32).collect();
            let target = generator.list(model, true);
            list.truncate(target.len().min(32));
            list.extend(target.iter().copied().take(list.len()));
            (Op::Copy, list)
        }
        _ => {
            let entries = 1 + generator.below(3);
            (
                Op::Reset,
                (0..entries)
                    .map(|_| ppa(generator.chunk(&model.geometry), u32::from(kind == 9 && entries == 2)))
                    .collect(),
            )
        }
    };
    let ids = generator.ids(list.len());
    let mut read = Vec::new();
    let expected = match op {
        Op::Write { .. } => model.write(&list, &ids),
        Op::Read => {
            let (outcome, found) = model.read(&list);
            read = found;
            outcome
        }
        Op::Reset => model.reset(&list),
        Op::Copy | Op::Flush => model.copy(&list),
    };
    if matches!(op, Op::Write { .. }) {
        for (sector, &id) in (0..BUFFER_SECTORS).zip(&ids) {
            rig.fill(rig.buffer, sector, id);
        }
    }
    let command = rig.vector(op, &list);
    let (_, end) = rig.one(command);
    assert_eq!((end.status, end.failed), expected, "{context}: {op:?} {list:?} {:?}", end.violation);
    for (entry, id) in (0..BUFFER_SECTORS).zip(read) {
        if let Some(id) = id {
            assert_eq!(rig.id_of(rig.buffer, entry), id, "{context}: {}", list[index(entry)].sector);
        }
    }
}

fn play(config: Config, seed: u64, steps: u32) {
    let context = format!("seed {seed}, {} {:?}", config.model, config.payload);
    let flash = Flash::format(config).expect("settings that can be used");
    let format = flash.payload_format();
    let mut model = Model::new(flash.geometry());
    let mut rig = Rig::with(Check::new(flash), format);
    let mut generator = Generator { prng: Prng::new(seed).split("commands"), next_id: 1 };
    for number in 0..steps {
        step(&mut rig, &mut model, &mut generator, &format!("{context}, command {number}"));
    }
    let drive = rig.drive.inner_mut();
    drive.check();
    for (chunk, expected) in (0..).zip(&model.chunks) {
        let found = drive.chunk(ChunkId(chunk));
        assert_eq!(
            (found.state, found.write_pointer),
            (expected.state, Some(expected.pointer)),
            "{context}: chunk {chunk}"
        );
    }
}

#[test]
fn random_commands_end_as_a_naive_model_says() {
    for seed in 0..200 {
        let mut config = preset(if seed % 2 == 0 { "tiny" } else { "odd" });
        config.payload = if seed % 4 < 2 { Payload::Stamp } else { Payload::Bytes };
        config.geometry.capabilities.vector_copy = seed % 8 != 0;
        if seed % 5 == 0 {
            (config.geometry.max_open_chunks, config.geometry.max_open_chunks_per_pu) = (2, 1);
        }
        if seed % 3 == 0 {
            config.cache.sectors = 64;
        }
        play(config, seed, 150);
    }
}

//! Content in memory, a block of it per chunk that was ever written.
//!
//! An empty 2 TB drive (136 576 chunks) costs 32 bytes a chunk here, 4.2 MiB. A written chunk costs its payload: with
//! stamps 16 bytes a sector, 4 GiB per TiB; metadata (16 bytes a sector as a rule) is kept only in chunks that were
//! given some. Blocks of reset chunks are kept for the next ones, so a drive in steady state allocates nothing.
//! Sectors written whole beside their stamps cost their bytes, unless they hold a stamp and zeros and no more; while there
//! are none, nothing, and one branch a command.

use super::whole::WholeSectors;
use ocssd_lightnvm::{ChunkId, Payload, PayloadFormat, Ppa, STAMP_BYTES};

/// A chunk's content; no allocation until something is written.
#[derive(Clone, Debug, Default)]
pub struct Block {
    data: Option<Box<[u8]>>,
    oob: Option<Box<[u8]>>,
}

/// What a chunk held when it was reset.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    block: Block,
    whole: Option<Box<WholeSectors>>,
}

/// All chunks' content.
#[derive(Clone, Debug)]
pub struct Memory {
    format: PayloadFormat,
    sectors_per_chunk: usize,
    blocks: Vec<Block>,
    spare_data: Vec<Box<[u8]>>,
    spare_oob: Vec<Box<[u8]>>,
    /// Sectors kept whole beside their stamps, by chunk; empty until the drive is given the first.
    whole: Vec<Option<Box<WholeSectors>>>,
    spare_whole: Vec<Box<[u8]>>,
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

/// A piece of `unit`-sized places, `count` of them from `first` on.
fn span(bytes: &[u8], first: u32, unit: usize, length: usize) -> &[u8] {
    &bytes[index(first) * unit..][..length]
}

/// Copies a slice of the same length. One stamp, the most frequent length, needs no call.
fn copy(from: &[u8], to: &mut [u8]) {
    match (<&[u8; STAMP_BYTES]>::try_from(from), <&mut [u8; STAMP_BYTES]>::try_from(&mut *to)) {
        (Ok(from), Ok(to)) => *to = *from,
        _ => to.copy_from_slice(from),
    }
}

/// Whether there is nothing but zeros. Cost: by eight cache lines, up to the first that are not: fewer at a time take more
/// steps to fold than to load.
fn is_zero(bytes: &[u8]) -> bool {
    let (lines, rest) = bytes.as_chunks::<512>();
    let is_zero = |bytes: &[u8]| bytes.iter().fold(0, |any, byte| any | byte) == 0;
    lines.iter().all(|line| is_zero(line)) && is_zero(rest)
}

impl Memory {
    /// Room for `chunks` chunks of `sectors_per_chunk` sectors.
    #[must_use]
    pub fn new(format: PayloadFormat, chunks: u32, sectors_per_chunk: u32) -> Self {
        Self {
            format,
            sectors_per_chunk: index(sectors_per_chunk),
            blocks: vec![Block::default(); index(chunks)],
            spare_data: Vec::new(),
            spare_oob: Vec::new(),
            whole: Vec::new(),
            spare_whole: Vec::new(),
        }
    }

    /// Takes memory for chunks that hold nothing yet, of `bytes` bytes at most, and touches it, so that writing them later costs
    /// no page faults. Returns how much was taken. Cost: the system clears every page.
    pub(crate) fn take_ahead(&mut self, bytes: u64) -> u64 {
        let Self { format, sectors_per_chunk, blocks, spare_data, spare_oob, .. } = self;
        let lengths = [*sectors_per_chunk * format.data_bytes, *sectors_per_chunk * format.oob_bytes];
        let chunk_bytes = u64::try_from(lengths[0] + lengths[1]).expect("a chunk fits memory");
        let fits = usize::try_from(bytes / chunk_bytes).unwrap_or(usize::MAX);
        let empty =
            blocks.iter().filter(|block| block.data.is_none()).count().saturating_sub(spare_data.len());
        let count = fits.min(empty);
        // No zeroes: those the system gives untouched. What is there is written again before it is read.
        let touched = |length: usize| vec![u8::MAX; length].into_boxed_slice();
        spare_data.extend((0..count).map(|_| touched(lengths[0])));
        spare_oob.extend((0..count).map(|_| touched(lengths[1])));
        assert!(spare_data.len() <= blocks.len(), "{} spare blocks of {}", spare_data.len(), blocks.len());
        u64::try_from(count).expect("fewer than chunks") * chunk_bytes
    }

    /// Stores sectors from `first` on; none of them is whole afterwards.
    pub(super) fn write(&mut self, chunk: ChunkId, first: u32, data: &[u8], oob: &[u8]) {
        let Self { format, sectors_per_chunk, blocks, spare_data, spare_oob, whole, spare_whole } = self;
        assert!(data.len().is_multiple_of(format.data_bytes), "half a sector is no content");
        assert!(
            oob.is_empty() || oob.len() / format.oob_bytes == data.len() / format.data_bytes,
            "content and metadata are of different sectors"
        );
        let block = &mut blocks[chunk.index()];
        let place = block.data.get_or_insert_with(|| {
            // Old content stays in a spare block: a sector is read only after it was written again.
            spare_data.pop().unwrap_or_else(|| vec![0; *sectors_per_chunk * format.data_bytes].into())
        });
        place[index(first) * format.data_bytes..][..data.len()].copy_from_slice(data);
        let metadata_bytes = data.len() / format.data_bytes * format.oob_bytes;
        if !oob.is_empty() {
            let place = block.oob.get_or_insert_with(|| {
                let mut fresh =
                    spare_oob.pop().unwrap_or_else(|| vec![0; *sectors_per_chunk * format.oob_bytes].into());
                // Sectors before these were written without metadata; those behind are written again before they are read.
                fresh[..index(first) * format.oob_bytes].fill(0);
                fresh
            });
            place[index(first) * format.oob_bytes..][..oob.len()].copy_from_slice(oob);
        } else if let Some(place) = &mut block.oob {
            place[index(first) * format.oob_bytes..][..metadata_bytes].fill(0);
        }
        if let Some(Some(whole)) = whole.get_mut(chunk.index()) {
            let sectors = u32::try_from(data.len() / format.data_bytes).expect("fewer than a chunk has");
            whole.forget(first, sectors, spare_whole);
        }
    }

    /// Keeps all bytes of sectors that were just written, `sector_bytes` each. A sector that is its stamp and zeros is as
    /// good as plain: it reads the same, and a target that fills a unit with zeros behind what it has to say (a list, a
    /// head) fills no memory with them.
    pub(super) fn write_whole(&mut self, chunk: ChunkId, first: u32, bytes: &[u8]) {
        let Self { format, blocks, whole, spare_whole, .. } = self;
        assert_eq!(format.payload, Payload::Stamp, "real bytes are kept as data");
        let stamps = blocks[chunk.index()].data.as_ref().expect("bytes of sectors that were written before");
        if whole.is_empty() {
            whole.resize_with(blocks.len(), || None);
        }
        let sectors = whole[chunk.index()].get_or_insert_default();
        sectors.insert(first, bytes, format.sector_bytes, spare_whole, |sector, bytes| {
            let (stamp, rest) = bytes.split_at(format.data_bytes);
            stamp == span(stamps, sector, format.data_bytes, format.data_bytes) && is_zero(rest)
        });
    }

    /// Reads a byte of a sector, and one of its metadata if that is wanted, for the cache to have them. 0 of what was
    /// never written.
    #[inline]
    pub(crate) fn touch(&self, at: Ppa, oob: bool) -> u8 {
        let block = &self.blocks[at.chunk.index()];
        let byte = |bytes: &Option<Box<[u8]>>, unit: usize| {
            let place = bytes.as_ref().and_then(|bytes| bytes.get(index(at.sector) * unit));
            place.copied().unwrap_or_default()
        };
        let metadata = if oob { byte(&block.oob, self.format.oob_bytes) } else { 0 };
        byte(&block.data, self.format.data_bytes) ^ metadata
    }

    #[inline(always)]
    pub(crate) fn read(&self, chunk: ChunkId, first: u32, data: &mut [u8], oob: &mut [u8]) {
        let unit = self.format.data_bytes;
        // Most reads are of one sector, and a division takes longer than all the rest of one.
        assert!(data.len() == unit || data.len().is_multiple_of(unit), "half a sector is no content");
        let block = &self.blocks[chunk.index()];
        match &block.data {
            Some(from) => copy(span(from, first, unit, data.len()), data),
            None => data.fill(0),
        }
        if oob.is_empty() {
            return;
        }
        match &block.oob {
            Some(from) => copy(span(from, first, self.format.oob_bytes, oob.len()), oob),
            None => oob.fill(0),
        }
    }

    /// Looks at a byte of each line of the processor's cache that holds these bytes of sectors from one on.
    pub(crate) fn touch_bytes(&self, first: Ppa, from: usize, count: usize) -> u8 {
        // Lines of x86-64 and of most of aarch64; shorter ones are loaded by the copy.
        const LINE: usize = 64;
        let Some(data) = &self.blocks[first.chunk.index()].data else { return 0 };
        let begin = index(first.sector) * self.format.data_bytes + from;
        let lines = data.get(begin..begin + count).unwrap_or_default().chunks(LINE);
        lines.fold(0, |all, line| all ^ line[0])
    }

    /// Fills `bytes` with content that is real bytes, from byte `from` of sector `first` of its chunk on.
    pub(crate) fn read_bytes(&self, first: Ppa, from: usize, bytes: &mut [u8]) {
        assert_eq!(self.format.payload, Payload::Bytes, "stamps are read whole");
        match &self.blocks[first.chunk.index()].data {
            Some(data) => {
                let content = span(data, first.sector, self.format.data_bytes, from + bytes.len());
                bytes.copy_from_slice(&content[from..]);
            }
            None => bytes.fill(0),
        }
    }

    /// Fills `bytes` with all bytes of sectors from `first` on, `sector_bytes` each. A sector that was not written whole
    /// gives its stamp and zeros.
    pub(super) fn read_whole(&self, chunk: ChunkId, first: u32, bytes: &mut [u8]) {
        let PayloadFormat { payload, data_bytes, sector_bytes, .. } = self.format;
        assert_eq!(payload, Payload::Stamp, "real bytes are read as data");
        assert!(bytes.len().is_multiple_of(sector_bytes), "half a sector is no content");
        let whole = self.whole.get(chunk.index()).and_then(Option::as_ref);
        let stamps = &self.blocks[chunk.index()].data;
        for (sector, place) in (first..).zip(bytes.chunks_exact_mut(sector_bytes)) {
            if let Some(kept) = whole.and_then(|whole| whole.get(sector)) {
                place.copy_from_slice(kept);
                continue;
            }
            let (stamp, rest) = place.split_at_mut(data_bytes);
            rest.fill(0);
            match stamps {
                Some(from) => stamp.copy_from_slice(span(from, sector, data_bytes, data_bytes)),
                None => stamp.fill(0),
            }
        }
    }

    /// Which of up to 64 sectors from `first` on are whole: bit `i` is sector `first + i`.
    pub(super) fn whole_sectors(&self, chunk: ChunkId, first: u32, count: u32) -> u64 {
        match self.whole.get(chunk.index()) {
            Some(Some(whole)) => whole.bits(first, count),
            _ => 0,
        }
    }

    pub(super) fn take(&mut self, chunk: ChunkId) -> Saved {
        let whole = self.whole.get_mut(chunk.index()).and_then(Option::take);
        Saved { block: std::mem::take(&mut self.blocks[chunk.index()]), whole }
    }

    pub(super) fn restore(&mut self, chunk: ChunkId, saved: Saved) {
        let newer = self.take(chunk);
        self.recycle(newer);
        self.blocks[chunk.index()] = saved.block;
        if saved.whole.is_some() {
            self.whole[chunk.index()] = saved.whole;
        }
    }

    pub(super) fn recycle(&mut self, Saved { block, whole }: Saved) {
        let full = self.sectors_per_chunk * self.format.data_bytes;
        assert!(
            block.data.as_ref().is_none_or(|data| data.len() == full),
            "a block of another size came back"
        );
        self.spare_data.extend(block.data);
        self.spare_oob.extend(block.oob);
        self.spare_whole.extend(whole.into_iter().flat_map(|whole| whole.into_room()));
    }

    /// Flips a bit of a written sector: of its metadata, or of its content, whole bytes included. Bits are counted modulo
    /// how many there are. False if there is nothing to flip.
    pub(super) fn flip(&mut self, at: Ppa, metadata: bool, bit: u64) -> bool {
        let block = &mut self.blocks[at.chunk.index()];
        let unit = if metadata { self.format.oob_bytes } else { self.format.data_bytes };
        let kept = if metadata { &mut block.oob } else { &mut block.data };
        let Some(kept) = kept.as_mut().filter(|_| unit > 0) else { return false };
        let mut bytes = &mut kept[index(at.sector) * unit..][..unit];
        let whole = self.whole.get_mut(at.chunk.index()).and_then(Option::as_mut);
        if let Some(whole) = whole.filter(|_| !metadata).and_then(|whole| whole.get_mut(at.sector)) {
            bytes = whole;
        }
        let bits = u64::try_from(bytes.len()).expect("a sector is small") * 8;
        let bit = bit % bits;
        bytes[usize::try_from(bit / 8).expect("within a sector")] ^= 1 << (bit % 8);
        true
    }

    /// What a written sector holds lies at `to` from now on, or nowhere; its own place is blank, which reads as zeroes.
    pub(super) fn misplace(&mut self, from: Ppa, to: Option<Ppa>) {
        let PayloadFormat { data_bytes, sector_bytes, oob_bytes, .. } = self.format;
        let (mut data, mut oob) = (vec![0; data_bytes], vec![0; oob_bytes]);
        self.read(from.chunk, from.sector, &mut data, &mut oob);
        let mut whole = Vec::new();
        if self.whole_sectors(from.chunk, from.sector, 1) != 0 {
            whole.resize(sector_bytes, 0);
            self.read_whole(from.chunk, from.sector, &mut whole);
        }
        self.write(from.chunk, from.sector, &vec![0; data_bytes], &[]);
        let Some(to) = to else { return };
        self.write(to.chunk, to.sector, &data, &oob);
        if !whole.is_empty() {
            self.write_whole(to.chunk, to.sector, &whole);
        }
    }

    /// Bytes held for content, spare blocks included.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        let boxes = self.blocks.iter().flat_map(|block| block.data.iter().chain(&block.oob));
        let all = boxes.chain(&self.spare_data).chain(&self.spare_oob).chain(&self.spare_whole);
        let whole = self.whole.iter().flatten().map(|whole| whole.content_bytes());
        let bytes: usize = all.map(|bytes| bytes.len()).chain(whole).sum();
        u64::try_from(bytes).expect("a length fits 64 bits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: PayloadFormat =
        PayloadFormat { payload: Payload::Bytes, data_bytes: 4096, sector_bytes: 4096, oob_bytes: 16 };
    /// Of 8 sectors.
    const CHUNK_BYTES: u64 = 8 * (4096 + 16);

    #[test]
    fn memory_is_taken_ahead_for_empty_chunks_only_and_in_whole_chunks() {
        let mut memory = Memory::new(FORMAT, 4, 8);
        memory.write(ChunkId(2), 0, &[7; 4096], &[9; 16]);
        let taken = [2 * CHUNK_BYTES + 5, 0, u64::MAX, u64::MAX].map(|bytes| memory.take_ahead(bytes));
        assert_eq!(taken, [2 * CHUNK_BYTES, 0, CHUNK_BYTES, 0]);
    }

    #[test]
    fn a_chunk_in_memory_that_was_taken_ahead_reads_as_any_other() {
        let mut memory = Memory::new(FORMAT, 4, 8);
        memory.take_ahead(u64::MAX);
        let (mut data, mut oob) = ([1; 4096], [1; 16]);
        memory.read(ChunkId(1), 3, &mut data, &mut oob);
        assert!(data == [0; 4096] && oob == [0; 16], "nobody wrote it");
        memory.write(ChunkId(1), 0, &[7; 4096], &[]);
        memory.read(ChunkId(1), 0, &mut data, &mut oob);
        assert!(data == [7; 4096] && oob == [0; 16], "the write had no metadata");
        assert_eq!(memory.spare_data.len(), 3, "no memory was asked for");
    }
}

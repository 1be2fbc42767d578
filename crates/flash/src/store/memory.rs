//! Content in memory, a block of it per chunk that was ever written.
//!
//! An empty 2 TB drive (136 576 chunks) costs 32 bytes a chunk here, 4.2 MiB. A written chunk costs its payload: with
//! stamps 16 bytes a sector, 4 GiB per TiB; metadata (16 bytes a sector as a rule) is kept only in chunks that were
//! given some. Blocks of reset chunks are kept for the next ones, so a drive in steady state allocates nothing.

use ocssd_lightnvm::{ChunkId, PayloadFormat};

/// A chunk's content; no allocation until something is written.
#[derive(Clone, Debug, Default)]
pub struct Block {
    data: Option<Box<[u8]>>,
    oob: Option<Box<[u8]>>,
}

/// All chunks' content.
#[derive(Clone, Debug)]
pub struct Memory {
    format: PayloadFormat,
    sectors_per_chunk: usize,
    blocks: Vec<Block>,
    spare_data: Vec<Box<[u8]>>,
    spare_oob: Vec<Box<[u8]>>,
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

/// A piece of `unit`-sized places, `count` of them from `first` on.
fn span(bytes: &[u8], first: u32, unit: usize, length: usize) -> &[u8] {
    &bytes[index(first) * unit..][..length]
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
        }
    }

    pub(super) fn write(&mut self, chunk: ChunkId, first: u32, data: &[u8], oob: &[u8]) {
        let Self { format, sectors_per_chunk, blocks, spare_data, spare_oob } = self;
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
                fresh.fill(0);
                fresh
            });
            place[index(first) * format.oob_bytes..][..oob.len()].copy_from_slice(oob);
        } else if let Some(place) = &mut block.oob {
            place[index(first) * format.oob_bytes..][..metadata_bytes].fill(0);
        }
    }

    pub(super) fn read(&self, chunk: ChunkId, first: u32, data: &mut [u8], oob: &mut [u8]) {
        assert!(data.len().is_multiple_of(self.format.data_bytes), "half a sector is no content");
        let block = &self.blocks[chunk.index()];
        match &block.data {
            Some(from) => data.copy_from_slice(span(from, first, self.format.data_bytes, data.len())),
            None => data.fill(0),
        }
        match &block.oob {
            Some(from) => oob.copy_from_slice(span(from, first, self.format.oob_bytes, oob.len())),
            None => oob.fill(0),
        }
    }

    pub(super) fn take(&mut self, chunk: ChunkId) -> Block {
        std::mem::take(&mut self.blocks[chunk.index()])
    }

    pub(super) fn restore(&mut self, chunk: ChunkId, block: Block) {
        let newer = std::mem::replace(&mut self.blocks[chunk.index()], block);
        self.recycle(newer);
    }

    pub(super) fn recycle(&mut self, block: Block) {
        let whole = self.sectors_per_chunk * self.format.data_bytes;
        assert!(
            block.data.as_ref().is_none_or(|data| data.len() == whole),
            "a block of another size came back"
        );
        self.spare_data.extend(block.data);
        self.spare_oob.extend(block.oob);
    }

    /// Bytes held for content, spare blocks included.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        let boxes = self.blocks.iter().flat_map(|block| block.data.iter().chain(&block.oob));
        let all = boxes.chain(&self.spare_data).chain(&self.spare_oob);
        all.map(|bytes| u64::try_from(bytes.len()).expect("a length fits 64 bits")).sum()
    }
}

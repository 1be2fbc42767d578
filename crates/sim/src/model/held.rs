//! Buffers that requests were drawn with, to be given back when they are answered.
//!
//! Deliberately not here: what lies in them.

use ocssd_base::Prng;
use ocssd_lightnvm::{BufId, Buffers, Tag};
use std::collections::BTreeMap;

/// Buffers by the tag of their request.
#[derive(Clone, Debug, Default)]
pub struct Held {
    of: BTreeMap<Tag, Vec<BufId>>,
}

impl Held {
    /// The request of this tag has this buffer.
    pub fn hold(&mut self, tag: Tag, buffer: BufId) -> BufId {
        self.of.entry(tag).or_default().push(buffer);
        buffer
    }

    /// A whole buffer of `bytes` bytes or more, filled with `byte`, for the request of this tag.
    pub fn take_whole(&mut self, tag: Tag, buffers: &mut Buffers, bytes: u32, byte: u8) -> BufId {
        let sectors = sectors(buffers, bytes);
        let buffer = buffers.take_whole(sectors);
        buffers.whole_mut(buffer, 0, sectors).fill(byte);
        self.hold(tag, buffer)
    }

    /// As [`Self::take_whole`], of payload: every sector begins with numbers of its own.
    pub fn take_stamped(&mut self, tag: Tag, buffers: &mut Buffers, bytes: u32, prng: &mut Prng) -> BufId {
        let sectors = sectors(buffers, bytes);
        let buffer = buffers.take(sectors);
        for sector in 0..sectors {
            buffers.data_mut(buffer, sector, 1)[..8].copy_from_slice(&prng.next_u64().to_le_bytes());
        }
        self.hold(tag, buffer)
    }

    /// The request of this tag was answered.
    pub fn give_back(&mut self, tag: Tag, buffers: &mut Buffers) {
        self.of.remove(&tag).into_iter().flatten().for_each(|buffer| buffers.give_back(buffer));
    }

    /// Nothing will be answered, and all buffers were reclaimed.
    pub fn forget(&mut self) {
        self.of.clear();
    }
}

fn sectors(buffers: &Buffers, bytes: u32) -> u32 {
    let sector = u32::try_from(buffers.format().sector_bytes).expect("a sector is short");
    bytes.div_ceil(sector).max(1)
}

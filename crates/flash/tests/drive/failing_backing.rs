//! A drive whose backing fails at one chunk: the entries there fail, and no others.

use crate::rig::{Rig, ppa, preset};
use ocssd_flash::store::{Backing, StoreError};
use ocssd_flash::{ChunkRecord, Flash};
use ocssd_lightnvm::{ChunkId, Op, Status};
use std::collections::BTreeMap;

const FAILS: ChunkId = ChunkId(8);

/// Content by sector, of all chunks but one.
#[derive(Default)]
struct Content(BTreeMap<(ChunkId, u32), (Vec<u8>, Vec<u8>)>);

fn judge(chunk: ChunkId) -> Result<(), StoreError> {
    if chunk == FAILS { Err(StoreError("the disk is full".to_owned())) } else { Ok(()) }
}

impl Backing for Content {
    fn write(&mut self, chunk: ChunkId, first: u32, data: &[u8], oob: &[u8]) -> Result<(), StoreError> {
        judge(chunk)?;
        for (sector, (data, oob)) in (first..).zip(data.chunks(16).zip(oob.chunks(16))) {
            self.0.insert((chunk, sector), (data.to_vec(), oob.to_vec()));
        }
        Ok(())
    }

    fn read(
        &mut self,
        chunk: ChunkId,
        first: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<(), StoreError> {
        judge(chunk)?;
        for (sector, (data, oob)) in (first..).zip(data.chunks_mut(16).zip(oob.chunks_mut(16))) {
            let found = &self.0[&(chunk, sector)];
            data.copy_from_slice(&found.0);
            oob.copy_from_slice(&found.1);
        }
        Ok(())
    }

    fn write_whole(&mut self, chunk: ChunkId, _: u32, _: &[u8]) -> Result<(), StoreError> {
        judge(chunk)
    }

    fn read_whole(&mut self, chunk: ChunkId, _: u32, _: &mut [u8]) -> Result<(), StoreError> {
        judge(chunk)
    }

    fn whole_sectors(&self, _: ChunkId, _: u32, _: u32) -> u64 {
        0
    }

    fn keep(&mut self, _: ChunkId, _: &ChunkRecord) -> Result<(), StoreError> {
        Ok(())
    }

    fn keep_unreadable(&mut self, _: ChunkId, _: &[u64]) -> Result<(), StoreError> {
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn only_the_entries_that_the_backing_failed_are_marked() {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    let flash = Flash::format_on(config, Box::<Content>::default()).expect("a sound drive");
    let format = flash.payload_format();
    let mut rig = Rig::with(flash, format);
    let list: Vec<_> = [0, 8, 16, 8]
        .iter()
        .zip([0, 0, 0, 8])
        .flat_map(|(&chunk, first)| (first..first + 8).map(move |sector| ppa(chunk, sector)))
        .collect();
    for sector in 0..32 {
        rig.fill(rig.buffer, sector, 40 + u64::from(sector));
    }
    let command = rig.vector(Op::Write { fua: false }, &list);
    let (_, end) = rig.one(command);
    assert_eq!((end.status, end.failed), (Status::INTERNAL_ERROR, 0xFF00_FF00), "both runs of the chunk");
    assert_eq!(rig.drive.store_error().map(ToString::to_string), Some("the disk is full".to_owned()));
    let written: Vec<_> = [0, 8, 16].map(|chunk| rig.drive.chunk(ChunkId(chunk)).write_pointer).into();
    assert_eq!(written, [Some(8), Some(0), Some(8)]);
    let command = rig.vector(Op::Read, &[ppa(0, 1), ppa(16, 2)]);
    assert_eq!(rig.one(command).1.status, Status::SUCCESS);
    assert_eq!([0, 1].map(|entry| rig.id_of(rig.buffer, entry)), [41, 58]);
    assert_eq!(rig.flush().1.failed, 0);
}

//! A drive whose backing fails: what commands are told then, and after it.

use crate::rig::{Rig, ppa, preset};
use ocssd_base::Nanos;
use ocssd_flash::store::{Backing, StoreError, StoreErrorKind};
use ocssd_flash::{ChunkRecord, Flash};
use ocssd_lightnvm::{ChunkId, ChunkState, Completion, Op, Status};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What of the backing fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fails {
    #[default]
    Nothing,
    /// Content of this chunk.
    Content(ChunkId),
    /// Records.
    Records,
    Syncs,
}

/// What the test and the backing both see.
#[derive(Clone, Default)]
struct Shared<T>(Arc<Mutex<T>>);

impl<T: Copy> Shared<T> {
    fn get(&self) -> T {
        *self.0.lock().expect("nobody panics with it")
    }

    fn set(&self, value: T) {
        *self.0.lock().expect("nobody panics with it") = value;
    }
}

/// Content by sector.
#[derive(Default)]
struct Content {
    sectors: BTreeMap<(ChunkId, u32), (Vec<u8>, Vec<u8>)>,
    fails: Shared<Fails>,
    syncs: Shared<u32>,
}

impl Content {
    fn judge(&self, failing: Fails) -> Result<(), StoreError> {
        if self.fails.get() != failing {
            return Ok(());
        }
        let (kind, sentence) = match failing {
            Fails::Syncs => (StoreErrorKind::Failed, "the disk failed"),
            _ => (StoreErrorKind::Full, "the disk is full"),
        };
        Err(StoreError { kind, sentence: sentence.to_owned() })
    }
}

impl Backing for Content {
    fn write(&mut self, chunk: ChunkId, first: u32, data: &[u8], oob: &[u8]) -> Result<(), StoreError> {
        self.judge(Fails::Content(chunk))?;
        for (sector, (data, oob)) in (first..).zip(data.chunks(16).zip(oob.chunks(16))) {
            self.sectors.insert((chunk, sector), (data.to_vec(), oob.to_vec()));
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
        self.judge(Fails::Content(chunk))?;
        for (sector, (data, oob)) in (first..).zip(data.chunks_mut(16).zip(oob.chunks_mut(16))) {
            let found = &self.sectors[&(chunk, sector)];
            data.copy_from_slice(&found.0);
            oob.copy_from_slice(&found.1);
        }
        Ok(())
    }

    fn write_whole(&mut self, chunk: ChunkId, _: u32, _: &[u8]) -> Result<(), StoreError> {
        self.judge(Fails::Content(chunk))
    }

    fn read_whole(&mut self, chunk: ChunkId, _: u32, _: &mut [u8]) -> Result<(), StoreError> {
        self.judge(Fails::Content(chunk))
    }

    fn whole_sectors(&self, _: ChunkId, _: u32, _: u32) -> u64 {
        0
    }

    fn keep(&mut self, _: ChunkId, _: &ChunkRecord) -> Result<(), StoreError> {
        self.judge(Fails::Records)
    }

    fn keep_unreadable(&mut self, _: ChunkId, _: &[u64]) -> Result<(), StoreError> {
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.syncs.set(self.syncs.get() + 1);
        self.judge(Fails::Syncs)
    }
}

/// A drive on such a backing, and what switches that.
fn rig() -> (Rig<Flash>, Shared<Fails>, Shared<u32>) {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    let content = Content::default();
    let (fails, syncs) = (content.fails.clone(), content.syncs.clone());
    let flash = Flash::format_on(config, Box::new(content)).expect("a sound drive");
    let format = flash.payload_format();
    (Rig::with(flash, format), fails, syncs)
}

fn told((_, end): (Nanos, Completion)) -> (Status, u64) {
    (end.status, end.failed)
}

const FULL: Status = Status::CAPACITY_EXCEEDED;
const FINE: (Status, u64) = (Status::SUCCESS, 0);

#[test]
fn entries_from_the_first_that_could_not_be_stored_fail_and_those_before_are_there() {
    let (mut rig, fails, _) = rig();
    fails.set(Fails::Content(ChunkId(8)));
    let list: Vec<_> =
        [0, 8, 16].iter().flat_map(|&chunk| (0..8).map(move |sector| ppa(chunk, sector))).collect();
    for sector in 0..24 {
        rig.fill(rig.buffer, sector, 40 + u64::from(sector));
    }
    let command = rig.vector(Op::Write { fua: false }, &list);
    assert_eq!(told(rig.one(command)), (FULL, 0xFF_FF00), "the second chunk, and the third after it");
    assert_eq!(rig.drive.store_error().map(ToString::to_string), Some("the disk is full".to_owned()));
    let written: Vec<_> = [0, 8, 16].map(|chunk| rig.drive.chunk(ChunkId(chunk)).write_pointer).into();
    assert_eq!(written, [Some(8), Some(0), Some(0)]);
    let command = rig.vector(Op::Read, &[ppa(0, 1), ppa(0, 2)]);
    assert_eq!(told(rig.one(command)), FINE);
    assert_eq!([0, 1].map(|entry| rig.id_of(rig.buffer, entry)), [41, 42]);
    rig.drive.check();
}

#[test]
fn after_a_change_that_could_not_be_stored_none_is_taken_and_what_is_there_can_be_read_and_synced() {
    for failing in [Fails::Content(ChunkId(8)), Fails::Records] {
        let (mut rig, fails, _) = rig();
        rig.write_ok(0, 0..8, 1);
        rig.fill_chunk(1, 2);
        fails.set(failing);
        assert_eq!(told(rig.write(ppa(8, 0), 8, 3)), (FULL, 0xFF), "{failing:?}");
        fails.set(Fails::Nothing);
        assert!(!rig.drive.takes_changes());
        assert_eq!(rig.write(ppa(0, 8), 8, 4).1.status, FULL, "{failing:?}: a write");
        assert_eq!(rig.reset(1).1.status, FULL, "{failing:?}: a reset");
        let left = [0, 1].map(|chunk| rig.drive.chunk(ChunkId(chunk)));
        assert_eq!(left.map(|chunk| chunk.state), [ChunkState::Open, ChunkState::Closed], "{failing:?}");
        assert_eq!(left[0].write_pointer, Some(8), "{failing:?}: where the media are");
        assert_eq!((told(rig.read(ppa(0, 0), 8)), told(rig.flush())), (FINE, FINE), "{failing:?}");
        let error = rig.drive.close().expect_err("changes were refused");
        assert_eq!(error.kind, StoreErrorKind::Full);
        rig.drive.check();
    }
}

#[test]
fn a_failed_sync_is_never_made_good() {
    let (mut rig, fails, syncs) = rig();
    rig.write_ok(0, 0..8, 1);
    fails.set(Fails::Syncs);
    assert_eq!(rig.flush().1.status, Status::INTERNAL_ERROR);
    fails.set(Fails::Nothing);
    let before = syncs.get();
    assert_eq!(rig.flush().1.status, Status::INTERNAL_ERROR, "the next would succeed and mean nothing");
    assert!(rig.drive.sync().is_err() && rig.drive.close().is_err());
    assert_eq!(syncs.get(), before, "the backing is not asked again");
    assert_eq!(rig.write(ppa(0, 8), 8, 2).1.status, Status::INTERNAL_ERROR);
    assert_eq!(told(rig.read(ppa(0, 0), 8)), FINE);
}

#[test]
fn a_failed_read_fails_its_entries_and_ends_nothing() {
    let (mut rig, fails, _) = rig();
    rig.write_ok(0, 0..8, 1);
    rig.write_ok(8, 0..8, 2);
    fails.set(Fails::Content(ChunkId(8)));
    let command = rig.vector(Op::Read, &[ppa(0, 1), ppa(8, 2), ppa(0, 3)]);
    assert_eq!(told(rig.one(command)), (Status::INTERNAL_ERROR, 0b010));
    assert!(rig.drive.takes_changes() && rig.drive.store_error().is_some());
    rig.write_ok(0, 8..16, 3);
    fails.set(Fails::Nothing);
    assert_eq!(told(rig.read(ppa(8, 0), 8)), FINE);
    assert!(rig.drive.close().is_ok(), "everything that was taken is there");
}

#[test]
fn a_write_with_fua_is_synced_and_fails_with_the_sync() {
    let (mut rig, fails, syncs) = rig();
    let fua = |rig: &mut Rig<Flash>, first: u32| {
        let list: Vec<_> = (first..first + 8).map(|sector| ppa(0, sector)).collect();
        for sector in 0..8 {
            rig.fill(rig.buffer, sector, 7);
        }
        let command = rig.vector(Op::Write { fua: true }, &list);
        told(rig.one(command))
    };
    assert_eq!((fua(&mut rig, 0), syncs.get()), (FINE, 1));
    fails.set(Fails::Syncs);
    assert_eq!(fua(&mut rig, 8).0, Status::INTERNAL_ERROR);
}

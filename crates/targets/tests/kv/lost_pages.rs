//! Pages of the index that the media lose: keys of other pages are found, nobody is told a wrong value, and changes end, as nobody
//! knows which keys there are. A value that is lost costs that key only.

use crate::rig::{Rig, VALUE_BYTES};
use ocssd_lightnvm::Status;

/// So many that their pages are more than the write buffer holds.
const KEYS: u32 = 2_400;
/// The one whose sectors are lost, somewhere in the middle.
const KEY: u32 = 1_000;
/// Pages of the index are short, and none stays in memory.
const ON_MEDIA: &[(&str, &str)] = &[("index_cache_bytes", "0"), ("index_page_bytes", "266")];

fn fill(key: u32) -> u8 {
    u8::try_from(key % 251 + 1).expect("below 256")
}

fn filled() -> Rig {
    let mut rig = Rig::new(ON_MEDIA);
    for key in 0..KEYS {
        assert_eq!(rig.store(key, fill(key)), Status::SUCCESS, "key {key}");
    }
    assert_eq!(rig.flush(), Status::SUCCESS);
    rig
}

/// Keys that cannot be read; all others hold what was stored.
fn lost(rig: &mut Rig) -> Vec<u32> {
    let mut lost = Vec::new();
    for key in 0..KEYS {
        match rig.retrieve(key) {
            (Status::SUCCESS, found) => assert_eq!(found, [fill(key); VALUE_BYTES as usize], "key {key}"),
            (status, _) => {
                assert_eq!(status, Status::UNRECOVERED_READ, "key {key}");
                lost.push(key);
            }
        }
    }
    lost
}

#[test]
fn a_lost_page_costs_its_keys_and_changes_and_a_lost_value_costs_its_key() {
    let (mut pages, mut values) = (0, 0);
    for sector in filled().sectors_of(KEY) {
        let mut rig = filled();
        rig.let_page_leave(KEY);
        rig.lose(sector);
        assert_eq!(rig.retrieve(KEY).0, Status::UNRECOVERED_READ, "{sector:?}");
        let gone = lost(&mut rig);
        assert!(gone.contains(&KEY) && gone.len() < KEYS as usize / 2, "{sector:?}: {gone:?} are lost");
        // A sector has one value, or parts of two.
        if rig.store(KEYS, 1) == Status::SUCCESS {
            assert!(gone.len() <= 2, "a value is of one key, but {gone:?} are lost");
            values += 1;
        } else {
            assert!(gone.len() > 2, "a page has many keys, but {gone:?} are lost");
            assert_eq!(lost(&mut rig), gone, "nothing else is lost later");
            pages += 1;
        }
    }
    // Either may lie across the border of two sectors.
    assert!(
        (1..=2).contains(&pages) && (1..=2).contains(&values),
        "{pages} sectors of pages, {values} of values"
    );
}

#[test]
fn a_mount_after_a_page_was_lost_finds_all_others_or_refuses_in_words() {
    for sector in filled().sectors_of(KEY) {
        let mut rig = filled();
        rig.let_page_leave(KEY);
        rig.lose(sector);
        assert_eq!(rig.retrieve(KEY).0, Status::UNRECOVERED_READ, "{sector:?}");
        let gone = lost(&mut rig);
        match rig.cut() {
            Ok(mut rig) => assert_eq!(lost(&mut rig), gone, "{sector:?}"),
            Err(sentence) => assert!(sentence.contains("cannot be read"), "{sector:?}: {sentence}"),
        }
    }
}

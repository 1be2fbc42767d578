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
fn a_mount_after_a_page_was_lost_finds_all_others() {
    for sector in filled().sectors_of(KEY) {
        let mut rig = filled();
        rig.let_page_leave(KEY);
        rig.lose(sector);
        assert_eq!(rig.retrieve(KEY).0, Status::UNRECOVERED_READ, "{sector:?}");
        let gone = lost(&mut rig);
        for _ in 0..2 {
            rig = rig.cut().unwrap_or_else(|sentence| panic!("{sector:?}: {sentence}"));
            assert_eq!(lost(&mut rig), gone, "{sector:?}");
        }
    }
}

/// The page that the newest checkpoint names is lost after keys of it were stored and deleted: nobody knows what it had.
#[test]
fn a_mount_whose_records_change_keys_of_a_lost_page_tells_errors_of_it_and_finds_all_others() {
    let mut unknown = 0;
    for seed in 0..4 {
        let mut prng = ocssd_base::Prng::new(seed);
        let key = KEY + u32::try_from(prng.below(200)).expect("small");
        for sector in filled().sectors_of(key) {
            let label = format!("seed {seed}, key {key}, {sector:?}");
            let mut rig = filled();
            assert_eq!(rig.store(key, 251), Status::SUCCESS, "{label}");
            assert_eq!(rig.delete(key + 1), Status::SUCCESS, "{label}");
            assert_eq!(rig.store(5, 250), Status::SUCCESS, "{label}");
            assert_eq!(rig.flush(), Status::SUCCESS, "{label}");
            rig.lose(sector);
            let mut before = Vec::new();
            for _ in 0..2 {
                rig = rig.cut().unwrap_or_else(|sentence| panic!("{label}: {sentence}"));
                let gone = check_changed(&mut rig, key, &label);
                assert!(before.is_empty() || before == gone, "{label}: {gone:?}, {before:?} before");
                if rig.count("read_only") == 1 {
                    // A page is lost: whoever changes something is told.
                    unknown += 1;
                    assert!(gone.contains(&key) && gone.len() < KEYS as usize / 2, "{label}: {gone:?}");
                    assert_eq!(rig.store(KEYS, 1), Status::WRITE_TO_READ_ONLY, "{label}");
                    assert_eq!(rig.delete(9), Status::WRITE_TO_READ_ONLY, "{label}");
                }
                before = gone;
            }
        }
    }
    assert!(unknown > 0, "no mount needed a page that was lost");
}

/// Keys that cannot be read; all others hold what was stored last, and what was deleted is not there.
fn check_changed(rig: &mut Rig, changed: u32, label: &str) -> Vec<u32> {
    let mut gone = Vec::new();
    for key in 0..KEYS {
        let expected = match key {
            5 => 250,
            _ if key == changed => 251,
            _ => fill(key),
        };
        match rig.retrieve(key) {
            (Status::UNRECOVERED_READ, _) => gone.push(key),
            (Status::SUCCESS, found) => {
                assert!(key != changed + 1, "{label}: key {key} came back");
                assert_eq!(found, [expected; VALUE_BYTES as usize], "{label}: key {key}");
            }
            (status, _) => assert!(key == changed + 1, "{label}: key {key}: {status}"),
        }
    }
    gone
}

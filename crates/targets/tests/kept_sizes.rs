//! Options that count when an instance is made: whoever states others of one that is there is told that they change nothing.

use ocssd_engine::{Caller, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PuId};
use ocssd_targets::Layout;
use ocssd_targets::registry::{self, TargetSpec};

const UNITS: u32 = 4;

fn config() -> Config {
    let geometry = Geometry { mw_cunits: 8, ws_min: 4, ..Geometry::example(2, 2, 200, 32, 8) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.payload = Payload::Bytes;
    config.geometry = geometry;
    config
}

/// Mounts a target with these options and lets it go: what is told beside the mount itself, and the drive.
fn told(mut flash: Flash, kind: &str, stated: &[(&str, &str)]) -> (Vec<String>, Flash) {
    let (mut clock, mut buffers) = (VirtualClock::default(), Buffers::new(flash.payload_format()));
    let units: Vec<PuId> = (0..UNITS).map(PuId).collect();
    let options: Vec<_> =
        stated.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut device = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &options };
    let made = registry::find(kind).expect("a kind").make_any(&mut device, &spec);
    let notes = made.unwrap_or_else(|error| panic!("{kind}: {error}")).notes;
    assert!(!notes.is_empty(), "{kind} says nothing of its mount");
    (notes.into_iter().filter(|note| note.contains("changes nothing")).collect(), flash)
}

fn check(kind: &str, made: &[(&str, &str)], others: &[(&str, &str)]) {
    let (notes, flash) = told(Flash::format(config()).expect("a sound drive"), kind, made);
    assert_eq!(notes, [""; 0], "{kind} is new");
    // What is not stated, or is what the instance has, is not told.
    let (notes, flash) = told(flash, kind, &[]);
    assert_eq!(notes, [""; 0], "{kind}, nothing stated");
    let (notes, flash) = told(flash, kind, made);
    assert_eq!(notes, [""; 0], "{kind}, stated as it was made");
    let (notes, _) = told(flash, kind, others);
    assert_eq!(notes.len(), others.len(), "{kind}: {notes:?}");
    for (name, value) in others {
        let begin = format!("{name}={value} changes nothing: the instance on these units keeps the ");
        assert!(notes.iter().any(|note| note.starts_with(&begin)), "{kind}: {begin}? {notes:?}");
    }
}

#[test]
fn blocks_and_pages_keep_their_size() {
    for kind in ["pblk", "block_ssd", "ox-block", "eleos"] {
        check(kind, &[("over_provisioning_percent", "35")], &[("over_provisioning_percent", "45")]);
    }
}

#[test]
fn keys_keep_their_room_and_that_of_their_index() {
    let made = [("over_provisioning_percent", "35"), ("index_percent", "5")];
    let others = [("over_provisioning_percent", "45"), ("index_percent", "10")];
    check("kv", &made, &others);
    check("kv-block", &made, &others);
}

#[test]
fn tables_keep_their_number_and_their_room() {
    let made = [("tables_max", "20"), ("spare_percent", "10")];
    let others = [("tables_max", "30"), ("spare_percent", "30")];
    check("lightlsm", &made, &others);
    check("table-block", &made, &others);
}

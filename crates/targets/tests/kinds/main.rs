//! What each kind of target says: of a mount, of its options, and of its state for whoever looks for a bug. Deliberately not here:
//! what any of it means, which tests of the kinds say.

use ocssd_engine::{Host, Requests, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::interface::{AnyRequest, AnyTarget};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PuId, Tag, Target, TargetId};
use ocssd_targets::Layout;
use ocssd_targets::registry::{self, TargetSpec};
use std::fmt::Write as _;

/// Units of the drive.
const UNITS: u32 = 4;
/// What mounts said when this was written, but for times; a test that finds other sentences prints all of them.
const KEPT: &str = include_str!("mounts.txt");

/// Kinds that keep something, and options of each: those that show in what a mount says.
const MOUNTED: &[(&str, &[(&str, &str)])] = &[
    ("linear", &[]),
    ("pblk", &[]),
    ("pblk", &[("mode", "faithful"), ("over_provisioning_percent", "40")]),
    ("pblk", &[("classification", "sepbit"), ("victim", "cost-benefit"), ("wear_spread", "0")]),
    ("linux-pblk", &[("create", "yes")]),
    ("block_ssd", &[]),
    ("ox-block", &[]),
    ("ox-block", &[("map_cache_bytes", "65536"), ("durability", "flush"), ("log_copies", "1")]),
    ("eleos", &[]),
    ("eleos", &[("gc_groups_max", "2"), ("over_provisioning_percent", "35")]),
    ("kv", &[]),
    ("kv", &[("index_cache_bytes", "65536"), ("wear_spread", "0")]),
    ("kv-block", &[]),
    ("lightlsm", &[]),
    ("lightlsm", &[("placement", "vertical"), ("read_unit", "write_unit"), ("tables_max", "30")]),
    ("table-block", &[]),
    ("zns", &[]),
    (
        "zns",
        &[("partial", "pad"), ("finish", "pad"), ("width", "2"), ("area_units", "2"), ("wear_spread", "50")],
    ),
];

fn config() -> Config {
    let geometry = Geometry { mw_cunits: 8, ws_min: 4, ..Geometry::example(2, 2, 200, 32, 8) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.payload = Payload::Bytes;
    config.geometry = geometry;
    config
}

/// A target of this kind on all units of a drive, and what its mount said.
fn mounted(
    flash: Flash,
    kind: &str,
    options: &[(&str, &str)],
) -> (Host<Flash, VirtualClock, AnyTarget>, Vec<String>) {
    let buffers = Buffers::new(flash.payload_format());
    let mut host: Host<Flash, VirtualClock, AnyTarget> = Host::new(flash, VirtualClock::default(), buffers);
    let units: Vec<PuId> = (0..UNITS).map(PuId).collect();
    let options: Vec<_> =
        options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &options };
    let made = registry::find(kind).expect("a kind").make_any(&mut host.caller(), &spec);
    let made = made.unwrap_or_else(|error| panic!("{kind} {options:?}: {error}"));
    host.add(Box::new(made.target));
    (host, made.notes)
}

/// Ends the target: the drive can be mounted again.
fn shut_down(mut host: Host<Flash, VirtualClock, AnyTarget>, label: &str) -> Flash {
    let mut requests = Requests::default();
    let interface = host.target(TargetId(0)).interface();
    requests.push(AnyRequest::flush(interface, Tag(1)));
    requests.push(AnyRequest::shutdown(interface, Tag(2)));
    assert_eq!(host.run(&mut requests, ocssd_base::Nanos::MAX), RunEnd::Finished, "{label}");
    let replies = requests.take_replies();
    assert_eq!(replies.iter().map(|reply| reply.tag()).collect::<Vec<_>>(), [Tag(1), Tag(2)], "{label}");
    host.target(TargetId(0)).check();
    host.into_device()
}

/// A sentence without how long anything took: that is the drive's.
fn without_times(sentence: &str) -> String {
    let words: Vec<&str> = sentence.split(' ').collect();
    let is_time = |at: usize| words.get(at + 1).is_some_and(|next| next.trim_end_matches([',', ';']) == "ms");
    let masked = words.iter().enumerate().map(|(at, &word)| if is_time(at) { "some" } else { word });
    masked.collect::<Vec<_>>().join(" ")
}

#[test]
fn mounts_say_what_they_found_and_what_there_is() {
    let mut told = String::new();
    for &(kind, options) in MOUNTED {
        let mut flash = Flash::format(config()).expect("a sound drive");
        for mount in ["new", "again"] {
            let (host, notes) = mounted(flash, kind, options);
            writeln!(told, "{kind} {options:?}, {mount}:").expect("text takes text");
            notes
                .iter()
                .for_each(|note| writeln!(told, "  {}", without_times(note)).expect("text takes text"));
            flash = shut_down(host, &format!("{kind} {options:?}, {mount}"));
        }
    }
    if told != KEPT {
        println!("{told}");
    }
    let other = told.lines().zip(KEPT.lines()).find(|(told, kept)| told != kept);
    assert!(told == KEPT, "mounts say something else than mounts.txt has, first {other:?}");
}

#[test]
fn every_kind_tells_its_state_in_numbers_and_each_counter_once() {
    for &(kind, options) in MOUNTED {
        let label = format!("{kind} {options:?}");
        let (host, _) = mounted(Flash::format(config()).expect("a sound drive"), kind, options);
        let target = host.target(TargetId(0));
        let (summary, counters) = (target.summary(), target.counters());
        let mut names: Vec<&str> = counters.iter().map(|counter| counter.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{label}: two counters have one name");
        assert!(counters.iter().all(|counter| counter.about.len() > 3), "{label}: {counters:?}");
        if kind != "linear" {
            let numbers = summary.split(|char: char| !char.is_ascii_digit()).filter(|word| !word.is_empty());
            assert!(numbers.count() >= 5, "{label}: \"{summary}\" says little");
            assert!(count > 10, "{label}: {count} counters");
        }
    }
}

/// The options that a kind says it has when it is asked for one that it has not.
fn options_of(kind: &str) -> Vec<String> {
    let asked = [("no_such_option".to_owned(), "1".to_owned())];
    let sentence = registry::check_options(kind, &asked).expect_err(kind);
    assert!(sentence.contains("has no option \"no_such_option\""), "{sentence}");
    let (_, names) = sentence.split_once("its options are ").expect("it says which there are");
    let is_name = |word: &&str| word.chars().all(|char| char.is_ascii_lowercase() || char == '_');
    let words = names.split([' ', ',']).filter(|word| !word.is_empty() && *word != "and");
    words.filter(is_name).map(ToOwned::to_owned).collect()
}

#[test]
fn every_option_that_a_kind_says_it_has_is_one() {
    let kinds = [
        "pblk",
        "block_ssd",
        "linux-pblk",
        "ox-block",
        "eleos",
        "kv",
        "kv-block",
        "lightlsm",
        "table-block",
        "zns",
    ];
    for kind in kinds {
        let names = options_of(kind);
        assert!(names.len() > 1, "{kind}: {names:?}");
        for name in names {
            // No option has this value, and each says what it should be, or takes any text.
            let asked = [(name.clone(), "?".to_owned())];
            let told = registry::check_options(kind, &asked).err();
            let is_unknown = told.as_ref().is_some_and(|sentence| sentence.contains("has no option"));
            assert!(!is_unknown, "{kind}: {name}: {told:?}");
        }
    }
}

/// Each of these words is read, and written as it was.
fn assert_words<T: std::str::FromStr<Err = String> + std::fmt::Display>(words: &[&str]) {
    for word in words {
        assert_eq!(word.parse::<T>().map(|value| value.to_string()).as_deref(), Ok(*word));
    }
    let sentence = "no_such_word".parse::<T>().err().expect("there is no such word");
    assert!(sentence.contains("no_such_word"), "{sentence}");
}

#[test]
fn words_of_options_are_written_as_they_are_read() {
    use ocssd_targets::{lightlsm, ox_block, pblk, zns};
    assert_words::<pblk::Mode>(&["improved", "faithful"]);
    assert_words::<zns::Width>(&["all", "group", "3"]);
    assert_words::<zns::Partial>(&["log", "pad"]);
    assert_words::<zns::Finish>(&["leave", "pad"]);
    assert_words::<zns::Metadata>(&["auto", "apart", "anywhere"]);
    assert_words::<lightlsm::Placement>(&["horizontal", "vertical", "level", "groups:2", "width:3"]);
    assert_words::<lightlsm::ReadUnit>(&["sector", "write_unit"]);
    assert_words::<ox_block::Durability>(&["request", "flush"]);
}

//! Timelines: read back, every begin has its end, times do not fall, and a power cut ends what it meets.

use ocssd_base::Nanos;
use ocssd_lightnvm::{ChunkId, Geometry, Op, Ppa, Status, Tag};
use ocssd_sim::campaign::run_seed;
use ocssd_sim::journal::{Event, Journal, Keep};
use ocssd_sim::swarm::Size;
use ocssd_sim::timeline;
use ocssd_targets::registry;
use serde_json::Value;
use std::collections::BTreeMap;

fn events(journal: &Journal, geometry: &Geometry) -> Vec<Value> {
    let mut text = Vec::new();
    timeline::write(journal, geometry, &mut text).expect("memory can be written");
    let parsed: Value = serde_json::from_slice(&text).expect("it is JSON");
    parsed["traceEvents"].as_array().expect("a list of events").clone()
}

/// Checks order and pairs; gives the ends.
fn check(events: &[Value], what: &str) -> Vec<Value> {
    let (mut open, mut ends, mut last) = (BTreeMap::new(), Vec::new(), 0.0);
    for event in events.iter().filter(|event| event["ph"] != "M") {
        let at = event["ts"].as_f64().expect("a time");
        assert!(at >= last, "{what}: {at} after {last}: {event}");
        last = at;
        let key = (event["cat"].to_string(), event["id"].as_u64());
        match event["ph"].as_str().expect("a phase") {
            "b" => assert!(open.insert(key, event.clone()).is_none(), "{what}: begun twice: {event}"),
            "e" => {
                let begin = open.remove(&key).unwrap_or_else(|| panic!("{what}: no begin: {event}"));
                assert_eq!((&begin["name"], &begin["pid"]), (&event["name"], &event["pid"]), "{what}");
                ends.push(event.clone());
            }
            "i" => {}
            other => panic!("{what}: an event of phase {other:?}"),
        }
    }
    assert!(open.is_empty(), "{what}: without an end: {open:?}");
    ends
}

fn is_cut(end: &Value) -> bool {
    end["args"]["ended"] == "the power went"
}

#[test]
fn a_run_is_a_timeline_of_pairs_in_order() {
    let pblk = registry::find("pblk").expect("a kind");
    let mut cut = 0;
    for seed in 0..3 {
        let done = run_seed(pblk, Size::Tiny, seed, &|_| true, Keep::All).expect("it fits");
        let all = events(&done.ran.journal, &done.plan.config.geometry);
        let ends = check(&all, &format!("seed {seed}"));
        cut += ends.iter().filter(|end| is_cut(end)).count();
        let marks = |category: &str| all.iter().filter(|event| event["cat"] == category).count();
        assert_eq!(marks("step"), done.plan.steps.len(), "seed {seed}");
        assert!(marks("power_cut") > 0 && marks("mount") > 0, "seed {seed}");
        let names =
            all.iter().filter(|event| event["name"] == "process_name").map(|event| &event["args"]["name"]);
        assert!(names.clone().any(|name| name == "unit g0/p0"), "seed {seed}: {names:?}");
    }
    assert!(cut > 0, "nothing was in flight at any power cut");
}

fn command(tag: u32, chunk: u32) -> Event {
    let first = Some(Ppa::new(ChunkId(chunk), 2));
    Event::Command { tag: Tag(tag), op: Op::Read, first, count: 4, mount: false }
}

fn journal(events: Vec<Event>) -> Journal {
    let mut journal = Journal::new(Keep::All);
    for (at, event) in (0..).zip(events) {
        journal.note(Nanos(at * 1500), || event);
    }
    journal
}

#[test]
fn what_is_in_flight_at_a_power_cut_ends_there() {
    let geometry = Geometry::example(1, 2, 4, 8, 2);
    let success = Event::Completion { tag: Tag(1), status: Status::SUCCESS };
    let kept = journal(vec![
        command(1, 0),
        command(2, 5),
        Event::Request { number: 9, what: "Flush".to_owned() },
        success,
        Event::PowerCut,
        command(2, 5),
    ]);
    let all = events(&kept, &geometry);
    let ends = check(&all, "a cut");
    let told: Vec<(f64, bool)> =
        ends.iter().map(|end| (end["ts"].as_f64().expect("a time"), is_cut(end))).collect();
    assert_eq!(told, [(4.5, false), (6.0, true), (6.0, true), (7.5, false)]);
    let begin = all.iter().find(|event| event["ph"] == "b" && event["args"]["chunk"] == 5).expect("one");
    assert_eq!((&begin["name"], &begin["args"]["sector"]), (&"Read of 4".into(), &2.into()));
    assert_eq!(begin["pid"], 5, "chunk 5 of a drive of 2 x 4 chunks is the second unit's");
}

#[test]
fn an_end_whose_beginning_was_forgotten_is_left_out() {
    let kept = journal(vec![
        Event::Completion { tag: Tag(1), status: Status::SUCCESS },
        Event::Reply { number: 3, what: "Success".to_owned() },
    ]);
    assert!(check(&events(&kept, &Geometry::example(1, 1, 4, 8, 2)), "no begin").is_empty());
    assert!(check(&events(&Journal::default(), &Geometry::example(1, 1, 4, 8, 2)), "nothing").is_empty());
}

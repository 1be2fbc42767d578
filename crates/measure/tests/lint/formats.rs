//! What may stand around and in a result.

use crate::made::{evidence, fio, own};
use ocssd_measure::lint::{Format, Order, Selection, find_rule};
use serde_json::{Value, json};

#[test]
fn lines_around_the_json_and_interim_results_are_passed_over() {
    let noisy = format!("fio: this platform does not support something\n{}\nbye\n", fio(&[]));
    let read = evidence(&noisy);
    assert_eq!((read.cells.len(), read.notes.len()), (1, 1), "{:?}", read.notes);
    let interim = format!("{}\n{}", fio(&[("/jobs/0/read/iops", json!(1.0))]), fio(&[]));
    let read = evidence(&interim);
    assert_eq!(read.cells[0].sides[0].iops, Some(10_000.0), "the last one counts");
    assert!(read.notes.iter().any(|note| note.starts_with("1 earlier")), "{:?}", read.notes);
}

#[test]
fn clients_of_a_server_are_jobs_and_their_sum_is_none() {
    let mut root: Value = serde_json::from_str(&fio(&[])).expect("made JSON");
    let mut jobs = root.as_object_mut().and_then(|root| root.remove("jobs")).expect("there are jobs");
    let mut sum = jobs[0].clone();
    sum["jobname"] = json!("All clients");
    jobs.as_array_mut().expect("a list").push(sum);
    root["client_stats"] = jobs;
    assert_eq!(evidence(&root.to_string()).cells.len(), 1);
}

#[test]
fn options_of_the_global_section_hold_and_the_jobs_own_win() {
    let global = json!({ "iodepth": "2", "readwrite": "write", "numjobs": "3" });
    let options = json!({ "iodepth": "8", "blocksize": "4k" });
    let text = fio(&[
        ("/global options", global),
        ("/jobs/0/job options", options),
        ("/jobs/0/job_runtime", json!(30_000)),
    ]);
    let cell = &evidence(&text).cells[0];
    assert_eq!(
        (cell.outstanding, cell.read_percent, cell.order),
        (Some(24), Some(0.0), Some(Order::Sequential))
    );
    assert_eq!((cell.engine.as_deref(), cell.direct), (Some("psync"), Some(false)), "fio's defaults");
}

#[test]
fn clones_that_fio_lists_one_by_one_have_the_depth_of_one() {
    let mut root: Value =
        serde_json::from_str(&fio(&[("/jobs/0/job options/numjobs", json!("2"))])).expect("made JSON");
    let clone = root["jobs"][0].clone();
    root["jobs"].as_array_mut().expect("a list").push(clone);
    let read = evidence(&root.to_string());
    assert_eq!([read.cells[0].outstanding, read.cells[1].outstanding], [Some(8), Some(8)]);
}

#[test]
fn placement_and_neighbours_make_another_workload() {
    let place = |text: &str| {
        own(&[("/ocssd/jobs", json!([{ "fio": format!("fio --name=a  # without ocssd: {text}") }]))])
    };
    let workload = |text: &str| evidence(text).cells[0].workload.clone();
    assert_ne!(workload(&place("place=pu:0-3")), workload(&place("place=pu:4-7")));
    assert_eq!(evidence(&place("place=pu:0-3")).format, Format::Ocssd);
    let mut root: Value = serde_json::from_str(&fio(&[])).expect("made JSON");
    let mut other = root["jobs"][0].clone();
    other["jobname"] = json!("other");
    root["jobs"].as_array_mut().expect("a list").push(other);
    assert_ne!(workload(&root.to_string()), workload(&fio(&[])));
}

#[test]
fn a_table_may_be_json_and_unknown_fields_are_empty() {
    let read = evidence(r#"[{ "name": "a", "depth": 4, "iops": 10.5, "p99.9_us": null }, { "name": "b" }]"#);
    assert_eq!(
        (read.format, read.cells[0].outstanding, read.cells[1].outstanding),
        (Format::Table, Some(4), None)
    );
}

#[test]
fn rules_are_found_by_number_and_name_and_selected() {
    assert_eq!(find_rule("l03").map(|rule| rule.name), Ok("media-floor"));
    assert_eq!(find_rule("Little").map(|rule| rule.id), Ok("L01"));
    let error = find_rule("L18").map(|rule| rule.id).expect_err("there is none");
    assert!(error.contains("L17 errors"), "{error}");
    let list = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect::<Vec<_>>();
    assert!(Selection::new(&list(&["L01"]), &list(&["little"])).is_err(), "none is left");
    assert!(Selection::new(&[], &list(&["L99"])).is_err());
}

#[test]
fn the_block_size_is_the_one_asked_for_or_the_one_seen() {
    let size = |changes: &[(&str, Value)]| evidence(&fio(changes)).cells[0].block_bytes;
    let bytes = ("/jobs/0/read/io_bytes", json!(409_600_512));
    let bs = |text: &str| ("/jobs/0/job options/bs", json!(text));
    assert_eq!(
        size(std::slice::from_ref(&bytes)),
        Some(4_096),
        "one I/O was counted on one side of the ramp only"
    );
    assert_eq!(size(&[bs("4k,8k")]), Some(4_096), "seen");
    assert_eq!(size(&[bs("4k,8k"), bytes]), None);
    assert_eq!(size(&[("/jobs/0/job options/bssplit", json!("4k/50:8k/50"))]), None);
    assert_eq!(size(&[("/jobs/0/job options/bs", Value::Null)]), Some(4_096));
}

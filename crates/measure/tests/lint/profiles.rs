//! What the rules make of a profile's own part: what the system saw, how writes came to rest, what the program can do.

use ocssd_measure::lint::{Evidence, Judgement, Selection, Settings, lint, read};
use serde_json::{Value, json};

/// A profile with one run: 1000 direct reads of 4 KiB, each 100 us.
fn document(profile: &Value) -> Value {
    let side = json!({ "io_bytes": 4_096_000, "bw_bytes": 40_960_000, "iops": 10_000.0, "runtime": 100, "total_ios": 1000,
        "lat_ns": { "mean": 100_000.0, "N": 1000, "percentile": { "50.000000": 99_000 } } });
    let options = json!({ "rw": "randread", "bs": "4096", "iodepth": "1", "direct": "1", "size": "8g", "ioengine": "io_uring" });
    json!({
        "fio version": "fio-3.33-ocssd-0",
        "jobs": [{ "jobname": "a", "groupid": 0, "job options": options, "read": side, "usr_cpu": 5.0, "sys_cpu": 5.0 }],
        "ocssd": { "clock": "wall", "drive": [], "jobs": [{ "verify": { "checked": 1000, "failed": 0 } }], "profile": profile },
    })
}

fn attestation() -> Value {
    let moved = json!({ "read_bytes": 4_096_000, "written_bytes": 8_192_000 });
    json!({ "asked": moved, "process": moved, "disk": moved, "resident_share": 0.0 })
}

fn judge(rule: &str, profile: &Value) -> Judgement {
    let evidence: Evidence =
        read("p.json", document(profile).to_string().as_bytes()).expect("it is a result");
    let selection = Selection::new(&[rule.to_owned()], &[]).expect("there is such a rule");
    let report = lint(&[evidence], &Settings::default(), &selection);
    report.judged.into_iter().next().expect("one cell, one rule").judgement
}

fn attested(change: impl Fn(&mut Value)) -> Judgement {
    let mut attestation = attestation();
    change(&mut attestation);
    judge("L07", &json!({ "attestation": attestation }))
}

#[test]
fn direct_io_passes_only_if_the_system_saw_it() {
    assert_eq!(attested(|_| {}), Judgement::Pass);
    let is_failure = |judgement: Judgement, words: &str| match judgement {
        Judgement::Finding(_, sentence) => assert!(sentence.contains(words), "{sentence}"),
        other => panic!("{words}: {other:?}"),
    };
    is_failure(attested(|seen| seen["resident_share"] = json!(0.4)), "40 % of the file is in the page cache");
    is_failure(
        attested(|seen| seen["process"]["read_bytes"] = json!(400_000)),
        "reads: this process moved 0.10",
    );
    is_failure(
        attested(|seen| seen["process"]["read_bytes"] = json!(40_000_000)),
        "reads: this process moved 9.77",
    );
    // A process is charged for buffered writes as well: the disk decides.
    is_failure(attested(|seen| seen["disk"]["written_bytes"] = json!(0)), "writes: the disk moved 0.00");
    assert_eq!(
        attested(|seen| seen["disk"]["written_bytes"] = json!(80_000_000)),
        Judgement::Pass,
        "others may write"
    );
}

#[test]
fn what_nobody_counted_is_not_judged() {
    let unknown = |judgement: Judgement| matches!(judgement, Judgement::NotJudged(_));
    assert!(unknown(attested(|seen| {
        seen["process"] = Value::Null;
        seen["disk"] = Value::Null;
    })));
    let without_disk = |resident: Value| {
        attested(move |seen| {
            seen["disk"] = Value::Null;
            seen["resident_share"] = resident.clone();
        })
    };
    assert_eq!(without_disk(json!(0.0)), Judgement::Pass, "an empty page cache attests the process's count");
    assert!(unknown(without_disk(Value::Null)));
}

#[test]
fn a_profiles_rest_ceiling_and_link_are_used() {
    let steady = |is_steady: bool| {
        judge(
            "L10",
            &json!({ "attestation": attestation(), "steady": { "is_steady": is_steady, "sentence": "why" } }),
        )
    };
    assert_eq!(steady(true), Judgement::Pass);
    assert!(matches!(steady(false), Judgement::Finding(_, sentence) if sentence == "why"));
    assert!(matches!(judge("L10", &json!({ "attestation": attestation() })), Judgement::NotJudged(_)));
    let ceiling = |iops: f64| judge("L12", &json!({ "attestation": attestation(), "ceiling_iops": iops }));
    assert_eq!(ceiling(1e6), Judgement::Pass);
    assert!(matches!(ceiling(12_000.0), Judgement::Finding(..)));
    let link =
        |rate: f64| judge("L02", &json!({ "attestation": attestation(), "link_bytes_per_second": rate }));
    assert_eq!(link(1e9), Judgement::Pass);
    assert!(matches!(link(1e6), Judgement::Finding(..)));
}

#[test]
fn a_range_of_eight_gigabytes_is_no_burst() {
    assert_eq!(judge("L09", &json!({ "attestation": attestation() })), Judgement::Pass);
    assert_eq!(judge("L08", &json!({ "attestation": attestation() })), Judgement::Pass);
}

#[test]
fn others_on_the_disk_are_found() {
    let with_disk = |read_bytes: u64| {
        let mut seen = attestation();
        seen["disk"]["read_bytes"] = json!(read_bytes);
        judge("L14", &json!({ "attestation": seen }))
    };
    assert!(
        matches!(with_disk(9_000_000), Judgement::Finding(_, sentence) if sentence.contains("it read 2.20"))
    );
    assert!(matches!(with_disk(4_100_000), Judgement::NotJudged(_)), "temperatures stay unknown");
}

#[test]
fn what_changed_around_the_drive_is_found_and_what_is_unknown_is_said() {
    let known = json!({ "disk_millicelsius": 40_000, "processor_throttles": 3, "disk_link": "8.0 GT/s PCIe x4",
        "stolen_ticks": 10, "processor_ticks": 1_000 });
    let judged = |change: &dyn Fn(&mut Value)| {
        let mut after = known.clone();
        after["processor_ticks"] = json!(11_000);
        change(&mut after);
        let around = json!({ "before": known, "after": after });
        judge("L14", &json!({ "attestation": attestation(), "surroundings": around }))
    };
    assert_eq!(judged(&|_| {}), Judgement::Pass);
    assert_eq!(judged(&|after| after["disk_millicelsius"] = json!(55_000)), Judgement::Pass);
    let cases: [(&str, Value, &str); 4] = [
        ("disk_millicelsius", json!(71_000), "from 40 to 71 °C"),
        ("processor_throttles", json!(5), "slowed down for their heat 2 times"),
        ("disk_link", json!("2.5 GT/s PCIe x4"), "was 8.0 GT/s PCIe x4 and became 2.5 GT/s PCIe x4"),
        ("stolen_ticks", json!(510), "5.0 % of the time (steal)"),
    ];
    for (fact, value, expected) in cases {
        match judged(&|after| after[fact] = value.clone()) {
            Judgement::Finding(_, sentence) => assert!(sentence.contains(expected), "{sentence}"),
            other => panic!("{fact}: {other:?}"),
        }
    }
    match judged(&|after| after["disk_millicelsius"] = Value::Null) {
        Judgement::NotJudged(missing) => assert_eq!(missing, "temperature before and after"),
        other => panic!("{other:?}"),
    }
}

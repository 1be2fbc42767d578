//! Each rule fires, holds, and says when it does not know.

use crate::made::{fio, fio_writes, own, said, side, table, words};
use ocssd_measure::lint::{Judgement, Media, RULES, Settings};
use serde_json::{Value, json};

/// Asserts what a rule says of one cell of each of several results, each looked at alone.
fn check(id: &str, settings: &Settings, cases: Vec<(&str, String, &str)>) {
    for (why, text, expected) in cases {
        assert_eq!(words(id, settings, &[text]), [expected], "{id}: {why}");
    }
}

fn default() -> Settings {
    Settings::default()
}

#[test]
fn a_result_in_which_nothing_is_odd_has_no_finding() {
    for rule in &RULES {
        for text in [fio(&[]), own(&[])] {
            let said = words(rule.id, &default(), &[text]);
            assert!(matches!(said.as_slice(), ["pass" | "unknown" | "apart"]), "{}: {said:?}", rule.id);
        }
    }
}

#[test]
fn l01_little_has_fios_range_and_two_limits() {
    let at = |rho: f64| table("depth,iops,latency_mean_us", &[&format!("10,100000,{}", rho * 100.0)]);
    let cases: Vec<_> = [
        (1.0, "pass"),
        (0.91, "pass"),
        (1.019, "pass"),
        (0.89, "warn"),
        (1.03, "warn"),
        (0.71, "warn"),
        (0.69, "fail"),
        (1.06, "fail"),
        (0.0, "fail"),
    ]
    .into_iter()
    .map(|(rho, word)| ("by rho", at(rho), word))
    .collect();
    check("L01", &default(), cases);
    let options = "/jobs/0/job options";
    let sync = json!({ "total_ios": 1_000, "lat_ns": { "mean": 5_000_000.0 } });
    check(
        "L01",
        &default(),
        vec![
            ("fio", fio(&[]), "pass"),
            ("no depth", table("iops,latency_mean_us", &["1,1"]), "unknown"),
            ("no options", fio(&[(options, Value::Null)]), "unknown"),
            ("numjobs merged", fio(&[("/jobs/0/job options/numjobs", json!("2"))]), "fail"),
            ("another section merged", fio(&[("/jobs/0/job_runtime", json!(20_000))]), "unknown"),
            (
                "a rate holds it down",
                fio(&[
                    ("/jobs/0/job options/iodepth", json!("64")),
                    ("/jobs/0/job options/rate_iops", json!("10000")),
                ]),
                "apart",
            ),
            (
                "a rate cannot raise it",
                fio(&[
                    ("/jobs/0/job options/iodepth", json!("4")),
                    ("/jobs/0/job options/rate_iops", json!("10000")),
                ]),
                "fail",
            ),
            (
                "think time",
                fio(&[
                    ("/jobs/0/job options/iodepth", json!("64")),
                    ("/jobs/0/job options/thinktime", json!("10")),
                ]),
                "apart",
            ),
            ("syncs take time too", fio(&[("/jobs/0/sync", sync)]), "fail"),
            ("too short", fio(&[("/jobs/0/read/runtime", json!(20))]), "unknown"),
        ],
    );
    let psync = fio(&[
        ("/jobs/0/job options/iodepth", json!("32")),
        ("/jobs/0/job options/ioengine", json!("psync")),
    ]);
    let Judgement::Finding(_, sentence) = &said("L01", &default(), &[psync])[0] else { panic!("no finding") };
    assert!(sentence.contains("psync does one I/O at a time"), "{sentence}");
}

#[test]
fn l02_link_needs_its_rate_and_looks_at_throughput_and_at_one_io() {
    let with = Settings { link_bytes_per_second: Some(4e9), ..default() };
    let row = |text: &str| table("block_bytes,depth,iops,latency_mean_us", &[text]);
    check(
        "L02",
        &with,
        vec![
            ("slow enough", row("128k,1,10000,100"), "pass"),
            ("too much in all", row("128k,32,40000,800"), "fail"),
            ("one block too fast", row("128k,1,10000,9.57"), "fail"),
            ("deep queues say nothing of one block", row("128k,32,10000,9.57"), "pass"),
            ("no block size", row(",1,10000,9.57"), "unknown"),
        ],
    );
    check("L02", &default(), vec![("no link", row("128k,1,10000,9.57"), "unknown")]);
}

#[test]
fn l03_media_floor_depends_on_media_and_only_random_reads_have_one() {
    let row = |text: &str| table("read_percent,order,block_bytes,latency_mean_us", &[text]);
    check(
        "L03",
        &default(),
        vec![
            ("NAND", row("100,random,4096,60"), "pass"),
            ("cached", row("100,random,4096,5"), "fail"),
            ("larger and cached", row("100,,128k,9"), "fail"),
            ("read ahead", row("100,sequential,4096,5"), "apart"),
            ("small", row("100,random,512,5"), "apart"),
            ("a write buffer", row("0,random,4096,5"), "pass"),
            ("no system call", row("0,random,4096,0.31"), "fail"),
            ("no size", row("100,random,,5"), "unknown"),
            ("no latency", row("100,random,4096,"), "unknown"),
        ],
    );
    let of = |media| Settings { media: Some(media), ..default() };
    check(
        "L03",
        &of(Media::Slc),
        vec![("above", row("100,random,4096,9"), "pass"), ("below", row("100,random,4096,7"), "fail")],
    );
    check(
        "L03",
        &of(Media::Xpoint),
        vec![("above", row("100,random,4096,5"), "pass"), ("below", row("100,random,4096,3"), "fail")],
    );
}

/// Goal: the floor of a virtual drive is that of its own media, unless the user says what it reads from.
#[test]
fn l03_takes_the_media_of_a_virtual_drive_from_its_description() {
    let at = |sense: &str, micros: u32| {
        own(&[
            ("/ocssd/drive", json!([{ "name": "media_read_ns", "value": sense }])),
            ("/jobs/0/read/lat_ns/percentile", json!({ "50.000000": micros * 1000 })),
        ])
    };
    check(
        "L03",
        &default(),
        vec![
            ("a drive of 12 us", at("12000", 15), "pass"),
            ("and below it", at("12000", 11), "fail"),
            ("a slow drive", at("70000", 60), "fail"),
            ("one that does not say", at("", 15), "fail"),
        ],
    );
    let stated = Settings { media: Some(Media::Nand), ..default() };
    check("L03", &stated, vec![("the user knows better", at("12000", 15), "fail")]);
}

#[test]
fn l17_errors_and_early_ends_are_found() {
    let verdict = |outcome: &str| {
        own(&[("/ocssd/verdict", json!({ "outcome": outcome, "reasons": ["job \"made\": a read failed"] }))])
    };
    check(
        "L17",
        &default(),
        vec![
            ("no error", fio(&[("/jobs/0/error", json!(0))]), "pass"),
            ("an error", fio(&[("/jobs/0/error", json!(5))]), "fail"),
            (
                "errors that were survived",
                fio(&[
                    ("/jobs/0/error", json!(0)),
                    ("/jobs/0/total_err", json!(3)),
                    ("/jobs/0/first_error", json!(5)),
                ]),
                "warn",
            ),
            ("an old format", fio(&[]), "unknown"),
            ("a table", table("iops", &["1"]), "unknown"),
            ("our own failure", verdict("fail"), "fail"),
            ("our own interruption", verdict("interrupted"), "warn"),
        ],
    );
    let failed = said("L17", &default(), &[fio(&[("/jobs/0/error", json!(84))])]);
    let Judgement::Finding(_, sentence) = &failed[0] else { panic!("{failed:?}") };
    assert!(sentence.contains("error 84 (EILSEQ"), "{sentence}");
}

#[test]
fn a_virtual_drives_buffer_may_take_writes_in_no_time() {
    let mut none = side();
    for name in ["slat_ns", "clat_ns", "lat_ns"] {
        none[name] = json!({ "mean": 0.0, "N": 100_000, "percentile": { "50.000000": 0 } });
    }
    let writes = |clock: &str| {
        own(&[
            ("/ocssd/clock", json!(clock)),
            ("/jobs/0/read", Value::Null),
            ("/jobs/0/write", none.clone()),
            ("/jobs/0/job options/rw", json!("randwrite")),
        ])
    };
    for (rule, real) in [("L03", "fail"), ("L15", "warn")] {
        assert_eq!(words(rule, &default(), &[writes("virtual")]), ["apart"], "{rule}");
        assert_eq!(words(rule, &default(), &[writes("wall")]), [real], "{rule}");
    }
}

#[test]
fn l04_replicates_agree_in_rate_and_latency_or_within_their_intervals() {
    let header = "read_percent,block_bytes,depth,iops,latency_mean_us";
    let two = |a: &str, b: &str| words("L04", &default(), &[table(header, &[a, b])]);
    assert_eq!(two("100,4k,1,1000,100", "100,4k,1,1050,105"), ["pass", "pass"]);
    assert_eq!(two("100,4k,1,1000,100", "100,4k,1,1200,100"), ["fail", "fail"]);
    assert_eq!(two("100,4k,1,1000,100", "100,4k,1,1000,120"), ["fail", "fail"]);
    assert_eq!(two("100,4k,1,1000,100", "100,8k,1,9000,900"), ["unknown", "unknown"], "another size");
    assert_eq!(two("100,4k,1,1000,100", "100,4k,2,9000,900"), ["unknown", "unknown"], "another depth");
    assert_eq!(two("100,4k,1,1000,100", "70,4k,1,9000,900"), ["unknown", "unknown"], "another mix");
    assert_eq!(two(",4k,1,1000,100", ",4k,1,9000,900"), ["unknown", "unknown"], "no mix");
    let rate = |rate: f64, spread: f64| {
        fio(&[("/jobs/0/read/iops", json!(rate)), ("/jobs/0/read/iops_stddev", json!(spread))])
    };
    assert_eq!(words("L04", &default(), &[rate(10_000.0, 10.0), rate(12_000.0, 10.0)]), ["fail", "fail"]);
    assert_eq!(words("L04", &default(), &[rate(10_000.0, 3_000.0), rate(12_000.0, 10.0)]), ["pass", "pass"]);
    let virtually = |rate: f64| own(&[("/jobs/0/read/iops", json!(rate))]);
    let repeated = [virtually(10_000.0), virtually(12_000.0)];
    assert_eq!(words("L04", &default(), &repeated), ["apart", "apart"], "virtual time repeats itself");
    let elsewhere =
        fio(&[("/jobs/0/read/iops", json!(5_000.0)), ("/jobs/0/job options/filename", json!("/dev/other"))]);
    assert_eq!(words("L04", &default(), &[fio(&[]), elsewhere]), ["unknown", "unknown"], "another device");
    let open = |lat: f64, iops: f64| {
        let rate = ("/jobs/0/job options/rate_iops", json!("10000"));
        fio(&[rate, ("/jobs/0/read/lat_ns/mean", json!(lat)), ("/jobs/0/read/iops", json!(iops))])
    };
    let waits = [open(800_000.0, 10_000.0), open(1_600_000.0, 10_000.0)];
    assert_eq!(
        words("L04", &default(), &waits),
        ["pass", "pass"],
        "arrivals at random wait as chance has it"
    );
    let rates = [open(800_000.0, 10_000.0), open(800_000.0, 7_000.0)];
    assert_eq!(words("L04", &default(), &rates), ["fail", "fail"], "and yet as many come");
}

#[test]
fn l05_a_mix_lies_between_its_parts() {
    let header = "read_percent,block_bytes,depth,iops,latency_mean_us";
    let mix = |micros: u32| {
        let row = format!("50,4k,1,1000,{micros}");
        let rows = ["100,4k,1,1000,100", "0,4k,1,1000,20", &row];
        words("L05", &default(), &[table(header, &rows)])[2]
    };
    for (micros, word) in
        [(60, "pass"), (99, "pass"), (55, "pass"), (53, "warn"), (109, "pass"), (111, "warn")]
    {
        assert_eq!(mix(micros), word, "{micros} us");
    }
    assert_eq!(words("L05", &default(), &[table(header, &["50,4k,1,1000,5"])]), ["unknown"], "no parts");
    assert_eq!(words("L05", &default(), &[fio(&[])]), ["apart"]);
    // fio gives both directions of a mix: 10 000 reads and writes a second, of 400 us each at depth 8.
    let half = |lat: f64| {
        let mut one = side();
        one["lat_ns"]["mean"] = json!(lat);
        one
    };
    let mixed = fio(&[
        ("/jobs/0/job options/rw", json!("randrw")),
        ("/jobs/0/read", half(500_000.0)),
        ("/jobs/0/write", half(300_000.0)),
    ]);
    let texts = [fio(&[]), fio_writes(&[]), mixed];
    assert_eq!(words("L05", &default(), &texts), ["apart", "apart", "warn"], "400 us of 800 and 800");
}

#[test]
fn l06_depth_makes_nothing_faster() {
    let header = "read_percent,block_bytes,depth,iops,latency_mean_us";
    let pair = |first: &str, second: &str| words("L06", &default(), &[table(header, &[first, second])])[1];
    assert_eq!(pair("100,4k,1,1000,100", "100,4k,8,8000,100"), "pass");
    assert_eq!(pair("100,4k,1,1000,100", "100,4k,8,8000,96"), "pass");
    assert_eq!(pair("100,4k,1,1000,100", "100,4k,8,8000,94"), "warn");
    assert_eq!(pair("100,4k,1,1000,100", "100,4k,8,940,900"), "warn");
    assert_eq!(pair("100,4k,1,1000,100", "100,8k,8,940,90"), "unknown");
    let paced = fio(&[("/jobs/0/job options/rate_iops", json!("100"))]);
    assert_eq!(words("L06", &default(), &[paced]), ["apart"]);
}

#[test]
fn l07_direct_is_asked_for_and_attested_by_the_disk() {
    let direct = "/jobs/0/job options/direct";
    let seen = |ios: u32| fio(&[("/disk_util/0/read_ios", json!(ios))]);
    let sectors = |count: u32| {
        fio(&[("/disk_util/0/read_sectors", json!(count)), ("/disk_util/0/write_sectors", json!(0))])
    };
    check(
        "L07",
        &default(),
        vec![
            ("all of them", seen(100_000), "pass"),
            ("the counters are 250 ms old", seen(96_000), "pass"),
            ("fewer", seen(90_000), "fail"),
            ("none", seen(0), "fail"),
            ("bytes", sectors(800_000), "pass"),
            ("half the bytes", sectors(400_000), "fail"),
            ("twice the bytes", sectors(1_600_000), "fail"),
            ("buffered by default", fio(&[(direct, Value::Null)]), "fail"),
            ("buffered", fio(&[(direct, json!("0"))]), "fail"),
            (
                "no page cache in the way",
                fio(&[(direct, Value::Null), ("/jobs/0/job options/ioengine", json!("spdk"))]),
                "pass",
            ),
            ("no counters", fio(&[("/disk_util", json!([]))]), "unknown"),
            ("ramp", fio(&[("/jobs/0/job options/ramp_time", json!("5"))]), "unknown"),
            ("short", fio(&[("/jobs/0/read/runtime", json!(1_000))]), "unknown"),
            ("ours", own(&[]), "pass"),
            ("a table", table("direct", &["no"]), "fail"),
            ("a table that does not say", table("direct", &[""]), "unknown"),
        ],
    );
}

#[test]
fn l08_reads_are_of_what_was_written() {
    let verify = |checked: u32, failed: u32| {
        own(&[("/ocssd/jobs", json!([{ "verify": { "checked": checked, "failed": failed } }]))])
    };
    check(
        "L08",
        &default(),
        vec![
            ("ours", own(&[]), "pass"),
            ("wrong blocks", verify(10, 1), "fail"),
            ("nothing checked", verify(0, 0), "unknown"),
            ("fio does not say", fio(&[]), "unknown"),
            ("fio verified", fio(&[("/jobs/0/job options/verify", json!("crc32c"))]), "pass"),
            ("writes", fio_writes(&[]), "apart"),
            ("a table", table("read_percent,mapped", &["100,no"]), "fail"),
            ("a good table", table("read_percent,mapped", &["100,yes"]), "pass"),
        ],
    );
}

#[test]
fn l09_footprints_are_larger_than_caches() {
    let size = |text: &str| fio(&[("/jobs/0/job options/size", json!(text))]);
    check(
        "L09",
        &default(),
        vec![
            ("8 GiB of 1", size("8g"), "pass"),
            ("1 GiB of 1", size("1g"), "label"),
            ("a share of the device", size("10%"), "unknown"),
            ("no cache known", fio_writes(&[]), "unknown"),
            ("our cache answers nothing", own(&[]), "pass"),
            ("our cache answers", own(&[("/ocssd/counters/sectors_read_from_cache", json!(6_000))]), "label"),
        ],
    );
    let cache = |bytes| Settings { cache_bytes: Some(bytes), ..default() };
    check("L09", &cache(100 << 20), vec![("410 MB", fio_writes(&[]), "pass")]);
    check("L09", &cache(1 << 30), vec![("410 MB", fio_writes(&[]), "label")]);
    let large = Settings { dram_bytes: 4 << 30, ..default() };
    check("L09", &large, vec![("8 GiB of 4", fio(&[]), "label")]);
}

#[test]
fn l10_writes_are_steady_and_as_many_as_the_drive_is_large() {
    let steady = |attained: u8| json!({ "ss": "iops:1.0%", "attained": attained });
    let own_writes = |capacity: &str| {
        let rows = json!([{ "name": "capacity_bytes", "value": capacity }]);
        let base = [
            ("/jobs/0/read", Value::Null),
            ("/jobs/0/write", side()),
            ("/jobs/0/job options/rw", json!("randwrite")),
        ];
        let more = [("/jobs/0/steadystate", steady(1)), ("/ocssd/drive", rows)];
        own(&base.into_iter().chain(more).collect::<Vec<_>>())
    };
    check(
        "L10",
        &default(),
        vec![
            ("not asked", fio_writes(&[]), "label"),
            ("not reached", fio_writes(&[("/jobs/0/steadystate", steady(0))]), "label"),
            ("reached, capacity unknown", fio_writes(&[("/jobs/0/steadystate", steady(1))]), "unknown"),
            ("reached and written", own_writes("400000000"), "pass"),
            ("reached and not written", own_writes("2000000000"), "label"),
            ("reads", fio(&[]), "unknown"),
            ("a table", table("read_percent", &["0"]), "unknown"),
        ],
    );
}

#[test]
fn l11_percentiles_have_ten_samples_beyond_them() {
    let row = |text: &str| table("samples,p99_us,p99.99_us", &[text]);
    check(
        "L11",
        &default(),
        vec![
            ("enough", row("100000,10,20"), "pass"),
            ("one too few", row("99999,10,20"), "label"),
            ("enough for p99", row("1000,10,"), "pass"),
            ("too few for p99", row("999,10,"), "label"),
            ("no percentile", row("10,,"), "unknown"),
            ("no count", row(",10,20"), "unknown"),
            ("fio", fio(&[]), "pass"),
        ],
    );
}

#[test]
fn l12_the_program_is_not_the_limit() {
    let busy = |percent: f64| ("/jobs/0/usr_cpu", json!(percent));
    let polls = ("/jobs/0/job options/hipri", json!("1"));
    check(
        "L12",
        &default(),
        vec![
            ("idle", fio(&[busy(69.0)]), "pass"),
            ("busy", fio(&[busy(70.0)]), "warn"),
            ("polling is always busy", fio(&[busy(79.0), polls.clone()]), "unknown"),
            ("virtual time", own(&[busy(99.0)]), "apart"),
            ("a table", table("iops", &["1"]), "unknown"),
        ],
    );
    let ceiling = |iops| Settings { ceiling_iops: Some(iops), ..default() };
    check("L12", &ceiling(15_000.0), vec![("1.5 times", fio(std::slice::from_ref(&polls)), "pass")]);
    check("L12", &ceiling(14_999.0), vec![("less", fio(&[polls]), "warn")]);
}

#[test]
fn l13_requests_come_when_they_are_due() {
    let rate = |text: &str| ("/jobs/0/job options/rate_iops", json!(text));
    let late = |late: u32| {
        own(&[
            ("/ocssd/clock", json!("wall")),
            ("/ocssd/lateness", json!({ "replies": 10_000, "late": late })),
        ])
    };
    let open = own(&[("/ocssd/jobs", json!([{ "response_ns": { "mean": 1.0 } }]))]);
    let poisson = ("/jobs/0/job options/rate_process", json!("poisson"));
    check(
        "L13",
        &default(),
        vec![
            ("closed", fio(&[]), "apart"),
            ("dropped", fio(&[("/jobs/0/read/drop_ios", json!(1))]), "warn"),
            ("kept", fio(&[rate("10000")]), "pass"),
            ("not kept", fio(&[rate("10100")]), "warn"),
            ("a Poisson process by chance", fio(&[rate("10090"), poisson.clone()]), "pass"),
            ("a Poisson process, too few", fio(&[rate("10110"), poisson]), "warn"),
            ("late", late(10), "warn"),
            ("hardly late", late(9), "apart"),
            ("open, virtual", open, "pass"),
            ("a table", table("open_loop", &["yes"]), "unknown"),
        ],
    );
}

#[test]
fn l14_nothing_else_reads() {
    let seen = |ios: u32| fio(&[("/disk_util/0/read_ios", json!(ios))]);
    check(
        "L14",
        &default(),
        vec![
            ("nobody measures temperature", seen(100_000), "unknown"),
            ("others read", seen(110_000), "warn"),
            (
                "large blocks are split",
                fio(&[("/jobs/0/job options/bs", json!("1m")), ("/disk_util/0/read_ios", json!(900_000))]),
                "unknown",
            ),
            ("virtual time", own(&[]), "apart"),
        ],
    );
}

#[test]
fn l15_latency_is_whole() {
    let slat = |nanos: f64| ("/jobs/0/read/slat_ns/mean", json!(nanos));
    check(
        "L15",
        &default(),
        vec![
            ("short submission", fio(&[slat(30_000.0)]), "pass"),
            ("long submission", fio(&[slat(50_000.0)]), "warn"),
            (
                "percentiles of lat",
                fio(&[slat(50_000.0), ("/jobs/0/read/lat_ns/percentile", json!({ "50.000000": 1 }))]),
                "pass",
            ),
            ("no lat", fio(&[("/jobs/0/read/lat_ns/mean", json!(0.0))]), "warn"),
            ("a table", table("latency_mean_us,latency_is_whole", &["5,no"]), "warn"),
            ("a table that does not say", table("latency_mean_us", &["5"]), "unknown"),
        ],
    );
}

#[test]
fn l16_units_are_said_and_fit() {
    let row = |text: &str| table("block_bytes,iops,bandwidth_bytes_per_second,bandwidth_unit", &[text]);
    check(
        "L16",
        &default(),
        vec![
            ("a unit", row("4k,1000,,MB/s"), "pass"),
            ("no unit of bandwidth", row("4k,1000,,IOPS"), "fail"),
            ("half a unit", row("4k,1000,,K/s"), "fail"),
            ("fits", row("4k,1000,4096000,"), "pass"),
            ("thousand or 1024", row("4k,1000,4000000,"), "fail"),
            ("nothing", row("4k,1000,,"), "unknown"),
            ("fio", fio(&[]), "pass"),
            ("fio, changed", fio(&[("/jobs/0/read/bw_bytes", json!(40_000))]), "fail"),
        ],
    );
    let old = json!({ "total_ios": 10, "iops": 1.0, "lat": { "mean": 100.0 } });
    check("L16", &default(), vec![("fio 2", fio(&[("/jobs/0/read", old)]), "fail")]);
}

//! Drive files and settings: what is accepted means what it says, and what is not is refused with a sentence.

use ocssd_base::Nanos;
use ocssd_drive::spec::FIELDS;
use ocssd_drive::{DriveError, DriveSpec, OpenOptions, Source, open, open_with};
use ocssd_flash::config::{CellType, Revision, Scheduler, Suspension};
use ocssd_flash::{FailedOp, FaultKind, ScheduledFault, presets};
use ocssd_lightnvm::{ChunkId, Device, Payload, Status};

fn parse(text: &str) -> DriveSpec {
    DriveSpec::from_toml(text, "drive.toml").unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn refusal(text: &str) -> String {
    match DriveSpec::from_toml(text, "drive.toml") {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

fn preset(name: &str) -> DriveSpec {
    DriveSpec::preset(name).expect("the preset exists")
}

#[test]
fn every_preset_survives_its_own_text() {
    for preset in presets::ALL {
        let spec = self::preset(preset.name);
        let text = spec.to_toml();
        assert_eq!(parse(&text), spec, "{}:\n{text}", preset.name);
        assert_eq!(parse(&format!("preset = \"{}\"", preset.name)), spec, "{}", preset.name);
    }
}

#[test]
fn everything_unusual_survives_its_own_text() {
    let mut spec = preset("tiny");
    let settings = [
        "scheduler.kind=read_priority",
        "scheduler.suspend=120us",
        "scheduler.program_suspend=30us",
        "scheduler.program_suspends_max=2",
        "scheduler.bypasses_max=9",
        "revision=1.2",
        "payload=bytes",
        "seed=18446744073709551615",
        "model=a \"quoted\" \\ name",
        "cache.sectors=32MiB",
        "cache.power_loss_protection=true",
        "faults.early_close=0.1%",
        "faults.spike=1.5ms",
        "lba_format.chunk_bits=9",
        "times.write_max=2ms",
        "wear.initial_cycles=17",
        "fault={kind=\"early_close\", at=\"g1/p0/c5/s24\", times=2}",
        "fault={kind=\"reset_failure\", at=\"g0/p1/c2\"}",
    ];
    spec.apply_all(&settings).unwrap_or_else(|error| panic!("{error}"));
    let faults = [
        ScheduledFault {
            kind: FaultKind::EarlyClose,
            chunk: ChunkId(2 * 16 + 5),
            sector: Some(24),
            times: 2,
        },
        ScheduledFault { kind: FaultKind::ResetFailure, chunk: ChunkId(16 + 2), sector: None, times: 1 },
    ];
    assert_eq!(spec.faults, faults);
    let config = &spec.config;
    assert_eq!((config.revision, config.payload, config.seed), (Revision::V12, Payload::Bytes, u64::MAX));
    assert_eq!((config.cache.sectors, config.faults.early_close), (8192, 1_000_000));
    assert_eq!((config.faults.spike, config.geometry.lba_format.chunk_bits), (Nanos(1_500_000), 9));
    assert!(matches!(
        config.scheduler,
        Scheduler::ReadPriority {
            erase: Suspension { suspend: Nanos(120_000), .. },
            program: Suspension { suspend: Nanos(30_000), suspends_max: 2, .. },
            bypasses_max: 9
        }
    ));
    assert_eq!(parse(&spec.to_toml()), spec);
}

#[test]
fn each_setting_is_accepted_as_it_is_shown() {
    for preset in presets::ALL {
        for field in FIELDS {
            let mut spec = self::preset(preset.name);
            let Some(value) = field.show(&spec.config) else { continue };
            let setting = format!("{}={value}", field.key);
            spec.apply(&setting).unwrap_or_else(|error| panic!("{}: {error}", preset.name));
            let same = field.show(&spec.config);
            assert_eq!(same.as_deref(), Some(value.as_str()), "{}: {setting}", preset.name);
        }
    }
}

#[test]
fn what_follows_from_a_setting_follows_unless_it_is_given() {
    let spec = parse(
        "preset = \"cnex-tlc\"\nchunks_per_pu = 3000\n[media]\nread = [\"10us\", \"30us\"]\ncell = \"mlc\"",
    );
    let (times, format) = (spec.config.geometry.times, spec.config.geometry.lba_format);
    assert_eq!((times.read_typical, times.read_max), (Nanos(20_000), Nanos(30_000)));
    assert_eq!(times.write_max, Nanos(3_700_000), "the preset's own hint stays: programs were not changed");
    assert_eq!((format.chunk_bits, spec.config.media.cell), (12, CellType::Mlc));

    let given = "preset = \"cnex-tlc\"\nchunks_per_pu = 3000\nlba_format.chunk_bits = 20\n\
                 media.erase = \"5ms\"\ntimes.reset_max = \"9ms\"";
    let spec = parse(given);
    let (times, format) = (spec.config.geometry.times, spec.config.geometry.lba_format);
    assert_eq!((times.reset_typical, times.reset_max), (Nanos(5_000_000), Nanos(9_000_000)));
    assert_eq!((format.chunk_bits, format.group_bits), (20, 3));
}

#[test]
fn a_fault_of_a_whole_command_may_have_a_status_and_no_other_may() {
    let text = |kind: &str| {
        format!("preset = \"tiny\"\n[[fault]]\nkind = \"{kind}\"\nat = \"g0/p0/c3\"\nstatus = \"006h\"\n")
    };
    let spec = parse(&text("failed_flush"));
    assert_eq!(spec.faults[0].kind, FaultKind::Failed(FailedOp::Flush, Status::INTERNAL_ERROR));
    assert_eq!(parse(&spec.to_toml()).faults, spec.faults, "it is read as it is written");
    let plain = parse("preset = \"tiny\"\n[[fault]]\nkind = \"failed_read\"\nat = \"g0/p0/c3\"\n");
    assert_eq!(plain.faults[0].kind, FaultKind::Failed(FailedOp::Read, Status::ABORT_REQUESTED));
    for wrong in [
        text("high_ecc"),
        text("failed_write").replace("006h", "000h"),
        text("failed_write").replace("006h", "many"),
    ] {
        let error = refusal(&wrong);
        assert!(error.contains("must be a status"), "{error}");
    }
}

#[test]
fn a_fault_stays_at_its_named_place_when_counts_change() {
    let mut spec = parse("preset = \"tiny\"\n[[fault]]\nkind = \"high_ecc\"\nat = \"g1/p1/c3\"\n");
    assert_eq!(spec.faults[0].chunk, ChunkId(3 * 16 + 3));
    spec.apply("chunks_per_pu=100").expect("more chunks");
    assert_eq!(spec.faults[0].chunk, ChunkId(3 * 100 + 3));
    let error = spec.apply("groups=1").expect_err("the fault's group is gone").to_string();
    assert!(
        error.contains("fault[0].at is g1/p1/c3/s0, but the drive has g0..g0, p0..p1, c0..c99"),
        "{error}"
    );
}

/// Text on top of `preset = "tiny"` (line 1), and parts of its refusal.
const BAD: &[(&str, &[&str])] = &[
    ("groups = 0", &["drive.toml:2:1: groups is 0, but must be 1 to 65535"]),
    ("groups = -1", &["2:1: groups is -1, but must be a whole number from 0 to 4294967295"]),
    ("groups = \"2\"", &["groups is \"2\", but must be a whole number"]),
    ("groups = 2.5", &["groups is 2.5, but must be a whole number"]),
    ("groups = 4294967296", &["groups is 4294967296, but must be a whole number"]),
    ("groups = 99999999999999999999999999999999999999999999", &["groups is 9999", "must be a whole number"]),
    ("pus_per_group = 70000", &["pus_per_group is 70000, but must be 1 to 65535"]),
    ("chunks_per_pu = 0", &["chunks_per_pu is 0, but must be at least 1"]),
    ("groups = 65535\npus_per_group = 65535\nchunks_per_pu = 2", &["must be below 4294967295 chunks"]),
    ("sectors_per_chunk = 33", &["sectors_per_chunk is 33, but must be a multiple of ws_opt (8)"]),
    ("sector_bytes = 4095", &["sector_bytes is 4095, but must be a power of two from 512 to 65536"]),
    ("oob_bytes = 65", &["oob_bytes is 65, but must be 0 to 64"]),
    ("ws_min = 0", &["ws_min is 0, but must be at least 1"]),
    ("ws_opt = 12", &["ws_opt is 12, but must be a multiple of planes * sectors_per_page (8)"]),
    ("mw_cunits = 7", &["mw_cunits is 7, but must be a multiple of ws_min (4)"]),
    ("mw_cunits = 32", &["mw_cunits is 32, but must be below sectors_per_chunk (32)"]),
    (
        "wear_index_threshold = 256",
        &["wear_index_threshold is 256, but must be a whole number from 0 to 255"],
    ),
    ("lba_format.chunk_bits = 3", &["lba_format.chunk_bits is 3, but must be 4 to 32"]),
    ("capabilities.vector_copy = 1", &["capabilities.vector_copy is 1, but must be true or false"]),
    ("revision = \"3.0\"", &["revision is \"3.0\", but must be \"2.0\" or \"1.2\""]),
    ("payload = \"zeros\"", &["payload is \"zeros\", but must be \"bytes\"", "\"stamp\""]),
    ("queue_depth = 0", &["queue_depth is 0, but must be 1 to 65535"]),
    ("seed = -5", &["seed is -5, but must be a whole number from 0 to 18446744073709551615"]),
    ("model = 5", &["model is 5, but must be text of at most 128 bytes"]),
    (
        "[media]\nerase = \"5 minutes\"",
        &["3:1: media.erase is \"5 minutes\", but must be a time", "\"45.5us\""],
    ),
    ("[media]\nerase = 5", &["media.erase is 5, but must be a time with its unit in quotes"]),
    ("[media]\nerase = \"61s\"", &["drive.toml:3:1: media.erase is 61.000 s, but must be at most 60 s"]),
    ("[media]\nerase = \"0.5ns\"", &["media.erase is \"0.5ns\", but must be a time"]),
    ("[media]\nread = []", &["media.read is 0 times, but must be 1 to 64 times"]),
    ("[media]\nread = [40, 60]", &["media.read is [40, 60], but must be a list of times"]),
    ("[media]\ncell = \"xlc\"", &["media.cell is \"xlc\", but must be \"slc\", \"mlc\", \"tlc\" or \"qlc\""]),
    ("[media]\nplanes = 5", &["media.planes is 5, but must be 1 to 4"]),
    (
        "[media]\nplane_reads = \"dual\"",
        &["media.plane_reads is \"dual\", but must be \"asked\" or \"always\""],
    ),
    ("[media]\nslow_read = [\"85us\"]", &["media.slow_read is", "but must be a list of shares of pages"]),
    (
        "[media]\nslow_read = [\"1%: 85us\", \"2%: 95us\"]",
        &[
            "media.slow_read is 2 shares, but must be at most 8 shares",
            "smaller and slower than the one before it",
        ],
    ),
    ("[media]\nregisters = 0", &["media.registers is 0, but must be 1 to 4"]),
    (
        "[media]\nspeed = 1",
        &["3:1: media.speed is 1, but there is no such setting; did you mean media.read?"],
    ),
    ("colour = \"red\"", &["2:1: colour is \"red\", but there is no such setting; docs/drive.md lists"]),
    (
        "[medai]\nerase = \"5ms\"",
        &["3:1: medai.erase is", "there is no such setting; did you mean media.erase?"],
    ),
    ("[media.read]\nfirst = 5", &["media.read is", "but must be a list of times"]),
    ("[colours]", &["2:2: colours is [colours], but there is no such setting"]),
    ("erase = \"5ms\"", &["erase is \"5ms\", but there is no such setting; did you mean media.erase?"]),
    ("media = 5", &["media is 5, but there is no such setting"]),
    (
        "[channel]\nbytes_per_second = \"280\"",
        &["channel.bytes_per_second is \"280\", but must be a rate", "MB/s"],
    ),
    (
        "[channel]\nbytes_per_second = \"1kB/s\"",
        &["channel.bytes_per_second is 1000, but must be 1000000 (1 MB/s)"],
    ),
    ("[cache]\nsectors = \"1kB\"", &["cache.sectors is \"1kB\", but", "multiple of sector_bytes"]),
    ("[cache]\nsectors = 63", &["cache.sectors is 63, but must be 0 (no cache)"]),
    (
        "[scheduler]\nkind = \"best\"",
        &["scheduler.kind is \"best\", but must be \"fifo\" or \"read_priority\""],
    ),
    (
        "[scheduler]\nsuspend = \"1us\"",
        &["scheduler.suspend is \"1us\", but", "needs scheduler.kind = \"read_priority\""],
    ),
    ("[wear]\nendurance = 0", &["wear.endurance is 0, but must be at least 1 reset"]),
    (
        "[wear]\ninitial_cycles = 9999",
        &["wear.initial_cycles is 9999, but must be at most wear.endurance (3000)"],
    ),
    (
        "[faults]\nearly_close = 0.1",
        &["faults.early_close is 0.1, but must be a rate of faults", "\"1000ppb\""],
    ),
    ("[faults]\nearly_close = \"101%\"", &["faults.early_close is 1010000000, but must be 0 to 1000000000"]),
    ("fault = 1", &["2:1: fault must be a table"]),
    (
        "[[fault]]\nkind = \"explode\"\nat = \"g0/p0/c0\"",
        &["3:1: fault[0].kind is \"explode\", but must be", "\"high_ecc\""],
    ),
    ("[[fault]]\nkind = \"high_ecc\"", &["2:1: fault[0].at is missing, but must be a chunk such as"]),
    (
        "[[fault]]\nkind = \"high_ecc\"\nat = \"0/0/0\"",
        &["fault[0].at is \"0/0/0\", but must be a chunk such as"],
    ),
    (
        "[[fault]]\nkind = \"high_ecc\"\nat = \"g0/p0/c16\"",
        &["fault[0].at is g0/p0/c16/s0, but the drive has g0..g1"],
    ),
    (
        "[[fault]]\nkind = \"high_ecc\"\nat = \"g0/p0/c7/s32\"",
        &["g0/p0/c7/s32, but the drive has", "s0..s31"],
    ),
    (
        "[[fault]]\nkind = \"high_ecc\"\nat = \"g0/p0/c0\"\ntimes = 0",
        &["fault[0].times is 0, but must be", "from 1"],
    ),
    (
        "[[fault]]\nkind = \"high_ecc\"\nat = \"g0/p0/c0\"\nfor = 3",
        &["fault[0].for is no setting of a fault"],
    ),
    ("groups = ", &["2:10: this is not TOML"]),
    ("groups = 1\ngroups = 2", &["3:1: this is not TOML", "duplicate"]),
    ("seed = 1979-05-27", &["seed is 1979-05-27, but must be a whole number"]),
];

#[test]
fn every_bad_setting_is_refused_with_its_place_its_value_and_what_would_be_valid() {
    assert!(BAD.len() >= 30);
    for (text, parts) in BAD {
        let error = refusal(&format!("preset = \"tiny\"\n{text}\n"));
        for part in *parts {
            assert!(error.contains(part), "expected \"{part}\" in \"{error}\" for\n{text}");
        }
    }
}

#[test]
fn all_bad_settings_of_a_file_are_listed_at_once() {
    let error = refusal("preset = \"tiny\"\ngrops = 2\n[media]\nerase = 5\nread = 5\n");
    assert_eq!(error.lines().count(), 3, "{error}");
    let error = refusal("preset = \"nvme\"");
    assert!(error.contains("drive.toml:1:1: preset is \"nvme\", but must be one of westlake, "), "{error}");
    let error = refusal("preset = 3");
    assert!(error.contains("preset is 3, but must be one of"), "{error}");
}

#[test]
fn a_bad_override_is_refused_in_the_same_words_and_changes_nothing() {
    let table = [
        (
            "media.erase=5 minutes",
            "--set media.erase=5 minutes: media.erase is 5 minutes, but must be a time",
        ),
        ("groups=0", "--set groups=0: groups is 0, but must be 1 to 65535"),
        ("media.erase", "a setting is written key=value"),
        ("", "a setting is written key=value"),
        ("preset=odd", "cannot be set on top of others"),
        ("colour=red", "colour is red, but there is no such setting"),
        ("fault=3", "fault must be a table"),
        ("fault={kind=\"high_ecc\"", "this is not TOML"),
    ];
    for (setting, expected) in table {
        let mut spec = preset("tiny");
        let error = spec.apply(setting).expect_err(setting).to_string();
        assert!(error.contains(expected), "expected \"{expected}\" in \"{error}\"");
        assert_eq!(spec, preset("tiny"), "{setting}");
    }
}

#[test]
fn settings_that_only_fit_together_are_applied_together() {
    let mut spec = preset("tiny");
    spec.apply("ws_opt=16").expect("fits");
    spec.apply("ws_min=16").expect_err("mw_cunits 8 is no multiple");
    spec.apply_all(&["ws_min=16", "mw_cunits=16", "ws_min=8"]).expect("the last of two counts");
    assert_eq!((spec.config.geometry.ws_min, spec.config.geometry.mw_cunits), (8, 16));
}

#[test]
fn sources_are_told_apart_and_opened() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "preset = \"odd\"\nseed = 9\n").expect("it can be written");
    let named = |name: &str| Source::named(name).expect(name);
    assert_eq!(named("tiny"), Source::Preset("tiny".into()));
    let file = named(path.to_str().expect("plain"));
    assert_eq!(file, Source::Settings(path.clone()));
    let drive = open(&file).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((drive.flash.config().seed, drive.flash.geometry().groups), (9, 3));
    assert!(drive.image.is_none() && drive.media_manager.list().is_empty());
    let options = OpenOptions { settings: vec!["seed=4".into()], ..OpenOptions::default() };
    assert_eq!(open_with(&file, &options).unwrap_or_else(|error| panic!("{error}")).flash.config().seed, 4);

    let error = Source::named("no-such-thing").expect_err("nothing of this name").to_string();
    assert!(
        error.contains("\"no-such-thing\" is no preset and no file") && error.contains("westlake"),
        "{error}"
    );
    let gone = open(&Source::Settings(folder.path().join("gone.toml"))).err().expect("no file");
    assert!(
        matches!(gone, DriveError::Io { .. }) && gone.to_string().contains("gone.toml cannot be read"),
        "{gone}"
    );
    std::fs::write(&path, "groups = 0").expect("it can be written");
    let bad = open(&Source::Settings(path)).err().expect("bad settings").to_string();
    assert!(bad.contains("mine.toml:1:1: groups is 0"), "{bad}");
}

#[test]
fn the_document_lists_every_setting_with_its_default_and_the_example_drives_are_sound() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let document = std::fs::read_to_string(format!("{root}/docs/drive.md")).expect("docs/drive.md");
    for key in FIELDS.iter().map(|field| field.key).chain(["preset", "fault"]) {
        assert!(document.contains(&format!("`{key}`")), "docs/drive.md does not list `{key}`");
    }
    let default = preset(presets::DEFAULT);
    for field in FIELDS {
        let Some(value) = field.show(&default.config) else { continue };
        let start = format!("| `{}` | ", field.key);
        let row = document.lines().find(|line| line.starts_with(&start)).unwrap_or_default();
        assert!(
            row.ends_with(&format!(" | `{value}` |")),
            "docs/drive.md: {} is {value} now: {row}",
            field.key
        );
    }
    let examples = std::fs::read_dir(format!("{root}/examples/drives")).expect("examples/drives");
    let mut count = 0;
    for example in examples {
        let path = example.expect("it can be listed").path();
        open(&Source::Settings(path.clone())).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        count += 1;
    }
    assert!(count > 0, "there are no examples");
}

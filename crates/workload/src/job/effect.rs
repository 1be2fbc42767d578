//! What has no effect beside other options of its job: told, and no error, as in fio.
//!
//! Deliberately not here: what fio refuses together (`conflict`).

use super::draft::Draft;
use super::pattern::{ByDirection, Operations, ZoneMode};

/// An option, whether it has an effect, and the sentence told if it has none.
type Rule = (&'static str, bool, &'static str);

/// Tells every option given that has no effect.
pub fn note_without_effect(draft: &mut Draft) {
    let rules =
        [&pattern_rules(draft)[..], &pace_rules(draft), &log_rules(draft), &zone_rules(draft)].concat();
    for (option, effective, sentence) in rules {
        if !effective && draft.given(option).is_some() {
            draft.note(option, sentence);
        }
    }
}

fn pattern_rules(draft: &Draft) -> [Rule; 15] {
    const NOT_MIXED: &str = "has no effect: rw is not a mix of reads and writes";
    const NO_WRITES: &str = "has no effect: rw has no writes";
    const NOT_RANDOM: &str = "has no effect: rw is not random";
    let options = &draft.options;
    let mixed = options.rw.operations == Operations::ReadWrite;
    let writes = options.rw.operations.writes();
    let random = options.rw.is_random();
    let compressed = options.buffer_compress.percentage.is_some();
    let both_shares = draft.given("rwmixread").is_some() && draft.given("rwmixwrite").is_some();
    let split = draft.given("bssplit");
    let ranged = split.or(draft.given("bsrange")).is_some();
    [
        ("rwmixread", mixed, NOT_MIXED),
        ("rwmixwrite", mixed, NOT_MIXED),
        ("rwmixwrite", !both_shares, "and rwmixread are both given; the one given last holds"),
        ("fsync", writes, NO_WRITES),
        ("fdatasync", writes, NO_WRITES),
        ("end_fsync", writes, NO_WRITES),
        ("random_distribution", random, NOT_RANDOM),
        ("percentage_random", random, NOT_RANDOM),
        ("norandommap", random, NOT_RANDOM),
        ("ba", random, NOT_RANDOM),
        ("zero_buffers", options.buffer_pattern.is_empty(), "has no effect beside buffer_pattern, as in fio"),
        ("zero_buffers", !compressed, "has no effect beside buffer_compress_percentage"),
        ("buffer_compress_chunk", compressed, "has no effect without buffer_compress_percentage"),
        ("bsrange", split.is_none(), "and bssplit are both given; the one given last holds"),
        ("bs", !ranged, "has no effect where bssplit or bsrange is given, as in fio"),
    ]
}

fn pace_rules(draft: &Draft) -> [Rule; 7] {
    const ONE_FILE: &str = "has no effect without nrfiles above 1";
    let options = &draft.options;
    let none = ByDirection::all(None);
    let least = options.rate_floor.bytes != none || options.rate_floor.ios != none;
    let flow = options.flow.weight > 0;
    [
        ("thinktime_blocks", options.thinktime.pause.0 > 0, "has no effect without thinktime"),
        ("rate_cycle", least, "has no effect without rate_min or rate_iops_min"),
        ("flow_id", flow, "has no effect without flow"),
        ("flow_sleep", flow, "has no effect without flow"),
        ("exit_what", options.exit.all, "has no effect without exitall"),
        ("openfiles", options.file_set.count > 1, ONE_FILE),
        ("file_service_type", options.file_set.count > 1, ONE_FILE),
    ]
}

fn log_rules(draft: &Draft) -> [Rule; 9] {
    const NO_SHARES: &str = "has no effect without cmdprio_percentage or cmdprio_bssplit";
    let drawn = draft.options.priority.are_drawn();
    const NO_FILES: &str =
        "has no effect: the drive stands for the files, and no write_iolog records their names";
    let logs = &draft.options.logs;
    let averaged = [&logs.bw, &logs.iops, &logs.lat].iter().any(|log| log.is_some());
    let recorded = logs.iolog.is_some();
    [
        ("log_avg_msec", averaged, "has no effect without a log, as write_lat_log"),
        ("log_prio", averaged, "has no effect without a log, as write_lat_log"),
        ("cmdprio", drawn, NO_SHARES),
        ("cmdprio_class", drawn, NO_SHARES),
        ("log_hist_msec", logs.hist.is_some(), "has no effect without write_hist_log"),
        ("log_hist_coarseness", logs.hist.is_some(), "has no effect without write_hist_log"),
        (
            "write_hist_log",
            logs.hist_msec > 0,
            "makes a file without histograms, as in fio: it needs log_hist_msec",
        ),
        ("directory", recorded, NO_FILES),
        ("filename_format", recorded, NO_FILES),
    ]
}

fn zone_rules(draft: &Draft) -> [Rule; 8] {
    const NO_STRIDES: &str = "has no effect without zonemode=strided";
    const NO_ZONES: &str = "has an effect only on a target with zones, as zonemode=zbd has";
    let options = &draft.options;
    let zoned = options.zonemode == ZoneMode::Zbd;
    let strided = zoned || options.zonemode == ZoneMode::Strided || options.zonesize.is_some();
    let resets = options.zone_reset.frequency > 0.0;
    [
        ("zonerange", strided, NO_STRIDES),
        ("zoneskip", strided, NO_STRIDES),
        ("zonecapacity", zoned, "has no effect without zonemode=zbd"),
        ("max_open_zones", zoned, NO_ZONES),
        ("job_max_open_zones", zoned, NO_ZONES),
        ("read_beyond_wp", zoned, NO_ZONES),
        ("zone_reset_frequency", zoned, NO_ZONES),
        ("zone_reset_threshold", resets, "has no effect without a zone_reset_frequency above 0"),
    ]
}

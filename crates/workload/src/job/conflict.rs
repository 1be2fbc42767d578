//! Rules between options of one job: what fio refuses together.
//!
//! Deliberately not here: rules that need the target (sizes against capacity, block sizes against sectors), and what has
//! no effect beside others (`effect`).

use super::check::Verify;
use super::draft::Draft;
use super::extension::Response;
use super::ioengine::IoEngine;
use super::pattern::{Amount, ByDirection, RateProcess, SubmitMode, ZoneMode};
use ocssd_base::Nanos;

/// An option's name and the sentence that says what is valid.
type Problems = Vec<(&'static str, String)>;

/// Settles a finished draft: notes what has no effect, returns what cannot be.
///
/// `earlier` are the names of the jobs before this one.
pub fn settle(draft: &mut Draft, earlier: &[&str]) -> Problems {
    let mut problems = Problems::new();
    check_order(draft, earlier, &mut problems);
    check_region(draft, &mut problems);
    check_verify(draft, &mut problems);
    check_rate(draft, &mut problems);
    check_least_rate(draft, &mut problems);
    check_zones(draft, &mut problems);
    check_steady(draft, &mut problems);
    check_latency(draft, &mut problems);
    check_files(draft, &mut problems);
    check_priorities(draft, &mut problems);
    settle_depth(draft);
    settle_replay(draft);
    draft.options.randrepeat = draft.allrandrepeat || draft.randrepeat.unwrap_or(true);
    super::effect::note_without_effect(draft);
    problems
}

fn check_order(draft: &Draft, earlier: &[&str], problems: &mut Problems) {
    if draft.options.time_based && draft.options.runtime.is_none() {
        problems.push(("time_based", "needs a runtime above 0, as runtime=60s".to_owned()));
    }
    if let Some(name) = draft.options.wait_for.as_deref()
        && !earlier.contains(&name)
    {
        let nearest = super::suggest::did_you_mean(name, earlier.iter().copied());
        problems.push(("wait_for", format!("expected the name of a job above this one{nearest}")));
    }
}

fn check_region(draft: &Draft, problems: &mut Problems) {
    let options = &draft.options;
    let operations = options.rw.operations;
    if let Some(Amount::Bytes(size)) = options.size {
        let used = [operations.reads(), operations.writes(), operations.trims()];
        let sizes = options.block_sizes.as_array();
        let largest =
            sizes.iter().zip(used).filter(|(_, used)| *used).map(|(sizes, _)| sizes.max_bytes()).max();
        if largest.is_some_and(|largest| largest > size) {
            let message =
                format!("is less than one block of {} bytes; raise size or lower bs", largest.unwrap_or(0));
            problems.push(("size", message));
        }
    }
    let amounts = [
        ("size", options.size),
        ("io_size", options.io_size),
        ("offset", Some(options.offset)),
        ("offset_increment", Some(options.offset_increment)),
    ];
    for (option, amount) in amounts {
        let zones = matches!(amount, Some(Amount::Zones(_)));
        if zones && options.zonemode == ZoneMode::None && options.zonesize.is_none() {
            problems.push((option, "counts zones, so it needs zonemode=zbd or a zonesize".to_owned()));
        }
    }
}

fn check_verify(draft: &mut Draft, problems: &mut Problems) {
    if draft.options.verify == Some(Verify::Pattern) && draft.options.verify_pattern.is_empty() {
        problems.push(("verify", "needs a verify_pattern, as verify_pattern=0xdeadface".to_owned()));
    }
    let needs_verify = ["do_verify", "verify_pattern", "verify_fatal", "verify_backlog"];
    for option in needs_verify {
        if draft.options.verify.is_none() && draft.given(option).is_some() {
            draft.note(option, "has no effect without verify");
        }
    }
}

fn check_rate(draft: &mut Draft, problems: &mut Problems) {
    let rated = draft.options.is_rated();
    if !rated && draft.given("rate_process").is_some() {
        draft.note("rate_process", "has no effect without rate or rate_iops");
    }
    if !rated && draft.extension.response == Some(Response::Intended) {
        problems.push((
            "ocssd: response",
            "intended starts exist only with rate or rate_iops; set one, or response=issued".to_owned(),
        ));
    }
    if draft.options.rate_process == RateProcess::Poisson && draft.options.thinktime.pause.0 > 0 {
        problems.push((
            "thinktime",
            "contradicts rate_process=poisson, which sets every start; remove one".to_owned(),
        ));
    }
}

/// What fio refuses of `rate_min` and `rate_iops_min`.
fn check_least_rate(draft: &Draft, problems: &mut Problems) {
    let options = &draft.options;
    let none = ByDirection::all(None);
    if options.rate_floor.bytes != none && options.rate_floor.ios != none {
        problems.push(("rate_min", "contradicts rate_iops_min, as in fio; keep one".to_owned()));
    }
    let pairs = [
        ("rate_min", options.rate, options.rate_floor.bytes),
        ("rate_iops_min", options.rate_iops, options.rate_floor.ios),
    ];
    for (option, cap, least) in pairs {
        let above = |(cap, least): (&Option<u64>, &Option<u64>)| {
            cap.zip(*least).is_some_and(|(cap, least)| least > cap)
        };
        if cap.as_array().into_iter().zip(least.as_array()).any(above) {
            problems.push((option, "is above the cap of the same direction; lower it".to_owned()));
        }
    }
}

fn check_zones(draft: &Draft, problems: &mut Problems) {
    let options = &draft.options;
    let mode = options.zonemode;
    if draft.given("zonemode").is_some_and(|word| word == "none") && options.zonesize.is_some() {
        problems.push(("zonesize", "contradicts zonemode=none, as in fio; remove one".to_owned()));
    }
    if mode == ZoneMode::Strided && options.zonesize.is_none() {
        problems.push(("zonemode", "needs a zonesize, as zonesize=1m".to_owned()));
    }
    if mode == ZoneMode::Zbd && options.zoneskip > 0 {
        problems.push(("zoneskip", "must be 0 with zonemode=zbd, as in fio".to_owned()));
    }
    if mode == ZoneMode::Zbd && options.zonerange.is_some_and(|range| Some(range) != options.zonesize) {
        problems.push(("zonerange", "must be the zonesize with zonemode=zbd, as in fio".to_owned()));
    }
    let (capacity, size) = (options.zonecapacity, options.zonesize);
    if mode == ZoneMode::Zbd && capacity.zip(size).is_some_and(|(capacity, size)| capacity > size) {
        problems.push(("zonecapacity", "is more than the zonesize; lower it".to_owned()));
    }
}

/// The most samples of a steady-state window: a day of seconds (chosen).
const WINDOW_MAX: u64 = 86_400;

fn check_steady(draft: &mut Draft, problems: &mut Problems) {
    let steady = draft.options.steady;
    if !steady.is_on() {
        for option in ["steadystate", "steadystate_ramp_time", "steadystate_check_interval"] {
            if draft.given(option).is_some() {
                draft.note(option, "has no effect without steadystate_duration, as in fio");
            }
        }
        return;
    }
    let (duration, interval) = (steady.duration, steady.check_interval);
    if !duration.0.is_multiple_of(interval.0) || duration <= interval {
        let message = format!("must be a multiple of the check interval of {interval}, and more than one");
        problems.push(("steadystate_duration", message));
    } else if steady.window() > WINDOW_MAX {
        let message = format!("asks for more than {WINDOW_MAX} samples; raise steadystate_check_interval");
        problems.push(("steadystate_duration", message));
    }
}

fn check_latency(draft: &mut Draft, problems: &mut Problems) {
    let latency = draft.options.latency;
    if latency.target == Nanos::ZERO {
        for option in ["latency_window", "latency_percentile", "latency_run"] {
            if draft.given(option).is_some() {
                draft.note(option, "has no effect without latency_target");
            }
        }
    } else if latency.window == Nanos::ZERO {
        problems
            .push(("latency_target", "needs a latency_window above 0, as latency_window=100ms".to_owned()));
    }
}

/// What a log says, other options do not.
fn settle_replay(draft: &mut Draft) {
    if draft.options.replay.names.is_empty() {
        let replays = ["no_stall", "redirect", "scale", "align", "time_scale", "skip"];
        for option in replays.map(|word| format!("replay_{word}")) {
            let name = super::table::find_option(&option).expect("it is in the table").name;
            if draft.given(name).is_some() {
                draft.note(name, "has no effect without read_iolog");
            }
        }
        return;
    }
    if draft.options.logs.iolog.take().is_some() {
        draft.note("write_iolog", "has no effect beside read_iolog, as in fio");
    }
    for option in
        ["rw", "bs", "bsrange", "bssplit", "size", "io_size", "loops", "time_based", "rate", "rate_iops"]
    {
        if draft.given(option).is_some() {
            draft.note(option, "has no effect: read_iolog says what is done, once");
        }
    }
}

fn check_priorities(draft: &Draft, problems: &mut Problems) {
    if draft.given("cmdprio_percentage").is_some() && draft.given("cmdprio_bssplit").is_some() {
        problems.push(("cmdprio_bssplit", "contradicts cmdprio_percentage, as in fio; keep one".to_owned()));
    }
}

/// Files are parts of a region that nothing else divides.
fn check_files(draft: &mut Draft, problems: &mut Problems) {
    let count = draft.options.file_set.count;
    draft.options.file_set.open = draft.openfiles.unwrap_or(count).min(count);
    if count == 1 {
        return;
    }
    if draft.options.zonemode != ZoneMode::None || draft.options.zonesize.is_some() {
        problems.push((
            "nrfiles",
            "divides the region, as zones do; leave it out, or zonemode and zonesize".to_owned(),
        ));
    }
    if draft.given("filesize").is_some() {
        problems.push((
            "filesize",
            "is not how long files are beside nrfiles: they share size evenly; give size".to_owned(),
        ));
    }
}

/// A synchronous engine of fio keeps one I/O in flight whatever `iodepth` says, unless threads of their own submit.
fn settle_depth(draft: &mut Draft) {
    if draft.options.iodepth == 1 || draft.options.submit_mode == SubmitMode::Offload {
        return;
    }
    if draft.options.ioengine == (IoEngine::Drive { asynchronous: false }) {
        draft.options.iodepth = 1;
        draft.note(
            "iodepth",
            "is 1, because the ioengine is a synchronous one; use libaio or io_uring for more",
        );
    } else if draft.given("ioengine").is_none() {
        draft.note("iodepth", "is kept; fio without an ioengine would use psync and keep one I/O in flight");
    }
}

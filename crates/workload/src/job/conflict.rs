//! Rules between options of one job: what fio refuses together, and what has no effect together.
//!
//! Deliberately not here: rules that need the target (sizes against capacity, block sizes against sectors).

use super::check::Verify;
use super::draft::Draft;
use super::extension::Response;
use super::ioengine::IoEngine;
use super::pattern::{Amount, ByDirection, Operations, RateProcess, ZoneMode};

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
    settle_depth(draft);
    note_without_effect(draft);
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
    let none = ByDirection::all(None);
    let rated = draft.options.rate != none || draft.options.rate_iops != none;
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

/// A synchronous engine of fio keeps one I/O in flight whatever `iodepth` says.
fn settle_depth(draft: &mut Draft) {
    if draft.options.iodepth == 1 {
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

fn note_without_effect(draft: &mut Draft) {
    let options = &draft.options;
    let operations = options.rw.operations;
    let random = options.rw.is_random();
    let logs = [&options.write_bw_log, &options.write_iops_log, &options.write_lat_log];
    let logged = logs.iter().any(|log| log.is_some());
    let mixed = operations == Operations::ReadWrite;
    let pause = options.thinktime.pause.0 > 0;
    let zoned = options.zonemode == ZoneMode::Zbd;
    let writes = operations.writes();
    let both_shares = draft.given("rwmixread").is_some() && draft.given("rwmixwrite").is_some();
    let rules: [(&'static str, bool, &str); 16] = [
        ("rwmixread", mixed, "has no effect: rw is not a mix of reads and writes"),
        ("rwmixwrite", mixed, "has no effect: rw is not a mix of reads and writes"),
        ("rwmixwrite", !both_shares, "and rwmixread are both given; the one given last holds"),
        ("fsync", writes, "has no effect: rw has no writes"),
        ("fdatasync", writes, "has no effect: rw has no writes"),
        ("end_fsync", writes, "has no effect: rw has no writes"),
        ("random_distribution", random, "has no effect: rw is not random"),
        ("percentage_random", random, "has no effect: rw is not random"),
        ("norandommap", random, "has no effect: rw is not random"),
        ("ba", random, "has no effect: rw is not random"),
        ("thinktime_blocks", pause, "has no effect without thinktime"),
        ("log_avg_msec", logged, "has no effect without a log, as write_lat_log"),
        ("max_open_zones", zoned, "has an effect only on a target with zones, as zonemode=zbd has"),
        ("zero_buffers", options.buffer_pattern.is_empty(), "has no effect beside buffer_pattern, as in fio"),
        ("bsrange", draft.given("bssplit").is_none(), "and bssplit are both given; the one given last holds"),
        (
            "bs",
            draft.given("bssplit").or(draft.given("bsrange")).is_none(),
            "has no effect where bssplit or bsrange is given, as in fio",
        ),
    ];
    for (option, effective, sentence) in rules {
        if !effective && draft.given(option).is_some() {
            draft.note(option, sentence);
        }
    }
}

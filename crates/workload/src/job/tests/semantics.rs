//! What valid input means, where fio's rules are not obvious.

use ocssd_base::Nanos;

use super::{command, valid};
use crate::job::{
    Amount, BlockSizes, ByDirection, Eta, IoEngine, OutputFormat, Placement, Response, RunClock, Verify,
    equivalent_command,
};

fn names(parsed: &crate::job::Parsed) -> Vec<&str> {
    parsed.jobs.iter().map(|job| job.name.as_str()).collect()
}

fn pairs(list: &[(String, String)]) -> Vec<(&str, &str)> {
    list.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn a_global_section_holds_for_the_jobs_after_it_only() {
    let parsed =
        valid("[global]\nbs=8k\nrw=randread\n[a]\n[global]\niodepth=8\nioengine=libaio\n[b]\nbs=16k\n");
    assert_eq!(names(&parsed), ["a", "b"]);
    let [a, b] = [&parsed.jobs[0].options, &parsed.jobs[1].options];
    assert_eq!((a.iodepth, b.iodepth), (1, 8));
    assert_eq!(a.block_sizes.read, BlockSizes::Fixed(8192));
    assert_eq!(b.block_sizes.read, BlockSizes::Fixed(16384));
    assert!(b.rw.is_random());
    let given = [("rw", "randread"), ("iodepth", "8"), ("ioengine", "libaio"), ("bs", "16k")];
    assert_eq!(pairs(&parsed.jobs[1].given), given);
    assert_eq!(pairs(&parsed.jobs[1].own), [("bs", "16k")]);
    assert_eq!(
        pairs(&parsed.global),
        [("bs", "8k"), ("rw", "randread"), ("iodepth", "8"), ("ioengine", "libaio")]
    );
}

#[test]
fn the_last_value_of_an_option_wins_and_empty_parts_keep_the_earlier() {
    let parsed = valid("[global]\nbs=4k,64k\n[a]\nbs=,8k\nsize=1m\nsize=2m\n");
    let job = &parsed.jobs[0];
    let sizes = [4096, 8192, 8192].map(BlockSizes::Fixed);
    assert_eq!(job.options.block_sizes.as_array(), sizes.each_ref());
    assert_eq!(job.options.size, Some(Amount::Bytes(2 << 20)));
    assert_eq!(pairs(&job.given), [("bs", "4k,8k,8k"), ("size", "2m")]);
}

#[test]
fn comments_blanks_and_line_ends_do_not_matter() {
    let parsed =
        valid("\u{feff}; a\r\n# b\r\n  [ a ]  \r\n  bs = 8k ; c\r\n\r\ndescription=x # y\r\nstonewall\r\n");
    let options = &parsed.jobs[0].options;
    assert_eq!(options.block_sizes.write, BlockSizes::Fixed(8192));
    assert_eq!(options.description.as_deref(), Some("x"));
    assert!(options.stonewall);
}

#[test]
fn a_split_or_a_range_wins_over_bs_and_the_later_of_the_two_holds() {
    let parsed = valid(
        "[a]\nbsrange=1k-4k,2k-8k\nbs=512\n[b]\nbsrange=1k-2k\nbssplit=4k/10:64k/90,32k\nbs=4k\n[c]\nbssplit=4k\nbsrange=1k-2k\n",
    );
    let range = BlockSizes::Range { min_bytes: 1024, max_bytes: 4096 };
    assert_eq!(parsed.jobs[0].options.block_sizes.read, range);
    assert_eq!(parsed.jobs[0].options.block_sizes.trim.max_bytes(), 8192);
    let split = &parsed.jobs[1].options.block_sizes;
    assert_eq!(
        (split.read.min_bytes(), split.read.max_bytes(), split.write.min_bytes()),
        (4096, 65536, 32768)
    );
    assert_eq!(
        parsed.jobs[2].options.block_sizes.read,
        BlockSizes::Range { min_bytes: 1024, max_bytes: 2048 }
    );
    let told = |option: &str| parsed.notes.iter().filter(|note| note.option == option).count();
    assert_eq!((told("bs"), told("bsrange")), (2, 2));
}

#[test]
fn environment_includes_and_job_names_are_put_in() {
    let parsed = valid(
        "[a]\nsize=${SIZE}\ninclude depth.fio\nioengine=libaio\nfilename=/x/$jobname:y\\:z\nio_size=1m${NONE}\n",
    );
    let options = &parsed.jobs[0].options;
    assert_eq!(options.size, Some(Amount::Bytes(64 << 20)));
    assert_eq!((options.iodepth, options.block_sizes.read.clone()), (4, BlockSizes::Fixed(8192)));
    assert_eq!(options.files.names, ["/x/a", "y:z"]);
    assert!(parsed.notes.iter().any(|note| note.sentence.contains("the environment has no NONE")));
}

#[test]
fn kb_base_turns_both_suffixes_round_wherever_it_stands() {
    let parsed = valid("[a]\nbs=4k\nsize=4mi\nkb_base=1000\n");
    assert_eq!(parsed.jobs[0].options.block_sizes.read, BlockSizes::Fixed(4000));
    assert_eq!(parsed.jobs[0].options.size, Some(Amount::Bytes(4 << 20)));
    let command = equivalent_command(&parsed.jobs[0]);
    assert_eq!(command, "fio --name=a --kb_base=1000 --bs=4k --size=4mi");
}

#[test]
fn engines_are_mapped_with_a_note_and_synchronous_ones_have_depth_one() {
    let depth = |text: &str| {
        let parsed = valid(text);
        let notes = parsed.notes.iter().filter(|note| note.option == "iodepth").count();
        (parsed.jobs[0].options.iodepth, notes, parsed.jobs[0].options.ioengine)
    };
    let drive = |asynchronous| IoEngine::Drive { asynchronous };
    assert_eq!(depth("[a]\nioengine=io_uring\niodepth=32\n"), (32, 0, drive(true)));
    assert_eq!(depth("[a]\nioengine=psync\niodepth=32\n"), (1, 1, drive(false)));
    assert_eq!(depth("[a]\nioengine=psync\n"), (1, 0, drive(false)));
    assert_eq!(depth("[a]\nioengine=psync\niodepth=32\nio_submit_mode=offload\n"), (32, 0, drive(false)));
    assert_eq!(depth("[a]\niodepth=32\n"), (32, 1, drive(true)));
    assert_eq!(depth("[a]\nioengine=null\niodepth=32\n"), (32, 0, IoEngine::Null));
}

#[test]
fn times_rates_and_pauses_have_fios_units() {
    let parsed = valid(
        "[a]\nruntime=1m\ntime_based\nramp_time=500ms\nstartdelay=2\nrate=1m,500k\nrate_iops=,100\nthinktime=10\nrw=rw\n",
    );
    let options = &parsed.jobs[0].options;
    assert_eq!((options.runtime, options.ramp_time), (Some(Nanos::from_secs(60)), Nanos::from_millis(500)));
    assert_eq!((options.startdelay, options.thinktime.pause), (Nanos::from_secs(2), Nanos::from_micros(10)));
    let rate = ByDirection { read: Some(1 << 20), write: Some(512_000), trim: Some(512_000) };
    assert_eq!(options.rate, rate);
    assert_eq!(options.rate_iops, ByDirection { read: None, write: Some(100), trim: Some(100) });
}

#[test]
fn options_that_do_nothing_here_are_told_once() {
    let parsed =
        valid("[global]\ndirect=1\nverify=md5\nfsync=4\n[a]\n[b]\nrw=write\nrwmixread=70\ndisable_lat\n");
    let told: Vec<String> = parsed.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "[global] direct=1: a virtual drive has no page cache: every I/O is direct",
            "[global] verify=md5: every block is compared by its stamp (address and sequence number), which finds what this word would find",
            "[a] fsync=4: has no effect: rw has no writes",
            "[b] disable_lat: is taken as 1; fio itself asks for a value",
            "[b] disable_lat=1: everything is measured always; reading the run's clock costs nothing in virtual time",
            "[b] rwmixread=70: has no effect: rw is not a mix of reads and writes",
        ]
    );
    assert!(matches!(parsed.jobs[1].options.verify, Some(Verify::Checksum(_))));
}

#[test]
fn extension_lines_reach_jobs_and_the_run() {
    let text = ";ocssd: drive=westlake clock=wall layout=chunk\n[a]\n; ocssd: place=pu:0-3,8\n[b]\nrate_iops=10 #ocssd: layout=striped\nrate_process=poisson\n";
    let parsed = valid(text);
    assert_eq!((parsed.run.drive.as_deref(), parsed.run.clock), (Some("westlake"), Some(RunClock::Wall)));
    let [a, b] = [&parsed.jobs[0], &parsed.jobs[1]];
    assert!(matches!(&a.extension.place, Placement::ParallelUnits(ranges) if ranges.len() == 2));
    assert_eq!(b.extension.place, Placement::All);
    assert_ne!(a.extension.layout, b.extension.layout);
    assert_eq!((a.response(), b.response()), (Response::Issued, Response::Intended));
    assert_eq!(equivalent_command(a), "fio --name=a  # without ocssd: layout=chunk place=pu:0-3,8");
}

#[test]
fn a_command_line_is_read_as_fio_reads_it() {
    let parsed = command(
        "fio --output=o.json --output-format json,json+ --eta=never -bs 8k --name=a --rw randread --time_based \
         --runtime=5 --direct 1 --name b --readwrite=write --ocssd place=group:1",
    )
    .expect("valid");
    assert_eq!(names(&parsed), ["a", "b"]);
    assert_eq!(parsed.program.output.as_deref(), Some("o.json"));
    assert_eq!(parsed.program.output_formats, [OutputFormat::Json, OutputFormat::JsonPlus]);
    assert_eq!(parsed.program.eta, Eta::Never);
    assert!(parsed.jobs.iter().all(|job| job.options.block_sizes.read == BlockSizes::Fixed(8192)));
    assert_eq!(
        pairs(&parsed.jobs[0].own),
        [("rw", "randread"), ("time_based", ""), ("runtime", "5"), ("direct", "1")]
    );
    assert!(matches!(parsed.jobs[1].extension.place, Placement::Groups(_)));
    let again = "fio --name=a --bs=8k --rw=randread --time_based --runtime=5 --direct=1";
    assert_eq!(equivalent_command(&parsed.jobs[0]), again);
}

#[test]
fn job_files_on_a_command_line_come_after_its_jobs_and_keep_their_globals() {
    let parsed = command("--size=1g --name=c a.fio b.fio").expect("valid");
    assert_eq!(names(&parsed), ["c", "a1", "a2", "b1", "b2"]);
    let stonewalled: Vec<bool> = parsed.jobs.iter().map(|job| job.options.stonewall).collect();
    assert_eq!(stonewalled, [false, false, false, true, false]);
    assert!(parsed.jobs.iter().all(|job| job.options.size == Some(Amount::Bytes(1 << 30))));
    let sizes: Vec<u64> = parsed.jobs.iter().map(|job| job.options.block_sizes.read.max_bytes()).collect();
    assert_eq!(sizes, [4096, 8192, 8192, 4096, 4096]);
    let parsed = command("a.fio b.fio --section=a2 --section b1").expect("valid");
    assert_eq!(names(&parsed), ["a2", "b1"]);
}

#[test]
fn a_section_that_starts_with_global_is_global_and_a_name_can_be_overridden() {
    let parsed = valid("[global_read]\nbs=8k\n[a]\nname=other\n[b]\nwait_for=other\n");
    assert_eq!(names(&parsed), ["other", "b"]);
    assert_eq!(parsed.jobs[1].options.block_sizes.read, BlockSizes::Fixed(8192));
    assert!(parsed.notes.iter().any(|note| note.sentence.contains("read as [global]")));
}

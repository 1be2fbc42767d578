//! Files that jobs ask for beside the result, files that they replay, and seeds that are another every time.

use crate::program::Program;

const JOB: &str = "--drive tiny --quiet --rw=randread --bs=4k --size=1m --io_size=8000k --iodepth=4";

fn lines(program: &Program, name: &str) -> Vec<String> {
    let path = program.path(&format!("ocssd-results/{name}"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn logs_lie_beside_the_result_under_fios_names() {
    let program = Program::new();
    program.good(&format!(
        "run {JOB} --numjobs=2 --write_bw_log=b --write_hist_log=h --log_hist_msec=10 --write_iolog=io.log --name=j"
    ));
    for name in ["b_bw.1.log", "b_bw.2.log"] {
        assert_eq!(lines(&program, name)[0].split(", ").count(), 5, "{name}");
    }
    for name in ["h_clat_hist.1.log", "h_clat_hist.2.log"] {
        assert_eq!(lines(&program, name)[0].split(", ").count(), 3 + 1856, "{name}");
    }
    let log = lines(&program, "io.log");
    assert_eq!(log[0], "fio version 3 iolog");
    assert_eq!(log.iter().filter(|line| line.contains(" read ")).count(), 4000);
    let shared = Program::new();
    shared.good(&format!("run {JOB} --numjobs=2 --write_bw_log=b --per_job_logs=0 --name=j"));
    assert_eq!(lines(&shared, "b_bw.log").len(), 2);
}

#[test]
fn a_recorded_log_is_replayed_from_its_file() {
    let program = Program::new();
    program.good(&format!("run {JOB} --write_iolog=io.log --name=j"));
    let replay = "run --drive tiny --json --iodepth=4 --name=r";
    let again = program.json(&format!("{replay} --read_iolog=ocssd-results/io.log"));
    let read = &again["jobs"][0]["read"];
    assert_eq!((&read["total_ios"], &read["io_bytes"]), (&2000.into(), &(2000 * 4096).into()));
    let missing = program.run(&format!("{replay} --read_iolog=nowhere.log"));
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("cannot read the log"), "{}", missing.err);
    program.write("bad.log", b"fio version 3 iolog\n0 /f read 0\n");
    let bad = program.run(&format!("{replay} --read_iolog=bad.log"));
    assert!(bad.code == 2 && bad.err.contains("bad.log:2"), "{}", bad.err);
}

#[test]
fn a_job_that_does_not_repeat_says_how_to_repeat_it() {
    let program = Program::new();
    let run = |more: &str| {
        let result = program.json(&format!("run {JOB} --json {more} --name=j"));
        let notes = result["ocssd"]["notes"].as_array().expect("a list of notes").clone();
        let seed = notes.iter().find_map(|note| {
            let (_, rest) = note.as_str()?.split_once("randseed=")?;
            Some(rest.split(' ').next()?.to_owned())
        });
        (result["ocssd"]["trace_hash"].clone(), seed)
    };
    let (first, seed) = run("--randrepeat=0");
    let (second, other) = run("--randrepeat=0");
    assert!(first != second && seed != other, "two runs drew the same: {seed:?}");
    let again = run(&format!("--randseed={}", seed.expect("the seed is told")));
    assert_eq!(again, (first, None));
    assert_eq!(run("").0, run("--randrepeat=1").0);
}

//! What `ocssd run` says: the verdict first, what limited it, nothing wider than a terminal, and all of it on demand.

use crate::program::Program;
use std::process::Command;

const READS: &str = "--name=reader --rw=randread --bs=4k --size=16m --number_ios=2000";

/// The sentence on what limited a run.
fn limit(arguments: &str) -> String {
    let result = Program::new().json(&format!("run --quiet --json {arguments}"));
    result["ocssd"]["limits"][0]
        .as_str()
        .expect("a run that did something was limited by something")
        .to_owned()
}

#[test]
fn a_run_fits_eighty_columns_and_has_the_verdict_first() {
    for arguments in [
        READS.to_owned(),
        format!(
            "--target pblk --drive qemu {READS} --name=a-second-job-with-a-long-name --rw=randwrite --bs=4k --size=16m"
        ),
        format!(
            "--drive tiny --name={} --rw=randread --bs=4k --size=1m --direct=1 --ioengine=libaio",
            "n".repeat(50)
        ),
    ] {
        let answer = Program::new().run(&format!("run --quiet {arguments}"));
        assert!(answer.out.starts_with("verdict: "), "{}", answer.out);
        let widest: Vec<&str> = answer.out.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(widest.is_empty(), "wider than 80 columns: {widest:#?} in\n{}", answer.out);
    }
}

#[test]
fn hash_counters_and_fios_command_are_told_on_demand() {
    let program = Program::new();
    let arguments = format!("run --quiet --drive qemu --target pblk {READS}");
    let (brief, verbose) = (program.good(&arguments), program.good(&format!("{arguments} --verbose")));
    let hash = program.good(&format!("{arguments} --print hash"));
    let hash = hash.trim().trim_start_matches("trace hash ");
    for words in [hash, "    fio --name=reader", "host_cpu_ns", "capacity_bytes: "] {
        assert!(!brief.contains(words), "{words} in\n{brief}");
        assert!(verbose.contains(words), "{words} is missing in\n{verbose}");
    }
    assert!(brief.contains("--verbose"), "nothing says where the rest is:\n{brief}");
}

#[test]
fn the_command_to_run_it_again_can_be_pasted() {
    let program = Program::new();
    let arguments =
        format!("run --quiet --drive qemu {READS} --description=as_long_as_it_takes_to_be_folded");
    let brief = program.good(&arguments);
    let start = brief.find("run again: ocssd").expect("it says how") + "run again: ocssd".len();
    let end = brief.find("\ntook ").expect("it says how long");
    let command = &brief[start..end];
    assert!(command.contains("\\\n"), "{command}");
    let output = Command::new("sh")
        .args(["-c", &format!("'{}'{command} --print hash", env!("CARGO_BIN_EXE_ocssd"))])
        .output()
        .expect("there is a shell");
    let again = String::from_utf8(output.stdout).expect("it says text");
    assert_eq!(again, program.good(&format!("{arguments} --print hash")));
}

#[test]
fn what_limited_a_run_is_what_was_busy() {
    let reads = "--rw=randread --bs=4k --size=256m --time_based --runtime=20ms";
    let shallow = limit(&format!("--name=r {reads}"));
    assert!(shallow.starts_with("limited by queue depth: 1.0 I/Os in flight (busy: media "), "{shallow}");
    let sequential =
        limit("--name=r --rw=read --bs=64k --size=256m --iodepth=256 --time_based --runtime=20ms");
    assert!(
        sequential.starts_with("limited by channels, ") && sequential.contains(" % busy (media "),
        "{sequential}"
    );
    let buffered = limit("--target pblk --name=w --rw=randwrite --bs=4k --size=64m --number_ios=5000");
    assert!(buffered.starts_with("limited by host threads, 100 % busy"), "{buffered}");
    let paced = limit(&format!("--name=r {reads} --iodepth=4 --rate_iops=1000"));
    assert!(paced.starts_with("limited by its own rate or thinktime"), "{paced}");
    let crowded = limit("--name=r --rw=randread --bs=4k --size=64k --iodepth=8 --time_based --runtime=20ms");
    assert!(crowded.starts_with("limited by unit g0/p0: "), "{crowded}");
}

#[test]
fn text_fits_a_terminal_of_80_columns() {
    let program = Program::new();
    for arguments in [
        "simulate --size tiny --seeds 0..4",
        "simulate --exhaustive --steps 3 --seeds 0..1",
        "inspect qemu",
        "inspect qemu geometry",
        "presets",
        "experiment list",
        "targets",
        "run --quiet --drive qemu --target pblk --name=a --rw=randrw --bs=4k --size=4m",
    ] {
        let said = program.good(arguments);
        let long: Vec<&str> = said.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{arguments}: {long:#?}");
    }
}

/// Goal: a disk that is full at the end costs the file, not the result. Method: a file that takes nothing, and a kept result whose
/// place is taken.
#[test]
fn a_result_that_cannot_be_written_is_shown() {
    let program = Program::new();
    std::fs::create_dir_all(program.path("taken/a.json")).expect("a folder of the test's own");
    for (options, words) in [
        ("--output=/dev/full", "/dev/full cannot be written, so the result is shown here"),
        ("--results taken", "taken cannot be written; choose a directory with --results"),
        ("--metrics /dev/full", "/dev/full cannot be written; name another file with --metrics"),
    ] {
        let job = "--name=a --rw=randread --bs=4k --size=16m";
        let answer = program.run(&format!("run --quiet --drive qemu {options} {job}"));
        assert_eq!(answer.code, 2, "{options}: {}{}", answer.out, answer.err);
        assert!(answer.out.starts_with("verdict: pass\n"), "{options} lost the result: {}", answer.out);
        assert!(answer.err.contains(words), "{options}: {}", answer.err);
    }
}

#[test]
fn a_terminal_gets_colour_unless_no_color_is_set() {
    let run = |no_color: &str| {
        let line = format!("'{}' run --quiet --drive qemu {READS}", env!("CARGO_BIN_EXE_ocssd"));
        let program = Program::new();
        let mut command = Command::new("script");
        command.current_dir(program.path(".")).args(["--quiet", "--command", &line, "/dev/null"]);
        let output = command.env("TERM", "xterm").env("NO_COLOR", no_color).output();
        String::from_utf8(output.expect("`script` (bsdutils) gives a program a terminal").stdout)
            .expect("it says text")
    };
    let (painted, plain) = (run(""), run("1"));
    assert!(painted.starts_with("verdict: \u{1b}[1;32mpass\u{1b}[0m"), "{painted:?}");
    assert!(plain.starts_with("verdict: pass"), "{plain:?}");
}

/// The commands under `Examples:` of a help.
fn examples(help: &str) -> Vec<String> {
    let (_, examples) = help.split_once("Examples:\n").expect("the help has examples");
    examples.lines().map(str::trim).take_while(|line| line.starts_with("ocssd ")).map(str::to_owned).collect()
}

#[test]
fn the_examples_of_the_help_can_be_pasted() {
    for (help, least) in [("--help", 3), ("run --help", 7), ("lint --help", 4), ("plot --help", 3)] {
        let program = Program::new();
        let examples = examples(&program.good(help));
        assert!(examples.len() >= least, "{help} lost its examples: {examples:?}");
        for example in examples {
            let line = example.replacen("ocssd", &format!("'{}'", env!("CARGO_BIN_EXE_ocssd")), 1);
            let output = Command::new("sh").current_dir(program.path(".")).args(["-c", &line]).output();
            let output = output.expect("there is a shell");
            // 1 is a finding of the linter; 2 is what must not be: input that cannot be used.
            let is_usable = output.status.code().is_some_and(|code| code < 2);
            assert!(is_usable, "`{example}` said: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn a_result_is_drawn_and_what_cannot_be_drawn_is_refused() {
    let program = Program::new();
    program.good(&format!("run --quiet --drive qemu {READS} --name=writer --rw=write --bs=64k --size=4m"));
    let drawn = program.good("plot ocssd-results/reader.json --out a.svg --job reader --title Tails");
    assert_eq!(drawn, "drawn: a.svg\n");
    let picture = std::fs::read_to_string(program.path("a.svg")).expect("it was drawn");
    for text in ["Tails", "reader", "p99", "ocssd run --drive qemu"] {
        assert!(picture.contains(text), "{text} is missing in the picture");
    }
    // 2000 reads carry no p99.9, and the other job was not asked for.
    assert!(!picture.contains("p99.9") && !picture.contains(">writer<"), "{picture}");
    program.write("other.json", b"{}");
    for (arguments, words) in [
        ("plot ocssd-results/reader.json --job bogus", "its jobs are: reader, writer"),
        ("plot none.json", "none.json cannot be read"),
        ("plot other.json", "it has no \"jobs\""),
        ("plot ocssd-results/reader.json --out a.gif", "a picture is .svg or .png"),
    ] {
        let answer = program.run(arguments);
        assert!(answer.code == 2 && answer.err.contains(words), "{arguments}: {}", answer.err);
    }
}

/// A file of the repository.
fn repository(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_readmes_first_run_is_what_the_program_prints() {
    let readme = repository("README.md");
    let (_, rest) = readme
        .split_once("<!-- readme: ocssd run -->\n```console\n$ ocssd run\n")
        .expect("the block is there");
    let (shown, _) = rest.split_once("\ntook ").expect("it ends with how long that took");
    let printed = Program::new().good("run --quiet");
    let (printed, _) = printed.split_once("\ntook ").expect("it ends with how long that took");
    assert_eq!(shown, printed, "README.md shows another first run: put what `ocssd run` prints there");
}

#[test]
fn the_readmes_picture_is_what_its_commands_draw() {
    let readme = repository("README.md");
    let start = readme.find("ocssd run examples/isolation.fio\nocssd plot").expect("the commands are there");
    let (commands, _) = readme[start..].split_once("\n```").expect("they end");
    let program = Program::new();
    std::fs::create_dir_all(program.path("examples")).expect("the folder can be written");
    std::fs::create_dir_all(program.path("docs/pictures")).expect("the folder can be written");
    program.write("examples/isolation.fio", repository("examples/isolation.fio").as_bytes());
    let commands = commands.replace("\nocssd", "\n\"$OCSSD\"").replacen("ocssd", "\"$OCSSD\"", 1);
    let mut shell = Command::new("sh");
    let output = shell
        .current_dir(program.path("."))
        .env("OCSSD", env!("CARGO_BIN_EXE_ocssd"))
        .args(["-c", &commands]);
    assert!(output.output().expect("there is a shell").status.success(), "{commands}");
    let drawn = std::fs::read_to_string(program.path("docs/pictures/isolation.svg")).expect("it was drawn");
    let is_same = drawn == repository("docs/pictures/isolation.svg");
    assert!(is_same, "docs/pictures/isolation.svg is out of date: run the commands below it in README.md");
}

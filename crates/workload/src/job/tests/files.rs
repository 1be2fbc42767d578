//! Whole job files: our own, and fio's examples where they are installed.

use std::path::Path;

use super::read;
use crate::job::parse_job_file;

/// Our own files, each in the style of a use that people have.
pub const OWN_FILES: [(&str, &str); 6] = [
    ("random_read.fio", include_str!("../../../tests/jobs/random_read.fio")),
    ("mixed_split.fio", include_str!("../../../tests/jobs/mixed_split.fio")),
    ("write_verify.fio", include_str!("../../../tests/jobs/write_verify.fio")),
    ("open_loop.fio", include_str!("../../../tests/jobs/open_loop.fio")),
    ("zoned.fio", include_str!("../../../tests/jobs/zoned.fio")),
    ("isolation.fio", include_str!("../../../tests/jobs/isolation.fio")),
];

/// Where Linux distributions put fio's examples.
const EXAMPLES: &str = "/usr/share/doc/fio/examples";

#[test]
fn our_own_files_parse() {
    for (name, text) in OWN_FILES {
        let parsed = read(text).unwrap_or_else(|errors| panic!("{name}:\n{errors}"));
        assert!(!parsed.jobs.is_empty(), "{name}");
    }
}

/// Whether an error says that something is out of reach here, and not that the file is wrong.
fn is_out_of_reach(message: &str) -> bool {
    ["is refused", "not implemented yet", "this engine needs", "depends on the machine"]
        .iter()
        .any(|words| message.contains(words))
}

/// Goal: fio's examples that need only what is implemented or noted are read. The files are read where installed only.
#[test]
fn fios_examples_in_reach_parse() {
    let Ok(folder) = std::fs::read_dir(EXAMPLES) else {
        println!(
            "SKIPPED: fio's examples are not at {EXAMPLES}; install fio's documentation to run this test"
        );
        return;
    };
    let mut paths: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "fio"));
    paths.sort();
    let (mut read_count, mut out_of_reach) = (0, 0);
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a readable example");
        let include =
            |name: &str| std::fs::read_to_string(Path::new(EXAMPLES).join(name)).map_err(|e| e.to_string());
        match parse_job_file(&text, &path.display().to_string(), &|_| None, &include) {
            Ok(_) => read_count += 1,
            // A template asks for an environment that is not here.
            Err(_) if text.contains("${") => out_of_reach += 1,
            Err(errors) => {
                assert!(errors.0.iter().any(|error| is_out_of_reach(&error.message)), "{errors}");
                out_of_reach += 1;
            }
        }
    }
    println!("{read_count} of fio's examples are read, {out_of_reach} use what is refused");
    assert!(read_count > 0, "{EXAMPLES} has no example that is read");
}

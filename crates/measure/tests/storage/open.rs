//! What can be opened, and the sentence for what cannot.

use super::jobs::temporary;
use ocssd_measure::storage::{Subject, SubjectKind, SubjectOptions, SystemRoot};
use std::path::{Path, PathBuf};

fn options(path: &Path) -> SubjectOptions {
    SubjectOptions { path: path.to_owned(), bytes: None, overwrite: false, serial: None, direct: true }
}

fn refusal(options: &SubjectOptions) -> String {
    let opened = Subject::open(options, &SystemRoot::default());
    opened.map(|_| ()).expect_err("it must be refused").to_string()
}

fn file(name: &str, bytes: u64) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ocssd-open-{name}-{}", std::process::id()));
    let made = std::fs::File::create(&path).expect("a temporary file can be made");
    made.set_len(bytes).expect("a file can be made longer");
    path
}

#[test]
fn a_temporary_file_has_no_name_from_the_beginning() {
    let before = names();
    let subject = temporary();
    assert_eq!((subject.kind, subject.writable, subject.bytes), (SubjectKind::Temporary, true, 16 << 20));
    assert_eq!(names(), before, "nothing can be left behind");
}

/// Files of a profile of this process in the temporary directory.
fn names() -> Vec<String> {
    let entries = std::fs::read_dir(std::env::temp_dir()).expect("the temporary directory can be listed");
    let own = format!(".ocssd-profile-{}", std::process::id());
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| *name == own).collect()
}

#[test]
fn what_cannot_be_profiled_is_refused_with_a_sentence() {
    let missing = Path::new("/nowhere/at/all");
    assert!(refusal(&options(missing)).contains("name a directory, a file or a block device"));
    assert!(
        refusal(&options(Path::new("/dev/null"))).contains("neither a directory, a file nor a block device")
    );
    let tiny = file("tiny", 4096);
    assert!(refusal(&options(&tiny)).contains("fewer than the 16777216 a profile needs"));
    std::fs::remove_file(tiny).expect("own files can be removed");
    let huge = SubjectOptions { bytes: Some(1 << 60), ..options(&std::env::temp_dir()) };
    assert!(refusal(&huge).contains("lower --size"));
}

#[test]
fn an_existing_file_is_only_read_unless_that_is_asked_for() {
    let path = file("existing", 32 << 20);
    let subject = Subject::open(&options(&path), &SystemRoot::default()).expect("a file can be opened");
    assert!(
        !subject.writable && subject.notes.iter().any(|note| note.contains("--overwrite")),
        "{subject:?}"
    );
    let asked = SubjectOptions { overwrite: true, ..options(&path) };
    let subject = Subject::open(&asked, &SystemRoot::default()).expect("a file can be opened");
    assert_eq!((subject.writable, subject.kind, subject.bytes), (true, SubjectKind::File, 32 << 20));
    std::fs::remove_file(path).expect("own files can be removed");
}

#[test]
fn memory_is_said_to_be_no_drive() {
    let shared = Path::new("/dev/shm");
    assert!(shared.is_dir(), "Linux has a tmpfs there");
    let asked = SubjectOptions { bytes: Some(16 << 20), ..options(shared) };
    let subject = Subject::open(&asked, &SystemRoot::default()).expect("tmpfs takes a file");
    assert!(subject.notes.iter().any(|note| note.contains("it is memory, and no drive")), "{subject:?}");
}

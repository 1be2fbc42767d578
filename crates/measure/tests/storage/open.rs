//! What can be opened, and the sentence for what cannot.

use ocssd_measure::storage::{
    DeviceNumber, FileCounts, IoAccounting, Subject, SubjectKind, SubjectOptions, SystemRoot,
};
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

/// A directory of a test's own, empty.
fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ocssd-open-{name}-{}", std::process::id()));
    std::fs::create_dir(&path).expect("a temporary directory can be made");
    path
}

#[test]
fn a_temporary_file_has_no_name_from_the_beginning() {
    let place = directory("unnamed");
    let wanted = SubjectOptions { bytes: Some(16 << 20), ..options(&place) };
    let subject = Subject::open(&wanted, &SystemRoot::default()).expect("a temporary file can be made");
    assert_eq!((subject.kind, subject.writable, subject.bytes), (SubjectKind::Temporary, true, 16 << 20));
    let left = std::fs::read_dir(&place).expect("own directories can be listed").count();
    assert_eq!(left, 0, "whatever happens now, nothing is left behind");
    std::fs::remove_dir(place).expect("own directories can be removed");
}

/// A system whose kernel counted no byte of this process, with the disk below `device` if there is one.
fn silent_system(root: &Path, device: Option<DeviceNumber>) -> SystemRoot {
    let process = root.join("proc/self");
    std::fs::create_dir_all(&process).expect("own directories can be made");
    std::fs::write(process.join("io"), "read_bytes: 0\nwrite_bytes: 0\n").expect("own files can be written");
    if let Some(DeviceNumber { major, minor }) = device {
        let disk = root.join(format!("sys/dev/block/{major}:{minor}"));
        std::fs::create_dir_all(&disk).expect("own directories can be made");
        std::fs::write(disk.join("stat"), "0 0 0 0 0 0 0 0").expect("own files can be written");
    }
    SystemRoot::at(root)
}

#[test]
fn reads_that_the_kernel_did_not_count_say_nothing_where_no_block_device_is_below() {
    let path = file("attested", 16 << 20);
    let device = Subject::open(&options(&path), &SystemRoot::default()).expect("a file can be opened").device;
    let asked = FileCounts { read_bytes: 1 << 20, transfers: 1, ..FileCounts::default() };
    let expected = [("no-disk", None, None), ("disk", Some(device), Some((0, 0)))];
    for (name, below, process) in expected {
        let root = directory(name);
        let system = silent_system(&root, below);
        let subject = Subject::open(&options(&path), &system).expect("a file can be opened");
        let seen = IoAccounting::new(system, subject.device).attest(&subject, asked);
        assert_eq!(seen.process, process, "{name}: what a process read");
        std::fs::remove_dir_all(root).expect("own directories can be removed");
    }
    std::fs::remove_file(path).expect("own files can be removed");
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

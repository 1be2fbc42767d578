//! Real block devices: loop devices, which root may make (util-linux). Who is not root gets what the guard says of made-up systems
//! from its own tests, and here it is asserted that loop devices cannot be had for that reason alone.

use super::jobs::{LAY_OUT, carry_out};
use ocssd_measure::storage::{
    DeviceNumber, Engine, Subject, SubjectError, SubjectKind, SubjectOptions, SystemRoot,
};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop device over a file of its own, for as long as it lives.
struct Loop {
    device: PathBuf,
    folder: PathBuf,
}

impl Loop {
    /// One of 16 MiB; `None` for who is not root.
    fn new(name: &str) -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("ocssd-loop-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder can be made");
        let file = folder.join("file");
        let made = File::create(&file).expect("a temporary file can be made");
        made.set_len(16 << 20).expect("a file can be made longer");
        let answer = Command::new("losetup").args(["--find", "--show", "--partscan"]).arg(&file).output();
        let answer = answer.expect("util-linux is part of every system");
        if !answer.status.success() {
            fs::remove_dir_all(&folder).expect("own files can be removed");
            let is_root = fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0);
            let said = String::from_utf8_lossy(&answer.stderr).into_owned();
            assert!(!is_root, "root may have loop devices, or this machine gives none to containers: {said}");
            eprintln!(
                "{name}: no loop device without root, so only the guard's own tests say something: {said}"
            );
            return None;
        }
        let device = PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim());
        Some(Self { device, folder })
    }

    fn number(&self) -> DeviceNumber {
        DeviceNumber::of(fs::metadata(&self.device).expect("it is there").rdev())
    }

    fn options(&self, serial: Option<&str>) -> SubjectOptions {
        let serial = serial.map(str::to_owned);
        SubjectOptions { path: self.device.clone(), bytes: None, overwrite: false, serial, direct: true }
    }

    /// What the guard would see, if the device had a serial number; nothing uses it there, whatever is really so.
    fn with_serial(&self) -> SystemRoot {
        let root = self.folder.join("root");
        let DeviceNumber { major, minor } = self.number();
        let device = root.join(format!("sys/dev/block/{major}:{minor}"));
        fs::create_dir_all(&device).expect("own folders can be made");
        for (name, text) in [("stat", "0 0 0 0 0 0 0 0 0 0 0"), ("serial", "LOOP1"), ("size", "32768")] {
            fs::write(device.join(name), text).expect("own files can be written");
        }
        SystemRoot::at(&root)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // What cannot be taken down is left, and the system says so when it shuts down.
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).status();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn refusal(options: &SubjectOptions, system: &SystemRoot) -> SubjectError {
    Subject::open(options, system).map(|_| ()).expect_err("it must be refused")
}

#[test]
fn a_device_is_only_read_without_its_serial_number() {
    let Some(device) = Loop::new("read") else { return };
    let subject = Subject::open(&device.options(None), &SystemRoot::default()).expect("it can be read");
    assert_eq!((subject.kind, subject.writable, subject.bytes), (SubjectKind::Device, false, 16 << 20));
    assert!(subject.notes.iter().any(|note| note.contains("writes need --serial")), "{:?}", subject.notes);
    let text = "--name=r --rw=randread --bs=4k --iodepth=8 --size=16m --number_ios=500 --norandommap";
    let (read, _) = carry_out(&subject, Engine::Best, text, 4096, false);
    assert_eq!((read.read.total_ios, read.error), (500, 0));
    let refused = refusal(&device.options(Some("X")), &SystemRoot::default()).to_string();
    assert!(refused.contains("knows no serial number"), "a loop device has none: {refused}");
}

#[test]
fn a_device_with_a_partition_is_never_written() {
    let Some(device) = Loop::new("part") else { return };
    let partition = |arguments: &[&str]| {
        let name = arguments[0];
        let done = Command::new(name).arg(&device.device).args(&arguments[1..]).status();
        assert!(done.expect("util-linux is part of every system").success(), "{arguments:?}");
    };
    partition(&["addpart", "1", "2048", "8192"]);
    let refused = refusal(&device.options(Some("X")), &SystemRoot::default()).to_string();
    partition(&["delpart", "1"]);
    assert!(refused.contains("has partitions (loop") && refused.contains("never written"), "{refused}");
}

#[test]
fn the_kernel_refuses_what_another_has_for_itself_whatever_the_system_says() {
    let Some(device) = Loop::new("held") else { return };
    let system = device.with_serial();
    // O_EXCL, which file systems, swap and holders have their devices opened with.
    let exclusive = 0o200;
    let held = File::options().read(true).custom_flags(exclusive).open(&device.device);
    let held = held.expect("nobody else has it");
    let refused = refusal(&device.options(Some("LOOP1")), &system).to_string();
    assert!(refused.contains("cannot be opened") && refused.contains("busy"), "{refused}");
    drop(held);
    assert!(refusal(&device.options(Some("LOOP2")), &system).to_string().contains("this is another device"));
    let subject = Subject::open(&device.options(Some("LOOP1")), &system).expect("its serial was typed");
    assert!(subject.writable && subject.direct, "{subject:?}");
    let (written, _) = carry_out(&subject, Engine::Best, LAY_OUT, 4096, false);
    assert_eq!((written.write.total_ios, written.error), (16, 0));
    let text = "--name=r --rw=randread --bs=4k --iodepth=8 --size=16m --number_ios=500 --norandommap";
    let (read, counts) = carry_out(&subject, Engine::Best, text, 4096, true);
    assert_eq!((read.error, counts.checked, counts.foreign), (0, 500, 0));
}

#[test]
fn a_device_that_goes_away_fails_its_job_with_the_kernels_error() {
    let Some(device) = Loop::new("gone") else { return };
    let subject = Subject::open(&device.options(None), &SystemRoot::default()).expect("it can be read");
    // The file below ends: reads beyond are errors of the device, as those of one that was pulled out are.
    shorten(&device.folder.join("file"));
    let text = "--name=r --rw=randread --bs=4k --iodepth=8 --size=16m --number_ios=500 --norandommap";
    for engine in [Engine::Best, Engine::Threads] {
        let (read, _) = carry_out(&subject, engine, text, 4096, false);
        assert_eq!((read.error, read.read.total_ios), (5, 0), "{engine:?}: EIO, and nothing was read");
    }
}

fn shorten(path: &Path) {
    let file = File::options().write(true).open(path).expect("own files can be written");
    file.set_len(0).expect("a file can be made shorter");
}

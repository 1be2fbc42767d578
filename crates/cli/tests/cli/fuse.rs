//! Served drives as files in a directory, by the programs that people use on files: dd, cp, cmp, fio, losetup, mkfs.
//!
//! Needs `/dev/fuse` and the right to mount; the server says so in a sentence where they are missing, and these tests show it.

use crate::program::Program;
use crate::serve::{DRIVE, Served, TARGET, document};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The file of the only export, in the program's folder.
const DISK: &str = "mnt/disk";

/// A served directory, which is taken away even if the test fails.
struct Mounted<'a> {
    served: Option<Served<'a>>,
    folder: PathBuf,
}

impl<'a> Mounted<'a> {
    fn start(program: &'a Program, arguments: &str) -> Self {
        // After a kill it is there, and does not answer.
        let made = std::fs::create_dir(program.path("mnt"));
        assert!(made.is_ok() || made.is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists));
        let served = Served::start_at(program, &format!("--fuse mnt {arguments}"));
        Self { served: Some(served), folder: program.path("mnt") }
    }

    fn served(&mut self) -> &mut Served<'a> {
        self.served.as_mut().expect("it was not stopped")
    }

    fn run(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.served().client(words[0], &words[1..])
    }

    fn fails(&mut self, line: &str, part: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = self.served().try_client(words[0], &words[1..]);
        assert!(answer.code != 0 && answer.err.contains(part), "{line}: {} {}", answer.code, answer.err);
    }

    fn bytes(&mut self) -> u64 {
        self.served().serving["serving"][0]["bytes"].as_u64().expect("a number")
    }

    fn disk(&self) -> File {
        let opened = OpenOptions::new().read(true).write(true).open(self.folder.join("disk"));
        opened.expect("the file is there")
    }

    /// Stops it as people do; the directory is as it was, and nothing was wrong.
    fn stop(mut self) -> Value {
        let counted = self.served.take().expect("it was not stopped").stop();
        let mut left = std::fs::read_dir(&self.folder).expect("the directory answers");
        assert!(left.next().is_none(), "it is unmounted");
        counted
    }

    /// `kill -9`: nobody unmounts.
    fn kill(mut self) {
        let mut served = self.served.take().expect("it was not stopped");
        served.child.kill().expect("it runs");
        served.child.wait().expect("it can be waited for");
        // What is left behind is for the next server.
        self.folder = PathBuf::new();
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        drop(self.served.take());
        if std::thread::panicking() {
            // Nothing is mounted any more, unless the test failed.
            let _ = Command::new("umount").arg("-l").arg(&self.folder).output();
        }
    }
}

/// Bytes that differ from place to place.
fn pattern(count: usize, seed: usize) -> Vec<u8> {
    (0..count).map(|at| u8::try_from((at * 31 + at / 997 + seed * 7) % 251).expect("below 251")).collect()
}

#[test]
fn a_file_is_as_large_as_its_export_and_carries_data_there_and_back() {
    let program = Program::new();
    let mut mounted = Mounted::start(&program, &format!("--drive tiny {DRIVE} {TARGET}"));
    let bytes = mounted.bytes();
    let about = std::fs::metadata(program.path(DISK)).expect("it is there");
    assert_eq!((about.len(), about.mode()), (bytes, 0o100_644));
    assert_eq!(mounted.run("ls mnt"), "disk\n");
    assert_eq!(mounted.run("stat -f -c %s mnt").trim(), "4096");
    let data = pattern(usize::try_from(bytes).expect("small"), 1);
    program.write("there", &data);
    // cp opens with O_TRUNC, which a file of fixed size takes as a block device does.
    mounted.run("cp there mnt/disk");
    mounted.run("cmp there mnt/disk");
    mounted.run("dd if=mnt/disk of=back bs=1M iflag=direct status=none");
    mounted.run("cmp there back");
    mounted.run("dd if=there of=mnt/disk bs=64k oflag=direct conv=notrunc,fsync status=none");
    mounted.run("dd if=mnt/disk of=odd bs=777 skip=100 count=99 status=none");
    assert!(std::fs::read(program.path("odd")).expect("written") == data[77_700..77_700 + 99 * 777]);
    let counted = mounted.stop();
    let copies = &counted["copies_per_byte"];
    assert_eq!((&copies["write"], &copies["read"]), (&0.0.into(), &0.0.into()), "{counted}");
    assert_eq!(counted["stats"]["errors"], 0);
}

#[test]
fn bytes_and_holes_of_any_place_and_length_are_what_a_plain_file_would_hold() {
    let program = Program::new();
    let mut mounted = Mounted::start(&program, &format!("--drive tiny {DRIVE} {TARGET}"));
    let size = usize::try_from(mounted.bytes()).expect("small").min(2 << 20);
    let mut model = vec![0; size];
    let seed = 20_261_122_u64;
    let mut state = seed;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % limit
    };
    let disk = mounted.disk();
    for step in 0..120 {
        let first = below(size);
        let longest = if step % 10 == 0 { 400_000 } else { 3000 };
        let count = (1 + below(longest)).min(size - first);
        match below(6) {
            0 => {
                let kind = if step % 2 == 0 { "--punch-hole" } else { "--zero-range" };
                mounted.run(&format!("fallocate {kind} --offset {first} --length {count} {DISK}"));
                model[first..first + count].fill(0);
            }
            1 => {
                let mut found = vec![0; count];
                disk.read_exact_at(&mut found, u64::try_from(first).expect("small")).expect("it is there");
                assert!(found == model[first..first + count], "step {step} of seed {seed}");
            }
            _ => {
                let data = pattern(count, step);
                disk.write_all_at(&data, u64::try_from(first).expect("small")).expect("it fits");
                model[first..first + count].copy_from_slice(&data);
            }
        }
    }
    drop(disk);
    // A fresh opening forgets what the kernel kept, so this is what the server has.
    let mut found = vec![0; size];
    mounted.disk().read_exact_at(&mut found, 0).expect("it is there");
    assert!(found == model, "seed {seed}");
    let counted = mounted.stop();
    let stats = &counted["stats"];
    assert!(stats["trims"].as_u64() > Some(0) && stats["zeroes"].as_u64() > Some(0), "{stats}");
    assert_eq!(stats["errors"], 0);
}

#[test]
fn fio_verifies_what_many_direct_requests_wrote_at_once() {
    let program = Program::new();
    let mut mounted = Mounted::start(&program, &format!("--drive tiny {DRIVE} {TARGET}"));
    let job = "--ioengine=libaio --direct=1 --rw=randwrite --bsrange=512-96k --iodepth=16 --size=6m";
    let line =
        format!("fio --output-format=json --filename={DISK} --name=a {job} --verify=crc32c --fsync=64");
    let out = mounted.run(&line);
    let result: Value = serde_json::from_str(&out[out.find('{').expect("JSON")..]).expect("JSON");
    assert_eq!(result["jobs"][0]["error"], 0, "{out}");
    let counted = mounted.stop();
    assert_eq!((&counted["stats"]["errors"], &counted["copies_per_byte"]["write"]), (&0.into(), &0.0.into()));
    assert!(counted["stats"]["flushes"].as_u64() > Some(2), "{counted}");
}

#[test]
fn what_was_synced_survives_a_kill_and_the_directory_is_served_again() {
    let program = Program::new();
    program.good(&format!("format a.img --drive tiny {DRIVE}"));
    let arguments = format!("--drive a.img {TARGET}");
    for round in 0..3 {
        let data = pattern(300_001, round);
        let mounted = Mounted::start(&program, &arguments);
        let disk = mounted.disk();
        disk.write_all_at(&data, 4567).expect("it fits");
        disk.sync_data().expect("it is flushed");
        disk.write_all_at(&pattern(5000, 99), 1 << 20).expect("it fits");
        mounted.kill();
        assert!(File::open(program.path(DISK)).is_err(), "nobody answers");
        drop(disk);
        let mut again = Mounted::start(&program, &arguments);
        let notes = again.served().serving["notes"].to_string();
        assert!(notes.contains("server that was killed"), "{notes}");
        let mut found = vec![0; data.len()];
        again.disk().read_exact_at(&mut found, 4567).expect("it is there");
        assert!(found == data, "round {round}");
        again.stop();
    }
}

#[test]
fn a_loop_device_of_it_carries_a_file_system() {
    let program = Program::new();
    let mut mounted = Mounted::start(&program, &format!("--drive tiny {DRIVE} {TARGET}"));
    let answer =
        mounted.served().try_client("/usr/sbin/losetup", &["--find", "--show", "--direct-io=on", DISK]);
    assert_eq!(answer.code, 0, "losetup needs root and the kernel's loop devices: {}", answer.err);
    let device = answer.out.trim().to_owned();
    let made = mounted.served().try_client("/usr/sbin/mkfs.ext4", &["-q", "-F", "-E", "discard", &device]);
    let fill = mounted.served().try_client("/usr/sbin/debugfs", &["-w", "-R", "mkdir kept", &device]);
    let check = mounted.served().try_client("/usr/sbin/e2fsck", &["-f", "-n", &device]);
    mounted.run(&format!("/usr/sbin/losetup --detach {device}"));
    assert_eq!((made.code, fill.code, check.code), (0, 0, 0), "{}{}{}", made.err, fill.err, check.out);
    // And without the device: what it wrote is in the file.
    let check = mounted.run("/usr/sbin/debugfs -R ls mnt/disk");
    assert!(check.contains("kept"), "{check}");
    let counted = mounted.stop();
    assert!(counted["stats"]["trims"].as_u64() > Some(0), "mkfs discards: {counted}");
    assert_eq!(counted["stats"]["errors"], 0);
}

#[test]
fn a_file_keeps_its_size_and_the_directory_its_names() {
    let program = Program::new();
    let mut mounted = Mounted::start(&program, &format!("--drive tiny {DRIVE} {TARGET}"));
    let bytes = mounted.bytes();
    mounted.fails("truncate --size 0 mnt/disk", "ermi");
    mounted.fails("truncate --size 1T mnt/disk", "ermi");
    mounted.fails("touch mnt/other", "ermi");
    mounted.fails("rm -f mnt/disk", "ermi");
    mounted.fails("mv mnt/disk mnt/other", "ermi");
    mounted.fails("chmod 600 mnt/disk", "ermi");
    mounted.fails(&format!("fallocate --length {} mnt/disk", bytes + 512), "not supported");
    mounted
        .fails("dd if=/dev/zero of=mnt/disk bs=1M seek=1M count=1 conv=notrunc status=none", "No space left");
    let disk = mounted.disk();
    assert_eq!(disk.write_at(&[7; 1000], bytes - 300).expect("its beginning fits"), 300);
    assert_eq!(disk.read_at(&mut [0; 1000], bytes - 300).expect("it is there"), 300);
    assert_eq!(disk.read_at(&mut [0; 1000], bytes + 5).expect("nothing is there"), 0);
    drop(disk);
    mounted.run("touch --date=2020-01-02T03:04:05Z mnt/disk");
    assert_eq!(mounted.run("stat -c %Y mnt/disk").trim(), "1577934245");
    mounted.disk().write_all_at(&[1], 0).expect("it fits");
    assert_ne!(mounted.run("stat -c %Y mnt/disk").trim(), "1577934245", "a write is a change");
    assert_eq!(std::fs::metadata(program.path(DISK)).expect("it is there").len(), bytes);
    mounted.stop();
}

#[test]
fn several_exports_are_several_files_and_read_only_ones_are_not_written() {
    let program = Program::new();
    let drive = "--drive tiny --set chunks_per_pu=128 --set sectors_per_chunk=64";
    let target = "pblk:over_provisioning_percent=40";
    let exports = format!("--export left={target}@pu:0-1 --export right={target}@pu:2-3");
    let mut mounted = Mounted::start(&program, &format!("{drive} {exports} --read-only"));
    assert_eq!(mounted.run("ls mnt"), "left\nright\n");
    assert_eq!(mounted.run("stat -c %a mnt/right").trim(), "444");
    mounted.fails("dd if=/dev/zero of=mnt/right bs=512 count=1 conv=notrunc", "Read-only file system");
    mounted.run("cmp --bytes=1000000 mnt/left /dev/zero");
    mounted.stop();
}

#[test]
fn an_unmount_from_outside_ends_the_server_and_one_in_use_is_said() {
    let program = Program::new();
    let arguments = format!("--drive tiny {DRIVE} {TARGET}");
    let mut mounted = Mounted::start(&program, &arguments);
    mounted.run("umount mnt");
    let mut served = mounted.served.take().expect("it runs");
    assert!(served.child.wait().expect("it can be waited for").success(), "it ends as if it were asked to");
    drop(served);
    let mut mounted = Mounted::start(&program, &arguments);
    let held = File::open(program.path(DISK)).expect("it is there");
    // The second signal, which is sent by the stop, ends its patience. It must not come together with the first.
    mounted.served().signal("-TERM");
    mounted.served().counted();
    mounted.stop();
    assert!(held.read_at(&mut [0; 512], 0).is_err(), "nobody answers any more");
}

#[test]
fn an_unmount_from_outside_is_called_that_and_what_comes_of_it_is_said() {
    for (beside, then) in [("", "the server stops"), ("--nbd unix:socket", "what else is served goes on")] {
        let program = Program::new();
        std::fs::create_dir(program.path("mnt")).expect("the build directory can be written");
        let mut command =
            program.command(&format!("serve --json --drive tiny --target null --fuse mnt {beside}"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program was built for this test");
        document(&mut BufReader::new(child.stdout.take().expect("it is piped")));
        let unmounted = Command::new("umount").arg(program.path("mnt")).status();
        assert!(unmounted.expect("umount is part of every system").success());
        let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("it is text");
        assert!(line.contains("mnt was unmounted from outside") && line.contains(then), "{line}");
        assert!(!line.contains("dropped"), "nobody was: {line}");
        if !beside.is_empty() {
            assert!(child.try_wait().expect("it can be asked").is_none(), "it goes on");
            child.kill().expect("it runs");
        }
        let status = child.wait().expect("it can be waited for");
        assert_eq!(status.success(), beside.is_empty());
    }
}

#[test]
fn what_cannot_be_mounted_on_is_said() {
    let program = Program::new();
    program.write("file", b"x");
    std::fs::create_dir_all(program.path("full/of")).expect("the build directory can be written");
    std::fs::create_dir_all(program.path("mnt")).expect("the build directory can be written");
    for (arguments, words) in [
        ("--target null --fuse nowhere", "make an empty directory"),
        ("--target null --fuse file", "is no directory"),
        ("--target null --fuse full", "is not empty"),
        ("--fuse mnt --export a/b=null@pu:0", "cannot be a file"),
        ("--fuse mnt --export =null@pu:0 --export disk=null@pu:1", "two exports"),
    ] {
        let answer = program.run(&format!("serve --drive tiny {arguments}"));
        let is_so = answer.code == 2 && answer.err.contains(words);
        assert!(is_so, "{arguments}: {} {}", answer.code, answer.err);
    }
}

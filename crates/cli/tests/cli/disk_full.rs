//! The story of a disk that fills up under an image, told by commands: a real file system of 12 MB, a server, a client.
//!
//! A mount namespace of its own has the file system, so that neither root nor a cleaning-up is needed (`unshare`).

// The same client as that of the tests of `ocssd-export`.
#[path = "../../../export/tests/served/blkio_client.rs"]
mod blkio_client;

use crate::namespaces::Queue;
use crate::program::Program;
use blkio_client::Disk;
use ocssd_export::reactor::Endpoint;
use ocssd_lightnvm::Status;
use ocssd_nvme::sqe::ReadWrite;
use ocssd_nvme::{Lba, Sqe};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// 64 MiB raw on 4 units whose media is quick, in real bytes.
const DRIVE: &str = "--drive tiny --set payload=bytes --set chunks_per_pu=64 --set sectors_per_chunk=64 --set media.read=2us \
                     --set media.program=5us --set media.erase=9us";
/// NBD's number for "no space left on device".
const ENOSPC: u32 = 28;
const BLOCK: usize = 4096;
/// Blocks between two flushes.
const PER_FLUSH: u64 = 64;
/// A server that takes longer for anything here hangs (chosen: a hundred times what it takes on a busy machine).
const PATIENCE: Duration = Duration::from_secs(60);

/// A shell in a mount namespace of its own.
struct Shell {
    /// What is served, as `--target` has it.
    target: &'static str,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn new(program: &Program, target: &'static str) -> Self {
        // Root needs no user namespace, and may not get one in a container.
        let id = Command::new("id").arg("-u").output().expect("id is part of every system");
        let as_user: &[&str] =
            if id.stdout.starts_with(b"0\n") { &[] } else { &["--user", "--map-root-user"] };
        let mut command = Command::new("unshare");
        command.args(as_user).args(["--mount", "sh"]).current_dir(program.path(""));
        let mut child = command
            .env("OCSSD", env!("CARGO_BIN_EXE_ocssd"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare is part of util-linux");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { target, child, input, output }
    }

    /// Runs commands; what they said, and how the last one ended.
    fn run(&mut self, commands: &str) -> (String, i32) {
        writeln!(self.input, "{commands}\necho \"@@ $?\"").expect("the shell waits for commands");
        let mut said = String::new();
        loop {
            let mut line = String::new();
            let count = self.output.read_line(&mut line).expect("it says text");
            assert!(
                count > 0,
                "the shell ended after: {said}; this test needs `unshare --mount`, as root or with user namespaces allowed"
            );
            if let Some(code) = line.strip_prefix("@@ ") {
                return (said, code.trim().parse().expect("an exit code"));
            }
            said.push_str(&line);
        }
    }

    fn good(&mut self, commands: &str) -> String {
        let (said, code) = self.run(commands);
        assert_eq!(code, 0, "`{commands}` said: {said}");
        said
    }

    /// Starts a server; a client of it, or none if it ended before there was one.
    fn serve(&mut self, program: &Program) -> Option<Client> {
        let serve = format!("serve --nbd unix:socket --drive disk/d.img --target {}", self.target);
        self.good(&format!("rm -f socket; $OCSSD {serve} >> out 2>> err & server=$!"));
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "the server neither serves nor ends");
            if let Ok(stream) = UnixStream::connect(program.path("socket")) {
                return Some(Client::new(stream));
            }
            if self.run("kill -0 $server").1 != 0 {
                return None;
            }
            self.good("sleep 0.05");
        }
    }

    /// Stops the server as people do: its exit code.
    fn stop(&mut self) -> i32 {
        let begun = Instant::now();
        let (_, code) = self.run("kill -TERM $server; wait $server");
        assert!(begun.elapsed() < PATIENCE, "SIGTERM does not end the server");
        code
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The namespace goes with its last process.
        let _ = writeln!(self.input, "kill -KILL $server; exit");
        let _ = self.child.wait();
    }
}

/// A client of NBD that does one thing at a time.
struct Client {
    stream: UnixStream,
    bytes: u64,
}

impl Client {
    fn new(mut stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let mut client = |bytes: &[u8]| stream.write_all(bytes).expect("the server reads");
        // Fixed newstyle without zeroes, then EXPORT_NAME of the only export.
        client(&3_u32.to_be_bytes());
        client(b"IHAVEOPT");
        client(&1_u32.to_be_bytes());
        client(&0_u32.to_be_bytes());
        let mut greeting = [0; 18 + 10];
        stream.read_exact(&mut greeting).expect("the server greets");
        let bytes = u64::from_be_bytes(greeting[18..26].try_into().expect("eight bytes"));
        Self { stream, bytes }
    }

    /// The error a request ended with, 0 for none.
    fn ask(&mut self, kind: u16, at: u64, length: usize, payload: &[u8]) -> u32 {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend_from_slice(&0_u16.to_be_bytes());
        request.extend_from_slice(&kind.to_be_bytes());
        request.extend_from_slice(&[0; 8]);
        request.extend_from_slice(&at.to_be_bytes());
        request.extend_from_slice(&u32::try_from(length).expect("small").to_be_bytes());
        request.extend_from_slice(payload);
        self.stream.write_all(&request).expect("the server reads");
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply).expect("every request is answered");
        u32::from_be_bytes(reply[4..8].try_into().expect("four bytes"))
    }

    fn write(&mut self, block: u64) -> u32 {
        self.ask(1, block * 4096, BLOCK, &content(block))
    }

    fn flush(&mut self) -> u32 {
        self.ask(3, 0, 0, &[])
    }

    /// Asserts that a block reads as it was written.
    fn check(&mut self, block: u64, when: &str) {
        assert_eq!(self.ask(0, block * 4096, BLOCK, &[]), 0, "{when}: block {block} cannot be read");
        let mut found = [0; BLOCK];
        self.stream.read_exact(&mut found).expect("a read has its data");
        assert!(found[..] == content(block), "{when}: block {block} is another");
    }

    /// Writes and flushes until the server refuses: how many blocks were flushed, and the error.
    fn fill(&mut self) -> (u64, u32) {
        let mut flushed = 0;
        for block in 0..self.bytes / 4096 {
            let error = self.write(block);
            if error != 0 {
                return (flushed, error);
            }
            if (block + 1) % PER_FLUSH == 0 {
                let error = self.flush();
                if error != 0 {
                    return (flushed, error);
                }
                flushed = block + 1;
            }
        }
        panic!("{} bytes fit on a disk of 12 MB", self.bytes);
    }
}

fn content(block: u64) -> Vec<u8> {
    (block + 1).to_le_bytes().into_iter().cycle().take(BLOCK).collect()
}

fn lines_with(path: &Path, word: &str) -> usize {
    std::fs::read_to_string(path)
        .expect("the server's words")
        .lines()
        .filter(|line| line.contains(word))
        .count()
}

/// From the first write to space that came back.
fn tell(target: &'static str) {
    let program = Program::new();
    let mut shell = Shell::new(&program, target);
    shell.good("mkdir disk && mount -t tmpfs -o size=12m tmpfs disk");
    shell.good(&format!("$OCSSD format disk/d.img {DRIVE} > /dev/null"));
    let mut client = shell.serve(&program).expect("there is room for a fresh image");
    let (flushed, error) = client.fill();
    assert!(flushed >= PER_FLUSH, "only {flushed} blocks were flushed before the disk was full");
    assert_eq!((error, client.flush(), client.write(0)), (ENOSPC, ENOSPC, ENOSPC), "each is answered so");
    (0..flushed).for_each(|block| client.check(block, "while the disk is full"));
    assert_eq!(lines_with(&program.path("err"), "No space left on device"), 1, "it is said once");
    assert_eq!(shell.stop(), 2, "what was not flushed is lost, and the exit code says so");

    if let Some(mut client) = shell.serve(&program) {
        (0..flushed).for_each(|block| client.check(block, "mounted on a full disk"));
        shell.stop();
    } else {
        assert_eq!(lines_with(&program.path("err"), "mount again once the drive works"), 1);
    }

    shell.good("mount -o remount,size=200m disk");
    let mut client = shell.serve(&program).expect("there is room again");
    (0..flushed).for_each(|block| client.check(block, "with room again"));
    assert_eq!((client.write(0), client.flush()), (0, 0), "changes are taken again");
    assert_eq!(shell.stop(), 0);
}

#[test]
fn a_disk_that_fills_up_is_told_to_clients_and_costs_nothing_that_was_flushed() {
    tell("pblk:over_provisioning_percent=25");
}

#[test]
fn a_full_disk_below_blocks_smaller_than_sectors_is_no_other() {
    tell("pblk:over_provisioning_percent=25,block_bytes=512");
}

#[test]
fn a_full_disk_below_a_black_box_is_no_other() {
    tell("block_ssd:over_provisioning_percent=25");
}

#[test]
fn a_full_disk_below_linux_pblk_is_no_other() {
    tell("linux-pblk:over_provisioning_percent=25,create=yes");
}

#[test]
fn a_full_disk_below_transactions_is_no_other() {
    tell("ox-block:over_provisioning_percent=25");
}

#[test]
fn a_program_that_writes_a_served_file_is_told_that_there_is_no_space() {
    let program = Program::new();
    let mut shell = Shell::new(&program, "pblk:over_provisioning_percent=25");
    shell.good("mkdir disk mnt && mount -t tmpfs -o size=12m tmpfs disk");
    shell.good(&format!("$OCSSD format disk/d.img {DRIVE} > /dev/null"));
    shell.good(&format!(
        "$OCSSD serve --fuse mnt --drive disk/d.img --target {} >> out 2>> err & server=$!",
        shell.target
    ));
    let begun = Instant::now();
    while shell.run("test -e mnt/disk").1 != 0 {
        assert!(begun.elapsed() < PATIENCE, "the file does not appear");
        shell.good("sleep 0.05");
    }
    let write = "dd if=/dev/urandom of=mnt/disk bs=64k count=400 conv=notrunc,fsync oflag=direct 2>&1";
    let (said, code) = shell.run(write);
    assert!(code == 1 && said.contains("No space left on device"), "exit code {code}: {said}");
    shell.good("cmp --bytes=65536 mnt/disk mnt/disk");
    assert_eq!(shell.stop(), 2, "what was not flushed is lost, and the exit code says so");
}

#[test]
fn a_host_of_nvme_is_told_that_the_capacity_is_exceeded_and_reads_what_it_flushed() {
    let program = Program::new();
    let mut shell = Shell::new(&program, "pblk:over_provisioning_percent=25");
    shell.good("mkdir disk && mount -t tmpfs -o size=12m tmpfs disk");
    shell.good(&format!("$OCSSD format disk/d.img {DRIVE} > /dev/null"));
    let serve =
        "serve --json --nvme-tcp 127.0.0.1:0 --nqn nqn.2014-08.org.nvmexpress:test --drive disk/d.img";
    shell.good(&format!("$OCSSD {serve} --target {} > out 2> err & server=$!", shell.target));
    let begun = Instant::now();
    let address = loop {
        let said = std::fs::read_to_string(program.path("out")).unwrap_or_default();
        let first = serde_json::Deserializer::from_str(&said).into_iter::<serde_json::Value>().next();
        if let Some(Ok(serving)) = first {
            break serving["nvme"]["addresses"][0].as_str().expect("it says where").to_owned();
        }
        assert!(begun.elapsed() < PATIENCE, "the server does not say where it is: {said}");
        shell.good("sleep 0.05");
    };
    let (_admin, mut queue) = Queue::both_at(&address);
    // Linux' LBA: eight of them are a block.
    let io = |block| ReadWrite {
        slba: Lba(8 * block),
        block_count: 8,
        limited_retry: false,
        force_unit_access: false,
    };
    let mut flushed = 0;
    let refused = (0..).find_map(|block| {
        let mut status = queue.write(Sqe::write(1, io(block)), &content(block)).status.status;
        if status.is_success() && (block + 1) % PER_FLUSH == 0 {
            status = queue.ask(Sqe::flush(1)).status.status;
            flushed = if status.is_success() { block + 1 } else { flushed };
        }
        (!status.is_success()).then_some(status)
    });
    assert!(flushed >= PER_FLUSH, "only {flushed} blocks were flushed, then came {refused:?}");
    let again = queue.write(Sqe::write(1, io(0)), &content(0)).status.status;
    let flush = queue.ask(Sqe::flush(1)).status.status;
    assert_eq!(
        (refused, again, flush),
        (Some(Status::CAPACITY_EXCEEDED), Status::CAPACITY_EXCEEDED, Status::CAPACITY_EXCEEDED)
    );
    for block in 0..flushed {
        let (found, cqe) = queue.read(Sqe::read(1, io(block)), BLOCK);
        assert!(
            cqe.status.status.is_success() && found == content(block),
            "block {block} is another: {cqe:?}"
        );
    }
    assert_eq!(lines_with(&program.path("err"), "No space left on device"), 1, "it is said once");
    assert_eq!(shell.stop(), 2, "what was not flushed is lost, and the exit code says so");
}

#[test]
fn a_virtual_machine_is_told_of_a_full_disk_by_errors_and_reads_what_it_flushed() {
    /// What libblkio makes of VIRTIO_BLK_S_IOERR, the only word that virtio has for it (virtio 1.2, 5.2.6).
    const REFUSED: i32 = -5;
    let program = Program::new();
    let mut shell = Shell::new(&program, "pblk:over_provisioning_percent=25");
    shell.good("mkdir disk && mount -t tmpfs -o size=12m tmpfs disk");
    shell.good(&format!("$OCSSD format disk/d.img {DRIVE} > /dev/null"));
    let serve = "serve --vhost-user-blk unix:socket --drive disk/d.img";
    shell.good(&format!("$OCSSD {serve} --target {} > out 2> err & server=$!", shell.target));
    let begun = Instant::now();
    while shell.run("test -S socket").1 != 0 {
        assert!(begun.elapsed() < PATIENCE, "the server does not make its socket");
        shell.good("sleep 0.05");
    }
    let mut disk = Disk::open(&Endpoint::Unix(program.path("socket")), 1);
    let bytes = disk.blkio.get_u64("capacity").expect("a started device has a size");
    let mut flushed = 0;
    let refused = (0..bytes / BLOCK as u64).find_map(|block| {
        let mut result = disk.write(block * BLOCK as u64, &content(block));
        if result == 0 && (block + 1) % PER_FLUSH == 0 {
            result = disk.flush();
            flushed = if result == 0 { block + 1 } else { flushed };
        }
        (result != 0).then_some(result)
    });
    assert!(flushed >= PER_FLUSH, "only {flushed} blocks were flushed, then came {refused:?}");
    assert_eq!((refused, disk.flush(), disk.write(0, &content(0))), (Some(REFUSED), REFUSED, REFUSED));
    for block in 0..flushed {
        assert!(disk.read(block * BLOCK as u64, BLOCK) == content(block), "block {block} is another");
    }
    assert_eq!(lines_with(&program.path("err"), "No space left on device"), 1, "it is said once");
    assert_eq!(shell.stop(), 2, "what was not flushed is lost, and the exit code says so");
}

//! Served drives and the programs of others: libnbd's tools, QEMU's, fio. Each test is one client, or one promise.

use crate::program::{Answer, Program};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

/// 64 MiB raw on 4 units whose media is quick.
pub const DRIVE: &str = "--set chunks_per_pu=64 --set sectors_per_chunk=64 --set media.read=2us --set media.program=5us \
                     --set media.erase=9us";
pub const TARGET: &str = "--target pblk:over_provisioning_percent=25";

/// A server of a test.
pub struct Served<'a> {
    program: &'a Program,
    pub child: Child,
    out: BufReader<ChildStdout>,
    /// What it serves.
    pub serving: Value,
}

/// The next JSON document of a server.
pub fn document(out: &mut BufReader<ChildStdout>) -> Value {
    let mut text = String::new();
    loop {
        let mut line = String::new();
        let count = out.read_line(&mut line).expect("the server's output is text");
        assert!(count > 0, "the server ended after saying: {text}");
        text.push_str(&line);
        if line == "}\n" {
            return serde_json::from_str(&text).expect("JSON");
        }
    }
}

impl<'a> Served<'a> {
    /// Serves at `socket` in the program's folder.
    pub fn start(program: &'a Program, arguments: &str) -> Self {
        Self::start_at(program, &format!("--nbd unix:socket {arguments}"))
    }

    /// Serves where the arguments say.
    pub fn start_at(program: &'a Program, arguments: &str) -> Self {
        Self::begin(program, program.command(&format!("serve --json {arguments}")))
    }

    /// Serves by this command.
    fn begin(program: &'a Program, mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program was built for this test");
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        let serving = document(&mut out);
        Self { program, child, out, serving }
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().expect("kill is part of every system");
        assert!(sent.success());
    }

    /// What was counted until now.
    pub fn counted(&mut self) -> Value {
        self.signal("-USR1");
        document(&mut self.out)
    }

    /// Runs a client in the program's folder, which must succeed.
    pub fn client(&self, name: &str, arguments: &[&str]) -> String {
        let answer = self.try_client(name, arguments);
        assert_eq!(answer.code, 0, "{name} {arguments:?} said:\n{}{}", answer.out, answer.err);
        answer.out
    }

    pub fn try_client(&self, name: &str, arguments: &[&str]) -> Answer {
        let mut command = Command::new(name);
        let output = command.current_dir(self.program.path("")).args(arguments).output();
        Answer::of(&output.unwrap_or_else(|error| panic!("{name} cannot be started: {error}")))
    }

    /// Stops it as people do; gives what it counted.
    pub fn stop(mut self) -> Value {
        self.signal("-TERM");
        let counted = document(&mut self.out);
        let status = self.child.wait().expect("it can be waited for");
        assert!(status.success(), "{status}");
        counted
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_says_at_its_end_what_clients_got_of_the_drive() {
    let program = Program::new();
    let mut command = program.command(&format!("serve --nbd unix:socket --drive tiny {DRIVE} {TARGET}"));
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program was built for this test");
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut text = String::new();
    while !text.contains("nbd+unix") {
        assert!(out.read_line(&mut text).expect("it says text") > 0, "it ended: {text}");
    }
    let served = Served { program: &program, child, out, serving: Value::Null };
    served.client(
        "qemu-io",
        &["-f", "raw", URI, "-c", "write -P 1 0 1M", "-c", "flush", "-c", "read -P 1 0 1M"],
    );
    // As many as a percentile with ten beyond it takes.
    let mut reads = vec!["-f", "raw", URI];
    reads.extend(["-c", "read -q 0 4k"].repeat(1_000));
    served.client("qemu-io", &reads);
    served.signal("-TERM");
    let mut served = served;
    let mut end = String::new();
    served.out.read_to_string(&mut end).expect("it says text");
    let header = end.lines().find(|line| line.contains("p99.9")).expect("a table of latencies");
    assert!(header.contains("served") && header.contains("max"), "{end}");
    for words in [
        " read ",
        " write ",
        " flush ",
        "1.05 MB",
        "reads beyond p99: ",
        " of 10 waited ",
        "target: write amplification ",
        "GC moved ",
        " lines free",
    ] {
        assert!(end.contains(words), "{words} is missing in\n{end}");
    }
    assert!(!end.contains("received_bytes") && end.contains("--verbose"), "{end}");
    assert!(end.lines().all(|line| line.chars().count() <= 80), "{end}");
}

#[test]
fn prometheus_reads_what_clients_did() {
    use std::io::Write;
    let program = Program::new();
    let served = Served::start(&program, &format!("--metrics 127.0.0.1:0 --drive tiny {DRIVE} {TARGET}"));
    let url = served.serving["metrics"].as_str().expect("it says where").to_owned();
    let address = url.strip_prefix("http://").and_then(|url| url.strip_suffix("/metrics")).expect("a URL");
    let scrape = |path: &str| {
        let mut stream = std::net::TcpStream::connect(address).expect("somebody listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers, and ends");
        text
    };
    served.client(
        "qemu-io",
        &["-f", "raw", URI, "-c", "write -P 1 0 1M", "-c", "flush", "-c", "read -P 1 0 1M"],
    );
    // The page is made now and then.
    let count = "ocssd_io_bytes_total{op=\"read\"} 1048576\n";
    let mut page = scrape("/metrics");
    for _ in 0..100_000 {
        if page.contains(count) {
            break;
        }
        page = scrape("/metrics");
    }
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    for line in [
        count,
        "# TYPE ocssd_io_latency_seconds histogram\n",
        "ocssd_io_latency_seconds_bucket{op=\"write\",le=\"+Inf\"} ",
        "ocssd_target_user_written_sectors_total{target=\"target\",number=\"0\"} 256\n",
        "ocssd_unit_busy_seconds_total{unit=\"3\"} ",
        "ocssd_server_flushes_total ",
    ] {
        assert!(page.contains(line), "{line} is missing in\n{page}");
    }
    assert!(scrape("/").starts_with("HTTP/1.1 404 "));
    served.stop();
    let exposed = program.run("serve --nbd unix:s --metrics 0.0.0.0:9 --beyond-loopback --drive tiny");
    assert!(exposed.code == 2 && exposed.err.contains("--allow"), "{}", exposed.err);
}

#[test]
fn live_without_a_terminal_is_a_line_now_and_then_while_clients_are_served() {
    let program = Program::new();
    let mut command =
        program.command(&format!("serve --json --nbd unix:socket --drive tiny {DRIVE} {TARGET} --live=20ms"));
    command.stderr(Stdio::piped());
    let mut served = Served::begin(&program, command);
    let mut said = BufReader::new(served.child.stderr.take().expect("it is piped"));
    let copied = std::fs::write(program.path("zeroes"), vec![1_u8; 8 << 20]);
    copied.expect("the program's folder can be written");
    served.client("nbdcopy", &["zeroes", URI]);
    // However fast that was: it is stopped once it has said three lines, and one of what the client did.
    let busy = |line: &str| !line.contains("; 0 IOPS; ") && !line.contains("units 0 % busy");
    let mut text = String::new();
    while text.lines().count() < 3 || !text.lines().any(busy) {
        assert!(said.read_line(&mut text).expect("what it says is text") > 0, "it ended: {text}");
        assert!(text.lines().count() < 1000, "clients were seen: {text}");
    }
    served.stop();
    said.read_to_string(&mut text).expect("what it says is text");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with("serving, ")), "{text}");
    for word in [" IOPS; ", " MB/s; ", "p99 ", "% busy", "target: ", "lines free, GC ", "buffer "] {
        assert!(lines.iter().any(|line| line.contains(word)), "{word}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "no terminal, no escapes");
    for option in ["--live", "--read-only", "--place pu:0", "--vfio-user unix:t"] {
        let refused = program.run(&format!("serve --vfio-user unix:s {option}"));
        assert!(
            refused.code == 2 && refused.err.contains("cannot be used with"),
            "{option}: {}",
            refused.err
        );
    }
    let refused = program.run("serve --vfio-user unix:s --target pblk --pci-id cnex");
    assert!(refused.code == 2 && refused.err.contains("--pci-id"), "{}", refused.err);
}

const URI: &str = "nbd+unix:///?socket=socket";

#[test]
fn nbdinfo_sees_what_is_served() {
    let program = Program::new();
    let served = Served::start(&program, &format!("--drive tiny {DRIVE} {TARGET}"));
    let info: Value = serde_json::from_str(&served.client("nbdinfo", &["--json", URI])).expect("JSON");
    let export = &info["exports"][0];
    assert_eq!(export["export-size"], served.serving["serving"][0]["bytes"]);
    for can in [
        "can_flush",
        "can_fua",
        "can_multi_conn",
        "can_trim",
        "can_zero",
        "can_fast_zero",
        "can_cache",
        "can_df",
    ] {
        assert_eq!(export[can], true, "{can} of {export}");
    }
    assert_eq!((&export["is_read_only"], &export["block_size_minimum"]), (&false.into(), &512.into()));
    assert_eq!(info["structured"], true);
    let map: Value =
        serde_json::from_str(&served.client("nbdinfo", &["--map", "--json", URI])).expect("JSON");
    assert_eq!(map[0]["description"], "hole,zero", "nothing was written: {map}");
    let listed = served.client("nbdinfo", &["--list", "nbd+unix://?socket=socket"]);
    assert!(listed.contains("pblk on"), "{listed}");
    served.stop();
}

#[test]
fn nbdcopy_brings_data_there_and_back_over_several_connections() {
    let program = Program::new();
    let served = Served::start(&program, &format!("--drive tiny {DRIVE} {TARGET}"));
    let bytes =
        usize::try_from(served.serving["serving"][0]["bytes"].as_u64().expect("a number")).expect("small");
    let mut data = vec![0; bytes];
    for (at, byte) in data.iter_mut().enumerate().filter(|(at, _)| at / 100_000 % 3 != 1) {
        *byte = u8::try_from(at * 31 % 255).expect("below 255");
    }
    program.write("there", &data);
    served.client("nbdcopy", &["--flush", "there", URI]);
    served.client("nbdcopy", &[URI, "back"]);
    assert!(std::fs::read(program.path("back")).expect("it was written") == data);
    let counted = served.stop();
    let stats = &counted["stats"];
    assert!(stats["connections"].as_u64() > Some(2) && stats["zeroes"].as_u64() > Some(0), "{stats}");
    assert_eq!((&stats["errors"], &counted["copies_per_byte"]["read"]), (&0.into(), &0.0.into()));
}

#[test]
fn qemus_tools_read_write_zero_discard_and_compare() {
    let program = Program::new();
    let served = Served::start(&program, &format!("--drive tiny {DRIVE} {TARGET}"));
    let io = |commands: &[&str]| {
        let mut arguments = vec!["-f", "raw", "-t", "none", URI];
        commands.iter().for_each(|command| arguments.extend(["-c", command]));
        served.client("qemu-io", &arguments)
    };
    let out = io(&[
        "write -P 0x5a 0 1M",
        "write -f -P 0x11 1049088 512",
        "read -P 0x5a 0 1M",
        "read -P 0x11 1049088 512",
        "aio_write -P 0x77 2M 3M",
        "aio_flush",
        "write -z 0 64k",
        "write -z -u 64k 64k",
        "discard 128k 128k",
        "read -P 0 0 128k",
        "read -P 0x77 2M 3M",
        "flush",
    ]);
    assert!(!out.contains("failed") && !out.contains("error"), "{out}");
    let map = served.client("qemu-img", &["map", "-f", "raw", "--output=json", URI]);
    assert!(map.contains("\"zero\": true") && map.contains("\"data\": true"), "{map}");
    served.client("qemu-img", &["convert", "-f", "raw", "-O", "raw", URI, "copy"]);
    served.client("qemu-img", &["compare", "-f", "raw", "-F", "raw", URI, "copy"]);
    let counted = served.stop();
    assert!(counted["stats"]["fuas"].as_u64() > Some(0), "{counted}");
    assert_eq!(counted["stats"]["errors"], 0);
}

#[test]
fn fio_verifies_what_it_wrote_over_two_connections() {
    let program = Program::new();
    let served = Served::start(&program, &format!("--drive tiny {DRIVE} {TARGET}"));
    let uri = format!("--uri={URI}");
    let job = "--rw=randrw --bs=4k --iodepth=32 --size=8m --io_size=24m --verify=crc32c --fsync=64";
    let mut arguments = vec!["--output-format=json", "--ioengine=nbd", uri.as_str()];
    arguments.extend(job.split_whitespace());
    arguments.extend(["--name=a", "--name=b", "--offset=16m"]);
    let out = served.client("fio", &arguments);
    // Notes may stand before the JSON.
    let result: Value = serde_json::from_str(&out[out.find('{').expect("JSON")..]).expect("JSON");
    for job in result["jobs"].as_array().expect("jobs") {
        assert_eq!(job["error"], 0, "{job}");
    }
    let counted = served.stop();
    assert_eq!((&counted["stats"]["errors"], &counted["stats"]["connections_max"]), (&0.into(), &2.into()));
    assert!(counted["stats"]["flushes"].as_u64() > Some(10), "{counted}");
}

/// What no tool asks by itself.
const SHELL: &str = r#"
import errno, nbd, os
h.set_strict_mode(0)
size = h.get_size()
def refused(what, *numbers):
    try:
        what()
    except nbd.Error as error:
        assert error.errnum in numbers, error
    else:
        assert False, "it was not refused"
refused(lambda: h.pread(512, size), errno.EINVAL)
refused(lambda: h.pwrite(b"x" * 512, size), errno.ENOSPC)
refused(lambda: h.pread(511, 0), errno.EINVAL)
refused(lambda: h.zero(512, 0, nbd.CMD_FLAG_FAST_ZERO | nbd.CMD_FLAG_NO_HOLE), errno.ENOTSUP)
h.pwrite(b"a" * 4096, 0, nbd.CMD_FLAG_FUA)
h.zero(512, 512, nbd.CMD_FLAG_FAST_ZERO)
h.zero(512, 1024, nbd.CMD_FLAG_NO_HOLE)
h.cache(4096, 0)
assert bytes(h.pread(2048, 0, nbd.CMD_FLAG_DF)) == b"a" * 512 + b"\0" * 1024 + b"a" * 512
h.trim(8192, 0)
assert bytes(h.pread(8192, 0)) == b"\0" * 8192
h.flush()
os.mkdir("done")
"#;

#[test]
fn nbdsh_asks_what_no_tool_asks() {
    let program = Program::new();
    let served = Served::start(&program, &format!("--drive tiny {DRIVE} {TARGET}"));
    // nbdsh itself begins with the first python3, which may be a user's own build without libnbd.
    let shell = format!("import nbd\nh = nbd.NBD()\nh.connect_uri(\"{URI}\")\n{SHELL}");
    served.client("/usr/bin/python3", &["-c", &shell]);
    assert!(program.path("done").exists(), "the shell came to its end");
    served.stop();
}

#[test]
fn an_image_is_served_again_with_what_it_held_after_a_stop_and_after_a_kill() {
    let program = Program::new();
    program.good(&format!("format a.img --drive tiny {DRIVE}"));
    let io = |served: &Served<'_>, commands: &[&str]| {
        let mut arguments = vec!["-f", "raw", URI];
        commands.iter().for_each(|command| arguments.extend(["-c", command]));
        let out = served.client("qemu-io", &arguments);
        assert!(!out.contains("failed") && !out.contains("error"), "{out}");
    };
    let serve = || Served::start(&program, &format!("--drive a.img {TARGET}"));
    let served = serve();
    io(&served, &["write -P 1 0 1M", "flush"]);
    served.stop();
    let mut served = serve();
    io(&served, &["read -P 1 0 1M", "write -P 2 4k 64k", "write -f -P 3 1M 4k", "flush"]);
    served.child.kill().expect("it runs");
    served.child.wait().expect("it can be waited for");
    let served = serve();
    io(&served, &["read -P 1 0 4k", "read -P 2 4k 64k", "read -P 1 68k 956k", "read -P 3 1M 4k"]);
    served.stop();
}

#[test]
fn several_exports_have_their_own_units_and_names_and_read_only_is_kept() {
    let program = Program::new();
    let drive = "--drive tiny --set chunks_per_pu=128 --set sectors_per_chunk=64";
    let target = "pblk:over_provisioning_percent=40";
    let exports = format!("--export left={target}@pu:0-1 --export right={target}@pu:2-3");
    let served = Served::start(&program, &format!("{drive} {exports} --read-only"));
    let listed = served.client("nbdinfo", &["--list", "nbd+unix://?socket=socket"]);
    assert!(listed.contains("left") && listed.contains("right") && listed.contains("pu:2-3"), "{listed}");
    let left = "nbd+unix:///left?socket=socket";
    let info: Value = serde_json::from_str(&served.client("nbdinfo", &["--json", left])).expect("JSON");
    assert_eq!(info["exports"][0]["is_read_only"], true);
    assert_ne!(served.try_client("nbdinfo", &["nbd+unix:///middle?socket=socket"]).code, 0);
    served.stop();
}

#[test]
fn usr1_tells_what_was_counted_and_term_ends_it_with_the_socket_removed() {
    let program = Program::new();
    let mut served = Served::start(&program, &format!("--drive tiny {DRIVE} {TARGET}"));
    served.client("qemu-io", &["-f", "raw", URI, "-c", "write 0 4k"]);
    assert_eq!(served.counted()["stats"]["writes"], 1);
    served.stop();
    assert!(!program.path("socket").exists());
}

#[test]
fn what_cannot_be_served_is_said_before_anything_is_opened() {
    let program = Program::new();
    program.good(&format!("format stamps.img --drive tiny {DRIVE} --set payload=stamp"));
    let cases = [
        ("--nbd tcp:0.0.0.0:0 --drive tiny", "--beyond-loopback"),
        ("--nbd tcp:0.0.0.0:0 --drive tiny --beyond-loopback", "--allow"),
        ("--nbd nowhere --drive tiny", "expected unix:/path"),
        ("--nbd unix:s --drive stamps.img", "stamps of 16 bytes"),
        ("--nbd unix:s --drive tiny --target linear", "zone by zone"),
        ("--nbd unix:s --drive none.img --target eleos", "over NVMe/TCP and vfio-user only"),
        ("--nbd unix:s --drive none.img --target lightlsm", "served over NVMe/TCP and vfio-user only"),
        ("--nbd unix:s --drive none.img --export a=null@pu:0 --export b=eleos:seed=1@pu:1", "export \"b\""),
        ("--nbd unix:s --drive tiny --export a", "NAME=TARGET"),
        ("--nbd unix:s --drive tiny --export a=null@pu:0 --export a=null@pu:1", "two exports are called"),
        ("--nbd unix:s --drive tiny --tls-certificate a.pem --tls-key b.pem", "b.pem"),
        ("--nbd unix:stamps.img --drive tiny --target null", "is no socket"),
        ("--nvme-tcp 0.0.0.0:0 --drive tiny", "--beyond-loopback"),
        ("--nvme-tcp 0.0.0.0:0 --drive tiny --beyond-loopback --host nqn.a", "--allow"),
        ("--nvme-tcp nowhere --drive tiny", "expected ADDRESS:PORT"),
        ("--nvme-tcp 127.0.0.1:0 --drive tiny --target null --nqn drive", "begins with"),
        ("--nvme-tcp 127.0.0.1:0 --drive tiny --target null --raw stamps.img", "stamps of 16 bytes"),
        ("--drive tiny --raw tiny", "--nvme-tcp"),
        ("--vhost-user-blk tcp:127.0.0.1:1 --drive tiny", "expected unix:/path"),
        ("--vhost-user-blk x=unix:v --drive tiny --target null", "none called \"x\""),
        (
            "--vhost-user-blk unix:v --drive tiny --export a=null@pu:0 --export b=null@pu:1",
            "name one of: a, b",
        ),
        ("--vfio-user tcp:127.0.0.1:0 --drive tiny", "is no unix socket"),
        ("--vfio-user unix:stamps.img --drive tiny", "is no socket"),
        ("--vfio-user unix:s --drive stamps.img", "stamps of 16 bytes"),
        ("--vfio-user unix:s --drive tiny --nbd unix:t", "cannot be used with"),
        ("--vfio-user unix:s --drive tiny --set revision=1.2", "an OCSSD 1.2 drive needs"),
        ("--vfio-user tcp:127.0.0.1:0 --drive tiny --target null", "is no unix socket"),
        ("--nbd unix:s --drive tiny --pci-id cnex", "--vfio-user"),
    ];
    for (arguments, words) in cases {
        let answer = program.run(&format!("serve {arguments}"));
        assert!(
            answer.code == 2 && answer.err.contains(words),
            "{arguments}: {} {}",
            answer.code,
            answer.err
        );
    }
}

#[test]
fn a_server_whose_output_nobody_reads_serves_on_and_keeps_what_was_written() {
    let program = Program::new();
    program.good(&format!("format a.img --drive tiny {DRIVE}"));
    let mut command = program.command(&format!("serve --json --nbd unix:socket --drive a.img {TARGET}"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it was built");
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    document(&mut out);
    drop(out);
    drop(child.stderr.take());
    let client = |command: &str| {
        let mut client = Command::new("qemu-io");
        client.current_dir(program.path("")).args(["-f", "raw", URI, "-c", command]);
        let output = client.output().expect("qemu-io is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    };
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
    };
    client("write -P 7 0 64k");
    signal("-USR1");
    client("read -P 7 0 64k");
    signal("-TERM");
    assert!(child.wait().expect("it can be waited for").success());
    let served = Served::start(&program, &format!("--drive a.img {TARGET}"));
    served.client("qemu-io", &["-f", "raw", URI, "-c", "read -P 7 0 64k"]);
    served.stop();
}

/// Reads to the end, so that a server that says more than expected is seen.
#[test]
fn text_for_people_names_the_address_of_every_export() {
    let program = Program::new();
    let mut command =
        program.command("serve --nbd unix:socket --nbd tcp:127.0.0.1:0 --drive tiny --target null");
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program was built for this test");
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut lines = String::new();
    for _ in 0..3 {
        out.read_line(&mut lines).expect("the server's output is text");
    }
    assert!(lines.contains("nbd+unix:///?socket=socket") && lines.contains("nbd://127.0.0.1:"), "{lines}");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    assert!(child.wait().expect("it can be waited for").success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "No client came.\n");
}

#[test]
fn a_device_of_vhost_user_is_at_its_own_socket() {
    use std::os::unix::fs::PermissionsExt;
    let program = Program::new();
    let served = Served::start(
        &program,
        &format!(
            "--drive tiny {DRIVE} --export a=pblk:over_provisioning_percent=25@pu:0-1 \
             --export b=pblk:over_provisioning_percent=25@pu:2-3 --vhost-user-blk b=unix:disk"
        ),
    );
    let device = &served.serving["vhost_user_blk"][0];
    assert_eq!((&device["export"], &device["socket"]), (&"b".into(), &"disk".into()));
    let mode = std::fs::metadata(program.path("disk")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    served.stop();
    assert!(!program.path("disk").exists());
}

/// Bytes of its own, and of no file, that a process has in memory.
fn anonymous_bytes(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux has it since 4.5");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
    kib << 10
}

#[test]
fn memory_is_taken_before_the_first_client_comes_as_far_as_asked() {
    let taken = [("0", 0), ("512MiB", 512_u64 << 20)].map(|(size, bytes)| {
        let program = Program::new();
        let target = "--drive westlake --target zns --place pu:0";
        let served = Served::start_at(&program, &format!("--nvme-tcp 127.0.0.1:0 {target} --memory {size}"));
        let found = anonymous_bytes(&served.child);
        served.stop();
        (found, bytes)
    });
    let [(without, _), (with, asked)] = taken;
    // Chunks of 16 MiB are taken whole; what the heap keeps beside differs by some MiB from process to process.
    let more = with.saturating_sub(without);
    let slack = asked / 8;
    assert!(
        more.abs_diff(asked) <= slack,
        "{asked} bytes were asked for, and {more} taken: {without} without, {with} with them"
    );
}

//! What a server may do while it serves, and how long it takes to end, whatever clients do.

use crate::program::Program;
use crate::serve::{DRIVE, Served, TARGET};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A line of what the kernel says of a process.
fn status_line(served: &Served<'_>, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{}/status", served.child.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map(|text| text.trim().to_owned())
}

/// The kernel's own word for it: mode 2 is a filter, and without new privileges no program that is started could have more. What
/// the rest means is tested in a thread (`serve/sandbox.rs`), since no request has a server open anything.
#[test]
fn a_server_gives_up_what_it_does_not_need_and_says_so_to_those_who_ask() {
    let program = Program::new();
    for (option, mode, privileges) in [("--verbose", "2", "1"), ("--no-sandbox --verbose", "0", "0")] {
        let served = Served::start(&program, &format!("--drive tiny --target null {option}"));
        let notes = served.serving["notes"].to_string();
        assert!(notes.contains("sandbox: "), "{option}: {notes}");
        if notes.contains("no seccomp") {
            eprintln!("not tested: {notes}");
        } else {
            assert_eq!(status_line(&served, "Seccomp").as_deref(), Some(mode), "{option}: {notes}");
        }
        if notes.contains("no Landlock") {
            eprintln!("not tested: {notes}");
        }
        if !notes.contains("no seccomp") || !notes.contains("no Landlock") {
            let found = status_line(&served, "NoNewPrivs");
            assert_eq!(found.as_deref(), Some(privileges), "{option}: {notes}");
        }
        served.stop();
        assert!(!program.path("socket").exists(), "its name can still be removed");
    }
}

/// A client of NBD that asks 16 times for 32 MiB and takes none of it. The newest of the old ways to choose an export has the
/// shortest handshake.
fn ask_and_take_nothing(program: &Program) -> UnixStream {
    let mut stream = UnixStream::connect(program.path("socket")).expect("it serves");
    stream.read_exact(&mut [0; 18]).expect("the server greets");
    let no_zeroes = 3_u32.to_be_bytes();
    let export = [b"IHAVEOPT".as_slice(), &1_u32.to_be_bytes(), &0_u32.to_be_bytes()].concat();
    stream.write_all(&[no_zeroes.as_slice(), &export].concat()).expect("the server listens");
    stream.read_exact(&mut [0; 10]).expect("the server tells size and flags");
    for cookie in 0..16_u64 {
        let head = [0x2560_9513_u32.to_be_bytes(), 0_u32.to_be_bytes()].concat();
        let place = [cookie.to_be_bytes(), 0_u64.to_be_bytes()].concat();
        let read = [head.as_slice(), &place, &(32_u32 << 20).to_be_bytes()].concat();
        stream.write_all(&read).expect("requests are small");
    }
    stream
}

/// It took 5.01 s and more: all five were for the farewell, and what came behind it was beyond them.
#[test]
fn a_server_ends_within_five_seconds_of_the_signal_whatever_clients_do_not_take() {
    let program = Program::new();
    let served = Served::start(&program, &format!("--drive tiny {DRIVE} {TARGET}"));
    let mut readers: Vec<UnixStream> = (0..8).map(|_| ask_and_take_nothing(&program)).collect();
    // Their answers have begun to come, and more is on its way than sockets hold.
    for reader in &mut readers {
        reader.read_exact(&mut [0; 4]).expect("an answer begins");
    }
    let begun = Instant::now();
    served.stop();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "it took {took:?}");
    assert!(
        took > Duration::from_secs(2),
        "it took {took:?}, and clients get some time to take what they asked"
    );
    let mut rest = Vec::new();
    let end = readers[0].read_to_end(&mut rest).map_err(|error| error.kind());
    assert!(matches!(end, Ok(_) | Err(ErrorKind::ConnectionReset)), "{end:?}");
}

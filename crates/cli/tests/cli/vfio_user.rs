//! A drive in a PCI slot, as far as its socket shows it; guests are in the tests of `export`.

use crate::program::Program;
use crate::serve::document;
use serde_json::Value;
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

/// A message of vfio-user, and what is behind the header of its answer.
fn ask(stream: &mut UnixStream, command: u16, body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(16 + body.len()).expect("small");
    let header = [&[7, 0][..], &command.to_le_bytes(), &size.to_le_bytes(), &[0; 8]].concat();
    stream.write_all(&[&header, body].concat()).expect("the server listens");
    let mut header = [0; 16];
    stream.read_exact(&mut header).expect("the server answers");
    let size = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
    // Bit 5 of the flags is an error.
    assert_eq!(header[8] & 0x20, 0, "command {command} was refused");
    let mut body = vec![0; usize::try_from(size).expect("small") - 16];
    stream.read_exact(&mut body).expect("the server answers");
    body
}

/// The first dword of the configuration space.
fn pci_id(stream: &mut UnixStream) -> u32 {
    let read = [&0u64.to_le_bytes()[..], &7u32.to_le_bytes(), &4u32.to_le_bytes()].concat();
    let answer = ask(stream, 9, &read);
    u32::from_le_bytes(answer[16..20].try_into().expect("four bytes"))
}

#[test]
fn a_drive_is_a_pci_function_and_its_socket_goes_with_the_server() {
    let program = Program::new();
    program.good("format drive.img --drive tiny --set payload=bytes");
    for (id, expected) in [("qemu", 0x1F1F_1D1D), ("cnex", 0x2807_1D1D)] {
        let mut command =
            program.command(&format!("serve --json --vfio-user unix:slot --drive drive.img --pci-id {id}"));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program was built for this test");
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        let serving: Value = document(&mut out);
        assert_eq!(serving["qemu_device"]["driver"], "vfio-user-pci");
        assert_eq!(serving["qemu_device"]["socket"]["path"], "slot");
        let socket = program.path("slot");
        let mode = std::fs::metadata(&socket).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut guest = UnixStream::connect(&socket).expect("it listens");
        ask(&mut guest, 1, b"\0\0\x01\0{\"capabilities\":{}}\0");
        assert_eq!(pci_id(&mut guest), expected);
        let stopped = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        assert!(stopped.expect("kill is part of every system").success());
        assert_eq!(document(&mut out)["stats"]["fatals"], 0);
        assert!(child.wait().expect("it can be waited for").success() && !socket.exists());
    }
    program.good("inspect drive.img");
}

#[test]
fn targets_are_a_pci_function_at_each_socket_beside_other_protocols() {
    let program = Program::new();
    let arguments = "serve --json --vfio-user unix:one --vfio-user unix:two --nbd unix:nbd --drive tiny \
                     --set chunks_per_pu=32 --set sectors_per_chunk=64 --target pblk";
    let mut child = program
        .command(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program was built for this test");
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    let serving: Value = document(&mut out);
    assert_eq!(serving["vfio_user"][1]["qemu_device"]["socket"]["path"], "two");
    assert_eq!(serving["nvme"]["namespaces"][0]["nsid"], 1);
    for name in ["one", "two"] {
        let mut guest = UnixStream::connect(program.path(name)).expect("it listens");
        ask(&mut guest, 1, b"\0\0\x01\0{\"capabilities\":{}}\0");
        assert_eq!(pci_id(&mut guest), 0x0C55_1D1D, "{name}");
    }
    let stopped = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(stopped.expect("kill is part of every system").success());
    assert_eq!(document(&mut out)["stats"]["errors"], 0);
    assert!(child.wait().expect("it can be waited for").success() && !program.path("two").exists());
}

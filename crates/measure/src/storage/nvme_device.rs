//! Commands that pass through Linux's NVMe driver to a namespace, as `nvme io-passthru` sends them.
//!
//! `/dev/ngXnY` (a namespace of any command set) and `/dev/nvmeXnY` (the block device) take them alike. One command at a time: the
//! system call returns with its completion. Source: `include/uapi/linux/nvme_ioctl.h` of Linux 5.5 and later, which added results
//! of 64 bits. Deliberately not here: what is asked; whether a device may be written ([`super::SystemRoot::may_write`]).
//!
//! The third place in the project with `unsafe`. What must hold: the structure is the kernel's, and the memory it names is as long
//! as it says and lives until the call returns.

#![expect(unsafe_code, reason = "ioctl takes addresses; the module's documentation says why that is sound")]

use super::{DeviceNumber, Refusal, SystemRoot};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// `NVME_IOCTL_ID`: the namespace's number.
const ID: libc::Ioctl = 0x4E40;
/// `NVME_IOCTL_ADMIN64_CMD`.
const ADMIN: libc::Ioctl = 0xC050_4E47;
/// `NVME_IOCTL_IO64_CMD`.
const IO: libc::Ioctl = 0xC050_4E48;

/// `struct nvme_passthru_cmd64`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct PassthroughCommand {
    opcode: u8,
    flags: u8,
    reserved_1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    reserved_2: u32,
    result: u64,
}

const _: () = assert!(size_of::<PassthroughCommand>() == 80, "the size is part of the number of the call");

/// Which queue a command goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassthroughQueue {
    /// The controller's admin queue.
    Admin,
    /// A queue of I/O.
    Io,
}

/// A command without its data: the opcode, the namespace and dwords 2, 3 and 10 to 15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassedCommand {
    /// Opcode.
    pub opcode: u8,
    /// Namespace.
    pub nsid: u32,
    /// Command dwords 2 and 3.
    pub cdw2_3: [u32; 2],
    /// Command dwords 10 to 15.
    pub cdw10_15: [u32; 6],
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The status field without its phase: 15 bits.
    pub status: u16,
    /// Dwords 0 and 1 of the completion.
    pub result: u64,
}

/// A namespace that Linux's driver has.
#[derive(Debug)]
pub struct NvmeDevice {
    file: File,
    path: PathBuf,
    nsid: u32,
}

impl NvmeDevice {
    /// Opens a device. Nothing is sent to it.
    ///
    /// # Errors
    /// As the system says, or if it is no NVMe namespace.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let kind = file.metadata()?.file_type();
        if !kind.is_char_device() && !kind.is_block_device() {
            return Err(io::Error::other("expected a device such as /dev/ng0n1, and it is none"));
        }
        // SAFETY: this call takes no address.
        let nsid = unsafe { libc::ioctl(file.as_raw_fd(), ID) };
        let nsid = u32::try_from(nsid).map_err(|_| io::Error::last_os_error())?;
        Ok(Self { file, path: fs::canonicalize(path)?, nsid })
    }

    /// Number of the namespace.
    #[must_use]
    pub const fn nsid(&self) -> u32 {
        self.nsid
    }

    /// Whether the namespace may be written, by what the system knows of its block device: no partitions, no mounts, no holders,
    /// and the serial number was typed. A namespace that Linux makes no block device of is used by nobody through one.
    ///
    /// # Errors
    /// Why it may not.
    pub fn may_write(&self, system: &SystemRoot, serial: Option<&str>) -> Result<(), Refusal> {
        let Some(block) = self.block_device() else { return Ok(()) };
        let Ok(about) = fs::metadata(&block) else { return Ok(()) };
        system.may_write(&block.to_string_lossy(), DeviceNumber::of(about.rdev()), serial)
    }

    /// `/dev/nvme0n1` of `/dev/ng0n1`.
    fn block_device(&self) -> Option<PathBuf> {
        let name = self.path.file_name()?.to_str()?;
        let block = name.strip_prefix("ng").map_or_else(|| name.to_owned(), |rest| format!("nvme{rest}"));
        Some(self.path.with_file_name(block))
    }

    /// Sends a command that brings data into `data` (empty: none), and waits for its end.
    ///
    /// # Errors
    /// As the system says: it did not send it.
    pub fn read(
        &self,
        queue: PassthroughQueue,
        command: PassedCommand,
        data: &mut [u8],
    ) -> io::Result<Passed> {
        self.pass(queue, command, (data.as_mut_ptr().expose_provenance(), data.len()))
    }

    /// Sends a command that takes `data` (empty: none), and waits for its end.
    ///
    /// # Errors
    /// As the system says: it did not send it.
    pub fn write(&self, queue: PassthroughQueue, command: PassedCommand, data: &[u8]) -> io::Result<Passed> {
        self.pass(queue, command, (data.as_ptr().expose_provenance(), data.len()))
    }

    fn pass(
        &self,
        queue: PassthroughQueue,
        command: PassedCommand,
        (address, bytes): (usize, usize),
    ) -> io::Result<Passed> {
        let PassedCommand { opcode, nsid, cdw2_3, cdw10_15 } = command;
        let mut passed = PassthroughCommand {
            opcode,
            nsid,
            cdw2: cdw2_3[0],
            cdw3: cdw2_3[1],
            address: if bytes == 0 { 0 } else { u64::try_from(address).map_err(io::Error::other)? },
            data_bytes: u32::try_from(bytes).map_err(io::Error::other)?,
            cdw10: cdw10_15[0],
            cdw11: cdw10_15[1],
            cdw12: cdw10_15[2],
            cdw13: cdw10_15[3],
            cdw14: cdw10_15[4],
            cdw15: cdw10_15[5],
            ..PassthroughCommand::default()
        };
        let call = match queue {
            PassthroughQueue::Admin => ADMIN,
            PassthroughQueue::Io => IO,
        };
        // SAFETY: the structure is the kernel's; its address is that of the caller's data, borrowed until this returns.
        let answer = unsafe { libc::ioctl(self.file.as_raw_fd(), call, &raw mut passed) };
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        let status = u16::try_from(answer).map_err(io::Error::other)?;
        Ok(Passed { status, result: passed.result })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_namespace_is_not_opened() {
        let folder = std::env::temp_dir();
        let error = NvmeDevice::open(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY), "{error}");
        let path = folder.join(format!("ocssd-nvme-device-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        let error = NvmeDevice::open(&path).unwrap_err();
        fs::remove_file(&path).unwrap();
        assert!(error.to_string().contains("/dev/ng0n1"), "{error}");
        assert_eq!(NvmeDevice::open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_block_device_beside_a_namespace_is_found_by_its_name() {
        let device =
            |path: &str| NvmeDevice { file: File::open("/dev/null").unwrap(), path: path.into(), nsid: 1 };
        for (path, block) in [("/dev/ng3n12", "/dev/nvme3n12"), ("/dev/nvme0n1", "/dev/nvme0n1")] {
            assert_eq!(device(path).block_device().unwrap(), Path::new(block));
        }
    }
}

//! A directory becomes a mount, and a directory again.
//!
//! Who is root asks the system; others ask `fusermount3` (Debian's package `fuse3`), which is root for this one purpose and
//! hands over the open device. Deliberately not here: what the kernel asks then.

use super::unmounter::Unmounter;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::ffi::CString;
use std::fs;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The kernel's side of all mounts.
const DEVICE: &str = "/dev/fuse";

/// What the mount is called in lists of mounts.
const KIND: &str = "fuse.ocssd";

/// Who mounts for those who are not root.
const HELPER: &str = "fusermount3";

/// Where a mount is, and who made it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The directory, from the root on.
    pub directory: PathBuf,
    by_helper: bool,
}

/// A mount. If it is dropped before it is [`Mount::forget`], it is taken away: better no directory than one that does not answer.
#[derive(Debug)]
pub struct Mount {
    /// Where it is.
    pub place: Place,
    /// Who takes it away.
    pub unmounter: Unmounter,
    is_there: bool,
}

/// Mounts on a directory, which must be there and empty. Returns the device, which never blocks, the mount, and what the user
/// should know.
///
/// # Errors
/// A sentence.
pub fn mount(directory: &Path) -> Result<(OwnedFd, Mount, Option<String>), String> {
    let shown = directory.display();
    let note = detach_dead(directory)?;
    let about = fs::metadata(directory).map_err(|error| {
        format!("{shown} cannot be mounted on: {error}; make an empty directory of this name")
    })?;
    if !about.is_dir() {
        return Err(format!(
            "{shown} is no directory; name an empty one, in which the exports will be files"
        ));
    }
    let mut inside =
        fs::read_dir(directory).map_err(|error| format!("{shown} cannot be looked into: {error}"))?;
    if inside.next().is_some() {
        return Err(format!(
            "{shown} is not empty, and what is in it would be hidden; name an empty directory"
        ));
    }
    let directory = directory.canonicalize().map_err(|error| format!("{shown}: {error}"))?;
    match mount_here(&directory) {
        Ok(device) => Ok((device, Mount::new(directory, false)?, note)),
        // Both the device and mounting may be for root only.
        Err((_, Errno::PERM | Errno::ACCESS)) => {
            let device = ask_helper(&directory)?;
            Ok((device, Mount::new(directory, true)?, note))
        }
        Err((true, error)) => Err(format!("{shown} cannot be mounted on: {error}")),
        Err((false, error)) => Err(format!(
            "{DEVICE} cannot be opened: {error}; load the kernel's module fuse, or give this container the device"
        )),
    }
}

/// Mounts as root does. The error comes with whether the device was there.
fn mount_here(directory: &Path) -> Result<OwnedFd, (bool, Errno)> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let device = rustix::fs::open(DEVICE, flags, Mode::empty()).map_err(|error| (false, error))?;
    let (user, group) = owner();
    let number = device.as_raw_fd();
    let data = format!("fd={number},rootmode=40000,user_id={user},group_id={group},default_permissions");
    let data = CString::new(data).expect("it has no zero byte");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("ocssd", directory, KIND, flags, Some(data.as_c_str()))
        .map_err(|error| (true, error))?;
    Ok(device)
}

/// Has the helper mount. It sends the device through a socket, which it finds as its standard input.
fn ask_helper(directory: &Path) -> Result<OwnedFd, String> {
    let failed = |what: &dyn std::fmt::Display| {
        format!("{} cannot be mounted on by {HELPER}: {what}", directory.display())
    };
    let (ours, theirs) = UnixStream::pair().map_err(|error| failed(&error))?;
    let mut command = Command::new(HELPER);
    command.args(["-o", "nosuid,nodev,default_permissions,fsname=ocssd,subtype=ocssd", "--"]).arg(directory);
    command.env("_FUSE_COMMFD", "0").stdin(Stdio::from(OwnedFd::from(theirs)));
    let output = command.output().map_err(|error| {
        failed(&format!("it cannot be started ({error}); install Debian's package fuse3, or be root"))
    })?;
    drop(command);
    if !output.status.success() {
        return Err(failed(&String::from_utf8_lossy(&output.stderr).trim()));
    }
    let device = receive_descriptor(&ours).map_err(|error| failed(&error))?;
    let flags = rustix::fs::fcntl_getfl(&device)
        .and_then(|flags| rustix::fs::fcntl_setfl(&device, flags | OFlags::NONBLOCK));
    flags.map_err(|error| failed(&error))?;
    Ok(device)
}

/// A descriptor that was sent.
fn receive_descriptor(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut beside, flags)?;
    let mut sent = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    sent.next().ok_or_else(|| io::Error::other("it sent no descriptor"))
}

impl Place {
    /// Unmounts; it takes as long as the kernel has something to ask, so who answers must not wait for it. `lazily`: at once,
    /// from the names only; who has a file open keeps it.
    ///
    /// # Errors
    /// As the system says: [`io::ErrorKind::ResourceBusy`] if it is in use.
    pub fn unmount(&self, lazily: bool) -> io::Result<()> {
        detach(&self.directory, lazily, self.by_helper)
    }
}

impl Mount {
    /// A mount that has just been made.
    fn new(directory: PathBuf, by_helper: bool) -> Result<Self, String> {
        let place = Place { directory, by_helper };
        let unmounter = Unmounter::begin(place.clone()).map_err(|error| {
            // It was made for nothing, and goes at once; the first error is what the user needs.
            let _ = place.unmount(true);
            format!("{}: no thread can be begun: {error}", place.directory.display())
        })?;
        Ok(Self { place, unmounter, is_there: true })
    }

    /// It is unmounted.
    pub const fn forget(&mut self) {
        self.is_there = false;
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.is_there {
            // The server did not come to its end, so nobody is left to be told.
            let _ = self.unmounter.unmount_lazily();
        }
    }
}

fn detach(directory: &Path, lazily: bool, by_helper: bool) -> io::Result<()> {
    if !by_helper {
        let flags = if lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
        return Ok(rustix::mount::unmount(directory, flags)?);
    }
    let how = if lazily { "-uqz" } else { "-uq" };
    let status = Command::new(HELPER).args([how, "--"]).arg(directory).status()?;
    // Quiet, it does not say why not; all but this would be a mount that is not ours.
    if status.success() { Ok(()) } else { Err(io::ErrorKind::ResourceBusy.into()) }
}

/// A server that was killed leaves a mount that nobody answers for; one of ours is taken away.
fn detach_dead(directory: &Path) -> Result<Option<String>, String> {
    // The kernel may know attributes by heart, but asks for each opening.
    let Err(error) = fs::read_dir(directory) else { return Ok(None) };
    if Errno::from_io_error(&error) != Some(Errno::NOTCONN) {
        return Ok(None);
    }
    let shown = directory.display();
    let whole = std::path::absolute(directory).map_err(|error| format!("{shown}: {error}"))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
    if !is_ours(&mounts, &whole) {
        return Err(format!(
            "{shown} is a mount of another program, which does not answer; end it with `fusermount3 -uz {shown}`"
        ));
    }
    let failed =
        |error| format!("{shown} is a mount that a server left behind, and cannot be unmounted: {error}");
    detach(&whole, true, !rustix::process::geteuid().is_root()).map_err(failed)?;
    Ok(Some(format!("{shown} was still mounted by a server that was killed; that mount is gone")))
}

/// Whether the last mount on a directory in a list as `/proc/self/mountinfo` (proc(5)) is one of ours.
fn is_ours(mounts: &str, directory: &Path) -> bool {
    // Blanks and backslashes of names are written in octal there.
    let mut name = directory.to_string_lossy().replace('\\', "\\134");
    for (mark, octal) in [(" ", "\\040"), ("\t", "\\011"), ("\n", "\\012")] {
        name = name.replace(mark, octal);
    }
    let mut on_it = mounts.lines().filter(|line| line.split(' ').nth(4) == Some(&name));
    let kind =
        |line: &str| line.split_once(" - ").is_some_and(|(_, rest)| rest.split(' ').next() == Some(KIND));
    on_it.next_back().is_some_and(kind)
}

/// User and group of this program.
pub fn owner() -> (u32, u32) {
    (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_known_by_its_place_and_kind() {
        let mounts = "36 35 98:0 / /mnt/a\\040b rw,nosuid - fuse.ocssd ocssd rw\n\
                      37 35 98:0 / /mnt/c rw shared:1 - fuse.sshfs x rw\n\
                      38 35 98:0 / /mnt/d rw - fuse.ocssd ocssd rw\n\
                      39 35 98:0 / /mnt/d rw - ext4 /dev/sda rw\n";
        for (directory, expected) in
            [("/mnt/a b", true), ("/mnt/c", false), ("/mnt/d", false), ("/mnt", false)]
        {
            assert_eq!(is_ours(mounts, Path::new(directory)), expected, "{directory}");
        }
    }

    #[test]
    fn what_cannot_be_mounted_on_is_said_before_anything_is() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (name, part) in [
            ("nothing-here", "make an empty directory"),
            ("Cargo.toml", "no directory"),
            ("src", "not empty"),
        ] {
            let error = mount(&here.join(name)).expect_err(name);
            assert!(error.contains(part), "{error}");
        }
    }
}

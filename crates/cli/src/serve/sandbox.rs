//! What a server gives up once it serves: it opens no file and no socket any more, starts no program, and makes only the system
//! calls that serving takes. A client that found a fault could do as little.
//!
//! *Landlock* takes files, TCP ports and signals to others from this thread and those it begins, but for the removal of names in
//! the folders of its sockets; *seccomp* all system calls but a list. Each is used as far as the kernel has it. What is open stays
//! open: the image, sockets, a mount's device. A thread that unmounts (`--fuse`) began before and keeps its rights, since neither
//! lets a program unmount. Sources: landlock(7), seccomp(2). Deliberately not here: when.

use crate::args::SandboxArgs;
use anyhow::{Context, anyhow};
use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope,
};
use ocssd_export::reactor::Endpoint;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
use std::path::{Path, PathBuf};

/// What of Landlock this was tried with: files, TCP, and signals and abstract sockets (Linux 6.12). Older kernels give up less.
const LANDLOCK: ABI = ABI::V6;

/// Gives up what serving at these endpoints does not need, unless the user wants to keep it. Returns what the user should know:
/// what could not be given up, or all of it to those who ask.
///
/// # Errors
/// If the system refuses what it says it has.
pub fn enter<'a>(
    asked: &SandboxArgs,
    endpoints: impl Iterator<Item = &'a Endpoint>,
) -> anyhow::Result<Option<String>> {
    if asked.no_sandbox {
        return Ok(asked.verbose.then(|| "sandbox: nothing is given up (--no-sandbox)".to_owned()));
    }
    let folders: Vec<PathBuf> = endpoints.filter_map(folder).collect();
    let given = give_up(&folders)
        .context("what the server does not need cannot be given up; --no-sandbox keeps it")?;
    Ok((asked.verbose || !given.is_all).then_some(given.note))
}

/// What was given up.
struct GivenUp {
    note: String,
    /// The kernel has all that is used.
    is_all: bool,
}

/// Where the name of a socket is, which goes when the server does.
fn folder(endpoint: &Endpoint) -> Option<PathBuf> {
    let Endpoint::Unix(path) = endpoint else { return None };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Some(parent.unwrap_or(Path::new(".")).to_owned())
}

/// Gives it up for this thread and those it begins. Names in these folders can still be removed.
fn give_up(folders: &[PathBuf]) -> anyhow::Result<GivenUp> {
    // In this order: afterwards there is no system call for the first.
    let (files, has_landlock) = give_up_files(folders)?;
    let (calls, has_seccomp) = give_up_calls()?;
    Ok(GivenUp { note: format!("sandbox: {files}; {calls}"), is_all: has_landlock && has_seccomp })
}

fn give_up_files(folders: &[PathBuf]) -> anyhow::Result<(&'static str, bool)> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?;
    for folder in folders {
        let place = PathFd::new(folder).with_context(|| folder.display().to_string())?;
        rules = rules.add_rule(PathBeneath::new(place, AccessFs::RemoveFile))?;
    }
    Ok(match rules.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => ("no files, no TCP ports, no signals to others (Landlock)", true),
        RulesetStatus::PartiallyEnforced => ("no files (Landlock, as far as this kernel has it)", true),
        RulesetStatus::NotEnforced => ("this kernel has no Landlock", false),
    })
}

fn give_up_calls() -> anyhow::Result<(String, bool)> {
    let Ok(processor) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(("no seccomp filter for this processor".to_owned(), false));
    };
    let calls: Vec<i64> = CALLS.iter().chain(CALLS_X86).copied().collect();
    let count = calls.len();
    let rules = calls.into_iter().map(|call| (call, Vec::new())).collect();
    // An error and not the end of the process: it may hold what others wrote and nobody flushed.
    let refuse = SeccompAction::Errno(u32::try_from(libc::EPERM)?);
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, processor)?;
    let program = BpfProgram::try_from(filter)?;
    match seccompiler::apply_filter(&program) {
        Ok(()) => Ok((format!("{count} system calls (seccomp)"), true)),
        Err(seccompiler::Error::Prctl(error)) if error.raw_os_error() == Some(libc::EINVAL) => {
            Ok(("this kernel has no seccomp filters".to_owned(), false))
        }
        Err(error) => Err(anyhow!("seccomp: {error}")),
    }
}

/// System calls that serving takes: payload and messages, waiting, memory, threads, time, what an image is kept by, and the
/// removal of sockets' names. No opening, no program, no socket of its own, nothing of other processes.
const CALLS: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_close,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_eventfd2,
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_lseek,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getrandom,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_prctl,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_restart_syscall,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getcpu,
    libc::SYS_membarrier,
    libc::SYS_unlinkat,
];

/// Those that only this processor has.
#[cfg(target_arch = "x86_64")]
const CALLS_X86: &[i64] = &[
    libc::SYS_poll,
    libc::SYS_epoll_wait,
    libc::SYS_unlink,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_dup2,
];
#[cfg(not(target_arch = "x86_64"))]
const CALLS_X86: &[i64] = &[];

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;
    use std::process::Command;

    /// What a thread can do that has given up the rest, as sentences about what it could not.
    fn try_everything(
        folder: &Path,
        mut open: File,
        mut pair: (UnixStream, UnixStream),
    ) -> Vec<&'static str> {
        let mut wrong = Vec::new();
        let mut expect = |is_so: bool, what: &'static str| {
            if !is_so {
                wrong.push(what);
            }
        };
        let denied = |kind: Option<ErrorKind>| kind == Some(ErrorKind::PermissionDenied);
        expect(open.write_all(b"more").and_then(|()| open.sync_all()).is_ok(), "an open file can be written");
        expect(pair.0.write_all(b"x").is_ok(), "an open socket can be written");
        expect(pair.1.read_exact(&mut [0]).is_ok(), "an open socket can be read");
        expect(std::thread::spawn(|| 7).join().ok() == Some(7), "a thread can be begun");
        expect(fs::remove_file(folder.join("socket")).is_ok(), "a name of its folder can be removed");
        expect(denied(File::open("/etc/passwd").err().map(|error| error.kind())), "no file can be opened");
        expect(
            denied(File::create(folder.join("new")).err().map(|error| error.kind())),
            "no file can be made",
        );
        expect(
            denied(TcpListener::bind("127.0.0.1:0").err().map(|error| error.kind())),
            "no port can be listened on",
        );
        expect(
            denied(Command::new("/bin/true").status().err().map(|error| error.kind())),
            "no program can be started",
        );
        wrong
    }

    #[test]
    fn a_thread_that_gave_up_the_rest_goes_on_with_what_is_open_and_begins_nothing_new() {
        let folder = std::env::temp_dir().join(format!("ocssd-sandbox-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("socket"), b"").unwrap();
        let open = File::create(folder.join("image")).unwrap();
        let pair = UnixStream::pair().unwrap();
        let inside = folder.clone();
        // Only the thread that enters is bound, and those it begins.
        let thread = std::thread::spawn(move || {
            let said = give_up(std::slice::from_ref(&inside)).unwrap().note;
            (try_everything(&inside, open, pair), said)
        });
        let (wrong, said) = thread.join().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(said.starts_with("sandbox: "), "{said}");
        // Any kernel that takes the filter refuses these, with Landlock or without.
        if said.contains("(seccomp)") {
            assert_eq!(wrong, Vec::<&str>::new(), "{said}");
        }
    }

    /// What a thread can open that gave up files and ports alone, or system calls alone, as the errors of a file and a port.
    fn errors_of(
        give_up: impl FnOnce() -> (String, bool) + Send + 'static,
    ) -> (String, bool, [Option<ErrorKind>; 2]) {
        let thread = std::thread::spawn(move || {
            let (said, is_there) = give_up();
            let file = File::open("/etc/passwd").err().map(|error| error.kind());
            let port = TcpListener::bind("127.0.0.1:0").err().map(|error| error.kind());
            (said, is_there, [file, port])
        });
        thread.join().unwrap()
    }

    /// Together either would do, so that the loss of one would show nowhere.
    #[test]
    fn each_of_the_two_alone_keeps_files_and_ports_away() {
        let denied = Some(ErrorKind::PermissionDenied);
        let (said, is_there, errors) = errors_of(|| {
            let (said, is_there) = give_up_files(&[]).unwrap();
            (said.to_owned(), is_there)
        });
        match (is_there, said.contains("TCP ports")) {
            (true, true) => assert_eq!(errors, [denied; 2], "{said}"),
            (true, false) => assert_eq!(errors[0], denied, "{said}"),
            (false, _) => eprintln!("not tested: {said}"),
        }
        let (said, is_there, errors) = errors_of(|| give_up_calls().unwrap());
        if is_there {
            assert_eq!(errors, [denied; 2], "{said}");
        } else {
            eprintln!("not tested: {said}");
        }
        assert_eq!(errors_of(|| (String::new(), false)).2, [None, None], "nothing was given up");
    }

    #[test]
    fn a_sockets_folder_is_that_of_its_path() {
        let of = |text: &str| folder(&text.parse().unwrap());
        assert_eq!(of("unix:/run/x/a.sock"), Some(PathBuf::from("/run/x")));
        assert_eq!(of("unix:a.sock"), Some(PathBuf::from(".")));
        assert_eq!(of("tcp:127.0.0.1:1"), None);
    }
}

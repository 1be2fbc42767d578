//! Which back end does the I/O: io_uring where the kernel lets us, else threads, and why.

use super::backend::{Backend, NullBackend};
use super::threads::ThreadBackend;
#[cfg(target_os = "linux")]
use super::uring::UringBackend;
use std::fs::File;
use std::io;

/// Which back end is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// io_uring, and threads if it is refused.
    #[default]
    Best,
    /// io_uring, or an error.
    Uring,
    /// Threads.
    Threads,
    /// Nothing is read or written: what the program itself can do.
    Null,
}

/// A back end on `file` with `slots` slots of `bytes` bytes, and sentences about what did not go as asked.
///
/// # Errors
/// If the system refuses what was asked for by name, or gives no threads.
pub fn make_backend(
    engine: Engine,
    file: &File,
    slots: u32,
    bytes: usize,
) -> io::Result<(Box<dyn Backend>, Option<String>)> {
    match engine {
        Engine::Null => return Ok((Box::new(NullBackend::new(slots, bytes)), None)),
        Engine::Threads => return Ok((Box::new(ThreadBackend::new(file, slots, bytes)?), None)),
        Engine::Best | Engine::Uring => {}
    }
    fall_back(engine, uring(file, slots, bytes), || ThreadBackend::new(file, slots, bytes))
}

/// What io_uring gave, else threads with the reason, if they may stand in.
fn fall_back(
    engine: Engine,
    made: io::Result<(Box<dyn Backend>, Option<String>)>,
    threads: impl FnOnce() -> io::Result<ThreadBackend>,
) -> io::Result<(Box<dyn Backend>, Option<String>)> {
    let refused = match made {
        Ok(made) => return Ok(made),
        Err(error) if engine == Engine::Uring => return Err(error),
        Err(error) => error,
    };
    let note = format!(
        "io_uring is refused ({refused}; see kernel.io_uring_disabled, and what your container forbids): threads are used, \
         which cost each I/O some 10 to 50 us more at depths above 1"
    );
    Ok((Box::new(threads()?), Some(note)))
}

#[cfg(target_os = "linux")]
fn uring(file: &File, slots: u32, bytes: usize) -> io::Result<(Box<dyn Backend>, Option<String>)> {
    let (backend, note) = UringBackend::new(file, slots, bytes)?;
    Ok((Box::new(backend), note))
}

#[cfg(not(target_os = "linux"))]
fn uring(_file: &File, _slots: u32, _bytes: usize) -> io::Result<(Box<dyn Backend>, Option<String>)> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux has it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_io_uring_becomes_threads_with_the_reason_unless_it_was_named() {
        let file = File::open("/dev/null").expect("every system has it");
        let refuse = || Err(io::Error::from(io::ErrorKind::PermissionDenied));
        let threads = || ThreadBackend::new(&file, 2, 4096);
        let (backend, note) = fall_back(Engine::Best, refuse(), threads).expect("threads are there");
        assert_eq!(backend.engine(), "psync");
        assert!(note.is_some_and(|note| note.contains("io_uring is refused (permission denied")));
        assert!(fall_back(Engine::Uring, refuse(), threads).is_err());
    }
}

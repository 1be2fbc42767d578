//! The ways to interrupt a guest: one file (an eventfd) for each vector.

use crate::pci_nvme::VECTORS;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::File;
use std::io::{self, Write};

/// The files; vectors without one are not signalled.
#[derive(Debug)]
pub(super) struct Signals {
    files: Vec<Option<File>>,
}

impl Signals {
    pub(super) fn new() -> Self {
        Self { files: (0..VECTORS).map(|_| None).collect() }
    }

    /// Vectors from `start` on get these files; those of `count` without one lose theirs.
    pub(super) fn set(&mut self, start: u32, count: u32, files: Vec<File>) -> io::Result<()> {
        let range = range(start, count)?;
        if files.len() > range.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there are more files than vectors"));
        }
        // Nobody who does not take his interrupts may hold up the server.
        for file in &files {
            fcntl_setfl(file, fcntl_getfl(file)? | OFlags::NONBLOCK)?;
        }
        let mut files = files.into_iter();
        for place in &mut self.files[range] {
            *place = files.next();
        }
        Ok(())
    }

    /// Interrupts the guest, if it wants this vector.
    pub(super) fn signal(&mut self, vector: u16) {
        if let Some(Some(file)) = self.files.get_mut(usize::from(vector)) {
            // An eventfd counts what is written. One that is full has been signalled before, and a file that takes
            // nothing is its owner's loss.
            let _ = file.write(&1u64.to_ne_bytes());
        }
    }

    pub(super) fn clear(&mut self) {
        self.files.fill_with(|| None);
    }
}

/// Vectors that exist.
pub(super) fn range(start: u32, count: u32) -> io::Result<std::ops::Range<usize>> {
    let end = start.checked_add(count).filter(|&end| end <= u32::from(VECTORS));
    let end =
        end.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "there are not so many vectors"))?;
    let index = |vector: u32| usize::try_from(vector).expect("few");
    Ok(index(start)..index(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    fn count(file: &File) -> u64 {
        let mut bytes = [0; 8];
        if rustix::io::read(file, &mut bytes).is_ok() { u64::from_ne_bytes(bytes) } else { 0 }
    }

    #[test]
    fn vectors_without_a_file_are_silent_and_files_that_take_nothing_hold_up_nobody() {
        let file = File::from(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let (pipe_end, pipe) = rustix::pipe::pipe().unwrap();
        let mut signals = Signals::new();
        signals.set(3, 2, vec![file.try_clone().unwrap(), File::from(pipe)]).unwrap();
        for vector in [2, 3, 3, u16::MAX] {
            signals.signal(vector);
        }
        assert_eq!(count(&file), 2);
        for _ in 0..100_000 {
            signals.signal(4);
        }
        drop(pipe_end);
        signals.signal(4);
        signals.set(3, 1, Vec::new()).unwrap();
        signals.signal(3);
        assert_eq!(count(&file), 0);
        assert!(
            signals.set(64, 2, Vec::new()).is_err()
                && signals.set(0, 1, vec![file.try_clone().unwrap(), file]).is_err()
        );
    }
}

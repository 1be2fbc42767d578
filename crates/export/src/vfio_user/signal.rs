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

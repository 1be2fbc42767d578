//! An open file: who writes it, and who reads it.

use crate::content::{File, NewPlace, Replace};
use crate::error::StoreError;
use crate::names::Place;
use crate::path;
use crate::store::{Hint, Store};
use std::fmt;
use std::sync::Arc;

/// A file that is written. Dropped, it is closed as by [`Writer::close`], and whether that succeeded is not told.
pub struct Writer {
    store: Arc<Store>,
    file: Arc<File>,
    is_closed: bool,
}

impl Writer {
    pub(crate) const fn new(store: Arc<Store>, file: Arc<File>) -> Self {
        Self { store, file, is_closed: false }
    }

    /// Adds to its end.
    ///
    /// # Errors
    /// If the drive is full or fails. The file is then as long as it was, or some of the bytes longer.
    pub fn append(&self, bytes: &[u8]) -> Result<(), StoreError> {
        self.store.append(&self.file, bytes)
    }

    /// What was appended to a log survives the end of this process, if the drive is an image. Tables appear at their sync.
    ///
    /// # Errors
    /// If the operating system cannot keep it.
    pub fn flush(&self) -> Result<(), StoreError> {
        self.store.flush(&self.file)
    }

    /// What was appended survives a power cut; a table is visible as it is.
    ///
    /// # Errors
    /// If the drive is full or fails.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.store.sync(&self.file)
    }

    /// Makes it `bytes` long: shorter, or longer by zeros.
    ///
    /// # Errors
    /// If the drive is full or fails.
    pub fn truncate(&self, bytes: u64) -> Result<(), StoreError> {
        self.store.truncate(&self.file, bytes)
    }

    /// What is known of it. Of use before the first append.
    ///
    /// # Errors
    /// After a bug.
    pub fn hint(&self, hint: Hint) -> Result<(), StoreError> {
        let mut content = self.file.content()?;
        content.hint = hint.of_table();
        content.bytes_expected = hint.bytes_expected;
        Ok(())
    }

    /// Its bytes so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// Ends a file that was begun without a name: it appears at `to` as a whole, in the place of what `replace` allows.
    /// Directories on the way are made. It is durable when this returns.
    ///
    /// # Errors
    /// If something else lies there, a directory has the name, or the drive is full or fails. The file
    /// can be tried again then.
    pub fn publish_at(&mut self, to: &str, replace: Replace) -> Result<(), StoreError> {
        let place = self.place(to)?;
        self.store.publish(&self.file, Some(NewPlace { place, replace }))?;
        self.is_closed = true;
        self.store.drive.sync_image()
    }

    fn place(&self, to: &str) -> Result<Place, StoreError> {
        let (directory, name) = path::split(to)?;
        Ok((self.store.create_directories(&directory)?, name.to_owned()))
    }

    /// Nobody writes it any more: a table is visible from now on, a log survives the process. Twice is once.
    ///
    /// # Errors
    /// If the drive is full or fails.
    pub fn close(&mut self) -> Result<(), StoreError> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        self.store.close_file(&self.file)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.close());
        self.store.forget_unnamed(&self.file);
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Writer").field(&self.file).finish()
    }
}

/// A file that is read. It sees what is appended later.
#[derive(Clone)]
pub struct Reader {
    store: Arc<Store>,
    file: Arc<File>,
}

impl Reader {
    pub(crate) const fn new(store: Arc<Store>, file: Arc<File>) -> Self {
        Self { store, file }
    }

    /// Reads from `offset` on, as much as there is and as `into` has room for. Returns how many bytes that was.
    ///
    /// # Errors
    /// If the file was deleted, or the media cannot be read.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, StoreError> {
        self.store.read(&self.file, offset, into)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.file.bytes()
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reader").field(&self.file).finish()
    }
}

//! Maps of files: a file's content in memory, for who wants slices of it that stay.
//!
//! Where a file system has pages of a file in memory anyway, a map is a look at these. A drive's content is nowhere in memory, so
//! a map here is the whole file, read when it is made, as it was then: its memory is the file's length, until the map is dropped.
//! What all maps of a store take is counted and bounded (the option `maps_mib`). Deliberately not here: pages that are read when
//! they are touched, for which the kernel would have to ask this process.

use crate::error::{ErrorKind, StoreError};
use crate::store::Store;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of all maps of a store at once, unless it is said (chosen: as a block cache of usual size).
pub(crate) const MAPS_BYTES_MAX: u64 = 1 << 30;

/// What the maps of a store take.
pub(crate) struct MapBooks {
    /// Bytes at once, at most.
    bytes_max: AtomicU64,
    /// Bytes now.
    bytes: AtomicU64,
    /// The most that there were at once.
    peak: AtomicU64,
}

impl Default for MapBooks {
    fn default() -> Self {
        Self { bytes_max: AtomicU64::new(MAPS_BYTES_MAX), bytes: AtomicU64::new(0), peak: AtomicU64::new(0) }
    }
}

impl MapBooks {
    /// Takes room, or says how much there is.
    fn take(&self, bytes: u64) -> Result<(), u64> {
        let most = self.bytes_max.load(Ordering::Relaxed);
        let more = |now: u64| now.checked_add(bytes).filter(|&all| all <= most);
        match self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(now) => Err(most.saturating_sub(now)),
        }
    }

    fn give_back(&self, bytes: u64) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "{bytes} bytes of maps are given back, and {before} were taken");
    }
}

/// The content of a file as it was when the map was made. It stays when the file is deleted.
pub struct Map {
    store: Arc<Store>,
    content: Vec<u8>,
    /// What it took of the books.
    taken: u64,
}

impl Map {
    /// All of it.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.content
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        self.store.maps.give_back(self.taken);
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("bytes", &self.content.len()).finish_non_exhaustive()
    }
}

impl Store {
    /// From now on all maps together may have so many bytes. Those that are there stay.
    pub fn bound_maps(&self, bytes_max: u64) {
        self.maps.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Bytes of all maps now, and the most that there were at once.
    #[must_use]
    pub fn map_bytes(&self) -> (u64, u64) {
        (self.maps.bytes.load(Ordering::Relaxed), self.maps.peak.load(Ordering::Relaxed))
    }

    /// Reads a file whole into memory.
    ///
    /// # Errors
    /// If there is none, maps would take more than they may, or the media cannot be read.
    pub fn map_file(self: &Arc<Self>, path: &str) -> Result<Map, StoreError> {
        let reader = self.open_file(path)?;
        let taken = reader.bytes();
        self.maps.take(taken).map_err(|left| {
            let sentence = format!(
                "{path}: a file that is read by maps is held in memory whole, and of its {taken} bytes {left} may be; allow \
                 more by maps_mib, or switch mmap reads off"
            );
            StoreError::new(ErrorKind::Io, sentence)
        })?;
        // From here on the room is given back, whatever happens.
        let length = usize::try_from(taken).expect("it was found to fit");
        let mut map = Map { store: self.clone(), content: vec![0; length], taken };
        let read = reader.read(0, &mut map.content)?;
        assert!(read <= length, "{read} bytes were read into {length}");
        map.content.truncate(read);
        Ok(map)
    }
}

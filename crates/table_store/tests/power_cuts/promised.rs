//! What must be on a drive after a power cut: a naive model of the store's promises.
//!
//! A call that was answered has happened as a whole; of one in the middle of which the power went, all or nothing. Of a log
//! there are the bytes that were synced, perhaps more of those that were appended, and never others. Deliberately not here: which
//! calls are made (`drawn`).

use ocssd_table_store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a test holds the store to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// The store's own.
    Synced,
    /// Too much: bytes of a log are there once they are appended.
    AppendedLogs,
    /// Too much: a table is there before it is published.
    UnpublishedTables,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum File {
    /// It has exactly these bytes.
    Table(Arc<Vec<u8>>),
    /// It has at least the first `synced` of these bytes, and no others.
    Log {
        /// Appended.
        bytes: Arc<Vec<u8>>,
        /// That a cut must leave.
        synced: usize,
    },
}

impl File {
    fn admits(&self, found: &[u8]) -> bool {
        match self {
            Self::Table(bytes) => bytes.as_slice() == found,
            Self::Log { bytes, synced } => found.len() >= *synced && bytes.starts_with(found),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Table(bytes) => format!("a table of {} bytes", bytes.len()),
            Self::Log { bytes, synced } => format!("a log with {synced} to {} bytes", bytes.len()),
        }
    }
}

/// Files by path.
pub type Tree = BTreeMap<String, File>;

/// All promises.
#[derive(Debug)]
pub struct Promised {
    promise: Promise,
    /// What the answered calls made.
    tree: Tree,
    /// What the call in the middle of which the power went would have made.
    or: Option<Tree>,
}

impl Promised {
    /// Nothing is there yet.
    pub const fn new(promise: Promise) -> Self {
        Self { promise, tree: Tree::new(), or: None }
    }

    /// The files that are there now.
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// A call is carried out, which changes the tree so. Returns false if the power went.
    pub fn call<E>(&mut self, change: impl FnOnce(&mut Tree), call: impl FnOnce() -> Result<(), E>) -> bool {
        let mut after = self.tree.clone();
        change(&mut after);
        let is_done = call().is_ok();
        if is_done {
            self.tree = after;
        } else {
            self.or = Some(after);
        }
        is_done
    }

    /// A log is given bytes: they may be there from now on.
    pub fn append_to_log(&mut self, path: &str, more: &[u8]) {
        let Some(File::Log { bytes, synced }) = self.tree.get_mut(path) else { panic!("{path} is no log") };
        Arc::make_mut(bytes).extend_from_slice(more);
        if self.promise == Promise::AppendedLogs {
            *synced = bytes.len();
        }
    }

    /// A table is written and not published.
    pub fn begin_table(&mut self, path: &str, bytes: &[u8]) {
        if self.promise == Promise::UnpublishedTables {
            self.tree.insert(path.to_owned(), File::Table(Arc::new(bytes.to_vec())));
        }
    }

    /// The store was closed: everything appended is durable.
    pub fn closed(&mut self) {
        sync_all(&mut self.tree);
        self.or = None;
    }

    /// Holds what a mount finds against the promises; from then on all that was found is promised.
    ///
    /// # Errors
    /// A sentence about the first promise that was broken.
    pub fn meet(&mut self, store: &Arc<Store>) -> Result<(), String> {
        let found = contents(store)?;
        let broken = differs(&self.tree, &found);
        let or_broken = self.or.take().map_or_else(|| broken.clone(), |or| differs(&or, &found));
        if let (Some(broken), Some(or_broken)) = (broken, or_broken) {
            return Err(format!("{broken}; and if the last call was carried out, {or_broken}"));
        }
        self.tree = found
            .into_iter()
            .map(|(path, bytes)| {
                let (synced, bytes) = (bytes.len(), Arc::new(bytes));
                let file = if is_log(&path) { File::Log { bytes, synced } } else { File::Table(bytes) };
                (path, file)
            })
            .collect();
        Ok(())
    }
}

/// True of paths whose files are logs.
pub fn is_log(path: &str) -> bool {
    path.ends_with(".log") || path.contains("MANIFEST-")
}

fn sync_all(tree: &mut Tree) {
    for file in tree.values_mut() {
        if let File::Log { bytes, synced } = file {
            *synced = bytes.len();
        }
    }
}

fn contents(store: &Arc<Store>) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let listed = store.children("/").map_err(|error| error.to_string())?;
    listed
        .into_iter()
        .map(|(name, status)| {
            let path = format!("/{name}");
            let reader = store.open_file(&path).map_err(|error| error.to_string())?;
            let mut bytes = vec![0; usize::try_from(status.bytes).expect("short") + 1];
            let length = reader.read(0, &mut bytes).map_err(|error| format!("{path}: {error}"))?;
            if length as u64 != status.bytes {
                return Err(format!("{path} has {} bytes, and {length} can be read", status.bytes));
            }
            bytes.truncate(length);
            Ok((path, bytes))
        })
        .collect()
}

/// The first difference, in words.
fn differs(tree: &Tree, found: &BTreeMap<String, Vec<u8>>) -> Option<String> {
    for (path, file) in tree {
        match found.get(path) {
            None => return Some(format!("{path} is not there, which should be {}", file.describe())),
            Some(bytes) if !file.admits(bytes) => {
                let (File::Table(expected) | File::Log { bytes: expected, .. }) = file;
                let same = expected.iter().zip(bytes.iter()).take_while(|(a, b)| a == b).count();
                return Some(format!(
                    "{path} should be {}, but has {} bytes, the first {same} of them as written",
                    file.describe(),
                    bytes.len()
                ));
            }
            Some(_) => {}
        }
    }
    let other = found.keys().find(|path| !tree.contains_key(*path));
    other.map(|path| format!("{path} is there, and should not be"))
}

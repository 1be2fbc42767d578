//! The directory of a mount: a file for each export, and what there is to say about them.
//!
//! Deliberately not here: what is in the files.

use super::wire::{Attributes, directory_entry};
use crate::exports::{Export, ExportId, Exports};
use std::time::Duration;

/// The node of the directory (`FUSE_ROOT_ID`).
pub const ROOT: u64 = 1;

/// The node of the first file.
const FIRST_FILE: u64 = 2;

/// The file of the export that is meant when none is named.
pub const UNNAMED: &str = "disk";

/// Bytes of a name (`NAME_MAX`).
pub const NAME_BYTES_MAX: usize = 255;

/// Kinds of nodes in modes (inode(7)), and in directories (readdir(3): the mode's upper four bits).
const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;

/// A file.
#[derive(Clone, Debug)]
struct File {
    name: String,
    export: ExportId,
    /// Since 1970.
    changed: Duration,
}

/// All files.
#[derive(Clone, Debug)]
pub struct Directory {
    files: Vec<File>,
    owner: (u32, u32),
    begun: Duration,
}

/// The name of an export's file.
///
/// # Errors
/// A sentence, if the export's name can be none of a file.
pub fn file_name(export: &Export) -> Result<String, String> {
    let name = if export.name.is_empty() { UNNAMED } else { &export.name };
    let is_sound = !name.contains(['/', '\0']) && name != "." && name != ".." && name.len() <= NAME_BYTES_MAX;
    if is_sound {
        return Ok(name.to_owned());
    }
    Err(format!(
        "export \"{name}\" cannot be a file: a file's name has no / and at most {NAME_BYTES_MAX} bytes; give it another name"
    ))
}

impl Directory {
    /// The files of these exports, owned by a user and a group, last changed now.
    ///
    /// # Errors
    /// As [`file_name`], or if two would have one name.
    pub fn new(exports: &Exports, owner: (u32, u32), now: Duration) -> Result<Self, String> {
        let named = |(id, export)| file_name(export).map(|name| (id, name));
        let names = exports.blocks().map(named).collect::<Result<Vec<_>, _>>()?;
        for (place, (_, name)) in names.iter().enumerate() {
            if names[..place].iter().any(|(_, other)| other == name) {
                return Err(format!(
                    "two exports would be the file \"{name}\"; give one of them another name"
                ));
            }
        }
        let files = names.into_iter().map(|(export, name)| File { name, export, changed: now }).collect();
        Ok(Self { files, owner, begun: now })
    }

    /// The export behind a node; `None` if it is no file.
    pub fn export(&self, node: u64) -> Option<ExportId> {
        self.file(node).map(|file| file.export)
    }

    fn file(&self, node: u64) -> Option<&File> {
        self.files.get(usize::try_from(node.checked_sub(FIRST_FILE)?).ok()?)
    }

    /// The node of a name.
    pub fn find(&self, name: &[u8]) -> Option<u64> {
        let place = self.files.iter().position(|file| file.name.as_bytes() == name)?;
        Some(node_of(place))
    }

    /// A file was changed.
    pub fn on_change(&mut self, file: ExportId, now: Duration) {
        let found = self.files.iter_mut().find(|one| one.export == file);
        found.expect("only files of the directory change").changed = now;
    }

    /// What there is to say about a node; `None` if there is no such.
    pub fn attributes(&self, node: u64, exports: &Exports) -> Option<Attributes> {
        let owner = self.owner;
        if node == ROOT {
            let (mode, mtime) = (DIRECTORY | 0o555, self.begun);
            return Some(Attributes { node, size: 0, mtime, mode, links: 2, owner, block_bytes: 4096 });
        }
        let file = self.file(node)?;
        let export = exports.get(file.export);
        let rights = if export.read_only { 0o444 } else { 0o644 };
        let (size, mtime) = (export.bytes(), file.changed);
        let block_bytes = export.preferred_bytes;
        Some(Attributes { node, size, mtime, mode: FILE | rights, links: 1, owner, block_bytes })
    }

    /// The names from a place on, in at most `most` bytes: the directory itself and what it is in, then the files.
    pub fn list(&self, place: u64, most: usize) -> Vec<u8> {
        let own = [(ROOT, DIRECTORY, "."), (ROOT, DIRECTORY, "..")];
        let files =
            self.files.iter().enumerate().map(|(place, file)| (node_of(place), FILE, file.name.as_str()));
        let mut out = Vec::new();
        for (next, (node, kind, name)) in
            (1..).zip(own.into_iter().chain(files)).skip_while(|(next, _)| *next <= place)
        {
            if !directory_entry(&mut out, most, node, next, kind >> 12, name.as_bytes()) {
                break;
            }
        }
        out
    }

    /// How many files.
    pub fn len(&self) -> usize {
        self.files.len()
    }
}

fn node_of(place: usize) -> u64 {
    FIRST_FILE + u64::try_from(place).expect("a host has at most 256 targets")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exports(names: &[&str]) -> Exports {
        let export = |name: &&str| Export { name: (*name).to_owned(), ..Export::example() };
        Exports::new(names.iter().map(export).collect()).unwrap()
    }

    #[test]
    fn every_export_is_a_file_that_is_found_by_its_name() {
        let exports = exports(&["", "log"]);
        let directory = Directory::new(&exports, (7, 8), Duration::from_secs(3)).unwrap();
        assert_eq!(
            [directory.find(b"disk"), directory.find(b"log"), directory.find(b"x")],
            [Some(2), Some(3), None]
        );
        let file = directory.attributes(3, &exports).unwrap();
        assert_eq!((file.size, file.mode, file.mtime), (51200, 0o100_644, Duration::from_secs(3)));
        assert_eq!(directory.attributes(4, &exports), None);
        assert_eq!(directory.attributes(ROOT, &exports).unwrap().mode, 0o040_555);
        assert_eq!([directory.export(ROOT), directory.export(2)], [None, Some(ExportId(0))]);
    }

    #[test]
    fn what_may_not_be_changed_says_so_in_its_mode() {
        let list = vec![Export { read_only: true, ..Export::example() }];
        let exports = Exports::new(list).unwrap();
        let directory = Directory::new(&exports, (0, 0), Duration::ZERO).unwrap();
        assert_eq!(directory.attributes(2, &exports).unwrap().mode, 0o100_444);
    }

    #[test]
    fn names_are_listed_from_any_place_in_any_room() {
        let directory = Directory::new(&exports(&["a", "b", "c"]), (0, 0), Duration::ZERO).unwrap();
        // Each name here takes 32 bytes.
        assert_eq!([directory.list(0, 4096).len(), directory.list(0, 95).len()], [5 * 32, 2 * 32]);
        assert_eq!([directory.list(4, 4096).len(), directory.list(5, 4096).len()], [32, 0]);
        assert_eq!(directory.list(4, 4096)[24], b'c');
    }

    #[test]
    fn names_that_no_file_can_have_are_refused() {
        for name in ["a/b", ".", "..", &"x".repeat(256)] {
            let error = Directory::new(&exports(&[name]), (0, 0), Duration::ZERO).expect_err(name);
            assert!(error.contains("another name"), "{error}");
        }
        let error = Directory::new(&exports(&["", "disk"]), (0, 0), Duration::ZERO).unwrap_err();
        assert!(error.contains("\"disk\""), "{error}");
    }
}

//! Calls as RocksDB makes them, drawn: some logs and tables are open at a time.
//!
//! Deliberately not here: what must be left of them (`promised`).

use crate::promised::{File, Promised, Tree, is_log};
use ocssd_base::Prng;
use ocssd_table_store::{Created, Hint, Store, Writer};
use std::sync::Arc;

/// Files that are written at a time, of each kind.
const OPEN_MAX: usize = 3;
/// Bytes of all files, beyond which one is deleted (the drive has 48 MiB).
const BYTES_MAX: usize = 10 << 20;
/// Files beyond which one is deleted.
const FILES_MAX: usize = 14;

/// Who makes the calls.
pub struct Drawn<'a> {
    store: &'a Arc<Store>,
    prng: Prng,
    logs: Vec<(String, Writer)>,
    /// Written and not yet published.
    tables: Vec<(String, Writer, Vec<u8>)>,
    next: u64,
}

impl<'a> Drawn<'a> {
    /// Nothing is open.
    pub fn new(store: &'a Arc<Store>, mut prng: Prng) -> Self {
        let next = prng.next_u64() % 1_000_000_000;
        Self { store, prng, logs: Vec::new(), tables: Vec::new(), next }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.prng.below(bound as u64)).expect("below an index")
    }

    fn name(&mut self, suffix: &str) -> String {
        self.next += 1;
        format!("/{:010}.{suffix}", self.next)
    }

    /// Bytes that no other call writes: mostly short, as a log's records, now and then longer than a write unit or a chunk.
    fn content(&mut self) -> Vec<u8> {
        let most = [200, 2_000, 40_000, 400_000, 1_500_000][[0, 0, 0, 1, 1, 1, 2, 2, 3, 4][self.below(10)]];
        let length = self.below(most) + 1;
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.prng.next_u64().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }

    /// A path that is there and that nobody writes.
    fn closed(&mut self, tree: &Tree) -> Option<String> {
        let is_open = |path: &&String| self.logs.iter().any(|(log, _)| log == *path);
        let closed: Vec<String> = tree.keys().filter(|path| !is_open(path)).cloned().collect();
        if closed.is_empty() { None } else { Some(closed[self.below(closed.len())].clone()) }
    }

    /// One call. False if the power went.
    pub fn call(&mut self, promised: &mut Promised) -> bool {
        let tree = promised.tree();
        let bytes: usize = tree
            .values()
            .map(|file| {
                let (File::Table(bytes) | File::Log { bytes, .. }) = file;
                bytes.len()
            })
            .sum();
        if bytes > BYTES_MAX || tree.len() > FILES_MAX {
            return self.delete(promised);
        }
        match self.below(100) {
            0..=4 => self.begin_log(promised),
            5..=39 => self.append_to_log(promised),
            40..=54 => self.sync_log(promised),
            55..=58 => self.leave_log(),
            59..=61 => self.shorten_log(promised),
            62..=64 => self.go_on_with_log(promised),
            65..=69 => self.begin_table(promised),
            70..=79 => self.append_to_table(promised),
            80..=85 => self.publish(promised),
            86..=92 => self.point_at(promised),
            93..=95 => self.rename(promised),
            _ => self.delete(promised),
        }
    }

    fn begin_log(&mut self, promised: &mut Promised) -> bool {
        if self.logs.len() == OPEN_MAX {
            return true;
        }
        let path = self.name("log");
        let (mut writer, store) = (None, self.store);
        let change =
            |tree: &mut Tree| drop(tree.insert(path.clone(), File::Log { bytes: Arc::default(), synced: 0 }));
        let is_done =
            promised.call(change, || store.create(&path, Created::Anew).map(|made| writer = Some(made)));
        self.logs.extend(writer.map(|writer| (path.clone(), writer)));
        is_done
    }

    /// Goes on with one that nobody writes, as after a mount.
    fn go_on_with_log(&mut self, promised: &Promised) -> bool {
        match self.closed(promised.tree()) {
            Some(path) if is_log(&path) && self.logs.len() < OPEN_MAX => {
                let writer = self
                    .store
                    .create(&path, Created::Continued)
                    .expect("it is there, and nothing is asked of the drive");
                self.logs.push((path, writer));
            }
            _ => {}
        }
        true
    }

    fn append_to_log(&mut self, promised: &mut Promised) -> bool {
        if self.logs.is_empty() {
            return self.begin_log(promised);
        }
        let (at, content) = (self.below(self.logs.len()), self.content());
        let (path, writer) = &self.logs[at];
        promised.append_to_log(path, &content);
        writer.append(&content).is_ok()
    }

    fn sync_log(&mut self, promised: &mut Promised) -> bool {
        if self.logs.is_empty() {
            return true;
        }
        let at = self.below(self.logs.len());
        let (path, writer) = &self.logs[at];
        let change = |tree: &mut Tree| {
            let Some(File::Log { bytes, synced }) = tree.get_mut(path) else { panic!("{path} is a log") };
            *synced = bytes.len();
        };
        promised.call(change, || writer.sync())
    }

    fn leave_log(&mut self) -> bool {
        if self.logs.is_empty() {
            return true;
        }
        let at = self.below(self.logs.len());
        self.logs.swap_remove(at).1.close().is_ok()
    }

    fn shorten_log(&mut self, promised: &mut Promised) -> bool {
        if self.logs.is_empty() {
            return true;
        }
        let at = self.below(self.logs.len());
        let length = usize::try_from(self.logs[at].1.bytes()).expect("short");
        let left = length - self.below(length + 1).min(50_000);
        let (path, writer) = &self.logs[at];
        let change = |tree: &mut Tree| {
            let Some(File::Log { bytes, synced }) = tree.get_mut(path) else { panic!("{path} is a log") };
            Arc::make_mut(bytes).truncate(left);
            *synced = left.min(*synced);
        };
        promised.call(change, || writer.truncate(left as u64))
    }

    fn begin_table(&mut self, promised: &mut Promised) -> bool {
        if self.tables.len() == OPEN_MAX {
            return true;
        }
        let path = self.name("sst");
        let writer = self.store.create(&path, Created::Anew).expect("nothing is asked of the drive");
        let bytes_expected = self.prng.below(2) * 1_000_000;
        let stream = u8::try_from(self.prng.below(3)).expect("a stream");
        writer.hint(Hint { bytes_expected, stream, ..Hint::default() }).expect("no bug");
        promised.begin_table(&path, &[]);
        self.tables.push((path, writer, Vec::new()));
        true
    }

    fn append_to_table(&mut self, promised: &mut Promised) -> bool {
        if self.tables.is_empty() {
            return self.begin_table(promised);
        }
        let (at, more) = (self.below(self.tables.len()), self.content());
        let (_, writer, bytes) = &mut self.tables[at];
        bytes.extend_from_slice(&more);
        writer.append(&more).is_ok()
    }

    fn publish(&mut self, promised: &mut Promised) -> bool {
        if self.tables.is_empty() {
            return true;
        }
        let at = self.below(self.tables.len());
        let is_synced = self.prng.below(2) == 0;
        let (path, mut writer, bytes) = self.tables.swap_remove(at);
        let change = |tree: &mut Tree| drop(tree.insert(path.clone(), File::Table(Arc::new(bytes))));
        promised.call(change, || if is_synced { writer.sync() } else { writer.close() })
    }

    /// Every table that is open is published. False if the power went.
    pub fn publish_all(mut self, promised: &mut Promised) -> bool {
        while !self.tables.is_empty() {
            if !self.publish(promised) {
                return false;
            }
        }
        true
    }

    /// As RocksDB writes CURRENT: a short file beside it, which takes its name.
    fn point_at(&mut self, promised: &mut Promised) -> bool {
        let (path, content) = (self.name("dbtmp"), format!("MANIFEST-{:06}\n", self.next).into_bytes());
        let writer = self.store.create(&path, Created::Anew).expect("nothing is asked of the drive");
        let store = self.store;
        writer.append(&content).expect("nothing is asked of the drive");
        let publish = |tree: &mut Tree| drop(tree.insert(path.clone(), File::Table(Arc::new(content))));
        promised.call(publish, || writer.sync())
            && promised.call(|tree| moved(tree, &path, "/CURRENT"), || store.rename(&path, "/CURRENT"))
    }

    /// Of a file of either kind; an open log too.
    fn rename(&mut self, promised: &mut Promised) -> bool {
        let paths: Vec<String> = promised.tree().keys().cloned().collect();
        let is_written = |path: &String| self.tables.iter().any(|(table, ..)| table == path);
        let paths: Vec<String> = paths.into_iter().filter(|path| !is_written(path)).collect();
        if paths.is_empty() {
            return true;
        }
        let from = paths[self.below(paths.len())].clone();
        let over = self.closed(promised.tree()).filter(|over| is_log(over) == is_log(&from) && *over != from);
        let to = over.unwrap_or_else(|| self.name(if is_log(&from) { "log" } else { "sst" }));
        let store = self.store;
        let is_done = promised.call(|tree| moved(tree, &from, &to), || store.rename(&from, &to));
        if let Some((path, _)) = self.logs.iter_mut().find(|(path, _)| *path == from) {
            *path = to;
        }
        is_done
    }

    fn delete(&mut self, promised: &mut Promised) -> bool {
        let Some(path) = self.closed(promised.tree()) else {
            return self.leave_log();
        };
        let store = self.store;
        promised.call(|tree| drop(tree.remove(&path)), || store.delete(&path))
    }
}

fn moved(tree: &mut Tree, from: &str, to: &str) {
    let file = tree.remove(from).expect("a file that is renamed is there");
    tree.insert(to.to_owned(), file);
}

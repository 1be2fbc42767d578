//! Commands over all keys: KEYS, SCAN, DBSIZE, RANDOMKEY, FLUSHALL. They walk in the store's order, a page at a time, and see
//! keys that were there all the while; others come and go meanwhile, but for a flush, which is alone.

use super::super::command::{NO_INTEGER, SYNTAX, Whole};
use super::super::glob;
use super::super::number;
use super::super::packing::KEY_ROOM;
use super::super::reply::Reply;
use super::super::request::Request;
use super::super::store::{Outcome, StoreOp};
use super::{Database, NO_MEMORY, SlabKey, Task, Work, failed};
use ocssd_base::Prng;
use std::collections::VecDeque;

/// Bytes of a page of a walk over all keys (chosen: a thousand short keys, a tenth of a millisecond).
const PAGE_BYTES: usize = (16 << 10) - KEY_ROOM;

/// Bytes of a short page, for who wants few keys.
const SHORT_PAGE_BYTES: usize = (4 << 10) - KEY_ROOM;

/// Keys of which one is chosen at random, so that those behind large gaps are not chosen much more often (chosen).
const RANDOM_OF: usize = 16;

/// Cursors of scans at the same time; the oldest is forgotten (chosen).
const CURSORS_MAX: usize = 1024;

/// Where scans go on. A cursor is a number, as clients expect; the key it stands for is kept here.
#[derive(Debug)]
pub(super) struct Cursors {
    keys: VecDeque<(u64, Vec<u8>)>,
    next: u64,
}

impl Cursors {
    /// None; their numbers begin where those of an earlier start of the server have not come.
    pub(super) fn new(now_ms: i64) -> Self {
        Self { keys: VecDeque::new(), next: now_ms.unsigned_abs() << 16 }
    }

    fn note(&mut self, key: Vec<u8>) -> u64 {
        if self.keys.len() == CURSORS_MAX {
            self.keys.pop_front();
        }
        self.next += 1;
        self.keys.push_back((self.next, key));
        self.next
    }

    fn find(&self, cursor: u64) -> Option<&[u8]> {
        self.keys.iter().rev().find(|(number, _)| *number == cursor).map(|(_, key)| key.as_slice())
    }
}

#[derive(Debug)]
enum Aim {
    Count,
    Matching {
        pattern: Vec<u8>,
    },
    Some {
        pattern: Option<Vec<u8>>,
        left: usize,
        is_of_type: bool,
    },
    Random {
        is_again: bool,
    },
    Flush,
    Survey,
    /// It cannot begin.
    Refused(String),
}

/// A walk.
#[derive(Debug)]
pub(super) struct Walk {
    aim: Aim,
    /// The last key that was seen; the next page begins with it.
    from: Vec<u8>,
    /// `from` was seen.
    is_seen: bool,
    /// Keys of which one is chosen, or that are deleted.
    found: Vec<Vec<u8>>,
    /// Keys that are told, as they are told: of many it would take long to write them all at the end.
    told: Reply,
    /// Keys that were counted or told.
    count: usize,
    /// Changes are being stored.
    is_storing: bool,
}

impl Walk {
    fn of(aim: Aim, from: Vec<u8>) -> Self {
        let is_seen = !from.is_empty();
        Self { aim, from, is_seen, found: Vec::new(), told: Reply::default(), count: 0, is_storing: false }
    }

    /// A look for keys that end, behind this one.
    pub(super) fn survey(from: Vec<u8>) -> Self {
        Self::of(Aim::Survey, from)
    }

    /// The walk of a command.
    pub(super) fn new(whole: Whole, request: &Request, cursors: &Cursors) -> Self {
        let mut from = Vec::new();
        let aim = match whole {
            Whole::DbSize => Aim::Count,
            Whole::Keys => Aim::Matching { pattern: request.word(1).to_vec() },
            Whole::RandomKey => Aim::Random { is_again: false },
            Whole::Flush => {
                let is_mode = request.is(1, "sync") || request.is(1, "async");
                let is_flush = request.len() == 1 || request.len() == 2 && is_mode;
                if is_flush { Aim::Flush } else { Aim::Refused(SYNTAX.to_owned()) }
            }
            Whole::Scan => match scan(request) {
                Ok((0, aim)) => aim,
                Ok((cursor, aim)) => match cursors.find(cursor) {
                    Some(key) => {
                        from = key.to_vec();
                        aim
                    }
                    None => Aim::Refused(
                        "ERR invalid cursor: it is of an earlier start, or one of too many; begin with 0"
                            .to_owned(),
                    ),
                },
                Err(words) => Aim::Refused(words),
            },
            Whole::Save => unreachable!("it walks nowhere"),
        };
        Self::of(aim, from)
    }

    /// Why it cannot begin, if it cannot.
    pub(super) fn refusal(&self) -> Option<&str> {
        if let Aim::Refused(words) = &self.aim { Some(words) } else { None }
    }

    pub(super) const fn is_flush(&self) -> bool {
        matches!(self.aim, Aim::Flush)
    }

    /// What it asks of the store next.
    pub(super) fn next_list(&mut self, random: &mut Prng) -> StoreOp {
        let bytes = match &self.aim {
            Aim::Some { left, .. } if *left <= 32 => SHORT_PAGE_BYTES,
            Aim::Random { .. } | Aim::Survey => SHORT_PAGE_BYTES,
            _ => PAGE_BYTES,
        };
        if let Aim::Random { is_again: false } = self.aim {
            // Keys are mostly text.
            self.from = (0..4).map(|_| u8::try_from(random.below(128)).expect("below 128")).collect();
        }
        StoreOp::List { from: self.from.clone(), bytes }
    }

    /// Takes a page; the keys of it that are new.
    fn turn_page(&mut self, mut keys: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        if self.is_seen && keys.first() == Some(&self.from) {
            keys.remove(0);
        }
        if let Some(last) = keys.last() {
            self.from.clone_from(last);
            self.is_seen = true;
        }
        keys
    }

    fn tell(&mut self, key: &[u8]) {
        self.told.bulk(key);
        self.count += 1;
    }

    /// The keys that were told, as an array.
    fn told(&mut self, reply: &mut Reply) {
        reply.array(self.count);
        reply.append(std::mem::take(&mut self.told));
    }
}

/// What SCAN is asked, and its cursor.
fn scan(request: &Request) -> Result<(u64, Aim), String> {
    let cursor = std::str::from_utf8(request.word(1)).ok().and_then(|text| text.parse().ok());
    let cursor: u64 = cursor.ok_or("ERR invalid cursor")?;
    let (mut pattern, mut left, mut is_of_type, mut at) = (None, 10, true, 2);
    while at < request.len() {
        if at + 1 == request.len() {
            return Err(SYNTAX.to_owned());
        }
        let value = request.word(at + 1);
        if request.is(at, "match") {
            pattern = Some(value.to_vec());
        } else if request.is(at, "count") {
            let count = number::integer(value).ok_or(NO_INTEGER)?;
            left = usize::try_from(count).ok().filter(|count| *count > 0).ok_or(SYNTAX)?;
        } else if request.is(at, "type") {
            is_of_type = value.eq_ignore_ascii_case(b"string");
        } else {
            return Err(SYNTAX.to_owned());
        }
        at += 2;
    }
    Ok((cursor, Aim::Some { pattern, left, is_of_type }))
}

impl Database {
    /// A walk's request is carried out.
    pub(super) fn on_walk(&mut self, key: SlabKey, mut task: Box<Task>, outcome: Outcome) {
        let Work::Walk(walk) = &mut task.work else { unreachable!("it is a walk") };
        let is_over = match outcome {
            Outcome::Keys(keys) => self.on_page(key, &mut task, keys),
            Outcome::Done if walk.is_storing => {
                walk.is_storing = false;
                self.delete_found(key, walk)
            }
            Outcome::Failed(sentence) => {
                let is_survey = matches!(walk.aim, Aim::Survey);
                task.reply = Reply::of_error(task.reply.version(), &failed(&sentence));
                if is_survey {
                    self.ends.on_page(&[]);
                }
                true
            }
            Outcome::NoRoom => {
                task.reply = Reply::of_error(
                    task.reply.version(),
                    "OOM there is no room on the drive, also for deletions",
                );
                true
            }
            other => unreachable!("{other:?} of a walk"),
        };
        if is_over {
            return self.end(key, task);
        }
        self.put(key, task);
    }

    /// A page has come. True if the walk is over.
    fn on_page(&mut self, task_key: SlabKey, task: &mut Task, page: Vec<Vec<u8>>) -> bool {
        let Work::Walk(walk) = &mut task.work else { unreachable!("it is a walk") };
        let reply = &mut task.reply;
        let new = walk.turn_page(page);
        let is_end = new.is_empty();
        match &mut walk.aim {
            Aim::Refused(_) => unreachable!("it was over before it began"),
            Aim::Survey => {
                self.on_survey_page(new);
                return true;
            }
            Aim::Count => walk.count += new.len(),
            Aim::Matching { pattern } => {
                let pattern = pattern.clone();
                for key in new {
                    if glob::matches(&pattern, &key) && !self.ends.is_over(&key, self.now_ms) {
                        walk.tell(&key);
                    }
                }
                if !task.reservation.cover(walk.told.len()) {
                    *reply = Reply::of_error(reply.version(), NO_MEMORY);
                    return true;
                }
            }
            Aim::Some { .. } => return self.on_scan_page(task_key, task, new),
            Aim::Random { .. } => return self.on_random_page(task_key, task, new),
            Aim::Flush => {
                if is_end {
                    reply.ok();
                    return true;
                }
                if walk.count == 0 {
                    self.watches.touch_all();
                    self.ends.clear();
                }
                walk.count += new.len();
                walk.found = new;
                return self.delete_found(task_key, walk);
            }
        }
        if is_end {
            match walk.aim {
                Aim::Count => reply.length(walk.count),
                _ => walk.told(reply),
            }
            return true;
        }
        self.ready.push_back(task_key);
        false
    }

    /// Deletes the next of the keys that a flush found, or goes on to those behind. True if it is over.
    fn delete_found(&mut self, task_key: SlabKey, walk: &mut Walk) -> bool {
        let most = self.settings.limits.changes_max.max(1).min(walk.found.len());
        if most == 0 {
            self.ready.push_back(task_key);
            return false;
        }
        let changes =
            walk.found.split_off(walk.found.len() - most).into_iter().map(|key| (key, None)).collect();
        walk.is_storing = true;
        self.request(task_key, 0, StoreOp::Change(changes));
        false
    }

    fn on_scan_page(&mut self, task_key: SlabKey, task: &mut Task, new: Vec<Vec<u8>>) -> bool {
        let Work::Walk(walk) = &mut task.work else { unreachable!("it is a walk") };
        let Aim::Some { pattern, left, is_of_type, .. } = &mut walk.aim else { unreachable!("it is a scan") };
        let is_end = new.is_empty();
        let taken: Vec<Vec<u8>> = new.into_iter().take(*left).collect();
        *left -= taken.len();
        let is_full = *left == 0;
        if let Some(last) = taken.last() {
            walk.from.clone_from(last);
        }
        let (pattern, is_of_type) = (pattern.clone(), *is_of_type);
        for key in taken {
            let matches = pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, &key));
            if is_of_type && matches && !self.ends.is_over(&key, self.now_ms) {
                walk.tell(&key);
            }
        }
        if !task.reservation.cover(walk.told.len()) {
            task.reply = Reply::of_error(task.reply.version(), NO_MEMORY);
            return true;
        }
        if !is_end && !is_full {
            self.ready.push_back(task_key);
            return false;
        }
        let cursor = if is_end { 0 } else { self.cursors.note(walk.from.clone()) };
        task.reply.array(2);
        task.reply.bulk(cursor.to_string().as_bytes());
        walk.told(&mut task.reply);
        true
    }

    fn on_random_page(&mut self, task_key: SlabKey, task: &mut Task, new: Vec<Vec<u8>>) -> bool {
        let Work::Walk(walk) = &mut task.work else { unreachable!("it is a walk") };
        let Aim::Random { is_again } = &mut walk.aim else { unreachable!("it wants any key") };
        let was_again = std::mem::replace(is_again, true);
        for key in new {
            if !walk.found.contains(&key)
                && walk.found.len() < RANDOM_OF
                && !self.ends.is_over(&key, self.now_ms)
            {
                walk.found.push(key);
            }
        }
        if walk.found.len() < RANDOM_OF && !was_again {
            // Once more from the start.
            walk.from.clear();
            walk.is_seen = false;
            self.ready.push_back(task_key);
            return false;
        }
        let count = u64::try_from(walk.found.len()).expect("few");
        if count == 0 {
            task.reply.null();
        } else {
            let chosen = usize::try_from(self.random.below(count)).expect("few");
            task.reply.bulk(&walk.found[chosen]);
        }
        true
    }
}

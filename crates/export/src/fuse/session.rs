//! What the kernel asks and is answered: the directory at once, content when its jobs have ended.
//!
//! A state machine over messages, without descriptor and clock. Deliberately not here: where messages come from.

use super::directory::{Directory, NAME_BYTES_MAX};
use super::open_request::{Asked, FilePart, OpenRequest, Step, Task, collide};
use super::plan::{self, FusePlan};
use super::wire::{
    Agreement, Header, OPENED, Request, VERSION, WRITE_HEAD_BYTES, ability, attribute, attributes_out,
    entry_out, init, statfs, written,
};
use crate::dispatcher::Dispatcher;
use crate::job::{Done, JobOwner};
use crate::pool::{PIECE_BYTES_MAX, PoolPiece};
use crate::shares::ClientId;
use ocssd_base::usize_of;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::time::Duration;

/// Requests for content at once (chosen: three quarters of what the kernel has in flight that nobody waits for. Each holds
/// at most two large pieces, so that all of them hold fewer than half of those).
pub const OPEN_MAX: usize = 48;

/// What the kernel has in flight that nobody waits for (chosen: queues of 32 of two programs).
const BACKGROUND_MAX: u16 = 64;

/// Seconds for which the kernel keeps attributes: a change through another protocol shows in a file's time so late (chosen).
const ATTRIBUTE_SECONDS: u64 = 1;

/// Seconds for which it keeps names, which never change (chosen).
const NAME_SECONDS: u64 = 3600;

/// Bytes of a page, which `max_pages` counts: the smallest there are, so that larger ones only allow more than is written.
const PAGE_BYTES: usize = 4096;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The kernel's name for what it asked.
    pub unique: u64,
    /// `Err`, or text and payload.
    pub result: Result<(Vec<u8>, Vec<FilePart>), Errno>,
}

/// A mount, as the kernel talks to it.
#[derive(Debug)]
pub struct Session {
    directory: Directory,
    /// The owner of jobs.
    connection: u32,
    /// Open requests, with their number in the order they came.
    open: Vec<Option<(u64, OpenRequest)>>,
    arrived: u64,
    /// Open requests that may want a job.
    eager: VecDeque<usize>,
    /// One of them waits for a piece or a place for a job.
    starved: bool,
    answers: VecDeque<Answer>,
    /// What is wrong with the kernel's protocol.
    trouble: Option<String>,
}

impl Session {
    /// A session of this directory, whose jobs are this connection's.
    pub fn new(directory: Directory, connection: u32) -> Self {
        let open = (0..OPEN_MAX).map(|_| None).collect();
        let (eager, answers) = (VecDeque::new(), VecDeque::new());
        Self { directory, connection, open, arrived: 0, eager, starved: false, answers, trouble: None }
    }

    /// Whose share its requests count towards.
    pub const fn client(&self) -> ClientId {
        ClientId(self.connection)
    }

    /// Another message can be taken.
    pub fn has_room(&self) -> bool {
        self.open.iter().any(Option::is_none)
    }

    /// An open request waits for a piece or a place for a job.
    pub const fn is_starved(&self) -> bool {
        self.starved
    }

    /// Nothing is open.
    pub fn is_idle(&self) -> bool {
        self.open.iter().all(Option::is_none) && self.answers.is_empty()
    }

    /// The next answer.
    pub fn poll_answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// What is wrong with the kernel's protocol, told once.
    pub fn poll_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// Takes a message, at a time since 1970: its header, what follows it, and of a write the piece that the payload lies in.
    ///
    /// # Panics
    /// If there is no room.
    pub fn on_message(
        &mut self,
        header: &Header,
        body: &[u8],
        payload: Option<PoolPiece>,
        now: Duration,
        dispatcher: &mut Dispatcher,
    ) {
        let request = Request::decode(header.opcode, body).filter(|request| match *request {
            Request::Write { size, .. } => {
                payload.is_some() && as_u64(WRITE_HEAD_BYTES) + u64::from(size) == u64::from(header.length)
            }
            _ => true,
        });
        let Some(request) = request else {
            dispatcher.stats.errors += 1;
            payload.into_iter().for_each(|piece| dispatcher.pool.give_back(piece));
            return self.answer(header.unique, Err(Errno::INVAL));
        };
        let file = self.directory.export(header.node);
        let plan = plan::plan(&request, file.map(|id| dispatcher.exports.get(id)));
        match (plan, file) {
            (Ok(FusePlan::Content { task, bytes }), Some(export)) => {
                plan::count(&mut dispatcher.stats, task, bytes.end - bytes.start);
                if matches!(task, Task::Write | Task::Clear(_)) {
                    self.directory.on_change(export, now);
                }
                self.open(Asked { unique: header.unique, export, task, bytes, payload }, dispatcher);
            }
            (plan, _) => {
                payload.into_iter().for_each(|piece| dispatcher.pool.give_back(piece));
                match plan {
                    Ok(FusePlan::Nothing) => self.answer(header.unique, Ok(Vec::new())),
                    Ok(_) => self.at_once(header, &request, now, dispatcher),
                    Err(errno) => {
                        // What is not known here is no error of anybody.
                        dispatcher.stats.errors += u64::from(errno != Errno::NOSYS);
                        self.answer(header.unique, Err(errno));
                    }
                }
            }
        }
    }

    /// Answers what is no content.
    fn at_once(&mut self, header: &Header, request: &Request<'_>, now: Duration, dispatcher: &Dispatcher) {
        let exports = &dispatcher.exports;
        let attributes = |node| self.directory.attributes(node, exports).ok_or(Errno::NOENT);
        let answer = match *request {
            Request::Notice => return,
            Request::Init { version, max_readahead, abilities } => {
                self.agree(version, max_readahead, abilities)
            }
            Request::Lookup { name } => {
                match self.directory.find(name).ok_or(Errno::NOENT).and_then(attributes) {
                    Ok(found) => Ok(entry_out(&found, NAME_SECONDS, ATTRIBUTE_SECONDS)),
                    Err(errno) => Err(errno),
                }
            }
            Request::Setattr { valid, mtime, .. } => {
                let set = if valid & attribute::MTIME_NOW != 0 { now } else { mtime };
                if let (Some(file), true) =
                    (self.directory.export(header.node), valid & attribute::MTIME != 0)
                {
                    self.directory.on_change(file, set);
                }
                let attributes = self.directory.attributes(header.node, exports).ok_or(Errno::NOENT);
                attributes.map(|of| attributes_out(&of, ATTRIBUTE_SECONDS))
            }
            Request::Getattr => attributes(header.node).map(|of| attributes_out(&of, ATTRIBUTE_SECONDS)),
            Request::Open { .. } | Request::Opendir => Ok(OPENED.to_vec()),
            Request::Readdir { place, size } => Ok(self.directory.list(place, usize_of(size))),
            Request::Statfs => {
                let bytes: u64 = exports.iter().map(crate::exports::Export::bytes).sum();
                let files = u64::try_from(self.directory.len()).expect("few");
                let names = u32::try_from(NAME_BYTES_MAX).expect("it is small");
                Ok(statfs(4096, bytes.div_ceil(4096), files, names))
            }
            _ => Ok(Vec::new()),
        };
        self.answer(header.unique, answer);
    }

    /// Versions and abilities.
    fn agree(&mut self, version: (u32, u32), max_readahead: u32, abilities: u32) -> Result<Vec<u8>, Errno> {
        if version.0 != VERSION.0 || version.1 < VERSION.1 {
            let ((major, minor), (ours, least)) = (version, VERSION);
            self.trouble = Some(format!(
                "the kernel speaks version {major}.{minor} of FUSE, and {ours}.{least} or a later {ours} is needed: Linux 5.4 \
                 or newer"
            ));
            return Err(Errno::PROTO);
        }
        let wanted = ability::ASYNC_READ
            | ability::ATOMIC_O_TRUNC
            | ability::BIG_WRITES
            | ability::ASYNC_DIO
            | ability::PARALLEL_DIROPS
            | ability::MAX_PAGES;
        let most = u32::try_from(PIECE_BYTES_MAX).expect("it is small");
        Ok(init(&Agreement {
            abilities: abilities & wanted,
            max_readahead: max_readahead.min(most),
            max_background: BACKGROUND_MAX,
            max_write: most,
            max_pages: u16::try_from(PIECE_BYTES_MAX / PAGE_BYTES).expect("it is small"),
        }))
    }

    fn answer(&mut self, unique: u64, result: Result<Vec<u8>, Errno>) {
        let result = result.map(|text| (text, Vec::new()));
        self.answers.push_back(Answer { unique, result });
    }

    fn open(&mut self, asked: Asked, dispatcher: &mut Dispatcher) {
        let place = self.open.iter().position(Option::is_none).expect("a message was taken without room");
        self.open[place] = Some((self.arrived, OpenRequest::new(asked)));
        self.arrived += 1;
        self.eager.push_back(place);
        self.go_on(dispatcher);
    }

    /// Gives out what there is room for, and answers what is over. True if something was.
    pub fn go_on(&mut self, dispatcher: &mut Dispatcher) -> bool {
        let mut any = false;
        self.starved = false;
        for _ in 0..self.eager.len() {
            let Some(place) = self.eager.pop_front() else { break };
            if self.must_wait(place, dispatcher) {
                self.eager.push_back(place);
                continue;
            }
            let Some((_, request)) = &mut self.open[place] else { continue };
            let owner = JobOwner {
                connection: self.connection,
                generation: 0,
                request: u32::try_from(place).expect("few"),
            };
            match request.step(owner, dispatcher) {
                Step::Waits => {}
                Step::NoRoom => {
                    self.starved = true;
                    self.eager.push_back(place);
                }
                Step::Over => {
                    any = true;
                    self.close(place, dispatcher);
                }
            }
        }
        any
    }

    /// An earlier change of the same block has to end first.
    fn must_wait(&self, place: usize, dispatcher: &Dispatcher) -> bool {
        let Some((number, request)) = &self.open[place] else { return false };
        let export = dispatcher.exports.get(request.asked.export);
        self.open.iter().flatten().any(|(earlier, other)| earlier < number && collide(request, other, export))
    }

    fn close(&mut self, place: usize, dispatcher: &mut Dispatcher) {
        let Some((_, request)) = self.open[place].take() else { return };
        let (unique, task, bytes) = (request.asked.unique, request.asked.task, request.asked.bytes.clone());
        let block_bytes = dispatcher.exports.get(request.asked.export).block_bytes;
        let result = request.end(block_bytes, dispatcher).map(|parts| match task {
            Task::Write => {
                let count = u32::try_from(bytes.end - bytes.start).expect("a write is short");
                (written(count), parts)
            }
            _ => (Vec::new(), parts),
        });
        dispatcher.stats.errors += u64::from(result.is_err());
        self.answers.push_back(Answer { unique, result });
    }

    /// A job ended.
    pub fn on_done(&mut self, done: Done, dispatcher: &mut Dispatcher) {
        let place = usize_of(done.job.owner.request);
        let (_, request) = self.open[place].as_mut().expect("a request is open as long as its jobs run");
        request.on_done(done, dispatcher);
        self.eager.push_back(place);
        self.go_on(dispatcher);
    }
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).expect("a length fits 64 bits")
}

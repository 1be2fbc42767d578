//! What happened, for people: the last events before a failure, and all of them for a timeline.
//!
//! Off by default, because a run that fails is run again from its seed with the journal on. Deliberately not here: how a
//! timeline is written (`timeline`), and how events become a hash (`trace`).

use crate::trace::Trace;
use ocssd_base::Nanos;
use ocssd_lightnvm::counter::Counter;
use ocssd_lightnvm::{Addresses, Buffers, Command, Completion, Op, Ppa, Status, Tag};
use std::collections::VecDeque;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A step of the plan began.
    Step {
        /// Which.
        index: usize,
        /// The step in words.
        what: String,
    },
    /// The target was given a request.
    Request {
        /// Its number.
        number: u32,
        /// The request in words.
        what: String,
    },
    /// The target answered.
    Reply {
        /// The request's number.
        number: u32,
        /// The reply in words.
        what: String,
    },
    /// The device took a command.
    Command {
        /// Its tag.
        tag: Tag,
        /// What it does.
        op: Op,
        /// The first sector it names.
        first: Option<Ppa>,
        /// Sectors it names.
        count: u32,
        /// The device was in a mount's hands.
        mount: bool,
    },
    /// The device gave a completion.
    Completion {
        /// The command's tag.
        tag: Tag,
        /// How it ended.
        status: Status,
    },
    /// The media harmed a sector.
    Harmed {
        /// Where it is.
        at: Ppa,
        /// What was done, and to what, in words.
        what: String,
    },
    /// The power went.
    PowerCut,
    /// A target was mounted.
    Mounted,
}

impl Event {
    /// A command, with where it begins.
    #[must_use]
    pub fn command(command: &Command, buffers: &Buffers, mount: bool) -> Self {
        let first = match (command.addresses, command.buffer) {
            (Addresses::Run { first, .. }, _) => Some(first),
            (Addresses::List { offset, .. }, Some(buffer)) => {
                usize::try_from(offset).ok().and_then(|at| buffers.addresses(buffer).get(at).copied())
            }
            _ => None,
        };
        Self::Command { tag: command.tag, op: command.op, first, count: command.addresses.count(), mount }
    }

    /// A completion.
    #[must_use]
    pub const fn completion(completion: &Completion) -> Self {
        Self::Completion { tag: completion.tag, status: completion.status }
    }
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Step { index, what } => write!(f, "step {index}: {what}"),
            Self::Request { number, what } => write!(f, "request {number}: {what}"),
            Self::Reply { number, what } => write!(f, "reply {number}: {what}"),
            Self::Command { tag, op, first, count, mount } => {
                let by = if *mount { "mount " } else { "" };
                write!(f, "{by}command {}: {op:?} of {count}", tag.0)?;
                first.map_or(Ok(()), |ppa| write!(f, " from chunk {} sector {}", ppa.chunk.0, ppa.sector))
            }
            Self::Completion { tag, status } => write!(f, "completion {}: {status}", tag.0),
            Self::Harmed { at, what } => write!(f, "chunk {} sector {} {what}", at.chunk.0, at.sector),
            Self::PowerCut => f.write_str("power cut"),
            Self::Mounted => f.write_str("mounted"),
        }
    }
}

/// How much is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Nothing.
    #[default]
    Nothing,
    /// The newest events.
    Newest(usize),
    /// Everything.
    All,
    /// No event, but a hash of all of them and of what targets counted.
    Hash,
}

/// The events remembered, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    keep: Keep,
    events: VecDeque<(Nanos, Event)>,
    trace: Trace,
}

impl Journal {
    /// A journal that keeps so much.
    #[must_use]
    pub fn new(keep: Keep) -> Self {
        Self { keep, events: VecDeque::new(), trace: Trace::default() }
    }

    /// Remembers what `event` makes, if anything is kept.
    pub fn note(&mut self, now: Nanos, event: impl FnOnce() -> Event) {
        match self.keep {
            Keep::Nothing => return,
            Keep::Hash => return self.trace.event(now, &event()),
            Keep::Newest(most) => {
                while self.events.len() >= most.max(1) {
                    self.events.pop_front();
                }
            }
            Keep::All => {}
        }
        self.events.push_back((now, event()));
    }

    /// Remembers a command.
    pub fn command(&mut self, now: Nanos, command: &Command, buffers: &Buffers, mount: bool) {
        if self.keep == Keep::Hash {
            self.trace.command(now, command, buffers, mount);
        } else {
            self.note(now, || Event::command(command, buffers, mount));
        }
    }

    /// Remembers a completion.
    pub fn completion(&mut self, now: Nanos, completion: &Completion) {
        if self.keep == Keep::Hash {
            self.trace.completion(now, completion);
        } else {
            self.note(now, || Event::completion(completion));
        }
    }

    /// A target says what it counted; only a hash remembers that.
    pub fn counters(&mut self, now: Nanos, counters: impl FnOnce() -> Vec<Counter>) {
        if self.keep == Keep::Hash {
            self.trace.counters(now, &counters());
        }
    }

    /// The hash, if that is kept.
    #[must_use]
    pub const fn trace(&self) -> Trace {
        self.trace
    }

    /// What is remembered, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &(Nanos, Event)> {
        self.events.iter()
    }
}

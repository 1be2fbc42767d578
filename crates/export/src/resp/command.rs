//! What a command is: its name, how many words it has, which of them are keys, and who carries it out.
//!
//! Deliberately not here: the commands themselves (`table`).

use super::budget::Reservation;
use super::database::NO_MEMORY;
use super::reply::Reply;
use super::request::Request;
use super::view::{Fetch, View};
use crate::shared_bytes::SharedBytes;
use std::borrow::Cow;

/// What a command does to keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    None,
    /// It looks at them.
    Reads,
    /// It changes them.
    Writes,
}

/// Which words are keys: from `first` to `last`, which counts from the end if it is negative, each `step`-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The first; 0 if there is none.
    pub first: usize,
    /// The last; -1 is the last word.
    pub last: i32,
    /// From one to the next.
    pub step: usize,
}

impl Keys {
    /// None.
    pub const NONE: Self = Self { first: 0, last: 0, step: 0 };
    /// The first argument.
    pub const ONE: Self = Self { first: 1, last: 1, step: 1 };
    /// The first two arguments.
    pub const TWO: Self = Self { first: 1, last: 2, step: 1 };
    /// All arguments.
    pub const ALL: Self = Self { first: 1, last: -1, step: 1 };
    /// Every other argument, from the first on.
    pub const PAIRS: Self = Self { first: 1, last: -1, step: 2 };

    /// The words of a request that are keys.
    pub fn of(self, request: &Request) -> impl Iterator<Item = &[u8]> {
        let count = request.len();
        let end = match usize::try_from(self.last) {
            Ok(last) => (last + 1).min(count),
            Err(_) => count,
        };
        let first = if self.first == 0 { end } else { self.first };
        (first..end).step_by(self.step.max(1)).map(|place| request.word(place))
    }
}

/// Commands of one kind, as the documentation lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Of the connection.
    Connection,
    /// Strings and bits of them.
    String,
    /// Keys of any kind.
    Generic,
    /// Several commands as one.
    Transactions,
    /// Of the server.
    Server,
}

impl Group {
    /// Its name, as Redis' documentation has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::String => "string",
            Self::Generic => "generic",
            Self::Transactions => "transactions",
            Self::Server => "server",
        }
    }
}

/// Why a command was refused, in Redis' words: its code, and a sentence.
pub type Refused = Cow<'static, str>;

/// How far a command of many keys, or of a long value, is, which goes on in later turns.
#[derive(Debug, Default)]
pub struct Progress {
    /// The word it goes on with; 0 before its first turn.
    word: usize,
    /// How often it has gone through its keys.
    pub rounds: usize,
    /// What it counted.
    pub count: usize,
    /// The value it makes, as far as that is.
    pub made: Option<Vec<u8>>,
}

/// What is left of a turn, for all commands of a transaction together.
#[derive(Clone, Copy, Debug)]
pub struct TurnShare {
    /// Keys.
    pub keys: usize,
    /// The answer is no longer than this before the next key.
    pub reply_bytes_max: usize,
    /// Bytes of values that are made.
    pub copy_bytes: usize,
}

impl TurnShare {
    /// No key is looked at any more.
    #[must_use]
    pub const fn is_used_up(&self, reply: &Reply) -> bool {
        self.keys == 0 || self.copy_bytes == 0 || reply.len() >= self.reply_bytes_max
    }
}

/// Memory for what commands make.
#[derive(Debug)]
pub struct Memory<'a> {
    /// Where it is reserved.
    pub reservation: &'a mut Reservation,
    /// Bytes that this and all commands before it in a transaction hold.
    pub held: &'a mut usize,
}

impl Memory<'_> {
    /// Holds so many more bytes.
    ///
    /// # Errors
    /// If there is no room for them.
    pub fn hold(&mut self, bytes: usize) -> Result<(), Refused> {
        if !self.reservation.cover(*self.held + bytes) {
            return Err(NO_MEMORY.into());
        }
        *self.held += bytes;
        Ok(())
    }
}

/// A command that runs: what it is given.
pub struct Call<'a> {
    /// Which one.
    pub command: &'static Command,
    /// Its words.
    pub request: &'a Request,
    /// Its keys.
    pub view: &'a mut View,
    /// Where its answer goes.
    pub reply: &'a mut Reply,
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// Most bytes of a value.
    pub value_bytes_max: usize,
    /// How far it is.
    pub progress: &'a mut Progress,
    /// What it may do now.
    pub share: &'a mut TurnShare,
    /// What it makes is held there.
    pub memory: Memory<'a>,
}

impl<'a> Call<'a> {
    /// It has not begun.
    #[must_use]
    pub const fn is_at_start(&self) -> bool {
        self.progress.word == 0
    }

    /// The next word that is a key, of those that come each `step`-th. None if that was the last, or at the end of the turn.
    pub fn next_key(&mut self, step: usize) -> Option<usize> {
        let place = self.progress.word.max(1);
        if place >= self.len() {
            self.progress.word = self.len();
            return None;
        }
        if self.share.is_used_up(self.reply) {
            self.progress.word = place;
            return None;
        }
        self.share.keys -= 1;
        self.progress.word = place + step;
        Some(place)
    }

    /// The keys that are left are not looked at.
    pub const fn end(&mut self) {
        self.progress.word = self.len();
    }

    /// Goes through the keys once more.
    pub const fn begin_again(&mut self) {
        self.progress.word = 1;
        self.progress.rounds += 1;
    }

    /// There is nothing left of it: [`Self::next_key`] gave the last, or was never asked, and the value it makes is whole.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.progress.made.is_none() && (self.progress.word == 0 || self.progress.word >= self.len())
    }

    /// A word of the request.
    #[must_use]
    pub fn word(&self, place: usize) -> &'a [u8] {
        self.request.word(place)
    }

    /// A word of the request, for who keeps it.
    #[must_use]
    pub fn shared(&self, place: usize) -> SharedBytes {
        self.request.shared(place)
    }

    /// The first argument, of most commands the key.
    #[must_use]
    pub fn first(&self) -> &'a [u8] {
        self.request.word(1)
    }

    /// An integer argument.
    ///
    /// # Errors
    /// If it is none.
    pub fn integer(&self, place: usize) -> Result<i64, Refused> {
        super::number::integer(self.word(place)).ok_or(Cow::Borrowed(NO_INTEGER))
    }

    /// How many words.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.request.len()
    }
}

/// What is no integer of 64 bits.
pub const NO_INTEGER: &str = "ERR value is not an integer or out of range";

/// An option that is none, or that another excludes.
pub const SYNTAX: &str = "ERR syntax error";

/// What a command does with a view of its keys. An error leaves the view as it was.
pub type Run = fn(&mut Call<'_>) -> Result<(), Refused>;

/// Commands that the connection answers by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Names, numbers and lists of connections.
    Client,
    /// What commands there are.
    Command,
    /// Settings.
    Config,
    /// Leaves a transaction.
    Discard,
    /// Carries a transaction out.
    Exec,
    /// Functions, of which there are none.
    Function,
    /// Agrees on the protocol.
    Hello,
    /// How things stand.
    Info,
    /// Begins a transaction.
    Multi,
    /// Asks to disconnect.
    Quit,
    /// Forgets what was agreed.
    Reset,
    /// Chooses a database; there is one.
    Select,
    /// The time.
    Time,
    /// Watches no key any more.
    Unwatch,
}

/// Commands over all keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// How many there are.
    DbSize,
    /// Deletes all.
    Flush,
    /// Those that match.
    Keys,
    /// Any one.
    RandomKey,
    /// Makes everything durable.
    Save,
    /// Some of them, and where to go on.
    Scan,
}

/// Who carries a command out.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// It runs on a view of its keys.
    Data {
        /// How much of them it reads first.
        fetch: fn(&Request) -> Fetch,
        /// What it does then.
        run: Run,
    },
    /// The connection.
    Own(Own),
    /// It walks over all keys.
    Whole(Whole),
}

/// A command.
#[derive(Debug)]
pub struct Command {
    /// In small letters.
    pub name: &'static str,
    /// How many words it has; at least so many if it is negative, as Redis counts.
    pub arity: i32,
    /// What it does to keys.
    pub access: Access,
    /// Which of its words they are.
    pub keys: Keys,
    /// Of which kind it is.
    pub group: Group,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Who carries it out.
    pub action: Action,
}

impl Command {
    /// A request of so many words may be one.
    #[must_use]
    pub fn takes(&self, words: usize) -> bool {
        let least = usize::try_from(self.arity.unsigned_abs()).expect("few");
        if self.arity < 0 { words >= least } else { words == least }
    }

    /// What a request with another number of words is told.
    #[must_use]
    pub fn wrong_number(&self) -> String {
        format!("ERR wrong number of arguments for '{}' command", self.name)
    }
}

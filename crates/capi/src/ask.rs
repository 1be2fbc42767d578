//! What is asked of a target, of whichever interface: as a request with buffers for it, and what its reply brings the caller.
//!
//! What is written is copied to the buffers when the request is made, what is read to the caller when it is answered.
//! Deliberately not here: what each interface has of its own.

use crate::blocks::BlockAsk;
use crate::failure::Failure;
use crate::keys::KeysAsk;
use crate::pages::PagesAsk;
use crate::payload::Loan;
use crate::reply::{End, Owner, Reply};
use crate::status::errno_of;
use crate::tables::TablesAsk;
use crate::zones::ZoneAsk;
use ocssd_lightnvm::interface::{AnyReply, AnyRequest, Interface};
use ocssd_lightnvm::transaction::{BlockTransaction, TransactionPart};
use ocssd_lightnvm::{BufId, Buffers, Status, Tag};
use std::ffi::c_int;
use std::fmt::Display;

/// What is asked.
#[derive(Clone, Copy)]
pub enum Ask {
    /// That what ended before is durable.
    Flush(Interface),
    /// That the target can be left.
    Shutdown(Interface),
    /// Something about blocks.
    Blocks(BlockAsk),
    /// Something about zones.
    Zones(ZoneAsk),
    /// Something about pages.
    Pages(PagesAsk),
    /// Something about keys and values.
    Keys(KeysAsk),
    /// Something about tables and logs.
    Tables(TablesAsk),
}

/// What is asked, and who is told.
#[derive(Clone, Copy)]
pub struct Asked {
    /// What.
    pub ask: Ask,
    /// By whom.
    pub owner: Owner,
}

impl Ask {
    /// What it is of a transaction, if it is of one.
    pub const fn part(&self) -> Option<(BlockTransaction, TransactionPart)> {
        if let Self::Blocks(ask) = self { ask.part } else { None }
    }

    /// The request, with buffers on loan that hold what it gives.
    ///
    /// # Errors
    /// There is no memory for it now, or it has more than a request can have.
    pub fn request(&self, tag: Tag, loan: &mut Loan<'_>) -> Result<AnyRequest, Failure> {
        match self {
            Self::Flush(interface) => Ok(AnyRequest::flush(*interface, tag)),
            Self::Shutdown(interface) => Ok(AnyRequest::shutdown(*interface, tag)),
            Self::Blocks(ask) => ask.request(tag, loan).map(AnyRequest::Block),
            Self::Zones(ask) => ask.request(tag, loan).map(AnyRequest::Zoned),
            Self::Pages(ask) => ask.request(tag, loan).map(AnyRequest::Log),
            Self::Keys(ask) => ask.request(tag, loan).map(AnyRequest::KeyValue),
            Self::Tables(ask) => ask.request(tag, loan).map(AnyRequest::Table),
        }
    }

    /// What the reply brings: the caller's memory is filled from the first buffer that was lent.
    pub fn end(&self, reply: &AnyReply, buffer: Option<BufId>, buffers: &Buffers) -> End {
        match (self, reply) {
            (Self::Blocks(ask), AnyReply::Block(reply)) => ask.end(reply, buffer, buffers),
            (Self::Zones(ask), AnyReply::Zoned(reply)) => ask.end(reply, buffer, buffers),
            (Self::Pages(ask), AnyReply::Log(reply)) => ask.end(reply, buffer, buffers),
            (Self::Keys(ask), AnyReply::KeyValue(reply)) => ask.end(reply, buffer, buffers),
            (Self::Tables(ask), AnyReply::Table(reply)) => ask.end(reply, buffer, buffers),
            (Self::Flush(_), reply) => plain(status_of(reply), "a flush"),
            (Self::Shutdown(_), reply) => plain(status_of(reply), "the shutdown"),
            _ => unreachable!("a target replied as one of another interface does"),
        }
    }
}

const fn status_of(reply: &AnyReply) -> Status {
    match reply {
        AnyReply::Block(reply) => reply.status,
        AnyReply::Zoned(reply) => reply.status,
        AnyReply::Log(reply) => reply.status,
        AnyReply::Table(reply) => reply.status,
        AnyReply::KeyValue(reply) => reply.status,
    }
}

fn plain(status: Status, what: &str) -> End {
    ended(Reply::of(status), || what.to_owned())
}

/// The end of a request that was refused, in words.
pub fn refused(reply: Reply, errno: c_int, what: &str, refusal: &dyn Display) -> End {
    let words = format!("{what} was refused: {refusal}");
    End { reply: Reply { result: -errno, ..reply }, words: Some(words) }
}

/// The end of a request that only its status says something about.
pub fn ended(reply: Reply, what: impl FnOnce() -> String) -> End {
    let status = Status::from_bits(reply.status);
    match errno_of(status) {
        0 => End { reply, words: None },
        errno => {
            let words = format!("{} ended with {status}: {}", what(), status.meaning());
            End { reply: Reply { result: -errno, ..reply }, words: Some(words) }
        }
    }
}

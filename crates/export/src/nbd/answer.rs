//! What the server says: replies to options, information about exports, errors.
//!
//! Deliberately not here: when.

use super::wire::{
    NbdError, OPTION_REPLY_MAGIC, REQUEST_BYTES_MAX, chunk, chunk_header, flag, info, reply, simple_reply,
};
use crate::exports::Export;
use crate::send_queue::SendQueue;

/// The number of `base:allocation` on a connection that chose it (chosen).
pub const ALLOCATION_ID: u32 = 1;

/// A reply to an option.
pub fn option(send_queue: &mut SendQueue, option: u32, kind: u32, data: &[u8]) {
    let length = u32::try_from(data.len()).expect("replies are short");
    send_queue.push_text(&OPTION_REPLY_MAGIC.to_be_bytes());
    send_queue.push_text(&option.to_be_bytes());
    send_queue.push_text(&kind.to_be_bytes());
    send_queue.push_text(&length.to_be_bytes());
    send_queue.push_text(data);
}

/// What can be done with an export.
#[must_use]
pub const fn flags(export: &Export, structured: bool) -> u16 {
    let mut flags =
        flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA | flag::CAN_MULTI_CONN | flag::SEND_CACHE;
    if structured {
        flags |= flag::SEND_DF;
    }
    if export.read_only {
        return flags | flag::READ_ONLY;
    }
    if export.fast_zero {
        flags |= flag::SEND_FAST_ZERO;
    }
    flags | flag::SEND_TRIM | flag::SEND_WRITE_ZEROES
}

/// Everything about an export, asked for or not: who has not asked may overlook it.
pub fn information(send_queue: &mut SendQueue, of: u32, export: &Export, structured: bool) {
    let mut give = |kind: u16, rest: &[u8]| {
        option(send_queue, of, reply::INFO, &[&kind.to_be_bytes(), rest].concat());
    };
    let size_and_flags =
        [&export.bytes().to_be_bytes()[..], &flags(export, structured).to_be_bytes()[..]].concat();
    give(info::EXPORT, &size_and_flags);
    give(info::NAME, export.name.as_bytes());
    give(info::DESCRIPTION, export.description.as_bytes());
    let sizes = [export.block_bytes, export.preferred_bytes, REQUEST_BYTES_MAX].map(u32::to_be_bytes);
    give(info::BLOCK_SIZE, sizes.as_flattened());
}

/// The end of a request that has nothing more to say, without an error.
pub fn success(send_queue: &mut SendQueue, structured: bool, cookie: u64) {
    if structured {
        send_queue.push_text(&chunk_header(chunk::FLAG_DONE, chunk::NONE, cookie, 0));
    } else {
        send_queue.push_text(&simple_reply(0, cookie));
    }
}

/// The end of a request with an error.
pub fn failure(send_queue: &mut SendQueue, structured: bool, cookie: u64, error: NbdError) {
    if structured {
        // The error, and a message of no bytes.
        send_queue.push_text(&chunk_header(chunk::FLAG_DONE, chunk::ERROR, cookie, 6));
        send_queue.push_text(&error.code().to_be_bytes());
        send_queue.push_text(&0_u16.to_be_bytes());
    } else {
        send_queue.push_text(&simple_reply(error.code(), cookie));
    }
}

/// An error at an offset; the request goes on.
pub fn failure_at(send_queue: &mut SendQueue, cookie: u64, error: NbdError, offset: u64) {
    send_queue.push_text(&chunk_header(0, chunk::ERROR_OFFSET, cookie, 14));
    send_queue.push_text(&error.code().to_be_bytes());
    send_queue.push_text(&0_u16.to_be_bytes());
    send_queue.push_text(&offset.to_be_bytes());
}

//! What the listener thread sends to the server, and the way there and back.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender};

/// Messages on their way (chosen: doorbells of all queues of a busy guest; then the guest waits).
pub(super) const MESSAGES_MAX: usize = 256;

/// A message of the guest.
#[derive(Debug)]
pub(super) enum Message {
    /// It reads a region.
    Read { region: u32, offset: u64, count: usize },
    /// It writes a region. A doorbell is not waited for.
    Write { region: u32, offset: u64, bytes: Vec<u8>, awaited: bool },
    /// It lends memory; without a file the drive cannot reach it.
    Map { at: u64, bytes: u64, file: Option<(File, u64)>, writable: bool },
    /// It takes memory back; all of it, if no range is named.
    Unmap { range: Option<(u64, u64)> },
    /// It gives or takes the ways to interrupt it.
    Interrupts { start: u32, count: u32, change: Change },
    /// It resets the function.
    Reset,
    /// It is gone, and everything it lent with it.
    Gone { sentence: Option<String> },
    /// Nothing: the listener thread has something to say.
    Say { sentence: String },
}

/// What becomes of interrupt vectors.
#[derive(Debug)]
pub(super) enum Change {
    /// They are signalled by these files; those without a file not at all.
    Files(Vec<File>),
    /// They are signalled now, for a test.
    Trigger,
    Mask,
    Unmask,
}

/// Bytes that were read, or nothing.
pub(super) type Answer = io::Result<Vec<u8>>;

/// The server's end.
pub(super) struct ServerEnd {
    pub(super) messages: Receiver<Message>,
    pub(super) answers: SyncSender<Answer>,
}

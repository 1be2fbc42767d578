//! The seam between protocols and the reactor: a client's connection as a state machine over bytes.

use crate::dispatcher::Dispatcher;
use crate::job::Done;
use crate::send_queue::SendQueue;
use crate::stats::DropReason;
use ocssd_lightnvm::BufId;

/// Bytes received at once that are no payload for a known place (chosen: the most a protocol asks for).
pub const STAGING_BYTES: usize = 16 << 10;

/// A client did what no client may: the connection ends, nothing else does. What is in the send queue then is sent as far as it
/// goes at once: last words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct ProtocolError {
    /// How it is counted.
    pub reason: DropReason,
    /// What was expected, and what came.
    pub sentence: String,
}

impl ProtocolError {
    /// What came cannot be understood.
    #[must_use]
    pub fn garbage(sentence: impl Into<String>) -> Self {
        Self { reason: DropReason::Garbage, sentence: sentence.into() }
    }

    /// What came is too long.
    #[must_use]
    pub fn oversized(sentence: impl Into<String>) -> Self {
        Self { reason: DropReason::Oversized, sentence: sentence.into() }
    }
}

/// Where the client's next bytes belong: `count` bytes of a buffer from byte `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The buffer.
    pub buffer: BufId,
    /// Its first byte that is free.
    pub first: usize,
    /// How many.
    pub count: usize,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is still being agreed what is served; bounded in time.
    Greeting,
    /// TLS begins with the next byte, once the send queue is sent.
    StartTls,
    /// Requests are served.
    Serving,
    /// Nothing more is read; it ends once the send queue is sent.
    Leaving,
}

/// One connection of a protocol over a stream of bytes.
///
/// It reads no clock and has no socket. The transport gives it what the client sent, tells it the ends of its jobs, and sends
/// what is in its send queue. It never blocks: what must wait for room (a piece, a place for a job) waits inside, and
/// [`Protocol::go_on`] tries again.
pub trait Protocol {
    /// Takes what the client sent. Returns how many bytes were taken; if not all, it waits for something, and the rest is to
    /// be given again after [`Protocol::go_on`] or [`Protocol::on_done`].
    ///
    /// # Errors
    /// [`ProtocolError`] if the connection must end at once.
    fn on_bytes(&mut self, bytes: &[u8], dispatcher: &mut Dispatcher) -> Result<usize, ProtocolError>;

    /// Where payload that comes next belongs; the transport may receive it there, and then says so by [`Self::on_payload`].
    fn payload_space(&self) -> Option<Space>;

    /// The first `count` bytes of [`Self::payload_space`] have been filled.
    fn on_payload(&mut self, count: usize, dispatcher: &mut Dispatcher);

    /// How many bytes that are no payload may be received at once: few, if payload for a buffer may follow them.
    fn text_wanted(&self) -> usize;

    /// The most of such bytes that may ever be received at once.
    fn staging_bytes(&self) -> usize {
        STAGING_BYTES
    }

    /// The client owes the next step: bytes it has announced, or been asked for.
    fn is_owed(&self) -> bool {
        self.payload_space().is_some()
    }

    /// Looks at what is beyond this connection: time, and the association it is part of. Asked now and then, and when
    /// somebody called it by [`Dispatcher::call`].
    ///
    /// # Errors
    /// [`ProtocolError`] if the connection must end at once.
    fn judge(&mut self, _dispatcher: &mut Dispatcher) -> Result<(), ProtocolError> {
        Ok(())
    }

    /// A job has ended.
    fn on_done(&mut self, done: Done, dispatcher: &mut Dispatcher);

    /// Tries what waited for room. True if something still waits.
    fn go_on(&mut self, dispatcher: &mut Dispatcher) -> bool;

    /// What is to be sent.
    fn send_queue(&mut self) -> &mut SendQueue;

    /// How far it is.
    fn phase(&self) -> Phase;

    /// TLS has begun: what follows is encrypted.
    fn on_tls(&mut self);

    /// The server stops: no new requests; what is asked already is answered.
    fn on_stop(&mut self);

    /// No request is open and nothing of one has come.
    fn is_idle(&self) -> bool;

    /// The connection is over: what it holds comes back. Jobs that are out end without it.
    fn release(&mut self, dispatcher: &mut Dispatcher);
}

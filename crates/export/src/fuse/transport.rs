//! The mount's device, as the reactor serves it: messages in, answers out, in the reactor's own thread.
//!
//! A message is received with the payload of a write already in the piece that the target reads, and an answer is sent from the
//! piece that the target filled. Source: fuse(4); `Documentation/filesystems/fuse.rst` of Linux.

use super::directory::Directory;
use super::mount::{self, Mount};
use super::session::{Answer, Session};
use super::wire::{HEADER_BYTES, Header, WRITE_HEAD_BYTES, answer_head, opcode};
use crate::dispatcher::Dispatcher;
use crate::exports::Exports;
use crate::job::Done;
use crate::pool::{PIECE_BYTES_MAX, PoolPiece};
use crate::reactor::{Interest, Limits, Ready, Sockets, Transport};
use crate::shares::Want;
use ocssd_base::Nanos;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Messages taken in one go, so that one mount does not hold up others (chosen: what the kernel has in flight).
const MESSAGES_MAX: usize = 64;

/// The device's number among the transport's sockets.
const DEVICE: u32 = 0;

/// How the mount's end came about.
#[derive(Debug)]
enum End {
    /// It has not ended.
    None,
    /// It is being unmounted by a thread, since the kernel may ask something before it is.
    Asked,
    /// It is in use, and will be asked again.
    Refused,
    /// It has.
    Over,
}

/// A directory with a file for each export.
pub struct FuseMount {
    device: OwnedFd,
    mount: Mount,
    directory: Directory,
    /// Says "stop" to the server when the directory is unmounted by others.
    stopper: Option<UnixStream>,
    note: Option<String>,
}

impl std::fmt::Debug for FuseMount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a mount on {}", self.mount.place.directory.display())
    }
}

impl FuseMount {
    /// Mounts on an empty directory. Files answer once the server runs. `stopper`: gets a byte when others unmount it.
    ///
    /// # Errors
    /// A sentence: no such directory, one that is not empty, no `/dev/fuse`, no right to mount, a name that no file can have.
    pub fn new(directory: &Path, exports: &Exports, stopper: Option<UnixStream>) -> Result<Self, String> {
        let files = Directory::new(exports, mount::owner(), since_1970())?;
        let (device, mount, note) = mount::mount(directory)?;
        Ok(Self { device, mount, directory: files, stopper, note })
    }

    /// The directory, from the root on.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.mount.place.directory
    }

    /// What the user should know.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The transport, whose jobs are this connection's.
    #[must_use]
    pub fn transport(self, connection: u32) -> Box<dyn Transport> {
        let Self { device, mount, directory, stopper, note: _ } = self;
        let session = Session::new(directory, connection);
        Box::new(FuseTransport {
            device,
            mount,
            session,
            stopper,
            spare: None,
            readable: true,
            end: End::None,
            sentences: VecDeque::new(),
        })
    }
}

struct FuseTransport {
    device: OwnedFd,
    mount: Mount,
    session: Session,
    stopper: Option<UnixStream>,
    /// Where the next message's payload goes.
    spare: Option<PoolPiece>,
    /// The device may have a message.
    readable: bool,
    end: End,
    sentences: VecDeque<String>,
}

/// What came of a look for a message.
enum Received {
    /// Its bytes, heads first.
    Message { head: [u8; WRITE_HEAD_BYTES], bytes: usize },
    /// There is none.
    None,
    /// There will be none.
    Unmounted,
}

impl FuseTransport {
    fn is_over(&self) -> bool {
        matches!(self.end, End::Over)
    }

    /// It would take a message if there is one, and memory for it.
    fn reads(&self) -> bool {
        self.readable && !self.is_over() && self.session.has_room()
    }

    /// The next message; what is behind its first 80 bytes lies in the spare piece.
    fn receive(&mut self, dispatcher: &mut Dispatcher) -> Received {
        let Some(spare) = &self.spare else { return Received::None };
        let mut head = [0; WRITE_HEAD_BYTES];
        let place = dispatcher.buffers.bytes_mut(spare.buffer, 0, PIECE_BYTES_MAX);
        dispatcher.stats.receives += 1;
        match rustix::io::readv(&self.device, &mut [IoSliceMut::new(&mut head), IoSliceMut::new(place)]) {
            Ok(bytes) => Received::Message { head, bytes },
            // The message was taken back before it was read.
            Err(Errno::INTR | Errno::NOENT) => Received::Message { head, bytes: 0 },
            Err(Errno::AGAIN) => Received::None,
            Err(Errno::NODEV) => Received::Unmounted,
            Err(error) => {
                let shown = self.mount.place.directory.display();
                self.sentences.push_back(format!("{shown} cannot be served: {error}"));
                Received::Unmounted
            }
        }
    }

    /// Gives a message to the session.
    fn take_message(
        &mut self,
        head: &[u8; WRITE_HEAD_BYTES],
        bytes: usize,
        now: Duration,
        dispatcher: &mut Dispatcher,
    ) {
        let Some(header) = Header::decode(&head[..bytes.min(WRITE_HEAD_BYTES)]) else { return };
        let mut body = head[HEADER_BYTES..bytes.min(WRITE_HEAD_BYTES)].to_vec();
        if header.opcode == opcode::WRITE {
            let payload = self.spare.take();
            return self.session.on_message(&header, &body, payload, now, dispatcher);
        }
        if let (Some(spare), Some(more @ 1..)) = (&self.spare, bytes.checked_sub(WRITE_HEAD_BYTES)) {
            body.extend_from_slice(dispatcher.buffers.bytes(spare.buffer, 0, more));
        }
        self.session.on_message(&header, &body, None, now, dispatcher);
    }

    /// Others, or this server, unmounted it.
    fn on_unmounted(&mut self, dispatcher: &mut Dispatcher) {
        if self.is_over() {
            return;
        }
        if matches!(self.end, End::None) {
            let shown = self.mount.place.directory.display();
            let then = if self.stopper.is_some() {
                "nothing else is served, so the server stops"
            } else {
                "what else is served goes on"
            };
            self.sentences.push_back(format!("{shown} was unmounted from outside; {then}"));
            if let Some(mut stopper) = self.stopper.take() {
                // A server that has stopped does not hear it, and need not.
                let _ = stopper.write_all(b"!");
            }
        }
        self.end = End::Over;
        self.mount.forget();
        self.spare.take().into_iter().for_each(|piece| dispatcher.pool.give_back(piece));
    }

    fn send(&mut self, answer: Answer, dispatcher: &mut Dispatcher) {
        let Answer { unique, result } = answer;
        dispatcher.stats.sends += 1;
        let (text, parts, errno) = match result {
            Ok((text, parts)) => (text, parts, 0),
            Err(errno) => (Vec::new(), Vec::new(), errno.raw_os_error()),
        };
        let payload: usize = parts.iter().map(|part| part.count).sum();
        let head = answer_head(text.len() + payload, errno, unique);
        let mut slices = vec![IoSlice::new(&head), IoSlice::new(&text)];
        slices.extend(
            parts.iter().map(|part| {
                IoSlice::new(dispatcher.buffers.bytes(part.piece.buffer, part.first, part.count))
            }),
        );
        match rustix::io::writev(&self.device, &slices) {
            Ok(_) => dispatcher.stats.sent_bytes += u64::try_from(payload).expect("a length fits 64 bits"),
            // Nobody waits for it any more: the program was interrupted, or it is unmounted.
            Err(Errno::NOENT | Errno::NODEV | Errno::PERM) => {}
            Err(error) => {
                let shown = self.mount.place.directory.display();
                self.sentences.push_back(format!("an answer to {shown} was not taken: {error}"));
            }
        }
        parts.into_iter().for_each(|part| dispatcher.pool.give_back(part.piece));
    }

    /// Asks the system to unmount, without waiting.
    fn begin_unmount(&mut self) {
        self.mount.unmounter.ask();
        self.end = End::Asked;
    }

    /// It is in use, and the server goes: names are taken away at once.
    fn leave(&mut self, dispatcher: &mut Dispatcher) {
        let shown = self.mount.place.directory.display().to_string();
        let came_of_it = match self.mount.unmounter.unmount_lazily() {
            Ok(()) => {
                format!("{shown} was still in use; it is unmounted, and who has its files open gets errors")
            }
            Err(error) => format!("{shown} was still in use and cannot be unmounted: {error}"),
        };
        self.sentences.push_back(came_of_it);
        self.on_unmounted(dispatcher);
    }
}

impl Transport for FuseTransport {
    fn begin(&mut self, sockets: &Sockets<'_>) -> io::Result<()> {
        sockets.add_eager(&self.device, DEVICE, Interest { receive: true, send: false })
    }

    fn on_ready(
        &mut self,
        _number: u32,
        _ready: Ready,
        _dispatcher: &mut Dispatcher,
        _sockets: &Sockets<'_>,
    ) {
        self.readable = true;
    }

    fn take(&mut self, dispatcher: &mut Dispatcher, sockets: &Sockets<'_>) -> bool {
        let mut any = self.session.go_on(dispatcher);
        if self.is_over() || !self.readable {
            return any;
        }
        let now = since_1970();
        for _ in 0..MESSAGES_MAX {
            if self.spare.is_none() {
                self.spare = dispatcher.pool.take(self.session.client(), PIECE_BYTES_MAX, Want::Share);
            }
            if self.spare.is_none() || !self.session.has_room() {
                return any;
            }
            match self.receive(dispatcher) {
                Received::Message { head, bytes } => self.take_message(&head, bytes, now, dispatcher),
                Received::None => {
                    self.readable = false;
                    return any;
                }
                Received::Unmounted => {
                    self.readable = false;
                    self.on_unmounted(dispatcher);
                    // The device is closed with the transport, which ends the wait for it as well.
                    let _ = sockets.remove(&self.device);
                    return true;
                }
            }
            any = true;
        }
        any
    }

    fn on_done(&mut self, done: Done, dispatcher: &mut Dispatcher) {
        self.session.on_done(done, dispatcher);
    }

    fn tell(&mut self, dispatcher: &mut Dispatcher) {
        while let Some(answer) = self.session.poll_answer() {
            self.send(answer, dispatcher);
        }
        self.sentences.extend(self.session.poll_trouble());
    }

    fn before_sleep(&mut self, _dispatcher: &mut Dispatcher) -> bool {
        self.reads() && self.spare.is_some()
    }

    fn is_eager(&self, _now: Nanos) -> bool {
        false
    }

    fn has_client(&self) -> bool {
        !self.session.is_idle()
    }

    fn waits_for_room(&self) -> bool {
        self.session.is_starved() || self.reads() && self.spare.is_none()
    }

    fn watch(&mut self, _limits: &Limits, _dispatcher: &mut Dispatcher, _sockets: &Sockets<'_>) {
        // The kernel is no client that could be slow.
    }

    fn stop(&mut self, is_late: bool, dispatcher: &mut Dispatcher, _sockets: &Sockets<'_>) -> bool {
        match &self.end {
            End::Over => return self.session.is_idle(),
            End::None => self.begin_unmount(),
            End::Refused if is_late => self.leave(dispatcher),
            End::Refused => self.begin_unmount(),
            End::Asked => self.look_for_answer(dispatcher),
        }
        self.is_over() && self.session.is_idle()
    }

    fn poll_sentence(&mut self) -> Option<String> {
        self.sentences.pop_front()
    }
}

impl FuseTransport {
    /// Looks whether the system has unmounted it.
    fn look_for_answer(&mut self, dispatcher: &mut Dispatcher) {
        match self.mount.unmounter.poll() {
            None => {}
            Some(Ok(())) => self.on_unmounted(dispatcher),
            Some(Err(_)) => self.end = End::Refused,
        }
    }
}

/// The time that files are changed at.
fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// The bytes a message has at most fit where they are received.
const _: () = assert!(PIECE_BYTES_MAX >= 8192, "FUSE_MIN_READ_BUFFER");

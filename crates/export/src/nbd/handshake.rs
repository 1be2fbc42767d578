//! Fixed newstyle negotiation: from the greeting to the export that is served, option by option.
//!
//! Source: doc/proto.md of the NBD project, "Newstyle negotiation" and "Option types". Deliberately not here: requests, and
//! the beginning of TLS itself; this says when.

use super::answer;
use super::wire::{
    FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, Fields, IHAVEOPT, NBDMAGIC, TEXT_BYTES_MAX, option, reply,
};
use crate::exports::{Export, ExportId, Exports};
use crate::protocol::ProtocolError;
use crate::send_queue::SendQueue;

/// Longest data of an option that is kept: two texts of the largest size, and some numbers (chosen; the longest sensible
/// option names an export and a few contexts).
const OPTION_BYTES_MAX: usize = 2 * TEXT_BYTES_MAX + 256;

/// Longest data of an option that is read and thrown away, so that the client hears that it was too long; beyond it the
/// client is dropped (chosen).
const SKIPPED_BYTES_MAX: usize = 1 << 20;

/// Most options of one client (chosen: no client sends more than a dozen, but one may look at every export).
const OPTIONS_MAX: u32 = 1024;

/// What client and server agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// What is served.
    pub export: ExportId,
    /// Reads are answered in structured replies.
    pub structured: bool,
    /// The client may ask for `base:allocation`.
    pub allocation: bool,
}

/// What comes after the bytes that were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More of the handshake.
    More,
    /// TLS.
    Tls,
    /// Requests.
    Serve(Agreed),
    /// The client has asked to disconnect.
    Closing,
}

/// Whether clients must encrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPolicy {
    /// There is no TLS.
    None,
    /// Nothing is served without it.
    Required,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Flags,
    Option,
    Data {
        option: u32,
    },
    /// Data that is too long to be kept.
    Skip {
        option: u32,
        left: usize,
    },
}

/// One client's negotiation.
#[derive(Clone, Debug)]
pub struct Handshake {
    expect: Expect,
    /// What has come of what is expected.
    held: Vec<u8>,
    needed: usize,
    tls: TlsPolicy,
    encrypted: bool,
    fixed: bool,
    no_zeroes: bool,
    structured: bool,
    /// `base:allocation` was chosen for this export.
    allocation: Option<ExportId>,
    options: u32,
}

/// Bytes of the client's flags.
const FLAGS_BYTES: usize = 4;
/// Bytes of an option before its data: magic, option, length.
const OPTION_BYTES: usize = 16;

impl Handshake {
    /// A handshake, with the greeting in the send queue.
    #[must_use]
    pub fn new(tls: TlsPolicy, send_queue: &mut SendQueue) -> Self {
        send_queue.push_text(&NBDMAGIC.to_be_bytes());
        send_queue.push_text(&IHAVEOPT.to_be_bytes());
        send_queue.push_text(&(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
        Self {
            expect: Expect::Flags,
            held: Vec::new(),
            needed: FLAGS_BYTES,
            tls,
            encrypted: false,
            fixed: false,
            no_zeroes: false,
            structured: false,
            allocation: None,
            options: 0,
        }
    }

    /// TLS has begun: nothing said before counts.
    pub fn on_tls(&mut self) {
        self.encrypted = true;
        self.structured = false;
        self.allocation = None;
    }

    /// Takes what the client sent; returns how much of it, and what comes next.
    ///
    /// # Errors
    /// [`ProtocolError`], for bytes that are no handshake.
    pub fn on_bytes(
        &mut self,
        bytes: &[u8],
        exports: &Exports,
        send_queue: &mut SendQueue,
    ) -> Result<(usize, Next), ProtocolError> {
        let mut used = 0;
        loop {
            used += self.gather(&bytes[used..]);
            if self.held.len() < self.needed || matches!(self.expect, Expect::Skip { left: 1.., .. }) {
                return Ok((used, Next::More));
            }
            let next = self.step(exports, send_queue)?;
            if next == Next::Tls && used < bytes.len() {
                // Whoever sits between could have put them there: they must not count as encrypted.
                return Err(ProtocolError::garbage("bytes came after STARTTLS and before TLS; nothing may"));
            }
            if next != Next::More || used == bytes.len() || send_queue.is_long() {
                return Ok((used, next));
            }
        }
    }

    /// Takes what is still missing.
    fn gather(&mut self, bytes: &[u8]) -> usize {
        if let Expect::Skip { left, .. } = &mut self.expect {
            let taken = bytes.len().min(*left);
            *left -= taken;
            return taken;
        }
        let taken = bytes.len().min(self.needed - self.held.len());
        self.held.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// What was expected is there.
    fn step(&mut self, exports: &Exports, send_queue: &mut SendQueue) -> Result<Next, ProtocolError> {
        let held = std::mem::take(&mut self.held);
        match self.expect {
            Expect::Flags => {
                self.on_flags(&held)?;
                self.expect_option();
                Ok(Next::More)
            }
            Expect::Option => {
                self.on_option(&held)?;
                if self.needed > 0 || matches!(self.expect, Expect::Skip { .. }) {
                    return Ok(Next::More);
                }
                self.step(exports, send_queue)
            }
            Expect::Data { option } => {
                self.expect_option();
                self.on_data(option, &held, exports, send_queue)
            }
            Expect::Skip { option, .. } => {
                self.expect_option();
                answer::option(send_queue, option, reply::ERR_TOO_BIG, b"the option is too long");
                Ok(Next::More)
            }
        }
    }

    fn expect_option(&mut self) {
        self.expect = Expect::Option;
        self.needed = OPTION_BYTES;
    }

    fn on_flags(&mut self, held: &[u8]) -> Result<(), ProtocolError> {
        let flags = Fields(held).u32().unwrap_or(u32::MAX);
        let known = u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
        if flags & !known != 0 {
            return Err(ProtocolError::garbage(format!(
                "the client's flags are {flags:#x}; only {known:#x} are known"
            )));
        }
        self.fixed = flags & u32::from(FLAG_FIXED_NEWSTYLE) != 0;
        self.no_zeroes = flags & u32::from(FLAG_NO_ZEROES) != 0;
        Ok(())
    }

    fn on_option(&mut self, held: &[u8]) -> Result<(), ProtocolError> {
        let mut fields = Fields(held);
        let (magic, option, length) = (fields.u64(), fields.u32(), fields.u32());
        let (Some(IHAVEOPT), Some(option), Some(length)) = (magic, option, length) else {
            return Err(ProtocolError::garbage("an option does not begin with IHAVEOPT"));
        };
        self.options += 1;
        if self.options > OPTIONS_MAX {
            return Err(ProtocolError::oversized(format!("more than {OPTIONS_MAX} options")));
        }
        if !self.fixed && option != option::EXPORT_NAME {
            return Err(ProtocolError::garbage(format!(
                "option {option} of a client that is not fixed newstyle"
            )));
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > SKIPPED_BYTES_MAX || length > OPTION_BYTES_MAX && option == option::EXPORT_NAME {
            return Err(ProtocolError::oversized(format!("option {option} has {length} bytes")));
        }
        if length > OPTION_BYTES_MAX {
            self.expect = Expect::Skip { option, left: length };
            self.needed = 0;
        } else {
            self.expect = Expect::Data { option };
            self.needed = length;
        }
        Ok(())
    }

    /// An option with all its data.
    fn on_data(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &Exports,
        send_queue: &mut SendQueue,
    ) -> Result<Next, ProtocolError> {
        let bare = self.tls == TlsPolicy::Required && !self.encrypted;
        match option {
            option::ABORT => {
                answer::option(send_queue, option, reply::ACK, &[]);
                return Ok(Next::Closing);
            }
            option::STARTTLS => return Ok(self.on_starttls(data, send_queue)),
            option::EXPORT_NAME if bare => {
                return Err(ProtocolError::garbage("an export was asked for without TLS, which is required"));
            }
            _ if bare => answer::option(send_queue, option, reply::ERR_TLS_REQD, b"begin with STARTTLS"),
            option::EXPORT_NAME => return self.on_export_name(data, exports, send_queue),
            option::LIST => on_list(data, exports, send_queue),
            option::INFO | option::GO => return Ok(self.on_go(option, data, exports, send_queue)),
            option::STRUCTURED_REPLY => {
                self.structured |= data.is_empty();
                let kind = if data.is_empty() { reply::ACK } else { reply::ERR_INVALID };
                answer::option(send_queue, option, kind, &[]);
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                self.on_meta_context(option, data, exports, send_queue);
            }
            _ => answer::option(send_queue, option, reply::ERR_UNSUP, b"the option is not known here"),
        }
        Ok(Next::More)
    }

    fn on_starttls(&self, data: &[u8], send_queue: &mut SendQueue) -> Next {
        let kind = match self.tls {
            TlsPolicy::None => reply::ERR_UNSUP,
            TlsPolicy::Required if self.encrypted || !data.is_empty() => reply::ERR_INVALID,
            TlsPolicy::Required => reply::ACK,
        };
        answer::option(send_queue, option::STARTTLS, kind, &[]);
        if kind == reply::ACK { Next::Tls } else { Next::More }
    }

    /// The old way to choose an export: there is no answer for an error.
    fn on_export_name(
        &mut self,
        data: &[u8],
        exports: &Exports,
        send_queue: &mut SendQueue,
    ) -> Result<Next, ProtocolError> {
        let name = std::str::from_utf8(data).ok().filter(|name| name.len() <= TEXT_BYTES_MAX);
        let Some(id) = name.and_then(|name| exports.find_block(name)) else {
            return Err(ProtocolError::garbage("an export that does not exist was asked for by EXPORT_NAME"));
        };
        let export = exports.get(id);
        send_queue.push_text(&export.bytes().to_be_bytes());
        send_queue.push_text(&answer::flags(export, self.structured).to_be_bytes());
        if !self.no_zeroes {
            send_queue.push_text(&[0; 124]);
        }
        Ok(Next::Serve(self.agreed(id)))
    }

    fn agreed(&self, export: ExportId) -> Agreed {
        Agreed { export, structured: self.structured, allocation: self.allocation == Some(export) }
    }

    fn on_go(&mut self, option: u32, data: &[u8], exports: &Exports, send_queue: &mut SendQueue) -> Next {
        let Some(name) = go_name(data) else {
            answer::option(
                send_queue,
                option,
                reply::ERR_INVALID,
                b"the option's lengths do not fit each other",
            );
            return Next::More;
        };
        let Some(id) = exports.find_block(name) else {
            answer::option(send_queue, option, reply::ERR_UNKNOWN, b"there is no export of this name");
            return Next::More;
        };
        let export: &Export = exports.get(id);
        answer::information(send_queue, option, export, self.structured);
        answer::option(send_queue, option, reply::ACK, &[]);
        if option == option::GO { Next::Serve(self.agreed(id)) } else { Next::More }
    }

    fn on_meta_context(&mut self, option: u32, data: &[u8], exports: &Exports, send_queue: &mut SendQueue) {
        let sets = option == option::SET_META_CONTEXT;
        if sets {
            self.allocation = None;
        }
        let Some((name, wanted)) = meta_context(data, sets).filter(|_| self.structured) else {
            let why = b"structured replies come first, and lengths must fit each other";
            return answer::option(send_queue, option, reply::ERR_INVALID, why);
        };
        let Some(id) = exports.find_block(name) else {
            return answer::option(
                send_queue,
                option,
                reply::ERR_UNKNOWN,
                b"there is no export of this name",
            );
        };
        if wanted {
            if sets {
                self.allocation = Some(id);
            }
            // Only a chosen context has a number.
            let number = if sets { answer::ALLOCATION_ID } else { 0 };
            let context = [&number.to_be_bytes()[..], ALLOCATION.as_bytes()].concat();
            answer::option(send_queue, option, reply::META_CONTEXT, &context);
        }
        answer::option(send_queue, option, reply::ACK, &[]);
    }
}

/// The only context.
const ALLOCATION: &str = "base:allocation";

fn on_list(data: &[u8], exports: &Exports, send_queue: &mut SendQueue) {
    if !data.is_empty() {
        return answer::option(send_queue, option::LIST, reply::ERR_INVALID, b"LIST has no data");
    }
    for (_, export) in exports.blocks() {
        let length = u32::try_from(export.name.len()).expect("names are short");
        let server = [&length.to_be_bytes(), export.name.as_bytes(), export.description.as_bytes()].concat();
        answer::option(send_queue, option::LIST, reply::SERVER, &server);
    }
    answer::option(send_queue, option::LIST, reply::ACK, &[]);
}

/// The name in the data of INFO and GO: what follows it must fit too. All information is given, whatever is asked for.
fn go_name(data: &[u8]) -> Option<&str> {
    let mut fields = Fields(data);
    let name = fields.text()?;
    let wishes = usize::from(fields.u16()?);
    fields.bytes(2 * wishes)?;
    fields.0.is_empty().then_some(name)
}

/// The export, and whether `base:allocation` is among the queries.
fn meta_context(data: &[u8], sets: bool) -> Option<(&str, bool)> {
    let mut fields = Fields(data);
    let name = fields.text()?;
    let queries = fields.u32()?;
    // A list without queries asks for all there is; a choice without queries chooses none.
    let mut wanted = queries == 0 && !sets;
    for _ in 0..queries {
        let query = fields.text()?;
        wanted |= query == ALLOCATION || query == "base:" && !sets;
    }
    fields.0.is_empty().then_some((name, wanted))
}

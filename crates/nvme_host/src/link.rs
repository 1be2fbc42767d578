//! A connection to a server: bytes out as the socket takes them, packets in as they become whole. It never blocks.
//!
//! Deliberately not here: what packets mean, and who waits (`alarm`, `queue`).

use crate::error::{HostError, HostErrorKind};
use crate::pdu::{self, Answer};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long a server may take to accept (chosen: three tries of TCP's first packet).
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Bytes that are asked of the socket at once (chosen: a transfer of 256 KiB with its header).
const READ_BYTES: usize = (256 << 10) + 4096;

/// A connection.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    /// Where it goes, for people.
    address: String,
    /// What came: the part before `taken` was taken apart, that behind `filled` is room.
    received: Vec<u8>,
    taken: usize,
    filled: usize,
    /// What is to be sent; the part before `sent` was.
    out: Vec<u8>,
    sent: usize,
    /// Bytes on the wire, both ways.
    pub bytes: u64,
}

impl Link {
    /// Connects.
    ///
    /// # Errors
    /// If nobody answers there.
    pub fn open(address: &str) -> Result<Self, HostError> {
        let nobody = |why: String| {
            let sentence = format!(
                "nobody serves a drive at {address}: {why}; start one there with `ocssd serve --nvme-tcp {address} --raw DRIVE`"
            );
            HostError::new(HostErrorKind::NotFound, sentence)
        };
        let places = address.to_socket_addrs().map_err(|error| nobody(error.to_string()))?;
        let mut why = "the name has no address".to_owned();
        for place in places {
            match TcpStream::connect_timeout(&place, CONNECT_MAX) {
                Ok(stream) => return Self::over(stream, address),
                Err(error) => why = error.to_string(),
            }
        }
        Err(nobody(why))
    }

    fn over(stream: TcpStream, address: &str) -> Result<Self, HostError> {
        let prepared = stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true));
        prepared
            .map_err(|error| HostError::broken(format!("the connection to {address} failed: {error}")))?;
        Ok(Self {
            stream,
            address: address.to_owned(),
            received: Vec::new(),
            taken: 0,
            filled: 0,
            out: Vec::new(),
            sent: 0,
            bytes: 0,
        })
    }

    /// The socket once more, for whoever waits for it.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub fn stream(&self) -> Result<TcpStream, HostError> {
        self.stream.try_clone().map_err(|error| self.lost(&error.to_string()))
    }

    /// Where what is to be sent is put.
    pub fn out(&mut self) -> &mut Vec<u8> {
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
        &mut self.out
    }

    /// Something waits until the socket takes it.
    pub fn wants_room(&self) -> bool {
        self.sent < self.out.len()
    }

    fn lost(&self, why: &str) -> HostError {
        HostError::broken(format!("the connection to the server at {} was lost: {why}", self.address))
    }

    /// Sends as much as the socket takes.
    ///
    /// # Errors
    /// If the connection is over.
    pub fn flush(&mut self) -> Result<(), HostError> {
        while self.wants_room() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    self.bytes += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(&error.to_string())),
            }
        }
        Ok(())
    }

    /// Takes what has come; true if that was anything.
    ///
    /// # Errors
    /// If the connection is over.
    pub fn fill(&mut self) -> Result<bool, HostError> {
        if self.taken > 0 {
            self.received.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
        }
        let room = self.filled + READ_BYTES;
        if self.received.len() < room {
            self.received.resize(room, 0);
        }
        match self.stream.read(&mut self.received[self.filled..]) {
            Ok(0) => Err(self.lost("it closed the connection")),
            Ok(count) => {
                self.filled += count;
                self.bytes += count as u64;
                Ok(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(self.lost(&error.to_string())),
        }
    }

    /// The next packet that is whole.
    ///
    /// # Errors
    /// If it is none, or ends the connection.
    pub fn next(&mut self) -> Result<Option<Answer<'_>>, HostError> {
        let rest = &self.received[self.taken..self.filled];
        let Some(bytes) = pdu::length(rest)?.filter(|&bytes| bytes <= rest.len()) else { return Ok(None) };
        self.taken += bytes;
        pdu::decode(&rest[..bytes]).map(Some)
    }

    /// Where it goes, for people.
    pub fn address(&self) -> &str {
        &self.address
    }
}

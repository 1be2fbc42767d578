//! A client that does exactly what it is told.

use ocssd_export::nbd::wire::{IHAVEOPT, RequestHeader, SIMPLE_REPLY_MAGIC, command, option};
use ocssd_export::reactor::Endpoint;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

pub trait Both: Read + Write {}
impl<T: Read + Write> Both for T {}

/// Connects, plainly.
pub fn connect(endpoint: &Endpoint) -> Box<dyn Both> {
    match endpoint {
        Endpoint::Unix(path) => Box::new(UnixStream::connect(path).expect("the server answers")),
        Endpoint::Tcp(address) => Box::new(TcpStream::connect(address).expect("the server answers")),
    }
}

/// An option as it is sent.
pub fn option_bytes(option: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).expect("the server answers");
    [&IHAVEOPT.to_be_bytes()[..], &option.to_be_bytes(), &length.to_be_bytes(), data].concat()
}

/// A client with simple replies.
pub struct Client {
    pub stream: Box<dyn Both>,
}

impl Client {
    /// Past the handshake.
    pub fn enter(endpoint: &Endpoint) -> Self {
        Self::over(connect(endpoint)).expect("the server answers")
    }

    /// Past the handshake, over a stream.
    pub fn over(mut stream: Box<dyn Both>) -> io::Result<Self> {
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        stream.write_all(&[0, 0, 0, 3])?;
        stream.write_all(&option_bytes(option::EXPORT_NAME, b"a"))?;
        let mut export = [0; 10];
        stream.read_exact(&mut export)?;
        Ok(Self { stream })
    }

    pub fn ask(&mut self, command: u16, cookie: u64, offset: u64, length: u32) -> io::Result<()> {
        self.stream.write_all(&RequestHeader { flags: 0, command, cookie, offset, length }.encode())
    }

    /// Error and cookie of the next reply.
    pub fn reply(&mut self) -> io::Result<(u32, u64)> {
        let mut bytes = [0; 16];
        self.stream.read_exact(&mut bytes)?;
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        assert_eq!(word(0), SIMPLE_REPLY_MAGIC);
        Ok((word(4), u64::from(word(8)) << 32 | u64::from(word(12))))
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) -> (u32, u64) {
        self.ask(command::WRITE, 1, offset, u32::try_from(data.len()).expect("the server answers"))
            .expect("the server answers");
        self.stream.write_all(data).expect("the server answers");
        self.reply().expect("the server answers")
    }

    pub fn read(&mut self, offset: u64, bytes: usize) -> Vec<u8> {
        self.ask(command::READ, 2, offset, u32::try_from(bytes).expect("the server answers"))
            .expect("the server answers");
        assert_eq!(self.reply().expect("the server answers"), (0, 2));
        let mut data = vec![0; bytes];
        self.stream.read_exact(&mut data).expect("the server answers");
        data
    }

    pub fn flush(&mut self) -> (u32, u64) {
        self.ask(command::FLUSH, 3, 0, 0).expect("the server answers");
        self.reply().expect("the server answers")
    }

    /// The server closes the connection, and sends nothing before.
    pub fn is_dropped(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => rest.is_empty(),
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

//! A connection's bytes: plain, or within TLS.
//!
//! Deliberately not here: what the bytes mean.

use super::listener::Socket;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read_vectored(buffers),
            Self::Tcp(stream) => stream.read_vectored(buffers),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write_vectored(slices),
            Self::Tcp(stream) => stream.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection's bytes.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    tls: Option<Box<ServerConnection>>,
}

impl Stream {
    /// Plain bytes.
    #[must_use]
    pub const fn plain(socket: Socket) -> Self {
        Self { socket, tls: None }
    }

    /// From the next byte on within TLS.
    ///
    /// # Errors
    /// As rustls says of the configuration.
    pub fn start_tls(&mut self, config: &Arc<ServerConfig>) -> io::Result<()> {
        let tls = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// TLS is spoken.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Receives into `first`, then `second`. Zero is the end.
    ///
    /// # Errors
    /// As the system says, [`io::ErrorKind::WouldBlock`] if nothing is there; [`io::ErrorKind::InvalidData`] of TLS.
    pub fn receive(&mut self, first: &mut [u8], second: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            if first.is_empty() {
                return self.socket.read(second);
            }
            return self.socket.read_vectored(&mut [IoSliceMut::new(first), IoSliceMut::new(second)]);
        };
        loop {
            let place = if first.is_empty() { &mut *second } else { &mut *first };
            match tls.reader().read(place) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            if tls.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            let processed = tls.process_new_packets();
            // What TLS itself answers, an alert too, goes out as far as it goes.
            let _ = tls.write_tls(&mut self.socket);
            processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }

    /// Sends what it can, and says how much.
    ///
    /// # Errors
    /// As the system says, [`io::ErrorKind::WouldBlock`] if there is no room.
    pub fn send(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.write_vectored(slices) };
        let taken = tls.writer().write_vectored(slices)?;
        let flushed = self.flush()?;
        if taken == 0 && !flushed { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    /// Sends what TLS still holds; true if that is nothing any more.
    ///
    /// # Errors
    /// As the system says.
    pub fn flush(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Says that this is the end, if TLS is spoken.
    pub fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // The connection ends whether the client hears it or not.
            let _ = tls.write_tls(&mut self.socket);
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Reads certificate and key (PEM) for a server; with `clients`, only clients whose certificate is signed by one of those
/// are served.
///
/// # Errors
/// A sentence: a file that cannot be read, holds nothing of the kind, or does not fit the other.
pub fn load_tls(certificate: &Path, key: &Path, clients: Option<&Path>) -> Result<Arc<ServerConfig>, String> {
    let wrong = |path: &Path, what: &str, error: &dyn std::fmt::Display| {
        format!("{}: expected {what} in PEM form: {error}", path.display())
    };
    let certificates = |path: &Path| {
        let list = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        match list {
            Ok(list) if list.is_empty() => Err(wrong(path, "certificates", &"there is none")),
            other => other.map_err(|error| wrong(path, "certificates", &error)),
        }
    };
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, "a private key", &error))?;
    let builder = ServerConfig::builder();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| wrong(path, "certificates", &error))?;
            }
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| wrong(path, "certificates", &error))?)
        }
    };
    let config = builder.with_single_cert(certificates(certificate)?, private);
    config.map(Arc::new).map_err(|error| {
        format!("{} and {} do not make a server's certificate: {error}", certificate.display(), key.display())
    })
}

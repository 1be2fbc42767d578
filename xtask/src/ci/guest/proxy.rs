//! A way to the server that can be cut: every connection through it ends at once, as when a cable is pulled.

use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// The way.
pub struct Proxy {
    port: u16,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    /// To a port of this machine. Its threads end with the program.
    ///
    /// Errors: there is no port left.
    pub fn start(to: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("no port can be listened on")?;
        let port = listener.local_addr()?.port();
        let open = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&open);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                // A server that is gone closes what comes.
                let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let mut list = kept.lock().unwrap_or_else(PoisonError::into_inner);
                for (from, to) in [(&near, &far), (&far, &near)] {
                    if let (Ok(from), Ok(to), Ok(copy)) = (from.try_clone(), to.try_clone(), from.try_clone())
                    {
                        list.push(copy);
                        std::thread::spawn(move || pass(from, to));
                    }
                }
            }
        });
        Ok(Self { port, open })
    }

    /// Where it listens.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Ends every connection.
    pub fn cut(&self) {
        for stream in self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // What is over already need not end.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Passes bytes on until either end is gone.
fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    for stream in [from, to] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_arrives_until_it_is_cut() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::start(server.local_addr().unwrap().port()).unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        let (mut accepted, _) = server.accept().unwrap();
        client.write_all(b"there").unwrap();
        let mut bytes = [0; 5];
        accepted.read_exact(&mut bytes).unwrap();
        accepted.write_all(&bytes).unwrap();
        client.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"there");
        proxy.cut();
        assert_eq!((client.read(&mut bytes).unwrap_or(0), accepted.read(&mut bytes).unwrap_or(0)), (0, 0));
    }
}

//! TLS: clients with it are served, clients without it are not.

use crate::client::{Both, Client, connect, option_bytes};
use crate::world::{ServerOptions, World, scratch};
use ocssd_export::DropReason;
use ocssd_export::nbd::wire::option;
use ocssd_export::reactor::{Endpoint, TlsConfig, load_tls};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// A certificate in files as a user has them, and a client's configuration that trusts it.
fn certificate() -> (Arc<TlsConfig>, Arc<ClientConfig>) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["localhost".to_owned()])
        .expect("a sound certificate and a live server");
    let (certificate, key) = (scratch("cert.pem"), scratch("key.pem"));
    std::fs::write(&certificate, cert.pem()).expect("a sound certificate and a live server");
    std::fs::write(&key, signing_key.serialize_pem()).expect("a sound certificate and a live server");
    let config = load_tls(&certificate, &key, None).expect("a sound certificate and a live server");
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a sound certificate and a live server");
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    (config, Arc::new(client))
}

fn encrypted() -> (World, Arc<ClientConfig>) {
    let (config, client) = certificate();
    let endpoint = "tcp:127.0.0.1:0".parse().expect("a sound certificate and a live server");
    (World::with(ServerOptions { endpoint, tls: Some(config), ..ServerOptions::default() }), client)
}

/// Up to the acknowledgement of STARTTLS.
fn begun(world: &World) -> TcpStream {
    let Endpoint::Tcp(address) = world.endpoint else { panic!("a tcp socket") };
    let mut stream = TcpStream::connect(address).expect("a sound certificate and a live server");
    stream.read_exact(&mut [0; 18]).expect("a sound certificate and a live server");
    stream
        .write_all(&[&[0, 0, 0, 3][..], &option_bytes(option::STARTTLS, &[])].concat())
        .expect("a sound certificate and a live server");
    let mut reply = [0; 20];
    stream.read_exact(&mut reply).expect("a sound certificate and a live server");
    assert_eq!(reply[12..16], [0, 0, 0, 1], "it is acknowledged");
    stream
}

/// A stream that has had its greeting already.
struct Resumed<S> {
    greeting: &'static [u8],
    flags: usize,
    stream: S,
}

impl<S: Read> Read for Resumed<S> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.greeting.is_empty() { self.stream.read(buffer) } else { self.greeting.read(buffer) }
    }
}

impl<S: Write> Write for Resumed<S> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.flags > 0 {
            // The client's flags went before TLS.
            let count = bytes.len().min(self.flags);
            self.flags -= count;
            return Ok(count);
        }
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

#[test]
fn a_client_is_served_within_tls() {
    let (world, config) = encrypted();
    let connection = ClientConnection::new(
        config,
        ServerName::try_from("localhost").expect("a sound certificate and a live server"),
    )
    .expect("a sound certificate and a live server");
    let stream = StreamOwned::new(connection, begun(&world));
    let stream: Box<dyn Both> = Box::new(Resumed { greeting: &[0; 18], flags: 4, stream });
    let mut client = Client::over(stream).expect("a sound certificate and a live server");
    let data: Vec<u8> = (0..1_048_576_u32)
        .map(|at| u8::try_from(at % 253).expect("a sound certificate and a live server"))
        .collect();
    assert_eq!(client.write(0, &data), (0, 1));
    assert!(client.read(0, data.len()) == data);
    assert_eq!(client.flush(), (0, 3));
    drop(client);
    let stats = world.end();
    let (write, read) = stats.copies_per_byte();
    assert_eq!((write, read), (Some(1.0), Some(1.0)), "TLS copies each byte once more");
}

#[test]
fn a_client_without_tls_is_not_served_and_a_broken_one_is_dropped() {
    let (mut world, _) = encrypted();
    let mut plain = connect(&world.endpoint);
    plain
        .write_all(&[&[0, 0, 0, 3][..], &option_bytes(option::EXPORT_NAME, b"a")].concat())
        .expect("a sound certificate and a live server");
    world.until("it is dropped", |stats| stats.dropped_for(DropReason::Garbage) == 1);
    let mut broken = begun(&world);
    broken.write_all(&[0x16; 400]).expect("a sound certificate and a live server");
    world.until("it is dropped", |stats| stats.dropped_for(DropReason::Tls) == 1);
    world.end();
}

#[test]
fn files_that_are_no_certificate_are_refused_with_their_name() {
    let (nothing, missing) = (scratch("nothing.pem"), scratch("missing.pem"));
    std::fs::write(&nothing, "nothing").expect("a sound certificate and a live server");
    let error = load_tls(&nothing, &missing, None).expect_err("it is refused");
    assert!(error.contains("missing.pem"), "{error}");
    let CertifiedKey { signing_key, .. } =
        generate_simple_self_signed(vec!["a".to_owned()]).expect("a sound certificate and a live server");
    let key = scratch("key.pem");
    std::fs::write(&key, signing_key.serialize_pem()).expect("a sound certificate and a live server");
    let error = load_tls(&nothing, &key, None).expect_err("it is refused");
    assert!(error.contains("nothing.pem"), "{error}");
}

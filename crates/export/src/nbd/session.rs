//! One NBD connection: the handshake, then the transmission.

use super::handshake::{Handshake, Next, TlsPolicy};
use super::transmission::Transmission;
use crate::dispatcher::Dispatcher;
use crate::job::Done;
use crate::protocol::{Phase, Protocol, ProtocolError, Space};
use crate::send_queue::SendQueue;

/// Bytes received at once during the handshake (chosen: several options).
const HANDSHAKE_BYTES: usize = 4096;

#[derive(Debug)]
enum Stage {
    Handshake(Box<Handshake>),
    /// TLS is to begin.
    Tls(Box<Handshake>),
    Transmission(Box<Transmission>),
    Over,
}

/// One NBD connection.
#[derive(Debug)]
pub struct Session {
    stage: Stage,
    send_queue: SendQueue,
    /// What its jobs are called.
    name: (u32, u32),
    stopping: bool,
}

impl Session {
    /// A connection that has just begun; its jobs are told to (`connection`, `generation`).
    #[must_use]
    pub fn new(tls: TlsPolicy, connection: u32, generation: u32) -> Self {
        let mut send_queue = SendQueue::default();
        let handshake = Box::new(Handshake::new(tls, &mut send_queue));
        let name = (connection, generation);
        Self { stage: Stage::Handshake(handshake), send_queue, name, stopping: false }
    }

    /// Takes bytes of the handshake.
    fn greet(&mut self, bytes: &[u8], dispatcher: &Dispatcher) -> Result<usize, ProtocolError> {
        let Stage::Handshake(handshake) = &mut self.stage else { return Ok(0) };
        if self.send_queue.is_long() {
            return Ok(0);
        }
        let (used, next) = handshake.on_bytes(bytes, &dispatcher.exports, &mut self.send_queue)?;
        match next {
            Next::More => {}
            Next::Closing => self.stage = Stage::Over,
            Next::Tls => {
                if let Stage::Handshake(handshake) = std::mem::replace(&mut self.stage, Stage::Over) {
                    self.stage = Stage::Tls(handshake);
                }
            }
            Next::Serve(agreed) => {
                let (connection, generation) = self.name;
                let mut transmission = Transmission::new(agreed, connection, generation);
                if self.stopping {
                    transmission.on_stop();
                }
                self.stage = Stage::Transmission(Box::new(transmission));
            }
        }
        Ok(used)
    }
}

impl Protocol for Session {
    fn on_bytes(&mut self, bytes: &[u8], dispatcher: &mut Dispatcher) -> Result<usize, ProtocolError> {
        let mut used = self.greet(bytes, dispatcher)?;
        if let Stage::Transmission(transmission) = &mut self.stage {
            used += transmission.on_bytes(&bytes[used..], &mut self.send_queue, dispatcher)?;
        }
        Ok(used)
    }

    fn payload_space(&self) -> Option<Space> {
        let Stage::Transmission(transmission) = &self.stage else { return None };
        transmission.payload_space().filter(|space| space.count > 0)
    }

    fn on_payload(&mut self, count: usize, dispatcher: &mut Dispatcher) {
        let Stage::Transmission(transmission) = &mut self.stage else {
            unreachable!("payload came in a handshake")
        };
        transmission.on_payload(count, dispatcher);
    }

    fn text_wanted(&self) -> usize {
        match &self.stage {
            Stage::Handshake(_) => HANDSHAKE_BYTES,
            Stage::Transmission(transmission) => transmission.text_wanted(),
            Stage::Tls(_) | Stage::Over => 0,
        }
    }

    fn on_done(&mut self, done: Done, dispatcher: &mut Dispatcher) {
        let Stage::Transmission(transmission) = &mut self.stage else {
            unreachable!("a job ended in a handshake")
        };
        transmission.on_done(done, &mut self.send_queue, dispatcher);
    }

    fn go_on(&mut self, dispatcher: &mut Dispatcher) -> bool {
        let Stage::Transmission(transmission) = &mut self.stage else { return false };
        transmission.go_on(dispatcher)
    }

    fn send_queue(&mut self) -> &mut SendQueue {
        &mut self.send_queue
    }

    fn phase(&self) -> Phase {
        match &self.stage {
            Stage::Handshake(_) => Phase::Greeting,
            Stage::Tls(_) => Phase::StartTls,
            Stage::Transmission(transmission) if transmission.is_over() => Phase::Leaving,
            Stage::Transmission(_) => Phase::Serving,
            Stage::Over => Phase::Leaving,
        }
    }

    fn on_tls(&mut self) {
        if let Stage::Tls(mut handshake) = std::mem::replace(&mut self.stage, Stage::Over) {
            handshake.on_tls();
            self.stage = Stage::Handshake(handshake);
        }
    }

    fn on_stop(&mut self) {
        self.stopping = true;
        if let Stage::Transmission(transmission) = &mut self.stage {
            transmission.on_stop();
        }
    }

    fn is_idle(&self) -> bool {
        !matches!(&self.stage, Stage::Transmission(transmission) if !transmission.is_idle())
    }

    fn release(&mut self, dispatcher: &mut Dispatcher) {
        if let Stage::Transmission(transmission) = &mut self.stage {
            transmission.release(dispatcher);
        }
        self.send_queue.clear(&mut dispatcher.pool);
        self.stage = Stage::Over;
    }
}

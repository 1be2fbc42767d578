//! One command after the other on a queue, each waited for: how a host begins.
//!
//! Deliberately not here: commands in flight (`drive`).

use crate::error::HostError;
use crate::link::Link;
use crate::pdu::{self, Answer};
use ocssd_nvme::fabrics::{Connect, ConnectData};
use ocssd_nvme::sgl::{SUBTYPE_OFFSET, SUBTYPE_TRANSPORT, SglDescriptor, SglKind};
use ocssd_nvme::{Cqe, Sqe};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

/// How long an answer may take while connecting (chosen: a server of many clients answers within a second).
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The entry with its data moved by the transport.
pub fn transported(sqe: Sqe, bytes: usize) -> Sqe {
    described(sqe, SglKind::TransportDataBlock, SUBTYPE_TRANSPORT, bytes)
}

/// The entry with its data in the capsule.
pub fn in_capsule(sqe: Sqe, bytes: usize) -> Sqe {
    described(sqe, SglKind::DataBlock, SUBTYPE_OFFSET, bytes)
}

fn described(sqe: Sqe, kind: SglKind, subtype: u8, bytes: usize) -> Sqe {
    let length_bytes = u32::try_from(bytes).expect("a transfer fits 32 bits");
    sqe.with_sgl(&SglDescriptor { address: 0, length_bytes, kind, subtype })
}

impl Link {
    /// Greets; how many bytes of data a packet may carry.
    ///
    /// # Errors
    /// If no server of NVMe/TCP answers.
    pub fn greet(&mut self) -> Result<usize, HostError> {
        pdu::push_hello(self.out());
        let address = self.address().to_owned();
        self.answer_within(Instant::now() + ANSWER_MAX, |answer| match answer {
            Answer::Hello { data_max } if data_max >= 4096 => Ok(Some(data_max)),
            other => Err(HostError::broken(format!("the server at {address} greets with {other:?}"))),
        })
    }

    /// Makes a queue of the connection.
    ///
    /// # Errors
    /// If the connection ends.
    pub fn connect(&mut self, connect: Connect, data: &ConnectData) -> Result<Cqe, HostError> {
        let sqe = in_capsule(Sqe::connect(connect), ConnectData::BYTES);
        pdu::push_command(self.out(), &sqe, &data.encode());
        self.completion(&mut [])
    }

    /// A command; `into` is filled with what it reads.
    ///
    /// # Errors
    /// If the connection ends.
    pub fn ask(&mut self, sqe: Sqe, into: &mut [u8]) -> Result<Cqe, HostError> {
        pdu::push_command(self.out(), &transported(sqe, into.len()), &[]);
        self.completion(into)
    }

    fn completion(&mut self, into: &mut [u8]) -> Result<Cqe, HostError> {
        self.answer_within(Instant::now() + ANSWER_MAX, |answer| match answer {
            Answer::Completion(cqe) => Ok(Some(cqe)),
            Answer::Data { offset, bytes, is_success, .. } => {
                let place = into.get_mut(offset..).and_then(|rest| rest.get_mut(..bytes.len()));
                let place =
                    place.ok_or_else(|| HostError::broken("the server sent more than was asked for"))?;
                place.copy_from_slice(bytes);
                Ok(is_success.then(|| Cqe::decode(&[0; Cqe::BYTES])))
            }
            other => Err(HostError::broken(format!("the server sent {other:?}"))),
        })
    }

    /// Looks at answers until one is what was waited for.
    fn answer_within<T>(
        &mut self,
        until: Instant,
        mut look: impl FnMut(Answer<'_>) -> Result<Option<T>, HostError>,
    ) -> Result<T, HostError> {
        loop {
            self.flush()?;
            self.fill()?;
            while let Some(answer) = self.next()? {
                if let Some(found) = look(answer)? {
                    return Ok(found);
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let sentence = format!(
                    "the server at {} does not answer within {} s",
                    self.address(),
                    ANSWER_MAX.as_secs()
                );
                return Err(HostError::broken(sentence));
            }
            let stream = self.stream()?;
            let room = if self.wants_room() { PollFlags::OUT } else { PollFlags::empty() };
            let limit = Timespec::try_from(left).expect("ten seconds");
            // A signal, or nothing: both lead to another look.
            let _ = poll(&mut [PollFd::new(&stream, PollFlags::IN | room)], Some(&limit));
        }
    }
}

//! What lies in a frontend's socket, looked at before it is taken.
//!
//! `vhost` reads a message to its end and answers, waiting for both; a frontend that sends half a message or takes no answers
//! would hold up everybody. So a message is taken only when all of it is there and the answer will fit. And some messages
//! must wait until requests have ended. Source: the vhost-user specification, "Message specification".

use crate::protocol::ProtocolError;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::time::Timespec;
use std::io;
use std::os::unix::net::UnixStream;
use vhost::vhost_user::message::{FrontendReq, MAX_MSG_SIZE};

/// Bytes of a header: request, flags, size.
const HEADER_BYTES: usize = 12;

/// Bytes looked at: a header and the number of a ring with a value.
const LOOK_BYTES: usize = HEADER_BYTES + 8;

/// What lies in the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing.
    Nothing,
    /// A part of a message.
    Part,
    /// A message, and what it must wait for.
    Whole(Barrier),
    /// The end.
    End,
}

/// What must have ended before a message is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// Nothing.
    None,
    /// Requests of one ring.
    Ring(u32),
    /// All requests.
    All,
}

/// Looks into a socket.
///
/// # Errors
/// [`ProtocolError`] for a message longer than any is; and as the system says.
pub fn look(stream: &UnixStream) -> io::Result<Result<Look, ProtocolError>> {
    let mut bytes = [0; LOOK_BYTES];
    let count = match rustix::net::recv(stream, &mut bytes[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((0, _)) => return Ok(Ok(Look::End)),
        Ok((count, _)) => count,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Ok(Look::Nothing)),
        Err(error) => return Err(error.into()),
    };
    if count < HEADER_BYTES {
        return Ok(Ok(Look::Part));
    }
    let word = |at: usize| u32::from_le_bytes(bytes[at..][..4].try_into().expect("four bytes"));
    let size = usize::try_from(word(8)).expect("32 bits fit an index");
    if size > MAX_MSG_SIZE {
        return Ok(Err(ProtocolError::oversized(format!(
            "a message of {size} bytes came; the longest has {MAX_MSG_SIZE}"
        ))));
    }
    let there = rustix::io::ioctl_fionread(stream)?;
    if there < u64::try_from(HEADER_BYTES + size).expect("it is small") {
        return Ok(Ok(Look::Part));
    }
    // A body that came apart from its header is not looked at yet: then all requests end first.
    let body = (count == LOOK_BYTES).then(|| (word(12), word(16)));
    Ok(Ok(Look::Whole(barrier(word(0), body))))
}

/// What a message must wait for; `body` is its first two words.
fn barrier(request: u32, body: Option<(u32, u32)>) -> Barrier {
    let ring = body.map_or(Barrier::All, |(ring, _)| Barrier::Ring(ring));
    match FrontendReq::try_from(request) {
        Ok(FrontendReq::GET_VRING_BASE) => ring,
        Ok(FrontendReq::SET_VRING_ENABLE) if body.is_none_or(|(_, enable)| enable == 0) => ring,
        // What changes where memory is, or what requests mean.
        Ok(
            FrontendReq::RESET_OWNER
            | FrontendReq::RESET_DEVICE
            | FrontendReq::SET_FEATURES
            | FrontendReq::SET_MEM_TABLE
            | FrontendReq::REM_MEM_REG,
        ) => Barrier::All,
        _ => Barrier::None,
    }
}

/// A short answer will go out at once.
///
/// # Errors
/// As the system says.
pub fn takes_answers(stream: &UnixStream) -> io::Result<bool> {
    let mut polled = [PollFd::new(stream, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut polled, Some(&now))?;
    Ok(polled[0].revents().contains(PollFlags::OUT))
}

/// The other end is gone.
pub fn is_gone(stream: &UnixStream) -> bool {
    let mut polled = [PollFd::new(stream, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let polled_well = rustix::event::poll(&mut polled, Some(&now)).is_ok();
    polled_well && polled[0].revents().intersects(PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn message(request: FrontendReq, size: u32, body: &[u8]) -> Vec<u8> {
        [&u32::from(request).to_le_bytes()[..], &1_u32.to_le_bytes(), &size.to_le_bytes(), body].concat()
    }

    #[test]
    fn a_message_is_seen_when_all_of_it_is_there() {
        let (mut one, other) = UnixStream::pair().unwrap();
        assert_eq!(look(&other).unwrap(), Ok(Look::Nothing));
        let bytes = message(FrontendReq::GET_VRING_BASE, 8, &[3, 0, 0, 0, 0, 0, 0, 0]);
        for byte in &bytes[..bytes.len() - 1] {
            one.write_all(&[*byte]).unwrap();
            assert_eq!(look(&other).unwrap(), Ok(Look::Part));
        }
        one.write_all(&bytes[bytes.len() - 1..]).unwrap();
        assert_eq!(look(&other).unwrap(), Ok(Look::Whole(Barrier::Ring(3))));
        drop(one);
        assert!(is_gone(&other));
    }

    #[test]
    fn an_end_and_an_absurd_length_are_told_apart_from_messages() {
        let (mut one, other) = UnixStream::pair().unwrap();
        assert!(takes_answers(&other).unwrap() && !is_gone(&other));
        one.write_all(&message(FrontendReq::SET_CONFIG, u32::MAX, &[])).unwrap();
        assert!(look(&other).unwrap().unwrap_err().sentence.contains("4294967295"));
        let (one, other) = UnixStream::pair().unwrap();
        drop(one);
        assert_eq!(look(&other).unwrap(), Ok(Look::End));
    }

    #[test]
    fn what_changes_memory_waits_for_requests_and_what_asks_does_not() {
        for (request, body, expected) in [
            (FrontendReq::GET_FEATURES, None, Barrier::None),
            (FrontendReq::SET_VRING_CALL, Some((1, 0)), Barrier::None),
            (FrontendReq::SET_VRING_ENABLE, Some((5, 0)), Barrier::Ring(5)),
            (FrontendReq::SET_VRING_ENABLE, Some((5, 1)), Barrier::None),
            (FrontendReq::GET_VRING_BASE, None, Barrier::All),
            (FrontendReq::REM_MEM_REG, Some((0, 0)), Barrier::All),
            (FrontendReq::RESET_DEVICE, None, Barrier::All),
        ] {
            assert_eq!(barrier(u32::from(request), body), expected, "{request:?}");
        }
        assert_eq!(barrier(9999, None), Barrier::None);
    }
}

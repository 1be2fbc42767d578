//! What comes from the client after the handshake: a header, then a write's payload, then the next header.
//!
//! Deliberately not here: what headers mean.

use super::wire::{NbdError, REQUEST_BYTES};
use crate::pool::PoolPiece;
use crate::protocol::Space;
use ocssd_base::SlabKey;

/// Payload on its way into a piece.
#[derive(Debug)]
pub struct Filling {
    /// The piece.
    pub piece: PoolPiece,
    /// First byte on the export.
    pub offset: u64,
    /// Bytes it is to hold.
    pub bytes: usize,
    /// Bytes it holds.
    pub filled: usize,
}

/// What comes next.
#[derive(Debug)]
pub enum Intake {
    /// A header, of which `have` bytes are there.
    Header {
        /// What is there.
        held: [u8; REQUEST_BYTES],
        /// How much.
        have: usize,
    },
    /// Payload of a write.
    Payload {
        /// The request.
        request: SlabKey,
        /// The piece it goes to; `None` while there is none.
        filling: Option<Filling>,
    },
    /// Payload of a write that is refused.
    Skip {
        /// Bytes still to come.
        left: u32,
        /// The client's name for the write.
        cookie: u64,
        /// What it will hear.
        error: NbdError,
    },
}

impl Intake {
    /// A header, of which nothing is there.
    #[must_use]
    pub const fn header() -> Self {
        Self::Header { held: [0; REQUEST_BYTES], have: 0 }
    }

    /// Where payload that comes next belongs.
    #[must_use]
    pub fn space(&self) -> Option<Space> {
        let Self::Payload { filling: Some(filling), .. } = self else { return None };
        let Filling { ref piece, bytes, filled, .. } = *filling;
        Some(Space { buffer: piece.buffer, first: filled, count: bytes - filled })
    }

    /// Nothing of a request has come.
    #[must_use]
    pub const fn is_between(&self) -> bool {
        matches!(self, Self::Header { have: 0, .. })
    }
}

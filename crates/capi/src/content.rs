//! What a request of pages or of keys gives: bytes of the caller's, or what it staged before; and stages.
//!
//! Deliberately not here: what a stage holds, which is the target's.

use crate::boundary::Memory;
use crate::failure::Failure;
use crate::payload::Loan;
use crate::request::OCSSD_STAGED;
use ocssd_lightnvm::BufId;
use ocssd_lightnvm::interface::{Content, Piece, StageId, StageOp};
use std::ffi::c_void;

/// Content of a request.
#[derive(Clone, Copy)]
pub enum Given {
    /// It lies in the caller's memory, and is copied.
    Here(Memory),
    /// It was staged.
    Staged {
        /// Where.
        stage: u32,
        /// Bytes of it.
        bytes: u32,
    },
}

/// What is done to a stage.
#[derive(Clone, Copy)]
pub enum StageAsk {
    /// It begins, for so many bytes.
    Open {
        /// Its name.
        stage: u32,
        /// Bytes it will have.
        bytes: u32,
    },
    /// Bytes are appended.
    Append {
        /// Its name.
        stage: u32,
        /// Bytes it has.
        offset: u32,
        /// What is appended.
        memory: Memory,
    },
    /// It ends.
    Abort {
        /// Its name.
        stage: u32,
    },
}

/// A length that requests have in 32 bits.
///
/// # Errors
/// EFBIG if it is longer.
pub fn length(bytes: u64, what: &str) -> Result<u32, Failure> {
    u32::try_from(bytes)
        .map_err(|_| Failure::new(libc::EFBIG, format!("{what} is {bytes}, and has 32 bits at most")))
}

fn narrow(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a buffer on loan has at most 16 MiB")
}

/// The first bytes of a buffer; nothing of no bytes.
pub fn piece(buffer: BufId, bytes: usize) -> Content {
    if bytes == 0 {
        Content::Empty
    } else {
        Content::Piece(Piece { buffer, first_byte: 0, bytes: narrow(bytes) })
    }
}

/// A buffer with room for what is read into the caller's memory.
///
/// # Errors
/// There is no memory for it now, or it is more than a request can have.
pub fn room_for(memory: Memory, loan: &mut Loan<'_>) -> Result<Content, Failure> {
    let bytes = memory.bytes();
    if bytes == 0 { Ok(Content::Empty) } else { Ok(piece(loan.room(bytes)?, bytes)) }
}

impl Given {
    /// As a request in C names it: `stage` with `OCSSD_STAGED` in the flags, else the memory.
    ///
    /// # Errors
    /// Both, or neither.
    pub fn of(flags: u32, stage: u32, data: *const c_void, bytes: u64) -> Result<Self, Failure> {
        if flags & OCSSD_STAGED == 0 {
            return Ok(Self::Here(Memory::new(data, bytes, "data")?));
        }
        if !data.is_null() {
            return Err(Failure::invalid(
                "data is not NULL, but with OCSSD_STAGED the stage has the content",
            ));
        }
        Ok(Self::Staged { stage, bytes: length(bytes, "bytes")? })
    }

    /// As the request has it.
    ///
    /// # Errors
    /// As [`room_for`].
    pub fn content(&self, loan: &mut Loan<'_>) -> Result<Content, Failure> {
        match *self {
            Self::Here(memory) if memory.bytes() == 0 => Ok(Content::Empty),
            Self::Here(memory) => Ok(piece(loan.copy_of(memory)?, memory.bytes())),
            Self::Staged { stage, bytes } => Ok(Content::Staged { stage: StageId(stage), bytes }),
        }
    }
}

impl StageAsk {
    /// As the request has it.
    ///
    /// # Errors
    /// As [`room_for`].
    pub fn op(&self, loan: &mut Loan<'_>) -> Result<StageOp, Failure> {
        Ok(match *self {
            Self::Open { stage, bytes } => StageOp::Open { stage: StageId(stage), bytes },
            Self::Append { stage, offset, memory } => {
                let content = Given::Here(memory).content(loan)?;
                StageOp::Append { stage: StageId(stage), offset, content }
            }
            Self::Abort { stage } => StageOp::Abort { stage: StageId(stage) },
        })
    }

    /// In words.
    pub fn words(&self) -> String {
        match self {
            Self::Open { stage, bytes } => format!("opening stage {stage} for {bytes} bytes"),
            Self::Append { stage, offset, memory } => {
                format!("appending {} bytes at {offset} to stage {stage}", memory.bytes())
            }
            Self::Abort { stage } => format!("giving up stage {stage}"),
        }
    }
}

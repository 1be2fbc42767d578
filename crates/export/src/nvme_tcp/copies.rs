//! How data of a host comes from the socket to the buffer that a target reads: at once, or by way of memory as OX takes it.
//!
//! The OX controller (version 2.7) receives messages of at most 60 KiB of data into a buffer, puts one that TCP split together in
//! another, and copies it to where its queues keep capsules. All of that is done here, and nothing of it without being asked:
//! it shows what the copies cost. Deliberately not here: the copies behind that, which OX's layers and a target make alike.

use super::wire::H2C_BYTES_MAX;

/// Data of a message of OX: 15 blocks of 4 KiB, the most that fit 65,184 bytes.
const OX_DATA_BYTES: usize = 15 * 4096;

/// Bytes OX receives at once: a message with its header (its wire unit is at most 65,504 bytes).
const OX_RECEIVE_BYTES: usize = 64 << 10;

/// Which way data comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copies {
    /// The kernel puts it where the target reads it, but for what comes together with a header.
    #[default]
    InPlace,
    /// As on the OX controller: into memory of the connection, put together there, and copied to where the target reads it.
    Ox,
}

impl std::str::FromStr for Copies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "in-place" => Ok(Self::InPlace),
            "ox" => Ok(Self::Ox),
            other => Err(format!("data come in-place or as of ox, but \"{other}\" was given")),
        }
    }
}

impl Copies {
    /// Data of one H2CData that hosts may send.
    pub(super) const fn data_bytes_max(self) -> usize {
        match self {
            Self::InPlace => H2C_BYTES_MAX,
            Self::Ox => OX_DATA_BYTES,
        }
    }

    /// Bytes to receive at once, whatever they are; `None` if that depends on what is expected.
    pub(super) const fn receive_bytes(self) -> Option<usize> {
        match self {
            Self::InPlace => None,
            Self::Ox => Some(OX_RECEIVE_BYTES),
        }
    }
}

/// Data of a message that TCP split.
#[derive(Debug, Default)]
pub(super) struct Assembly(Vec<u8>);

impl Assembly {
    /// Takes what came of `whole` bytes, and says how much that was and whether it is all; what came at once needs no putting
    /// together.
    pub(super) fn take(&mut self, bytes: &[u8], whole: usize) -> Taken {
        if self.0.is_empty() && bytes.len() >= whole {
            return Taken { bytes: whole, is_split: false, is_whole: true };
        }
        let taken = bytes.len().min(whole - self.0.len());
        self.0.extend_from_slice(&bytes[..taken]);
        assert!(self.0.len() <= whole, "more came than a message has");
        Taken { bytes: taken, is_split: true, is_whole: self.0.len() == whole }
    }

    /// The message.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Nothing is kept.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// What was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// So many bytes.
    pub(super) bytes: usize,
    /// They were copied, for the message came in several parts.
    pub(super) is_split: bool,
    /// The message is whole.
    pub(super) is_whole: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_put_together_only_if_it_was_split() {
        let mut assembly = Assembly::default();
        assert_eq!(assembly.take(&[1, 2, 3, 4], 3), Taken { bytes: 3, is_split: false, is_whole: true });
        assert_eq!(assembly.take(&[1], 3), Taken { bytes: 1, is_split: true, is_whole: false });
        assert_eq!(assembly.take(&[2, 3, 9], 3), Taken { bytes: 2, is_split: true, is_whole: true });
        assert_eq!(assembly.bytes(), [1, 2, 3]);
        assembly.clear();
        assert!(assembly.bytes().is_empty());
    }

    #[test]
    fn ways_have_names() {
        assert_eq!(("ox".parse(), "in-place".parse()), (Ok(Copies::Ox), Ok(Copies::InPlace)));
        let error = "five".parse::<Copies>().expect_err("there is none of this name");
        assert!(error.contains("in-place") && error.contains("five"), "{error}");
    }
}

//! Durability, verification and error policy of a job, in fio's words.
//!
//! Owned by [`JobOptions`](super::JobOptions). Deliberately not here: computing or comparing any content.

/// fio `sync`: what each write promises when it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// Nothing more than the target's own rule.
    None,
    /// Data and metadata are durable (`O_SYNC`; on a block target: forced unit access).
    Sync,
    /// Data is durable (`O_DSYNC`; on a block target the same as `Sync`).
    Dsync,
}

/// fio `verify`: the words fio knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// A checksum named by the user.
    Checksum(Checksum),
    /// The block's own description: offset, number, time.
    Meta,
    /// The pattern of `verify_pattern`.
    Pattern,
    /// Verification is pretended (fio `null`), for measuring its cost.
    Null,
}

/// What is really compared for a [`Verify`] word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyContent {
    /// Each block carries a stamp (address and sequence number) and must return it.
    Stamp,
    /// Each block must repeat `verify_pattern`.
    Pattern,
    /// Nothing.
    Nothing,
}

impl Verify {
    /// What is compared: a checksum's only purpose is to notice wrong content, which the stamp does exactly.
    #[must_use]
    pub const fn content(self) -> VerifyContent {
        match self {
            Self::Checksum(_) | Self::Meta => VerifyContent::Stamp,
            Self::Pattern => VerifyContent::Pattern,
            Self::Null => VerifyContent::Nothing,
        }
    }
}

/// The checksums fio 3.33 accepts for `verify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// MD5.
    Md5,
    /// CRC-64.
    Crc64,
    /// CRC-32.
    Crc32,
    /// CRC-32C, in software or hardware (`crc32c-intel` is the same word for fio).
    Crc32c,
    /// CRC-16.
    Crc16,
    /// CRC-7.
    Crc7,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
    /// SHA3-224.
    Sha3_224,
    /// SHA3-256.
    Sha3_256,
    /// SHA3-384.
    Sha3_384,
    /// SHA3-512.
    Sha3_512,
    /// xxHash.
    Xxhash,
}

/// fio `continue_on_error`: after which errors a job goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContinueOnError {
    /// After a failed read.
    pub read: bool,
    /// After a failed write or trim.
    pub write: bool,
    /// After a block that did not verify.
    pub verify: bool,
}

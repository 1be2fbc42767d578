//! The messages of FUSE as bytes: what the kernel asks, and how it is answered. Numbers are in the machine's byte order.
//!
//! Source: `include/uapi/linux/fuse.h` of Linux, protocol 7.31. Deliberately not here: what is done about a message.

use std::time::Duration;

/// `fuse_in_header`.
pub const HEADER_BYTES: usize = 40;

/// `fuse_in_header` and `fuse_write_in`: payload of a write begins behind them.
pub const WRITE_HEAD_BYTES: usize = HEADER_BYTES + 40;

/// `fuse_out_header`.
pub const ANSWER_BYTES: usize = 16;

/// The protocol spoken: `FUSE_KERNEL_VERSION`, which never was another, and a minor version whose structures these are. A
/// kernel that speaks a newer one goes down to it; Linux 5.4 and later speak this one.
pub const VERSION: (u32, u32) = (7, 31);

/// `enum fuse_opcode`: what is asked.
pub mod opcode {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const SETATTR: u32 = 4;
    pub const SYMLINK: u32 = 6;
    // Then MKNOD, MKDIR, UNLINK, RMDIR and RENAME.
    pub const LINK: u32 = 13;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const WRITE: u32 = 16;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FSYNC: u32 = 20;
    pub const INIT: u32 = 26;
    pub const OPENDIR: u32 = 27;
    pub const READDIR: u32 = 28;
    pub const RELEASEDIR: u32 = 29;
    pub const FSYNCDIR: u32 = 30;
    pub const CREATE: u32 = 35;
    pub const INTERRUPT: u32 = 36;
    pub const DESTROY: u32 = 38;
    pub const NOTIFY_REPLY: u32 = 41;
    pub const BATCH_FORGET: u32 = 42;
    pub const FALLOCATE: u32 = 43;
    pub const RENAME2: u32 = 45;
}

/// Flags of `fuse_init_in` and `fuse_init_out`.
pub mod ability {
    /// Reads of one file at once.
    pub const ASYNC_READ: u32 = 1 << 0;
    /// `O_TRUNC` comes with the opening, so that it can be told from a call of `truncate`.
    pub const ATOMIC_O_TRUNC: u32 = 1 << 3;
    /// Writes of more than a page.
    pub const BIG_WRITES: u32 = 1 << 5;
    /// Parts of one direct I/O at once.
    pub const ASYNC_DIO: u32 = 1 << 15;
    /// Look-ups in one directory at once.
    pub const PARALLEL_DIROPS: u32 = 1 << 18;
    /// `max_pages` means something.
    pub const MAX_PAGES: u32 = 1 << 22;
}

/// `fuse_setattr_in.valid`: what is to be set.
pub mod attribute {
    pub const SIZE: u32 = 1 << 3;
    pub const MTIME: u32 = 1 << 5;
    pub const MTIME_NOW: u32 = 1 << 8;
    /// Mode and owner.
    pub const ACCESS: u32 = 0b111;
}

/// Modes of `fallocate` (`include/uapi/linux/falloc.h`).
pub mod fallocate {
    pub const KEEP_SIZE: u32 = 1;
    pub const PUNCH_HOLE: u32 = 2;
    pub const ZERO_RANGE: u32 = 0x10;
}

/// `fuse_in_header`, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the message.
    pub length: u32,
    /// What is asked.
    pub opcode: u32,
    /// The kernel's name for it.
    pub unique: u64,
    /// What it is about.
    pub node: u64,
}

/// Fields of a message, in order. Every question is `None` behind the end.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    /// A number of 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().expect("four bytes")))
    }

    /// A number of 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().expect("eight bytes")))
    }
}

impl Header {
    /// Reads it from the beginning of a message; `None` if that is too short.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes.get(..HEADER_BYTES)?);
        let (length, opcode) = (fields.u32()?, fields.u32()?);
        Some(Self { length, opcode, unique: fields.u64()?, node: fields.u64()? })
    }
}

/// What the kernel asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// The first message: versions and abilities.
    Init { version: (u32, u32), max_readahead: u32, abilities: u32 },
    /// A name in the directory.
    Lookup { name: &'a [u8] },
    /// Everything about a node.
    Getattr,
    /// Changes something about a node; `valid` says what.
    Setattr { valid: u32, size: u64, mtime: Duration },
    /// Opens a file, with the flags of `open`.
    Open { flags: u32 },
    /// Opens the directory.
    Opendir,
    /// The directory's names from a place on, in at most `size` bytes.
    Readdir { place: u64, size: u32 },
    /// Reads of a file.
    Read { offset: u64, size: u32 },
    /// Writes what follows.
    Write { offset: u64, size: u32 },
    /// Makes durable.
    Fsync,
    /// Frees or zeroes a range.
    Fallocate { offset: u64, length: u64, mode: u32 },
    /// How large it is.
    Statfs,
    /// Something ends that nothing is kept about.
    Release,
    /// Would make, move or remove a name.
    Rearrange,
    /// Nothing to be answered.
    Notice,
    /// Something that is not known here, which the kernel then does without.
    Other,
}

impl<'a> Request<'a> {
    /// Reads a message behind its header; of a write, without its payload. `None` if it is too short.
    pub fn decode(opcode: u32, body: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(body);
        Some(match opcode {
            opcode::INIT => {
                let version = (fields.u32()?, fields.u32()?);
                Self::Init { version, max_readahead: fields.u32()?, abilities: fields.u32()? }
            }
            opcode::LOOKUP => Self::Lookup { name: body.split(|&byte| byte == 0).next()? },
            opcode::GETATTR => Self::Getattr,
            opcode::SETATTR => setattr(fields)?,
            opcode::OPEN => Self::Open { flags: fields.u32()? },
            opcode::OPENDIR => Self::Opendir,
            opcode::READDIR | opcode::READ | opcode::WRITE => {
                fields.u64()?;
                let (offset, size) = (fields.u64()?, fields.u32()?);
                match opcode {
                    opcode::READDIR => Self::Readdir { place: offset, size },
                    opcode::READ => Self::Read { offset, size },
                    _ => Self::Write { offset, size },
                }
            }
            opcode::FSYNC | opcode::FSYNCDIR => Self::Fsync,
            opcode::FALLOCATE => {
                fields.u64()?;
                Self::Fallocate { offset: fields.u64()?, length: fields.u64()?, mode: fields.u32()? }
            }
            opcode::STATFS => Self::Statfs,
            opcode::RELEASE | opcode::RELEASEDIR | opcode::DESTROY => Self::Release,
            opcode::SYMLINK..=opcode::LINK | opcode::CREATE | opcode::RENAME2 => Self::Rearrange,
            opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT | opcode::NOTIFY_REPLY => Self::Notice,
            _ => Self::Other,
        })
    }
}

/// `fuse_setattr_in`.
fn setattr(mut fields: Fields<'_>) -> Option<Request<'_>> {
    let valid = fields.u32()?;
    // Padding and the file handle.
    fields.bytes(12)?;
    let size = fields.u64()?;
    // The owner of locks and the time of access.
    fields.bytes(16)?;
    let seconds = fields.u64()?;
    // The time of change, and the nanoseconds of the time of access.
    fields.bytes(12)?;
    let nanos = fields.u32()?;
    Some(Request::Setattr { valid, size, mtime: Duration::new(seconds, nanos.min(999_999_999)) })
}

/// `fuse_out_header`.
pub fn answer_head(payload_bytes: usize, errno: i32, unique: u64) -> [u8; ANSWER_BYTES] {
    let length = u32::try_from(ANSWER_BYTES + payload_bytes).expect("an answer is short");
    let mut head = [0; ANSWER_BYTES];
    head[..4].copy_from_slice(&length.to_ne_bytes());
    head[4..8].copy_from_slice(&(-errno).to_ne_bytes());
    head[8..].copy_from_slice(&unique.to_ne_bytes());
    head
}

/// What is agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Agreement {
    /// Abilities used.
    pub abilities: u32,
    /// Bytes read ahead.
    pub max_readahead: u32,
    /// Requests that nobody waits for, at once.
    pub max_background: u16,
    /// Bytes of a write.
    pub max_write: u32,
    /// Pages of a read or write.
    pub max_pages: u16,
}

/// `fuse_init_out`.
pub fn init(agreed: &Agreement) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    for number in [VERSION.0, VERSION.1, agreed.max_readahead, agreed.abilities] {
        out.extend(number.to_ne_bytes());
    }
    out.extend(agreed.max_background.to_ne_bytes());
    // Congestion, which libfuse sets to three quarters as well.
    out.extend((agreed.max_background / 4 * 3).to_ne_bytes());
    // Times are exact to the nanosecond.
    [agreed.max_write, 1].iter().for_each(|number| out.extend(number.to_ne_bytes()));
    out.extend(agreed.max_pages.to_ne_bytes());
    out.resize(64, 0);
    out
}

/// What there is to say about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub node: u64,
    /// Bytes.
    pub size: u64,
    /// When it was changed, since 1970.
    pub mtime: Duration,
    /// Kind and rights.
    pub mode: u32,
    /// Names it has.
    pub links: u32,
    /// Owner: user and group.
    pub owner: (u32, u32),
    /// Bytes best read and written at once.
    pub block_bytes: u32,
}

/// `fuse_attr`.
fn attributes(out: &mut Vec<u8>, of: &Attributes) {
    let (seconds, nanos) = (of.mtime.as_secs(), of.mtime.subsec_nanos());
    for number in [of.node, of.size, of.size.div_ceil(512), seconds, seconds, seconds] {
        out.extend(number.to_ne_bytes());
    }
    let (user, group) = of.owner;
    for number in [nanos, nanos, nanos, of.mode, of.links, user, group, 0, of.block_bytes, 0] {
        out.extend(number.to_ne_bytes());
    }
}

/// `fuse_attr_out`: the kernel may keep it for `seconds`.
pub fn attributes_out(of: &Attributes, seconds: u64) -> Vec<u8> {
    let mut out = seconds.to_ne_bytes().to_vec();
    out.extend([0; 8]);
    attributes(&mut out, of);
    out
}

/// `fuse_entry_out`: the kernel may keep name and attributes for so many seconds.
pub fn entry_out(of: &Attributes, name_seconds: u64, seconds: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    for number in [of.node, 0, name_seconds, seconds, 0] {
        out.extend(number.to_ne_bytes());
    }
    attributes(&mut out, of);
    out
}

/// `fuse_open_out`, without a handle and a flag: nothing is kept about open files.
pub const OPENED: [u8; 16] = [0; 16];

/// `fuse_write_out`.
pub fn written(bytes: u32) -> Vec<u8> {
    [bytes.to_ne_bytes(), [0; 4]].concat()
}

/// `fuse_kstatfs` of a full file system with this many blocks and files.
pub fn statfs(block_bytes: u32, blocks: u64, files: u64, name_bytes: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(80);
    [blocks, 0, 0, files, 0].iter().for_each(|number: &u64| out.extend(number.to_ne_bytes()));
    [block_bytes, name_bytes, block_bytes].iter().for_each(|number| out.extend(number.to_ne_bytes()));
    out.resize(80, 0);
    out
}

/// `fuse_dirent`: a name, and the place behind it. False if it does not fit into `most` bytes; then nothing is added.
pub fn directory_entry(out: &mut Vec<u8>, most: usize, node: u64, next: u64, kind: u32, name: &[u8]) -> bool {
    let bytes = (24 + name.len()).next_multiple_of(8);
    if out.len() + bytes > most {
        return false;
    }
    let end = out.len() + bytes;
    [node, next].iter().for_each(|number| out.extend(number.to_ne_bytes()));
    out.extend(u32::try_from(name.len()).expect("a name is short").to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(name);
    out.resize(end, 0);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_sizes_of_their_structures() {
        let of = Attributes {
            node: 2,
            size: 1000,
            mtime: Duration::new(7, 8),
            mode: 0o100_644,
            links: 1,
            owner: (3, 4),
            block_bytes: 4096,
        };
        let agreed =
            Agreement { abilities: 1, max_readahead: 2, max_background: 8, max_write: 3, max_pages: 4 };
        let sizes =
            [init(&agreed).len(), attributes_out(&of, 1).len(), entry_out(&of, 1, 1).len(), written(1).len()];
        assert_eq!(sizes, [64, 104, 128, 8]);
        assert_eq!(statfs(4096, 1, 1, 255).len(), 80);
        let out = attributes_out(&of, 1);
        let number = |at: usize| u64::from_ne_bytes(out[at..at + 8].try_into().unwrap());
        assert_eq!(
            [number(16), number(24), number(32), number(48)],
            [2, 1000, 2, 7],
            "node, size, blocks, mtime"
        );
    }

    #[test]
    fn a_directory_entry_fits_whole_or_not_at_all() {
        let mut out = Vec::new();
        assert!(directory_entry(&mut out, 64, 2, 1, 8, b"name"));
        assert_eq!(out.len(), 32);
        assert!(directory_entry(&mut out, 64, 3, 2, 8, b"12345678"));
        assert!(!directory_entry(&mut out, 64, 4, 3, 8, b""));
        assert_eq!(out.len(), 64);
    }

    #[test]
    fn messages_that_end_too_early_are_none() {
        let sizes = [(opcode::INIT, 16), (opcode::SETATTR, 64), (opcode::OPEN, 4), (opcode::READ, 20)];
        for (opcode, bytes) in sizes.into_iter().chain([(opcode::WRITE, 20), (opcode::FALLOCATE, 28)]) {
            let body = vec![0; bytes];
            assert!(Request::decode(opcode, &body).is_some(), "{opcode}");
            assert!(Request::decode(opcode, &body[1..]).is_none(), "{opcode}");
        }
        assert_eq!(Header::decode(&[0; HEADER_BYTES - 1]), None);
    }

    #[test]
    fn the_fields_of_a_message_lie_where_the_kernel_puts_them() {
        let mut body = vec![0; 88];
        body[0..4].copy_from_slice(&(attribute::SIZE | attribute::MTIME).to_ne_bytes());
        body[16..24].copy_from_slice(&77_u64.to_ne_bytes());
        body[40..48].copy_from_slice(&5_u64.to_ne_bytes());
        body[60..64].copy_from_slice(&6_u32.to_ne_bytes());
        let valid = attribute::SIZE | attribute::MTIME;
        let expected = Request::Setattr { valid, size: 77, mtime: Duration::new(5, 6) };
        assert_eq!(Request::decode(opcode::SETATTR, &body), Some(expected));
        assert_eq!(Request::decode(opcode::LOOKUP, b"a\0b"), Some(Request::Lookup { name: b"a" }));
        assert_eq!(Request::decode(opcode::RENAME2, &[]), Some(Request::Rearrange));
        assert_eq!(Request::decode(9999, &[]), Some(Request::Other));
    }
}

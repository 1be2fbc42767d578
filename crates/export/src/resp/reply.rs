//! Answers in RESP2 or RESP3, as the client asked by HELLO.
//!
//! Types that RESP2 does not have are sent as what its clients expect: maps as flat arrays, null as a null bulk string. An answer
//! of megabytes is a list of parts, so that none is ever moved, and long values are in it without a copy.

use crate::shared_bytes::SharedBytes;

/// Longest part that an answer is written into (chosen: an allocator has such at hand, and a socket takes a few).
const PART_BYTES_MAX: usize = 64 << 10;

/// Values from so many bytes on are parts of their own (chosen: a copy of fewer costs less than a part does).
const SHARED_BYTES_MIN: usize = 16 << 10;

/// A revision of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// RESP2, as every connection begins.
    #[default]
    Two,
    /// RESP3.
    Three,
}

/// Answers that are being written, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// What was written first.
    parts: Vec<SharedBytes>,
    /// What is behind that.
    bytes: Vec<u8>,
    /// Bytes of both.
    len: usize,
    version: Version,
}

impl Reply {
    /// Nothing yet.
    #[must_use]
    pub const fn new(version: Version) -> Self {
        Self { parts: Vec::new(), bytes: Vec::new(), len: 0, version }
    }

    /// One that is an error of this text, which begins with its code, as `ERR syntax error`.
    #[must_use]
    pub fn of_error(version: Version, text: &str) -> Self {
        let mut reply = Self::new(version);
        reply.error(text);
        reply
    }

    /// Bytes it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Its bytes: long parts, and what is behind them.
    #[must_use]
    pub fn into_parts(self) -> (Vec<SharedBytes>, Vec<u8>) {
        (self.parts, self.bytes)
    }

    fn push(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() >= PART_BYTES_MAX {
            self.end_part();
        }
    }

    /// What was written is a part.
    fn end_part(&mut self) {
        if !self.bytes.is_empty() {
            // The next will be as long.
            let next = Vec::with_capacity(self.bytes.len().min(PART_BYTES_MAX));
            self.parts.push(std::mem::replace(&mut self.bytes, next).into());
        }
    }

    /// Which revision it is in.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.push(&[kind]);
        self.push(text);
        self.push(b"\r\n");
    }

    fn count(&mut self, kind: u8, count: usize) {
        self.line(kind, count.to_string().as_bytes());
    }

    /// `OK`.
    pub fn ok(&mut self) {
        self.simple("OK");
    }

    /// A word.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error; line ends in the text become spaces.
    pub fn error(&mut self, text: &str) {
        let text: Vec<u8> =
            text.bytes().map(|byte| if byte == b'\r' || byte == b'\n' { b' ' } else { byte }).collect();
        self.line(b'-', &text);
    }

    /// A whole number.
    pub fn integer(&mut self, value: i64) {
        self.line(b':', value.to_string().as_bytes());
    }

    /// A length.
    pub fn length(&mut self, value: usize) {
        self.count(b':', value);
    }

    /// Any bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.count(b'$', bytes.len());
        self.push(bytes);
        self.push(b"\r\n");
    }

    /// The same, without a copy if they are long.
    pub fn bulk_shared(&mut self, bytes: SharedBytes) {
        if bytes.len() < SHARED_BYTES_MIN {
            return self.bulk(&bytes);
        }
        self.count(b'$', bytes.len());
        self.end_part();
        self.len += bytes.len();
        self.parts.push(bytes);
        self.push(b"\r\n");
    }

    /// Any bytes, or nothing.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// The same, without a copy if they are long.
    pub fn shared_or_null(&mut self, bytes: Option<SharedBytes>) {
        match bytes {
            Some(bytes) => self.bulk_shared(bytes),
            None => self.null(),
        }
    }

    /// Nothing, where a string might have been.
    pub fn null(&mut self) {
        match self.version {
            Version::Two => self.line(b'$', b"-1"),
            Version::Three => self.line(b'_', b""),
        }
    }

    /// Nothing, where an array might have been.
    pub fn null_array(&mut self) {
        match self.version {
            Version::Two => self.line(b'*', b"-1"),
            Version::Three => self.line(b'_', b""),
        }
    }

    /// An array of so many answers, which follow.
    pub fn array(&mut self, count: usize) {
        self.count(b'*', count);
    }

    /// A set of so many answers, which follow.
    pub fn set(&mut self, count: usize) {
        match self.version {
            Version::Two => self.count(b'*', count),
            Version::Three => self.count(b'~', count),
        }
    }

    /// A map of so many pairs of answers, which follow.
    pub fn map(&mut self, pairs: usize) {
        match self.version {
            Version::Two => self.count(b'*', 2 * pairs),
            Version::Three => self.count(b'%', pairs),
        }
    }

    /// Text for people.
    pub fn text(&mut self, text: &str) {
        match self.version {
            Version::Two => self.bulk(text.as_bytes()),
            Version::Three => self.bulk_of_kind(b'=', b"txt:", text.as_bytes()),
        }
    }

    fn bulk_of_kind(&mut self, kind: u8, head: &[u8], bytes: &[u8]) {
        self.count(kind, head.len() + bytes.len());
        self.push(head);
        self.push(bytes);
        self.push(b"\r\n");
    }

    /// Answers that were written elsewhere.
    pub fn append(&mut self, other: Self) {
        self.end_part();
        self.parts.extend(other.parts);
        self.bytes = other.bytes;
        self.len += other.len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(version: Version, write: impl Fn(&mut Reply)) -> String {
        let mut reply = Reply::new(version);
        write(&mut reply);
        let len = reply.len();
        let (parts, last) = reply.into_parts();
        let bytes = parts.iter().map(|part| &**part).chain([&last[..]]).collect::<Vec<&[u8]>>().concat();
        assert_eq!(bytes.len(), len);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_long_answer_is_in_parts_and_long_values_are_not_copied() {
        let value = SharedBytes::from(vec![b'v'; SHARED_BYTES_MIN]);
        let mut reply = Reply::new(Version::Two);
        reply.array(1002);
        (0..1000).for_each(|_| reply.bulk(&[b'x'; 200]));
        reply.bulk_shared(value.clone());
        let mut behind = Reply::new(Version::Two);
        behind.bulk_shared(SharedBytes::from(&b"short"[..]));
        reply.append(behind);
        let (parts, last) = reply.clone().into_parts();
        assert_eq!((parts.len(), last), (6, b"$5\r\nshort\r\n".to_vec()));
        assert_eq!(parts[4].as_ptr(), value.as_ptr());
        assert!(
            parts.iter().all(|part| part.len() < PART_BYTES_MAX + 210),
            "the longest is a part and a value"
        );
        let expected = ["*1002\r\n".to_owned(), format!("$200\r\n{}\r\n", "x".repeat(200)).repeat(1000)]
            .concat()
            + &format!("${SHARED_BYTES_MIN}\r\n{}\r\n$5\r\nshort\r\n", "v".repeat(SHARED_BYTES_MIN));
        assert_eq!(written(Version::Two, |other| other.append(reply.clone())), expected);
    }

    #[test]
    fn each_type_is_written_as_its_revision_has_it() {
        type Write = fn(&mut Reply);
        let cases: [(Write, &str, &str); 9] = [
            (Reply::ok, "+OK\r\n", "+OK\r\n"),
            (|reply| reply.error("ERR a\r\nb"), "-ERR a  b\r\n", "-ERR a  b\r\n"),
            (|reply| reply.integer(-5), ":-5\r\n", ":-5\r\n"),
            (|reply| reply.bulk(b"a\r\nb"), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"),
            (Reply::null, "$-1\r\n", "_\r\n"),
            (Reply::null_array, "*-1\r\n", "_\r\n"),
            (|reply| reply.map(2), "*4\r\n", "%2\r\n"),
            (|reply| reply.set(2), "*2\r\n", "~2\r\n"),
            (|reply| reply.text("ab"), "$2\r\nab\r\n", "=6\r\ntxt:ab\r\n"),
        ];
        for (write, two, three) in cases {
            assert_eq!(
                (written(Version::Two, write), written(Version::Three, write)),
                (two.into(), three.into())
            );
        }
    }
}

//! Answers in RESP2 or RESP3, as the client asked by HELLO.
//!
//! Types that RESP2 does not have are sent as what its clients expect: maps as flat arrays, null as a null bulk string.

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
    bytes: Vec<u8>,
    version: Version,
}

impl Reply {
    /// Nothing yet.
    #[must_use]
    pub const fn new(version: Version) -> Self {
        Self { bytes: Vec::new(), version }
    }

    /// One that is an error of this text, which begins with its code, as `ERR syntax error`.
    #[must_use]
    pub fn of_error(version: Version, text: &str) -> Self {
        let mut reply = Self::new(version);
        reply.error(text);
        reply
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Which revision it is in.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(text);
        self.bytes.extend_from_slice(b"\r\n");
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
        self.bytes.reserve(bytes.len() + 24);
        self.count(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Any bytes, or nothing.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
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
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Answers written elsewhere.
    pub fn append(&mut self, other: &[u8]) {
        self.bytes.extend_from_slice(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(version: Version, write: impl Fn(&mut Reply)) -> String {
        let mut reply = Reply::new(version);
        write(&mut reply);
        String::from_utf8(reply.bytes).unwrap()
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

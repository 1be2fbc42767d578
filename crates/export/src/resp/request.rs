//! Requests as clients send them: arrays of bulk strings, or a line of words (inline commands).
//!
//! The parser takes any cut of the stream. It never holds more than one request; what is longer than the memory there is for
//! requests is read over and told as such, so that the client stays in step. Deliberately not here: what a request means.

use super::budget::{Budget, FREE_BYTES, Reservation};
use super::inline;
use super::number;
use crate::shared_bytes::SharedBytes;
use std::ops::Range;
use std::rc::Rc;

/// Most words of a request (Redis took as many until 7.0; more is a malformed request here).
const WORDS_MAX: i64 = 1 << 20;

/// Longest line: an inline command or a length (Redis: `PROTO_INLINE_MAX_SIZE`).
const LINE_BYTES_MAX: usize = 64 << 10;

/// Words beyond so many are counted as memory too: each takes its place in a list (chosen).
const WORD_COST: usize = 16;

/// A command's name and its arguments.
#[derive(Debug)]
pub struct Request {
    /// Nobody else has them while it is read.
    bytes: Rc<Vec<u8>>,
    /// Where each word ends.
    ends: Vec<usize>,
    reservation: Reservation,
}

impl Request {
    /// One without words.
    #[must_use]
    pub fn empty(budget: &Budget) -> Self {
        Self { bytes: Rc::default(), ends: Vec::new(), reservation: budget.nothing() }
    }

    /// One of these words.
    #[must_use]
    pub fn of_words(budget: &Budget, words: &[&[u8]]) -> Self {
        let mut request = Self::empty(budget);
        words.iter().for_each(|word| request.push(word));
        request
    }

    /// Room for so many more bytes at once, if they are many: what has come of a long word would be moved again and again. Memory
    /// is used as they come.
    fn reserve(&mut self, bytes: usize) {
        let own = Rc::get_mut(&mut self.bytes).expect("a request that is read is nobody else's");
        if own.len() >= FREE_BYTES && own.capacity() - own.len() < bytes {
            own.reserve_exact(bytes);
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let own = Rc::get_mut(&mut self.bytes).expect("a request that is read is nobody else's");
        own.extend_from_slice(bytes);
    }

    fn push(&mut self, word: &[u8]) {
        self.add(word);
        self.ends.push(self.bytes.len());
    }

    /// How many words.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// One word; the name is word 0.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn word(&self, place: usize) -> &[u8] {
        &self.bytes[self.range(place)]
    }

    /// The same, for who keeps it.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn shared(&self, place: usize) -> SharedBytes {
        SharedBytes::part(&self.bytes, self.range(place))
    }

    fn range(&self, place: usize) -> Range<usize> {
        let first = if place == 0 { 0 } else { self.ends[place - 1] };
        first..self.ends[place]
    }

    /// The words from one on.
    pub fn words_from(&self, first: usize) -> impl ExactSizeIterator<Item = &[u8]> {
        (first.min(self.len())..self.len()).map(|place| self.word(place))
    }

    /// The word is this one, in letters of any size.
    #[must_use]
    pub fn is(&self, place: usize, word: &str) -> bool {
        place < self.len() && self.word(place).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Bytes it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * WORD_COST
    }
}

/// What came of some bytes.
#[derive(Debug)]
pub enum Parsed {
    /// No whole request yet.
    More,
    /// A request.
    Request(Request),
    /// One for which there was no memory was read over.
    PassedOver,
}

/// Bytes that are no request, in Redis' words; the connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

#[derive(Debug)]
enum State {
    /// Between requests, or within the first line of one.
    Line,
    /// Within the line that says how long the next word is.
    Length,
    /// Within a word: bytes to come, with the line end behind it.
    Word { left: usize },
}

/// Reads requests.
#[derive(Debug)]
pub struct Parser {
    state: State,
    /// A line that has begun.
    line: Vec<u8>,
    request: Request,
    words_left: i64,
    /// There was no memory for the request.
    is_passed_over: bool,
    budget: Budget,
    word_bytes_max: usize,
}

impl Parser {
    /// Takes words of at most `word_bytes_max` bytes.
    #[must_use]
    pub fn new(budget: &Budget, word_bytes_max: usize) -> Self {
        Self {
            state: State::Line,
            line: Vec::new(),
            request: Request::empty(budget),
            words_left: 0,
            is_passed_over: false,
            budget: budget.clone(),
            word_bytes_max,
        }
    }

    /// Nothing of a request has come.
    #[must_use]
    pub const fn is_between(&self) -> bool {
        matches!(self.state, State::Line) && self.line.is_empty()
    }

    /// Takes bytes up to the end of the next request; returns how many, and what came of them.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn take(&mut self, bytes: &[u8]) -> Result<(usize, Parsed), Malformed> {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            let parsed = match self.state {
                State::Word { left } => {
                    used += self.take_word(rest, left);
                    self.end_if_whole()
                }
                State::Line | State::Length => {
                    let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
                        self.keep_line(rest)?;
                        return Ok((bytes.len(), Parsed::More));
                    };
                    used += end + 1;
                    let line = &rest[..end];
                    if self.line.is_empty() {
                        self.on_line(line)?
                    } else {
                        self.keep_line(line)?;
                        let line = std::mem::take(&mut self.line);
                        self.on_line(&line)?
                    }
                }
            };
            if let Some(parsed) = parsed {
                return Ok((used, parsed));
            }
        }
        Ok((used, Parsed::More))
    }

    /// A line goes on.
    fn keep_line(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        if self.line.len() + bytes.len() > LINE_BYTES_MAX {
            let first = self.line.first().or(bytes.first());
            let what = match (&self.state, first) {
                (State::Length, _) => "too big bulk count string",
                (_, Some(b'*')) => "too big mbulk count string",
                _ => "too big inline request",
            };
            return Err(malformed(what));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn on_line(&mut self, line: &[u8]) -> Result<Option<Parsed>, Malformed> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match (&self.state, line) {
            (State::Length, [b'$', length @ ..]) => {
                let length = number::integer(length).and_then(|length| usize::try_from(length).ok());
                let Some(length) = length.filter(|length| *length <= self.word_bytes_max) else {
                    return Err(malformed("invalid bulk length"));
                };
                self.state = State::Word { left: length + 2 };
                Ok(None)
            }
            (State::Length, [first, ..]) => {
                Err(malformed(&format!("expected '$', got '{}'", first.escape_ascii())))
            }
            (State::Length, []) => Err(malformed("expected '$', got ' '")),
            (_, [b'*', count @ ..]) => {
                let count = number::integer(count).filter(|count| *count <= WORDS_MAX);
                let Some(count) = count else { return Err(malformed("invalid multibulk length")) };
                if count > 0 {
                    self.words_left = count;
                    self.state = State::Length;
                }
                Ok(None)
            }
            (_, words) => {
                let Some(words) = inline::split(words) else {
                    return Err(malformed("unbalanced quotes in request"));
                };
                if words.is_empty() {
                    return Ok(None);
                }
                words.iter().for_each(|word| self.request.push(word));
                Ok(Some(self.whole()))
            }
        }
    }

    /// Takes bytes of a word that has `left` to come; returns how many.
    fn take_word(&mut self, bytes: &[u8], left: usize) -> usize {
        let taken = left.min(bytes.len());
        // The last two are the line end, which nobody looks at (nor does Redis).
        let content = taken.min(left.saturating_sub(2));
        self.make_room(content);
        if !self.is_passed_over {
            self.request.reserve(left);
            self.request.add(&bytes[..content]);
        }
        self.state = State::Word { left: left - taken };
        taken
    }

    /// Memory for so many more bytes of the request, or it is read over from here on.
    fn make_room(&mut self, bytes: usize) {
        let wanted = self.request.bytes() + bytes + WORD_COST;
        if !self.is_passed_over && wanted > FREE_BYTES && !self.request.reservation.cover(wanted) {
            self.is_passed_over = true;
            self.request = Request::empty(&self.budget);
        }
    }

    fn end_if_whole(&mut self) -> Option<Parsed> {
        let State::Word { left: 0 } = self.state else { return None };
        if !self.is_passed_over {
            self.request.ends.push(self.request.bytes.len());
        }
        self.words_left -= 1;
        if self.words_left > 0 {
            self.state = State::Length;
            return None;
        }
        Some(self.whole())
    }

    fn whole(&mut self) -> Parsed {
        self.state = State::Line;
        let request = std::mem::replace(&mut self.request, Request::empty(&self.budget));
        if std::mem::take(&mut self.is_passed_over) { Parsed::PassedOver } else { Parsed::Request(request) }
    }
}

fn malformed(what: &str) -> Malformed {
    Malformed(format!("ERR Protocol error: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a stream of bytes is taken for, in pieces of so many bytes: words of requests, and how it ends.
    fn parse(stream: &[u8], piece: usize, budget: &Budget) -> (Vec<Vec<String>>, Option<String>) {
        let mut parser = Parser::new(budget, 1 << 20);
        let mut requests = Vec::new();
        for bytes in stream.chunks(piece) {
            let mut at = 0;
            while at < bytes.len() {
                let (used, parsed) = match parser.take(&bytes[at..]) {
                    Ok(both) => both,
                    Err(Malformed(text)) => return (requests, Some(text)),
                };
                at += used;
                match parsed {
                    Parsed::More => {}
                    Parsed::PassedOver => requests.push(vec!["passed over".into()]),
                    Parsed::Request(request) => {
                        let words = request.words_from(0).map(|word| String::from_utf8_lossy(word).into());
                        requests.push(words.collect());
                    }
                }
            }
        }
        (requests, None)
    }

    #[test]
    fn requests_are_the_same_however_the_stream_is_cut() {
        let stream = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n\r\nPING\r\n*0\r\n*-10\r\nset \"a b\" 'c'\r\n*1\r\n$0\r\n\r\n";
        let budget = Budget::new(0);
        let whole = parse(stream, stream.len(), &budget);
        let expected: [&[&str]; 4] = [&["GET", "a\r\nb"], &["PING"], &["set", "a b", "c"], &[""]];
        assert_eq!(
            whole.0,
            expected.map(|words| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
        );
        for piece in 1..stream.len() {
            assert_eq!(parse(stream, piece, &budget), whole, "pieces of {piece}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused_in_redis_words() {
        let budget = Budget::new(0);
        let long = |first: &str| [first.as_bytes(), &[b'A'; LINE_BYTES_MAX]].concat();
        for (stream, words) in [
            (b"*3000000000\r\n".to_vec(), "invalid multibulk length"),
            (b"*a\r\n".to_vec(), "invalid multibulk length"),
            (b"*1\r\nfoo\r\n".to_vec(), "expected '$', got 'f'"),
            (b"*1\r\n\r\n".to_vec(), "expected '$', got ' '"),
            (b"*1\r\n$-10\r\n".to_vec(), "invalid bulk length"),
            (b"*1\r\n$blabla\r\n".to_vec(), "invalid bulk length"),
            (b"*1\r\n$2000000000\r\n".to_vec(), "invalid bulk length"),
            (b"set \"a\r\n".to_vec(), "unbalanced quotes in request"),
            (long("\0"), "too big inline request"),
            (long("*"), "too big mbulk count string"),
            (long("*1\r\n$"), "too big bulk count string"),
        ] {
            for piece in [1000, stream.len()] {
                let (requests, end) = parse(&stream, piece, &budget);
                assert_eq!((requests.len(), end), (0, Some(format!("ERR Protocol error: {words}"))));
            }
        }
    }

    #[test]
    fn a_request_without_memory_is_read_over_and_the_next_is_taken() {
        let budget = Budget::new(100_000);
        let set =
            |bytes: usize| [format!("*1\r\n${bytes}\r\n").as_bytes(), &vec![b'x'; bytes], b"\r\n"].concat();
        let stream = [set(90_000), set(500_000), set(5)].concat();
        for piece in [977, stream.len()] {
            let (requests, end) = parse(&stream, piece, &budget);
            let first: Vec<_> = requests.iter().map(|words| words[0].len()).collect();
            assert_eq!((first, end), (vec![90_000, 11, 5], None));
        }
        assert_eq!(budget.used(), 0);
    }
}
